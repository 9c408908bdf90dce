"""Compiled graphs in the persistent cache: what is found again, what isn't, and what trouble with it does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import warnings

import pytest
import torch
from torch import nn

import torch_accel
from torch_accel import backend

pytestmark = pytest.mark.compiler


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of the test's own, in use."""
    place = tmp_path / "cache"
    monkeypatch.setenv("ACCEL_CACHE", "on")
    monkeypatch.setenv("ACCEL_CACHE_DIR", str(place))
    monkeypatch.setattr(backend, "_warned_caches", set())
    return place


def compiled(function, *inputs, **options):
    """Compiles afresh, as another process would; the results and the outcomes of the cache."""
    torch._dynamo.reset()
    torch_accel.reset_reports()
    results = torch.compile(function, backend="accel", options=options or None)(*inputs)
    return results, [report.cache for report in torch_accel.reports()]


def entries(folder):
    return sorted(folder.glob("v1/*/*.executable"))


def test_the_same_graph_is_found_again(folder):
    def function(x):
        return x.softmax(-1)

    x = torch.randn(5, 7)
    # The graph's name counts the graphs of the process, which is no part of the key.
    for outcome in ("stored", "hit"):
        result, outcomes = compiled(function, x)
        assert outcomes == [outcome]
        torch.testing.assert_close(result, function(x))
    (report,) = torch_accel.reports()
    assert report.kernels
    assert report.name == f"graph_{next(backend._graph_numbers) - 1}"
    assert len(entries(folder)) == 1


def test_profiles_name_the_graph_as_this_process_does(folder):
    def function(x):
        return x * 2 + 1

    for outcome in ("stored", "hit"):
        _, outcomes = compiled(function, torch.randn(8))
        assert outcomes == [outcome]
    run = torch.compile(function, backend="accel")
    with torch.profiler.profile() as profile:
        run(torch.randn(8))
    assert f"accel::run {torch_accel.reports()[-1].name}" in {event.name for event in profile.events()}


def test_what_is_another_graph(folder):
    x = torch.randn(4, 6)

    def function(x):
        return (x @ x.t()).relu()

    assert compiled(function, x)[1] == ["stored"]
    assert compiled(function, x, contractions="own")[1] == ["stored"]
    assert compiled(function, x, target="cpu:x86-64-v3")[1] == ["stored"]
    assert compiled(function, x.double())[1] == ["stored"]
    assert compiled(function, torch.randn(4, 5))[1] == ["stored"]
    assert compiled(function, torch.randn(6, 4).t())[1] == ["stored"]
    assert compiled(function, x)[1] == ["hit"]
    assert len(entries(folder)) == 6


def test_training(folder):
    def step():
        torch.manual_seed(1)
        layer = nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.Linear(9, 2))
        x = torch.randn(3, 6)
        loss, _ = compiled(lambda x: layer(x).square().mean(), x)
        loss.backward()
        return [loss.detach(), *(p.grad for p in layer.parameters())], [r.cache for r in torch_accel.reports()]

    first, outcomes = step()
    assert set(outcomes) == {"stored"}
    again, outcomes = step()
    assert outcomes == ["hit"] * len(outcomes)
    assert len(outcomes) == 2
    torch.testing.assert_close(first, again, rtol=0, atol=0)


def test_weights_are_not_part_of_an_entry(folder):
    x = torch.randn(3, 40)
    with torch.no_grad():
        for outcome in ("stored", "hit"):
            layer = nn.Linear(40, 64)
            result, outcomes = compiled(layer, x)
            assert outcomes == [outcome]
            torch.testing.assert_close(result, layer(x))


def test_symbolic_sizes(folder):
    for outcome in ("stored", "hit"):
        torch._dynamo.reset()
        torch_accel.reset_reports()
        run = torch.compile(lambda x: x.softmax(-1) + 1, backend="accel", dynamic=True)
        for rows in (3, 8):
            x = torch.randn(rows, 2 * rows)
            torch.testing.assert_close(run(x), x.softmax(-1) + 1)
        assert [report.cache for report in torch_accel.reports()] == [outcome]


def test_damaged_entries_are_compiled_anew(folder):
    x = torch.randn(16)
    compiled(torch.sin, x)
    (path,) = entries(folder)
    data = path.read_bytes()
    for damaged in (data[:-1], data[: len(data) // 2], b"", bytes([data[0] ^ 1]) + data[1:], data[:-9] + b"123456789"):
        path.write_bytes(damaged)
        result, outcomes = compiled(torch.sin, x)
        assert outcomes == ["stored"]
        torch.testing.assert_close(result, x.sin())
        assert len(path.read_bytes()) == len(data)
    assert compiled(torch.sin, x)[1] == ["hit"]


def test_a_folder_that_others_can_write_to_is_refused_and_named_once(folder):
    folder.mkdir()
    folder.chmod(0o777)
    x = torch.randn(16)
    with pytest.warns(RuntimeWarning, match="persistent cache is not used: .*0777"):
        result, outcomes = compiled(torch.cos, x)
    assert "not stored" in outcomes[0]
    torch.testing.assert_close(result, x.cos())
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        compiled(torch.cos, x)


def test_dumps_show_every_phase(folder, tmp_path):
    x = torch.randn(16)
    compiled(torch.exp, x)
    _, outcomes = compiled(torch.exp, x, dump_dir=str(tmp_path / "dump"))
    assert outcomes == ["off"]
    assert list(tmp_path.glob("dump/*/06-*"))


PROCESS = textwrap.dedent("""
    import json, sys
    import torch, torch_accel

    layer = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.GELU(), torch.nn.LayerNorm(64))
    x = torch.randn(7, 20)
    with torch.no_grad():
        got, want = torch.compile(layer, backend="accel")(x), layer(x)
    with open("/proc/self/maps") as file:
        libraries = {line.split("/")[-1].strip() for line in file if "/" in line}
    print(json.dumps({
        "cache": [report.cache for report in torch_accel.reports()],
        "phases": sorted(torch_accel.reports()[0].seconds),
        "error": (got - want).abs().max().item(),
        "compiler": [name for name in libraries if name.startswith(("libLLVM", "libMLIR", "_compiler"))],
    }))
""")


def run_process():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, "-c", PROCESS], stdout=subprocess.PIPE, env=environment, text=True)


def result_of(process):
    output, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(output)


def test_the_next_process_does_without_the_compiler(folder):
    cold, warm = result_of(run_process()), result_of(run_process())
    assert cold["cache"] == ["stored"]
    assert cold["compiler"]
    assert warm["cache"] == ["hit"]
    assert warm["compiler"] == []
    assert not {"load_compiler", "import", "codegen"} & set(warm["phases"])
    assert max(cold["error"], warm["error"]) < 1e-5


def test_processes_that_start_together(folder):
    results = [result_of(process) for process in [run_process() for _ in range(3)]]
    assert all(set(result["cache"]) <= {"stored", "hit"} for result in results)
    assert all(result["error"] < 1e-5 for result in results)
    assert len(entries(folder)) == 1
    assert result_of(run_process())["cache"] == ["hit"]
