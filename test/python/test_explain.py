"""`explain` with the real compiler: kernels with their source ops, refusals, fallbacks, seconds."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.nn import functional

import torch_accel
from torch_accel.report import PHASES

pytestmark = pytest.mark.compiler


def line_of(text):
    """This file and the number of the line that holds the text."""
    with open(__file__) as file:
        return f"{__file__}:{next(k for k, line in enumerate(file, 1) if text in line)}"


def function(x, weight):
    y = torch.tanh(x @ weight) * 2  # the contraction's line
    z = torch.softmax(y, -1)
    return torch.special.bessel_j0(z), y.sum(0)  # the fallback's line


@pytest.fixture(scope="module")
def explanation():
    torch._dynamo.reset()
    return torch_accel.explain(function, torch.randn(6, 8), torch.randn(8, 10))


def test_counts(explanation):
    (graph,) = explanation.graphs
    assert explanation.graph_breaks == []
    assert graph.part == "inference"
    assert explanation.nodes() == graph.nodes
    assert graph.nodes["library"] == len(graph.library) == 1
    assert graph.nodes["fallback"] == len(graph.fallbacks) == 1
    assert graph.nodes["native"] == 4


def test_kernels_have_their_source_ops(explanation):
    (graph,) = explanation.graphs
    assert graph.kernels_after == len(graph.kernels)
    ops = {op for kernel in graph.kernels for op in kernel["ops"]}
    assert {"aten.tanh.default", "aten.mul.Tensor", "aten._softmax.default", "aten.sum.dim_IntList"} <= ops
    for kernel in graph.kernels:
        assert kernel["symbol"]
        assert kernel["label"]
        assert kernel["class"]
        assert kernel["launches"] >= 1
        assert kernel["nodes"]
        assert kernel["source"].startswith(f"{__file__}:")
    nodes = [node for kernel in graph.kernels for node in kernel["nodes"]]
    assert {"tanh", "mul", "_softmax", "sum_1"} <= set(nodes)


def test_library_and_fallback_lead_back_to_the_users_line(explanation):
    (graph,) = explanation.graphs
    (call,) = graph.library
    assert (call["node"], call["target"]) == ("mm", "aten.mm.default")
    assert "aten::mm" in call["reason"]
    assert call["source"] == line_of("# the contraction's line")
    (fallback,) = graph.fallbacks
    assert fallback["target"] == "aten.special_bessel_j0.default"
    assert fallback["reason"] == "no lowering"
    assert fallback["source"] == line_of("# the fallback's line")


def test_refusals_have_reasons(explanation):
    (graph,) = explanation.graphs
    for refusal in graph.refusals:
        assert set(refusal) == {"producer", "consumer", "reason"}
        assert all(refusal.values())
    # The sum over rows walks another way than the softmax over columns.
    assert any(refusal["consumer"] == "sum_1" for refusal in graph.refusals), graph.refusals


def test_seconds(explanation):
    seconds = explanation.graphs[0].seconds
    assert set(PHASES) <= set(seconds)
    assert {"total", "aot_autograd"} <= set(seconds)
    assert all(value >= 0 for value in seconds.values())
    assert sum(seconds[phase] for phase in PHASES) == pytest.approx(seconds["total"], rel=0.2, abs=0.02)


def test_text_and_plain_data(explanation):
    text = str(explanation)
    assert text.startswith("1 graphs, 0 graph breaks; nodes: 4 native, 1 library, 1 fallback")
    for expected in (
        "aten.tanh.default",
        "aten.mm.default",
        "aten.special_bessel_j0.default",
        "no lowering",
        "compile time",
    ):
        assert expected in text
    assert "test_explain.py:" in text
    data = json.loads(json.dumps(explanation.to_dict()))
    assert data["nodes"] == explanation.nodes()
    assert data["graphs"][0]["kernels"] == explanation.graphs[0].kernels


@pytest.mark.parametrize(
    ("kernel", "inputs"),
    [
        (lambda x: torch.softmax(x, -1), (torch.randn(40, 50),)),
        (lambda x: functional.layer_norm(x, (50,)), (torch.randn(40, 50),)),
        (lambda x: torch.relu(x * 1.5 + 1).sigmoid() - torch.tanh(x), (torch.randn(40, 50),)),
        (lambda x, m: torch.softmax(x * 0.125 + m, -1), (torch.randn(2, 4, 9, 9), torch.randn(2, 1, 9, 9))),
        (lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6), (torch.randn(40, 50),)),
    ],
    ids=["softmax", "layer norm", "pointwise", "masked softmax", "rms norm"],
)
def test_one_kernel_with_nothing_refused(kernel, inputs):
    (graph,) = torch_accel.explain(kernel, *inputs).graphs
    assert graph.kernels_before == graph.kernels_after == 1
    assert graph.refusals == []
    assert graph.nodes["fallback"] == graph.nodes["library"] == 0


def test_equal_kernels_are_listed_once():
    layer = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8), nn.GELU()).eval()
    with torch.no_grad():
        (graph,) = torch_accel.explain(layer, torch.randn(4, 8)).graphs
    (layers,) = [kernel for kernel in graph.kernels if not kernel["once"]]
    assert layers["class"] == "contraction"
    assert layers["launches"] == 3
    packing = [kernel for kernel in graph.kernels if "accel.pack" in kernel["ops"]]
    assert packing
    assert all(kernel["once"] and kernel["launches"] == 3 for kernel in packing)


def test_graph_breaks_are_listed():
    def broken(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    explanation = torch_accel.explain(broken, torch.ones(3))
    assert len(explanation.graphs) == 2
    assert len(explanation.graph_breaks) == 1
    assert "graph break: " in str(explanation)


def test_training_lists_forward():
    x = torch.randn(5, requires_grad=True)
    assert [g.part for g in torch_accel.explain(torch.sin, x).graphs] == ["forward"]


def test_symbolic_sizes():
    (graph,) = torch_accel.explain(lambda x: torch.softmax(x, -1), torch.randn(4, 6), dynamic=True).graphs
    assert graph.kernels_after == 1


def test_options_reach_the_compiler():
    with pytest.raises(Exception, match="unsupported op"):
        torch_accel.explain(function, torch.randn(6, 8), torch.randn(8, 10), options={"fallback": "error"})


def test_explaining_leaves_compiled_code_alone():
    run = torch.compile(torch.cos, backend="accel")
    x = torch.randn(7)
    run(x)
    torch_accel.explain(torch.cos, x)
    before = len(torch_accel.reports())
    run(x)
    assert len(torch_accel.reports()) == before
