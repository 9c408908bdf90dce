"""FX JSON: the form of the documents, that they carry all that running needs, and what cannot be written."""

import json
import math

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.utils._sympy import functions as shape_functions

from fx_document import capture, evaluate
from torch_accel import fx_json

INT_MAX = 2**63 - 1


def same(result, expected):
    torch.testing.assert_close(result, expected, check_stride=True)


FUNCTIONS = {
    "scalars of each kind": lambda x: torch.add(x, 1, alpha=2) * 1.0 + 0.5 - (x > 0).to(torch.float32),
    "infinities": lambda x: x.masked_fill(x > 0, float("-inf")).clamp(max=math.inf),
    "nan": lambda x: torch.full_like(x, math.nan),
    "dtypes": lambda x: (x.to(torch.bfloat16), x.half(), x.double(), x.to(torch.int8), x.to(torch.complex64)),
    "results of several values": lambda x: (*torch.max(x, dim=1), *torch.var_mean(x, dim=0)),
    "lists of tensors": lambda x: torch.cat([x, x * 2, torch.stack(list(x.split(2, dim=1)), 0).sum(0)], dim=1),
    "optional arguments": lambda x: functional.layer_norm(x, [6], None, None) + functional.softmax(x, -1),
    "index with holes": lambda x: (x * 1)[:, torch.tensor([0, 2, 4])],
    "memory format": lambda x: x.view(1, 2, 2, 6).to(memory_format=torch.channels_last),
    "creation": lambda x: x + torch.arange(6, device=x.device) + torch.zeros(4, 1) + torch.tensor([1.5]),
    "views": lambda x: x.t().unsqueeze(0).expand(2, 6, 4)[:, 1:3].permute(2, 0, 1) * 1,
    "a text": lambda x: functional.gelu(x, approximate="tanh") + torch.div(x, 2, rounding_mode="floor"),
    "scalar constant": lambda x: x * torch.tensor(3.0),
    "an input as output": lambda x: (x, x + 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_document_carries_all_that_running_needs(name, dynamic):
    x = torch.randn(4, 6)
    _, result = capture(FUNCTIONS[name], x, dynamic=dynamic)
    torch.testing.assert_close(result, FUNCTIONS[name](x), equal_nan=True)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_training(dynamic):
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1))
    x = torch.randn(5, 8)
    expected = torch.autograd.grad((model(x) ** 2).sum(), list(model.parameters()))
    graphs, _ = capture(lambda x: model(x) ** 2, x, dynamic=dynamic, backward=True)
    assert len(graphs) == 2
    same([p.grad for p in model.parameters()], list(expected))


def test_mutation_of_an_input():
    def function(x, y):
        x.add_(y)
        return x.sum()

    x, y = torch.ones(3), torch.arange(3.0)
    (graph,), result = capture(function, x, y)
    same(x, torch.tensor([1.0, 2.0, 3.0]))
    same(result, torch.tensor(6.0))
    assert len(graph.calls("aten.copy_.default")) == 1


def test_real_numbers_keep_their_point():
    (graph,), _ = capture(lambda x: x * 1.0 + 1, torch.ones(3))
    assert '"args":[{"ref":"arg0_1"},1.0]' in graph.document.text
    assert '"args":[{"ref":"mul"},1]' in graph.document.text


def test_non_finite_numbers_are_objects():
    (graph,), _ = capture(lambda x: torch.where(x > 0, math.inf, x).clamp(min=-math.inf) + math.nan, torch.ones(3))
    for text in ("inf", "-inf", "nan"):
        assert f'{{"float":"{text}"}}' in graph.document.text
    json.loads(graph.document.text, parse_constant=pytest.fail)


def test_symbols_have_range_and_hint():
    (graph,), _ = capture(lambda x: x.reshape(-1) + 1, torch.randn(5, 7), dynamic=True)
    assert sorted(s["hint"] for s in graph.graph["symbols"]) == [5, 7]
    assert all(s["min"] == 2 and s["max"] is None for s in graph.graph["symbols"])
    (product,) = graph.calls()[-1]["out"]["sizes"]
    assert product[0] == "*"
    assert all(n["out"] != {} for n in graph.inputs())


