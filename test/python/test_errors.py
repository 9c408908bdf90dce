"""What goes wrong, and what the user is told: wrong documents and options, ops without a lowering, our own errors."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
import subprocess

import pytest
import torch
from torch.nn import functional

import torch_accel
from ops.compare import assert_layout
from torch_accel import backend, fx_json

pytestmark = pytest.mark.compiler


def cause(error, kind):
    """The exception of a kind inside the one that Dynamo raises."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or getattr(error, "inner_exception", None)
    assert error is not None
    return error


# ---- documents


def tensor(*sizes, dtype="f32"):
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size if isinstance(size, int) else size)
    return {"dtype": dtype, "sizes": list(sizes), "strides": strides[-len(sizes) :], "offset": 0, "device": "cpu"}


def document():
    """x + 1 on eight elements."""
    loc = {"file": "model.py", "line": 12}
    return {
        "version": 1,
        "name": "graph",
        "symbols": [],
        "nodes": [
            {"op": "input", "name": "x", "kind": "input", "out": tensor(8)},
            {
                "op": "call",
                "name": "add",
                "target": "aten.add.Tensor",
                "args": [{"ref": "x"}, 1],
                "out": tensor(8),
                "loc": loc,
            },
            {"op": "output", "name": "output", "args": [{"ref": "add"}]},
        ],
    }


def compile_text(text, **options):
    from torch_accel import _compiler

    return _compiler.compile(text, json.dumps(options))


def test_the_document_is_right_as_it_is():
    from torch_accel import _runtime

    run = _runtime.Executable(compile_text(json.dumps(document()))[0])
    torch.testing.assert_close(run([torch.zeros(8)])[0], torch.ones(8))


WRONG = {
    "version": (lambda d: d.update(version=2), "version: this compiler reads version 1, got 2"),
    "no nodes": (lambda d: d.pop("nodes"), "nodes"),
    "no output": (lambda d: d["nodes"].pop(), "nodes: the last node is not the output"),
    "reference": (lambda d: d["nodes"][1]["args"].insert(1, {"ref": "y"}), r"node `add`: args\[1\]: no node `y`"),
    "later reference": (lambda d: d["nodes"][1].update(args=[{"ref": "add"}, 1]), r"node `add`: args\[0\]: no node"),
    "result": (lambda d: d["nodes"][2].update(args=[{"ref": "sub"}]), r"node `output`: args\[0\]: no node `sub`"),
    "dtype": (lambda d: d["nodes"][0]["out"].update(dtype="f31"), "node `x`: out.dtype: there is no dtype `f31`"),
    "kind of node": (lambda d: d["nodes"][1].update(op="jump"), "node `add`: op is `jump`, expected"),
    "kind of input": (lambda d: d["nodes"][0].update(kind="guest"), "node `x`: kind"),
    "no target": (lambda d: d["nodes"][1].pop("target"), "node `add`: there is no field `target`"),
    "name twice": (lambda d: d["nodes"][1].update(name="x"), "node `x`: there are two nodes of this name"),
    "strides": (lambda d: d["nodes"][0]["out"].update(strides=[]), "node `x`: out: 1 sizes but 0 strides"),
    "undeclared symbol": (lambda d: d["nodes"][0].update(out=tensor("s0")), r"node `x`: out.sizes\[0\]: symbol `s0`"),
    "operator": (lambda d: d["nodes"][0]["out"].update(sizes=[["^", 2, 3]]), r"node `x`: out.sizes\[0\]"),
    "size": (lambda d: d["nodes"][0]["out"].update(sizes=["8 "]), r"node `x`: out.sizes\[0\]"),
    "unknown object": (lambda d: d["nodes"][1].update(args=[{"ref": "x"}, {"name": 1}]), r"node `add`: args\[1\]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_document_names_node_and_field(name):
    from torch_accel import _compiler

    change, message = WRONG[name]
    wrong = document()
    change(wrong)
    with pytest.raises(_compiler.GraphError, match=f"^FX JSON: .*{message}"):
        compile_text(json.dumps(wrong))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"version": 1'])
def test_text_that_is_no_document(text):
    from torch_accel import _compiler

    with pytest.raises(_compiler.GraphError, match=r"^FX JSON: "):
        compile_text(text)


def test_a_graph_error_is_a_value_error():
    from torch_accel import _compiler

    assert issubclass(_compiler.GraphError, ValueError)
    assert issubclass(_compiler.UnsupportedError, RuntimeError)
    assert issubclass(_compiler.CompilerError, RuntimeError)


# ---- options, modes, targets


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"options": {"tune": 1}}, "unknown option 'tune'; known options are target, fallback, "),
        ({"options": {"fallback": "never"}}, "option 'fallback' is 'never'; known values are allow, error"),
        ({"options": {"target": "hal:9000"}}, "option 'target' is 'hal:9000'; known values are "),
        ({"mode": "fastest"}, "unknown mode 'fastest'; known modes are default, reduce-overhead, max-autotune"),
    ],
    ids=["option", "value", "target", "mode"],
)
def test_wrong_setting(keywords, message):
    with pytest.raises(Exception, match=re.escape(message)) as caught:
        torch.compile(lambda x: x + 1, backend="accel", **keywords)(torch.ones(2))
    cause(caught.value, ValueError)
    assert torch_accel.reports() == []


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_every_mode_compiles(mode):
    x = torch.randn(5)
    torch.testing.assert_close(torch.compile(lambda x: x.exp() + 1, backend="accel", mode=mode)(x), x.exp() + 1)
    assert torch_accel.reports()[0].mode == mode


