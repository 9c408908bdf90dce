"""For tests of FX JSON: captures a function's documents, checks their form, and runs them with PyTorch's own ops."""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass

import torch
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd

from torch_accel import fx_json

DTYPES = {name: dtype for dtype, name in fx_json.DTYPES.items()}
MEMORY_FORMATS = {name: value for value, name in fx_json.MEMORY_FORMATS.items()}
KINDS = {"parameter", "buffer", "constant", "input"}
CALL_FIELDS = {"op", "name", "target", "args", "out"}
BINARY = {"+": operator.add, "*": operator.mul, "-": operator.sub, "//": operator.floordiv, "%": operator.mod}
OPERATORS = {*BINARY, "max", "min"}


@dataclass
class Captured:
    """One graph's document, checked, and what else the writer returned."""

    graph: dict
    document: fx_json.Document

    def calls(self, target: str | None = None) -> list[dict]:
        return [n for n in self.graph["nodes"] if n["op"] == "call" and target in (None, n["target"])]

    def inputs(self) -> list[dict]:
        return [n for n in self.graph["nodes"] if n["op"] == "input"]


def capture(function, *args, dynamic=None, backward=False, through_json=True) -> tuple[list[Captured], object]:
    """The documents of all graphs that a call makes, and the call's result.

    With `through_json` the call is served by `run` on the documents, so that a document which lacks something fails.
    """
    captured: list[Captured] = []

    def compiler(gm, example_inputs):
        document = fx_json.write(gm, name=f"graph_{len(captured)}")
        graph = json.loads(document.text)
        check(graph)
        captured.append(Captured(graph, document))
        if not through_json:
            return make_boxed_func(gm.forward)

        def call(inputs):
            values = [*inputs, *document.constants]
            inputs.clear()
            return run(graph, values)

        call._boxed_call = True
        return call

    backend = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )
    with torch.set_grad_enabled(backward):
        result = torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)(*args)
        if backward:
            result.sum().backward()
    return captured, result


def check(graph: dict) -> None:
    """Asserts that a document keeps to docs/fx-json.md."""
    assert set(graph) == {"version", "name", "symbols", "nodes"}
    assert graph["version"] == 1
    symbols = {s["name"] for s in graph["symbols"]}
    for symbol in graph["symbols"]:
        assert set(symbol) == {"name", "min", "max", "hint"}
        assert isinstance(symbol["hint"], int)
        assert symbol["min"] is None or symbol["min"] <= symbol["hint"]
        assert symbol["max"] is None or symbol["hint"] <= symbol["max"]

    def expression(e):
        if isinstance(e, list):
            assert e[0] in OPERATORS
            assert len(e) == 3 if e[0] in ("-", "//", "%") else len(e) >= 3
            for part in e[1:]:
                expression(part)
        else:
            assert type(e) is int or e in symbols, e

    def out(o):
        if isinstance(o, list):
            for part in o:
                out(part)
        elif o is not None and "sym" in o:
            assert set(o) == {"sym"}
            expression(o["sym"])
        elif o is not None:
            assert set(o) == {"dtype", "sizes", "strides", "offset", "device"}
            assert o["dtype"] in DTYPES
            assert len(o["sizes"]) == len(o["strides"])
            for e in (*o["sizes"], *o["strides"], o["offset"]):
                expression(e)
            assert o["device"] == "cpu"

    known: set[str] = set()

    def arg(a):
        if isinstance(a, list):
            for part in a:
                arg(part)
        elif isinstance(a, dict):
            ((key, value),) = a.items()
            if key == "ref":
                assert value in known, f"{value} is used before it is made"
            elif key == "sym":
                expression(value)
            elif key == "float":
                assert value in ("inf", "-inf", "nan")
            elif key == "dtype":
                assert value in DTYPES
            elif key == "memory_format":
                assert value in MEMORY_FORMATS
            else:
                assert key in ("device", "layout"), key
        else:
            assert a is None or isinstance(a, (bool, int, float, str))

    order = [n["op"] for n in graph["nodes"]]
    assert order == sorted(order, key=["input", "call", "output"].index)
    assert order.count("output") == 1
    for node in graph["nodes"]:
        if node["op"] == "input":
            assert set(node) == {"op", "name", "kind", "out"}
            assert node["kind"] in KINDS
            out(node["out"])
        elif node["op"] == "call":
            assert CALL_FIELDS <= set(node) <= CALL_FIELDS | {"kwargs", "loc"}
            assert node["target"] == "getitem" or node["target"].count(".") == 2
            arg(node["args"])
            arg(list(node.get("kwargs", {}).values()))
            out(node["out"])
            assert "loc" not in node or set(node["loc"]) == {"file", "line"}
        else:
            assert set(node) == {"op", "name", "args"}
            arg(node["args"])
        assert node["name"] not in known, f"{node['name']} is made twice"
        known.add(node["name"])


def evaluate(expression, symbols: dict[str, int]) -> int:
    """The value of an EXPR."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return symbols[expression]
    name, *parts = expression
    values = [evaluate(p, symbols) for p in parts]
    if name in ("max", "min"):
        return {"max": max, "min": min}[name](values)
    function = {"+": operator.add, "*": operator.mul, "-": operator.sub, "//": operator.floordiv, "%": operator.mod}[
        name
    ]
    total = values[0]
    for value in values[1:]:
        total = function(total, value)
    return total


def run(graph: dict, inputs: list) -> list:
    """Runs a document on tensors and integers with PyTorch's ops; checks sizes, strides and dtypes of all results."""
    values: dict[str, object] = {}
    symbols: dict[str, int] = {}
    nodes = [n for n in graph["nodes"] if n["op"] == "input"]
    for node, value in zip(nodes, inputs, strict=True):
        values[node["name"]] = value
        sizes = node["out"].get("sizes", [node["out"].get("sym")])
        actual = value.shape if isinstance(value, torch.Tensor) else [value]
        symbols.update((s, int(a)) for s, a in zip(sizes, actual, strict=True) if isinstance(s, str))

    def decoded(a):
        if isinstance(a, list):
            return [decoded(part) for part in a]
        if not isinstance(a, dict):
            return a
        ((key, value),) = a.items()
        return {
            "ref": lambda: values[value],
            "sym": lambda: evaluate(value, symbols),
            "float": lambda: float(value),
            "dtype": lambda: DTYPES[value],
            "device": lambda: torch.device(value),
            "layout": lambda: getattr(torch, value),
            "memory_format": lambda: MEMORY_FORMATS[value],
        }[key]()

    def verify(node, value, out):
        if isinstance(out, list):
            for v, o in zip(value, out, strict=True):
                verify(node, v, o)
        elif out is not None and "sizes" in out:
            assert isinstance(value, torch.Tensor), node
            assert value.dtype == DTYPES[out["dtype"]], node
            assert list(value.shape) == [evaluate(s, symbols) for s in out["sizes"]], node

    for node in nodes:
        verify(node["name"], values[node["name"]], node["out"])
    for node in graph["nodes"]:
        if node["op"] == "call":
            args = decoded(node["args"])
            if node["target"] == "getitem":
                value = args[0][args[1]]
            else:
                namespace, op, overload = node["target"].split(".")
                value = getattr(getattr(getattr(torch.ops, namespace), op), overload)(
                    *args, **{k: decoded(v) for k, v in node.get("kwargs", {}).items()}
                )
            verify(node["name"], value, node["out"])
            values[node["name"]] = value
    return decoded(graph["nodes"][-1]["args"])
