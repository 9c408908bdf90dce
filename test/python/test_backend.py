"""The backend's Python half, with a stand-in for the compiler that runs documents with PyTorch's ops."""

import json
import os
import subprocess
import sys
import tomllib
import types
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

import fx_document
import torch_accel
from torch_accel import backend as accel_backend
from torch_accel.fx_json import UnsupportedGraphError

ROOT = Path(__file__).resolve().parents[2]


class StandIn:
    """Serves as `_compiler` and `_runtime`; keeps what it was given."""

    def __init__(self):
        self.graphs: list[dict] = []
        self.options: list[dict] = []
        self.failure: Exception | None = None
        self.fallbacks: list[dict] = []
        names = {"GraphError": ValueError, "UnsupportedError": Exception, "CompilerError": RuntimeError}
        for name, base in names.items():
            setattr(self, name, type(name, (base,), {}))

    def compile(self, fx_json, options_json, progress):
        if self.failure is not None:
            raise self.failure
        graph = json.loads(fx_json)
        self.graphs.append(graph)
        self.options.append(json.loads(options_json))
        if progress is not None:
            progress("import", 0.5)
        counts = {"native": len(graph["nodes"]), "library": 0, "fallback": len(self.fallbacks)}
        return fx_json.encode(), json.dumps({"graph": graph["name"], "nodes": counts, "fallbacks": self.fallbacks})

    def executable(self, bundle, boxed):
        assert boxed
        graph = json.loads(bundle)

        def call(inputs):
            values = list(inputs)
            inputs.clear()
            return fx_document.run(graph, values)

        call.function = lambda constants: lambda *inputs: call([*inputs, *constants])
        return call


@pytest.fixture
def compiler(monkeypatch):
    stand_in = StandIn()
    for name in ("_compiler", "_runtime"):
        module = types.ModuleType(f"torch_accel.{name}")
        vars(module).update(
            compile=stand_in.compile,
            Executable=stand_in.executable,
            GraphError=stand_in.GraphError,
            UnsupportedError=stand_in.UnsupportedError,
            CompilerError=stand_in.CompilerError,
        )
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(torch_accel, name, module, raising=False)
    monkeypatch.setattr(accel_backend, "_warned_targets", set())
    return stand_in