@pytest.mark.parametrize(
    ("target", "message"),
    [("abacus", 'there is no target "abacus"; known targets: cpu'), ("cpu:nothing", 'there is no processor "nothing"')],
)
def test_unknown_target_of_the_compiler(target, message):
    from torch_accel import _compiler

    with pytest.raises(_compiler.GraphError, match=message):
        compile_text(json.dumps(document()), target=target)


# ---- what has no lowering

UNSUPPORTED = {
    "complex numbers": (lambda x: torch.view_as_complex(x.view(-1, 2)).abs() + 1, torch.randn(8), "dtype"),
    "an op": (lambda x: torch.special.bessel_j0(x * 2) + 1, torch.randn(8), "no lowering"),
    "spectrum": (lambda x: torch.fft.rfft(x).real * 2, torch.randn(8), "dtype"),
    "small floats": (lambda x: x.to(torch.float8_e4m3fn).float() + 1, torch.randn(8), "dtype"),
    "counting": (lambda x: torch.histc(x * 2, 4) + 1, torch.randn(8), "no lowering"),
    "complex input": (lambda x: (x * 2).abs() + 1, torch.randn(8, dtype=torch.complex64), "dtype"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_runs_in_pytorch_and_is_counted(name, monkeypatch):
    function, x, reason = UNSUPPORTED[name]
    monkeypatch.setattr(backend, "_warned_targets", set())
    with pytest.warns(backend.FallbackWarning, match="ops without a lowering run in PyTorch: aten"):
        result = torch.compile(function, backend="accel")(x)
    expected = function(x)
    assert_layout(result, expected, name)
    torch.testing.assert_close(result, expected)
    (report,) = torch_accel.reports()
    assert report.nodes["fallback"] == len(report.fallbacks) >= 1
    assert report.nodes["native"] >= 1, "the rest of the graph is compiled"
    assert any(reason in f["reason"] for f in report.fallbacks), report.fallbacks
    assert all(f["source"].startswith(f"{__file__}:") for f in report.fallbacks)


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_is_an_error_if_asked(name):
    from torch_accel import _compiler

    function, x, reason = UNSUPPORTED[name]
    with pytest.raises(Exception, match="unsupported op: node `") as caught:
        torch.compile(function, backend="accel", options={"fallback": "error"})(x)
    message = str(cause(caught.value, _compiler.UnsupportedError))
    assert re.match(rf"unsupported op: node `\w+`: aten\.\S+: .*{reason}.* \({re.escape(__file__)}:\d+\)$", message)


def test_fallback_error_does_not_mind_library_calls():
    a, b = torch.randn(4, 5), torch.randn(5, 6)
    result = torch.compile(lambda a, b: torch.relu(a @ b), backend="accel", options={"fallback": "error"})(a, b)
    torch.testing.assert_close(result, torch.relu(a @ b))
    assert torch_accel.reports()[0].nodes["library"] == 1


def test_float64_and_integers_are_supported():
    inputs = [torch.randn(9, dtype=torch.float64), torch.arange(9), torch.arange(9, dtype=torch.uint8)]

    def function(x, y, z):
        return x * 2 + y, y // 2 + z, z + 250

    result = torch.compile(function, backend="accel", options={"fallback": "error"})(*inputs)
    for got, want in zip(result, function(*inputs), strict=True):
        torch.testing.assert_close(got, want)


def test_a_device_without_a_target_runs_in_pytorch(monkeypatch):
    with pytest.warns(backend.FallbackWarning, match="is not compiled: .*no target for tensors on meta"):
        result = torch.compile(lambda x: x + 1, backend="accel")(torch.ones(3, device="meta"))
    assert result.device.type == "meta"
    (report,) = torch_accel.reports()
    assert report.whole_graph_reason
    assert report.nodes["fallback"] == 1


# ---- errors of the compiler's own


def inconsistent():
    """A document whose add has nine results for eight elements: PyTorch writes no such thing."""
    wrong = document()
    wrong["nodes"][1]["out"] = tensor(9)
    return wrong


def test_compiler_error_has_phase_node_line_and_command(tmp_path):
    from torch_accel import _compiler

    text = json.dumps(inconsistent())
    with pytest.raises(_compiler.CompilerError) as caught:
        compile_text(text, dump_dir=str(tmp_path))
    first, second = str(caught.value).splitlines()
    assert first.startswith("phase import failed on graph graph: ")
    assert '"add"("aten.add.Tensor"' in first
    assert '"model.py":12' in first
    command = second.partition("to see it again: ")[2].split()
    assert command[:3] == ["accel-compile", "--target=cpu", "--compile-to=import"]
    with open(command[3]) as file:
        assert file.read() == text


def test_the_command_shows_the_error_again(tmp_path):
    from conftest import BUILT
    from torch_accel import _compiler

    tools = [p for p in BUILT.parent.rglob("accel-compile") if p.is_file()]
    if not tools:
        pytest.skip("accel-compile is not built")
    with pytest.raises(_compiler.CompilerError) as caught:
        compile_text(json.dumps(inconsistent()), dump_dir=str(tmp_path))
    first, second = str(caught.value).splitlines()
    command = [str(tools[0]), *second.partition("to see it again: ")[2].split()[1:]]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode != 0
    assert first in run.stderr


@pytest.fixture
def broken(monkeypatch):
    """The writer's documents lie about the size of each pointwise result."""
    write = fx_json.write

    def tampered(gm, **keywords):
        written = write(gm, **keywords)
        graph = json.loads(written.text)
        for node in graph["nodes"]:
            if node["op"] == "call":
                node["out"] = copy.deepcopy(node["out"])
                node["out"]["sizes"][-1] += 1
        return dataclasses.replace(written, text=json.dumps(graph))

    monkeypatch.setattr(fx_json, "write", tampered)


def test_compiler_error_ends_the_call(broken):
    from torch_accel import _compiler

    with pytest.raises(Exception, match="phase import failed on graph graph_") as caught:
        torch.compile(lambda x: x + 1, backend="accel")(torch.ones(5))
    message = str(cause(caught.value, _compiler.CompilerError))
    assert re.search(rf'"{re.escape(__file__)}":\d+', message), "the user's line"


def test_compiler_error_runs_eagerly_if_asked(broken):
    x = torch.randn(5)
    with pytest.warns(RuntimeWarning, match="runs without compilation: phase import failed"):
        result = torch.compile(lambda x: x + 1, backend="accel", options={"on_error": "eager"})(x)
    torch.testing.assert_close(result, x + 1)
    (report,) = torch_accel.reports()
    assert report.whole_graph_reason
    assert report.nodes == {"native": 0, "library": 0, "fallback": 1}


def test_training_survives_a_compiler_error_if_asked(broken):
    x = torch.randn(5, requires_grad=True)
    with pytest.warns(RuntimeWarning, match="runs without compilation"):
        torch.compile(lambda x: torch.tanh(x), backend="accel", options={"on_error": "eager"})(x).sum().backward()
    torch.testing.assert_close(x.grad, 1 - torch.tanh(x.detach()) ** 2)


# ---- errors of the user's code are eager's


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda a, b: a + b, (torch.ones(3), torch.ones(4))),
        (lambda a, b: a @ b, (torch.ones(3, 4), torch.ones(3, 4))),
        (lambda a, b: a.view(7), (torch.ones(8), torch.ones(1))),
        (lambda a, b: torch.cat([a, b], 1), (torch.ones(3, 2), torch.ones(4, 2))),
        (lambda a, b: functional.softmax(a, 5), (torch.ones(3), torch.ones(3))),
    ],
    ids=["add", "matmul", "view", "cat", "softmax"],
)
def test_wrong_shapes(function, inputs):
    with pytest.raises((RuntimeError, IndexError)):
        function(*inputs)
    with pytest.raises((RuntimeError, IndexError)):
        torch.compile(function, backend="accel")(*inputs)
    x = torch.randn(4)
    torch.testing.assert_close(torch.compile(torch.sin, backend="accel")(x), torch.sin(x))


def test_as_strided_of_a_computed_view_runs_the_whole_graph_in_pytorch():
    """`as_strided` reads eager's memory there, which a fused graph does not have: it runs uncompiled, and right."""

    def fn(x):
        return (x + 1)[:, ::2].as_strided((2, 3), (2, 1), 1) * 2

    x = torch.randn(4, 6)
    with pytest.warns(UserWarning, match="as_strided"):
        actual = torch.compile(fn, backend="accel")(x)
    torch.testing.assert_close(actual, fn(x))
    assert "as_strided of a computed tensor that is not dense" in torch_accel.reports()[-1].whole_graph_reason