def test_upper_bound_of_a_symbol():
    x = torch.randn(5, 7)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=64)
    (graph,), _ = capture(lambda x: x + 1, x)
    (symbol,) = graph.graph["symbols"]
    assert (symbol["min"], symbol["max"], symbol["hint"]) == (2, 64, 5)


def test_size_arithmetic_becomes_expressions():
    def function(x):
        n = x.shape[0]
        return torch.zeros(n // 2 + 1) + torch.arange(n // 2 + 1), x[: max(n - 3, 1)], torch.ones(n % 4 + 2 * n)

    x = torch.randn(11, 3)
    (graph,), result = capture(function, x, dynamic=True)
    same(result, function(x))
    assert all(n["target"] != "mul" for n in graph.calls())
    assert not [n for n in graph.calls() if not n["target"].startswith(("aten.", "getitem"))]


def test_locations_are_the_users():
    def function(x):
        y = x + 1  # this line
        return functional.linear(y, y)

    (graph,), _ = capture(function, torch.randn(3, 3))
    first = function.__code__.co_firstlineno
    assert [c["loc"] for c in graph.calls("aten.add.Tensor")] == [{"file": __file__, "line": first + 1}]
    assert {c["loc"]["line"] for c in graph.calls()} == {first + 1, first + 2}


def test_innermost_frame_outside_torch():
    torch_file = torch.nn.__file__
    trace = f'  File "/a/model.py", line 3, in forward\n    x\n  File "{torch_file}", line 9, in forward\n    y\n'
    assert fx_json.user_frame(trace) == ("/a/model.py", 3)
    assert fx_json.user_frame(f'  File "{torch_file}", line 9, in f\n') is None
    assert fx_json.user_frame(None) is None


def test_constants_follow_the_placeholders():
    table = [1.0, 2.0, 4.0]
    (graph,), result = capture(lambda x: x * torch.tensor(table) + torch.tensor(2), torch.ones(3))
    assert [n["kind"] for n in graph.inputs()] == ["input", "constant", "constant"]
    assert len(graph.document.constants) == 2
    same(result, torch.tensor([3.0, 4.0, 6.0]))


def test_kinds_of_inputs_are_asked_for():
    gm = torch.fx.symbolic_trace(lambda a, b: a)
    for node in gm.graph.find_nodes(op="placeholder"):
        node.meta["val"] = torch.ones(2)
    text = fx_json.write(gm, name="g", kind_of=lambda i, node: ("parameter", "buffer")[i]).text
    assert [n["kind"] for n in json.loads(text)["nodes"][:2]] == ["parameter", "buffer"]


def test_same_graph_gives_the_same_text():
    def once():
        torch._dynamo.reset()
        return capture(lambda x, y: torch.softmax(x @ y, -1) * 2, torch.ones(3, 4), torch.ones(4, 5), dynamic=True)[0]

    assert once()[0].document.text == once()[0].document.text


# ---- expressions

s0, s1 = sympy.Symbol("s0", integer=True, positive=True), sympy.Symbol("s1", integer=True, positive=True)

EXPRESSIONS = {
    "sum": (s0 + s1 - 3, lambda a, b: a + b - 3),
    "product": (2 * s0 * s1, lambda a, b: 2 * a * b),
    "power": (s0**3 - s1, lambda a, b: a**3 - b),
    "exact quotient": ((s0 * (s0 + 1)) / 2, lambda a, b: a * (a + 1) // 2),
    "sum of fractions": (s0 / 2 + s0 * s0 / 2, lambda a, b: (a + a * a) // 2),
    "floor division": (shape_functions.FloorDiv(s0 - 9, s1), lambda a, b: (a - 9) // b),
    "clean division": (shape_functions.CleanDiv(s0 * s1, s1), lambda a, b: a),
    "ceiling division": (shape_functions.CeilDiv(s0, s1), lambda a, b: -(-a // b)),
    "modulo": (shape_functions.Mod(s0, s1), lambda a, b: a % b),
    "python's modulo": (shape_functions.PythonMod(s0 - 9, s1), lambda a, b: (a - 9) % b),
    "indexing": (shape_functions.ModularIndexing(s0, 3, s1), lambda a, b: (a // 3) % b),
    "maximum": (shape_functions.Max(s0, s1, 4), lambda a, b: max(a, b, 4)),
    "minimum": (shape_functions.Min(s0, s1 + 1), lambda a, b: min(a, b + 1)),
    "identity": (shape_functions.Identity(s0 + 1), lambda a, b: a + 1),
    "rounded down": (shape_functions.FloorToInt(shape_functions.IntTrueDiv(s0, s1)), lambda a, b: a // b),
    "rounded up": (shape_functions.CeilToInt(shape_functions.IntTrueDiv(s0, s1)), lambda a, b: -(-a // b)),
    "cut off": (shape_functions.TruncToInt(shape_functions.IntTrueDiv(s0, s1)), lambda a, b: a // b),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
@given(a=st.integers(1, 1000), b=st.integers(1, 1000))
@settings(max_examples=25, deadline=None)
def test_expression(name, a, b):
    expression, expected = EXPRESSIONS[name]
    assert evaluate(fx_json.expression(expression), {"s0": a, "s1": b}) == expected(a, b)


@pytest.mark.parametrize(
    "expression",
    [sympy.sqrt(s0), sympy.log(s0), shape_functions.ToFloat(s0), sympy.Integer(2**63), s0**s1],
    ids=str,
)
def test_expression_that_has_no_integer_form(expression):
    with pytest.raises(fx_json.ExpressionError):
        fx_json.expression(expression)


# ---- what cannot be written


def refused(function, *args, **keywords):
    """The error inside the one that Dynamo raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  Dynamo's own type hides the cause
        capture(function, *args, **keywords)
    error = caught.value
    while error is not None and not isinstance(error, fx_json.UnsupportedGraphError):
        error = error.__cause__ or getattr(error, "inner_exception", None)
    assert error is not None, caught.value
    return error


def test_subgraph_is_refused():
    error = refused(lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)), torch.ones(3))
    assert error.node == "cond"
    assert "`cond` is no ATen overload" in str(error)
    assert error.source.startswith(f"{__file__}:")


def test_size_known_at_run_time_is_refused():
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        error = refused(lambda x: torch.nonzero(x) + 1, torch.ones(3))
    assert error.node == "nonzero"
    assert "is known at run time only" in error.reason


def test_number_read_from_a_tensor_is_refused():
    def function(x):
        return torch.full((3,), x.sum().item())

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        error = refused(function, torch.ones(3))
    assert "SymFloat" in str(error)


def test_complex_number_is_refused():
    error = refused(lambda x: x * 2j, torch.ones(3))
    assert "type complex" in str(error)


def test_sparse_tensor_is_refused():
    gm = torch.fx.symbolic_trace(lambda a: a)
    (node,) = gm.graph.find_nodes(op="placeholder")
    node.meta["val"] = torch.eye(2).to_sparse()
    with pytest.raises(fx_json.UnsupportedGraphError, match=r"node `a`: a tensor of layout torch.sparse_coo"):
        fx_json.write(gm, name="g")


def test_unknown_dtype_is_refused():
    gm = torch.fx.symbolic_trace(lambda a: a)
    (node,) = gm.graph.find_nodes(op="placeholder")
    node.meta["val"] = torch.empty(2, dtype=torch.float8_e8m0fnu)
    with pytest.raises(fx_json.UnsupportedGraphError, match=r"dtype torch.float8_e8m0fnu has no name"):
        fx_json.write(gm, name="g")