def cause(error, kind):
    """The exception of a kind inside the one that Dynamo raises."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or getattr(error, "inner_exception", None)
    assert error is not None
    return error


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("offset", torch.arange(4.0))

    def forward(self, x):
        return self.linear(x) * torch.tensor([1.0, 2.0, 3.0, 4.0]) + self.offset


def kinds(graph):
    return [n["kind"] for n in graph["nodes"] if n["op"] == "input"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_inference(compiler, dynamic):
    model, x = Model(), torch.randn(3, 4)
    with torch.no_grad():
        result = torch.compile(model, backend="accel", dynamic=dynamic)(x)
        torch.testing.assert_close(result, model(x))
    (graph,) = compiler.graphs
    assert sorted(kinds(graph)) == sorted(
        ["parameter"] * 2 + ["input"] * (2 if dynamic else 1) + ["buffer", "constant"]
    )
    (report,) = torch_accel.reports()
    assert report.part == "inference"
    assert {"capture", "load", "total", "aot_autograd"} <= set(report.seconds)


def test_training(compiler):
    model, x = Model(), torch.randn(3, 4)
    expected = torch.autograd.grad(model(x).sum(), list(model.parameters()))
    torch.compile(model, backend="accel")(x).sum().backward()
    torch.testing.assert_close([p.grad for p in model.parameters()], list(expected))
    assert [r.part for r in torch_accel.reports()] == ["forward", "backward"]
    assert compiler.graphs[0]["name"].endswith("_forward")
    assert compiler.graphs[1]["name"].endswith("_backward")


def test_input_mutation(compiler):
    x = torch.ones(3)
    torch.compile(lambda x: x.add_(1), backend="accel")(x)
    torch.testing.assert_close(x, torch.full((3,), 2.0))


def test_options_reach_the_compiler(compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("ACCEL_FALLBACK", "error")
    torch.compile(lambda x: x + 1, backend="accel", options={"dump_dir": str(tmp_path)})(torch.ones(2))
    (options,) = compiler.options
    name = compiler.graphs[0]["name"]
    assert options == {
        "target": "cpu",
        "dump_dir": str(tmp_path / name),
        "fallback": "error",
        "contractions": "auto",
        "constant_weights": True,
    }
    assert json.loads((tmp_path / name / "00-capture.json").read_text()) == compiler.graphs[0]


def test_mode_is_checked(compiler):
    torch.compile(lambda x: x + 1, backend="accel", mode="max-autotune")(torch.ones(2))
    assert torch_accel.reports()[0].mode == "max-autotune"
    with pytest.raises(Exception, match="unknown mode 'fast'; known modes are"):
        torch.compile(lambda x: x + 1, backend="accel", mode="fast")(torch.ones(2))


def test_unknown_option_is_an_error(compiler):
    with pytest.raises(Exception, match="unknown option 'tune'; known options are"):
        torch.compile(lambda x: x + 1, backend="accel", options={"tune": 1})(torch.ones(2))


def test_each_fallen_back_op_is_warned_of_once(compiler):
    compiler.fallbacks = [{"node": f"n{i}", "target": "aten.foo.default", "reason": "no lowering"} for i in range(2)]
    with pytest.warns(
        accel_backend.FallbackWarning, match=r"without a lowering run in PyTorch: aten.foo.default \(2\)"
    ):
        torch.compile(lambda x: x + 1, backend="accel")(torch.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.compile(lambda x: x + 2, backend="accel")(torch.ones(2))


def branch(x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


def test_graph_that_cannot_be_written_runs_in_pytorch(compiler):
    with pytest.warns(accel_backend.FallbackWarning, match="is not compiled: node `cond`"):
        result = torch.compile(branch, backend="accel")(torch.ones(2))
    torch.testing.assert_close(result, torch.full((2,), 2.0))
    (report,) = torch_accel.reports()
    assert report.nodes["native"] == 0
    assert {f["target"] for f in report.fallbacks} >= {"cond"}


def test_graph_that_cannot_be_written_is_an_error_if_asked(compiler):
    with pytest.raises(Exception) as caught:  # noqa: PT011  Dynamo's own type hides the cause
        torch.compile(branch, backend="accel", options={"fallback": "error"})(torch.ones(2))
    assert cause(caught.value, UnsupportedGraphError).node == "cond"


def test_broken_invariant_raises(compiler):
    compiler.failure = compiler.CompilerError("fusion: node `add`: two owners")
    with pytest.raises(Exception, match="two owners") as caught:
        torch.compile(lambda x: x + 1, backend="accel")(torch.ones(2))
    cause(caught.value, compiler.CompilerError)


def test_broken_invariant_runs_eagerly_if_asked(compiler):
    compiler.failure = compiler.CompilerError("fusion: node `add`: two owners")
    with pytest.warns(RuntimeWarning, match="runs without compilation: fusion: node `add`: two owners"):
        result = torch.compile(lambda x: x + 1, backend="accel", options={"on_error": "eager"})(torch.ones(2))
    torch.testing.assert_close(result, torch.full((2,), 2.0))


def test_refused_op_is_an_error_even_with_on_error_eager(compiler):
    compiler.failure = compiler.UnsupportedError("aten.foo.default has no lowering")
    options = {"fallback": "error", "on_error": "eager"}
    with pytest.raises(Exception, match="has no lowering") as caught:
        torch.compile(lambda x: x + 1, backend="accel", options=options)(torch.ones(2))
    cause(caught.value, compiler.UnsupportedError)


def test_progress_line(compiler, capfd):
    torch.compile(lambda x: x + 1, backend="accel", options={"progress": "on"})(torch.ones(2))
    captured = capfd.readouterr()
    assert "accel graph_" in captured.err
    assert captured.out == ""


def test_silent_without_a_terminal(compiler, capfd):
    torch.compile(lambda x: x + 1, backend="accel")(torch.ones(2))
    assert capfd.readouterr() == ("", "")


def test_explain(compiler):
    def function(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    compiler.fallbacks = [{"node": "n", "target": "aten.foo.default", "reason": "no lowering", "source": "/a/m.py:3"}]
    explanation = torch_accel.explain(function, torch.ones(2))
    assert len(explanation.graphs) == 2
    assert len(explanation.graph_breaks) == 1
    assert explanation.nodes()["fallback"] == 2
    assert json.loads(json.dumps(explanation.to_dict()))["nodes"] == explanation.nodes()
    text = str(explanation)
    assert text.startswith("2 graphs, 1 graph breaks; nodes: ")
    assert "aten.foo.default" in text
    assert "m.py:3" in text


def test_explain_passes_keywords_on(compiler):
    explanation = torch_accel.explain(lambda x, scale: x * scale, torch.ones(2), scale=torch.ones(2), dynamic=False)
    assert len(explanation.graphs) == 1


def python(code, **environment):
    """Runs code in a fresh process; its output."""
    run = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


# Where the package of this run lies.
PACKAGE_FOLDER = str(Path(torch_accel.__file__).parent.parent)


def test_entry_point_needs_no_import(tmp_path):
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["torch_dynamo_backends"]
    folder = tmp_path / "torch_accel-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-accel\nVersion: 0.1.0\n")
    (folder / "entry_points.txt").write_text(f"[torch_dynamo_backends]\naccel = {entry['accel']}\n")
    code = (
        "import sys, torch, torch._dynamo\n"
        "from torch._dynamo.backends.registry import lookup_backend\n"
        "assert 'accel' in torch._dynamo.list_backends() and 'torch_accel' not in sys.modules\n"
        "print(lookup_backend('accel').__module__)"
    )
    assert python(code, PYTHONPATH=f"{tmp_path}{os.pathsep}{PACKAGE_FOLDER}") == "torch_accel.backend\n"


def test_import_registers_and_does_not_load_the_compiler():
    code = (
        "import sys, torch, torch_accel\n"
        "from torch._dynamo.backends.registry import lookup_backend\n"
        "print(lookup_backend('accel').__module__, 'torch_accel._compiler' in sys.modules, 'rich' in sys.modules)"
    )
    assert python(code, PYTHONPATH=PACKAGE_FOLDER) == "torch_accel.backend False False\n"


def test_pins_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = (ROOT / "requirements-dev.txt").read_text().lower().replace("_", "-").splitlines()
    pins = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        pins += extra
    assert [p for p in pins if p not in lines] == []
