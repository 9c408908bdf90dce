"""`accel record` and `accel warm`: graphs compiled without their model's code are found by the model's process."""

from __future__ import annotations

import json
import os
import sys

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import torch_accel
from torch_accel import cli

pytestmark = pytest.mark.compiler


def run(*arguments, status=0):
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    assert result.exit_code == status, result.output
    return result.output


def outcomes(*arguments, status=0):
    return [graph["outcome"] for graph in json.loads(run("warm", *arguments, "--json", status=status))["graphs"]]


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 3, bias=False))


def compile_all(**options):
    """Inference, and both graphs of a training step, of a size that stays symbolic."""
    torch._dynamo.reset()
    torch_accel.reset_reports()
    net, x = model(), torch.randn(5, 10)
    torch._dynamo.mark_dynamic(x, 0)
    compiled = torch.compile(net, backend="accel", options=options)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), net(x), rtol=1e-5, atol=1e-5)
    compiled(x).sum().backward()
    return [report.cache for report in torch_accel.reports()]


def test_recorded_graphs_are_warm(tmp_path):
    records, cache = tmp_path / "records", tmp_path / "cache"
    assert compile_all(record=str(records)) == ["off"] * 3
    assert compile_all(record=str(records)) == ["off"] * 3
    assert len(list(records.iterdir())) == 3  # equal graphs once, and no temporary files
    assert outcomes(records, "--dir", cache) == ["stored"] * 3
    assert outcomes(records, "--dir", cache) == ["was there"] * 3
    assert compile_all(cache="on", cache_dir=str(cache)) == ["hit"] * 3
    assert "was there" in run("warm", records, "--dir", cache)


def test_other_targets(tmp_path):
    records, cache = tmp_path / "records", tmp_path / "cache"
    compile_all(record=str(records))
    assert outcomes(records, "--dir", cache, "--target", "cpu:x86-64-v2") == ["stored"] * 3
    assert outcomes(records, "--dir", cache, "--target", "cpu:x86-64-v3") == ["stored"] * 3
    assert compile_all(cache="on", cache_dir=str(cache), target="cpu:x86-64-v2") == ["hit"] * 3
    (wrong,) = set(outcomes(records, "--dir", cache, "--target", "cpu:nonesuch", status=1))
    assert "nonesuch" in wrong
    assert "known values" in run("warm", records, "--dir", cache, "--target", "tpu", status=1)


def test_record_runs_a_program(tmp_path, monkeypatch):
    program = "import sys, torch; torch.compile(lambda x: x + 1, backend='accel')(torch.ones(3)); sys.exit(7)"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    run("record", tmp_path / "records", sys.executable, "-c", program, status=7)
    assert len(list((tmp_path / "records").iterdir())) == 1
    run("record", tmp_path / "records", tmp_path / "no such program", status=1)


def test_what_is_no_record(tmp_path):
    assert "no recorded graphs" in run("warm", tmp_path, "--dir", tmp_path / "cache", status=1)
    for text, why in (("{", "no recorded graph"), ('{"version": 9}', "version 9"), ("[]", "no recorded graph")):
        (tmp_path / "a.graph.json").write_text(text)
        assert why in run("warm", tmp_path, "--dir", tmp_path / "cache", status=1)
    (tmp_path / "a.graph.json").write_text('{"version": 1, "options": {}, "graph": {"version": 1}}')
    assert "`nodes`" in run("warm", tmp_path, "--dir", tmp_path / "cache", status=1)


def test_recording_to_a_place_that_is_none_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="a graph is not recorded"):
        torch.compile(lambda x: x * 2, backend="accel", options={"record": str(tmp_path / "file")})(torch.ones(3))
