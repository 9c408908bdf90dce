"""Writes the FX JSON document of a functional ATen graph (`docs/fx-json.md`)."""

from __future__ import annotations

import json
import math
import operator
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import sympy
import torch
from torch import fx
from torch.utils._sympy import functions as shape_functions
from torch.utils._sympy.numbers import int_oo

VERSION = 1

DTYPES: dict[torch.dtype, str] = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.bool: "bool",
    torch.complex32: "c32",
    torch.complex64: "c64",
    torch.complex128: "c128",
    torch.float8_e4m3fn: "f8e4m3fn",
    torch.float8_e5m2: "f8e5m2",
}

MEMORY_FORMATS: dict[torch.memory_format, str] = {
    torch.contiguous_format: "contiguous",
    torch.preserve_format: "preserve",
    torch.channels_last: "channels_last",
    torch.channels_last_3d: "channels_last_3d",
}

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

# The value assumed for a symbol that had none while tracing (`mark_unbacked`), moved into its range.
UNBACKED_HINT = 64

# Checks of facts that guards, or the sizes in the document, already hold.
_CHECKED_WHILE_TRACING = {
    "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
}

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep


class UnsupportedGraphError(Exception):
    """A graph holds something that FX JSON cannot carry: a subgraph, a size known at run time only, a sparse tensor.

    The whole graph then runs as PyTorch traced it, unless the option `fallback` is `error`.
    """

    def __init__(self, node: str, target: str, reason: str, source: str = ""):
        where = f" ({source})" if source else ""
        super().__init__(f"node `{node}`: {reason}{where}")
        self.node, self.target, self.reason, self.source = node, target, reason, source


class ExpressionError(ValueError):
    """A size expression has a function that `EXPR` does not know."""


@dataclass
class Document:
    """What `write` returns: the JSON text, and what the caller must pass and know besides."""

    text: str
    unnamed: str  # the text without the name, the same for the same graph wherever it is met
    constants: list[torch.Tensor]  # tensors of the graph module, passed after the placeholders
    devices: set[str]  # of all tensors: {"cpu"}
    calls: int  # number of `call` nodes
    targets: dict[str, int] = field(default_factory=dict)  # how often each target is called


def expression(expr: Any) -> Any:
    """The `EXPR` tree of a sympy expression over symbols and integers.

    Raises ExpressionError for a function that has no exact integer form here (logarithms, real division, …).
    """
    if isinstance(expr, int):
        return int(expr)
    if isinstance(expr, sympy.Integer):
        value = int(expr)
        if not INT64_MIN <= value <= INT64_MAX:
            raise ExpressionError(f"integer {value} of a size does not fit 64 bits")
        return value
    if isinstance(expr, sympy.Symbol):
        return expr.name
    if isinstance(expr, (sympy.Add, sympy.Mul, sympy.Pow)):
        numerator, denominator = expr.as_numer_denom()
        if denominator != 1:  # the quotient is an integer, so floor division is exact
            return ["//", expression(numerator), expression(denominator)]
        if isinstance(expr, sympy.Pow):
            base, exponent = expr.args
            if isinstance(exponent, sympy.Integer) and 1 <= exponent <= 16:
                return ["*"] + [expression(base)] * int(exponent)
            raise ExpressionError(f"size expression {expr} has a power that is no small positive integer")
        return ["+" if isinstance(expr, sympy.Add) else "*", *map(expression, expr.args)]
    if isinstance(expr, shape_functions.FloorDiv):  # CleanDiv is one
        return ["//", expression(expr.args[0]), expression(expr.args[1])]
    if isinstance(expr, (shape_functions.Mod, shape_functions.PythonMod, sympy.Mod)):
        return ["%", expression(expr.args[0]), expression(expr.args[1])]
    if isinstance(expr, shape_functions.ModularIndexing):
        base, divisor, modulus = map(expression, expr.args)
        return ["%", ["//", base, divisor], modulus]
    if isinstance(expr, (shape_functions.Max, sympy.Max)):
        return ["max", *map(expression, expr.args)]
    if isinstance(expr, (shape_functions.Min, sympy.Min)):
        return ["min", *map(expression, expr.args)]
    if isinstance(expr, shape_functions.Identity):
        return expression(expr.args[0])
    quotient = _rounded_quotient(expr)
    if quotient is not None:
        return quotient
    raise ExpressionError(f"size expression {expr} has the function {type(expr).__name__}, which is not supported")


def _rounded_quotient(expr: Any) -> Any:
    """`floor(a / b)`, `ceil(a / b)` or `int(a / b)` as integer arithmetic; None for anything else."""
    rounds_down = (shape_functions.FloorToInt, sympy.floor)
    rounds_up = (shape_functions.CeilToInt, sympy.ceiling)
    if not isinstance(expr, (*rounds_down, *rounds_up, shape_functions.TruncToInt)):
        return None
    inner = expr.args[0]
    if isinstance(inner, shape_functions.IntTrueDiv):
        numerator, denominator = inner.args
    elif inner.is_rational:
        numerator, denominator = inner.as_numer_denom()
    else:
        return None
    if isinstance(expr, rounds_up):
        return ["-", 0, ["//", expression(-numerator), expression(denominator)]]
    if isinstance(expr, shape_functions.TruncToInt) and not (numerator.is_nonnegative and denominator.is_positive):
        return None
    return ["//", expression(numerator), expression(denominator)]


def user_frame(stack_trace: str | None) -> tuple[str, int] | None:
    """File and line of the innermost frame outside PyTorch, None where there is none."""
    if not stack_trace:
        return None
    for file, line in reversed(_FRAME.findall(stack_trace)):
        if not file.startswith((_TORCH_FOLDER, "<eval_with_key>", "<frozen")):
            return file, int(line)
    return None


class _Writer:
    def __init__(self, name: str, kind_of: Callable[[int, fx.Node], str]):
        self.name = name
        self.kind_of = kind_of
        self.nodes: list[dict[str, Any]] = []
        self.inputs: list[dict[str, Any]] = []
        self.constants: list[torch.Tensor] = []
        self.constant_names: dict[str, str] = {}
        self.opaque: dict[str, str] = {}
        self.devices: set[str] = set()
        self.targets: dict[str, int] = {}
        self.symbols: dict[str, tuple[sympy.Symbol, Any]] = {}
        self.bound: set[str] | None = None  # symbols that the inputs give, once all inputs are written
        self.expressions: dict[Any, Any] = {}
        self.frames: dict[str, dict[str, Any] | None] = {}
        self.target_names: dict[Any, str] = {}
        self.current: fx.Node | None = None

    # ---- values

    def refuse(self, reason: str) -> UnsupportedGraphError:
        node = self.current
        loc = self.location(node) if node is not None else None
        source = f"{loc['file']}:{loc['line']}" if loc else ""
        name = node.name if node is not None else self.name
        return UnsupportedGraphError(name, str(node.target) if node is not None else "", reason, source)

    def sym(self, value: torch.SymInt) -> Any:
        """EXPR of a symbolic integer, and its symbols noted."""
        node = value.node
        key = node._expr
        found = self.expressions.get(key)
        if found is not None:
            return found
        expr = node.expr
        for symbol in expr.free_symbols:
            self.symbols.setdefault(symbol.name, (symbol, node.shape_env))
            if self.bound is not None and symbol.name not in self.bound:
                raise self.refuse(f"size symbol `{symbol.name}` is known at run time only")
        try:
            tree = expression(expr)
        except ExpressionError as error:
            raise self.refuse(str(error)) from None
        self.expressions[key] = tree
        return tree

    def size(self, value: Any) -> Any:
        return value if type(value) is int else self.sym(value)

    def tensor(self, value: torch.Tensor) -> dict[str, Any]:
        if value.layout is not torch.strided:
            raise self.refuse(f"a tensor of layout {value.layout} cannot be described")
        if value.is_quantized:
            raise self.refuse("a quantized tensor cannot be described")
        dtype = DTYPES.get(value.dtype)
        if dtype is None:
            raise self.refuse(f"dtype {value.dtype} has no name in FX JSON")
        device = str(value.device)
        self.devices.add(device)
        size = self.size
        return {
            "dtype": dtype,
            "sizes": [size(s) for s in value.shape],
            "strides": [size(s) for s in value.stride()],
            "offset": size(value.storage_offset()),
            "device": device,
        }

    def out(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if value is None:
            return None
        if isinstance(value, (list, tuple)):
            return [self.out(v) for v in value]
        if isinstance(value, torch.SymInt):
            return {"sym": self.sym(value)}
        if type(value) is int:
            return {"sym": value}
        raise self.refuse(f"a value of type {type(value).__name__} cannot be described")

    # ---- arguments

    def arg(self, value: Any) -> Any:
        handler = self._handlers.get(type(value))
        if handler is not None:
            return handler(self, value)
        if isinstance(value, (list, tuple)):
            return [self.arg(v) for v in value]
        if isinstance(value, int) and not isinstance(value, torch.SymInt):  # IntEnum and the like
            return self.integer(int(value))
        raise self.refuse(f"an argument of type {type(value).__name__} cannot be described")

    def integer(self, value: int) -> int:
        if not INT64_MIN <= value <= INT64_MAX:
            raise self.refuse(f"integer {value} does not fit 64 bits")
        return value

    def real(self, value: float) -> Any:
        if math.isfinite(value):
            return value
        return {"float": "nan" if value != value else "inf" if value > 0 else "-inf"}

    def reference(self, node: fx.Node) -> Any:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            return {"sym": self.sym(value)}
        if type(value) in (int, bool):
            return value
        if type(value) is float:
            return self.real(value)
        if isinstance(value, (torch.SymBool, torch.SymFloat)):
            raise self.refuse(f"`{node.name}` is a {type(value).__name__}, which cannot be an argument")
        if node.name in self.opaque:
            raise self.refuse(f"`{node.name}` is a {self.opaque[node.name]}, which cannot be an argument")
        return {"ref": self.constant_names.get(node.name, node.name)}

    def memory_format(self, value: torch.memory_format) -> dict[str, str]:
        return {"memory_format": MEMORY_FORMATS[value]}

    def dtype(self, value: torch.dtype) -> dict[str, str]:
        name = DTYPES.get(value)
        if name is None:
            raise self.refuse(f"dtype {value} has no name in FX JSON")
        return {"dtype": name}

    _handlers: ClassVar[dict[type, Callable[[_Writer, Any], Any]]] = {
        type(None): lambda self, v: v,
        bool: lambda self, v: v,
        str: lambda self, v: v,
        int: integer,
        float: real,
        fx.Node: reference,
        torch.SymInt: lambda self, v: {"sym": self.sym(v)},
        torch.dtype: dtype,
        torch.device: lambda self, v: {"device": str(v)},
        torch.layout: lambda self, v: {"layout": str(v).removeprefix("torch.")},
        torch.memory_format: memory_format,
    }

    # ---- nodes

    def location(self, node: fx.Node) -> dict[str, Any] | None:
        trace = node.meta.get("stack_trace")
        if trace is None:
            return None
        if trace not in self.frames:
            frame = user_frame(trace)
            self.frames[trace] = {"file": frame[0], "line": frame[1]} if frame else None
        return self.frames[trace]

    def target(self, target: Any) -> str:
        name = self.target_names.get(target)
        if name is None:
            if target is operator.getitem:
                name = "getitem"
            elif isinstance(target, torch._ops.OpOverload):
                name = str(target)
            else:
                what = getattr(target, "__name__", str(target))
                raise self.refuse(f"`{what}` is no ATen overload and cannot be described")
            self.target_names[target] = name
        return name

    def placeholder(self, index: int, node: fx.Node) -> None:
        entry = {"op": "input", "name": node.name, "kind": self.kind_of(index, node), "out": self.out(node.meta["val"])}
        self.nodes.append(entry)
        self.inputs.append(entry)

    def get_attr(self, node: fx.Node, value: Any) -> None:
        if not isinstance(value, torch.Tensor):
            self.opaque[node.name] = type(value).__name__  # a subgraph, say; an error only where an op uses it
            return
        for known, tensor in enumerate(self.constants):
            if tensor is value:
                self.constant_names[node.name] = self.nodes[self._first_constant + known]["name"]
                return
        self.constants.append(value)
        self.nodes.append({"op": "input", "name": node.name, "kind": "constant", "out": self.tensor(value)})

    def check_strided(self, node: fx.Node) -> None:
        """`as_strided` sees its argument's memory, and only inputs and dense tensors have eager's memory here."""
        base = node.args[0]
        value = base.meta.get("val") if isinstance(base, fx.Node) else None
        if base.op == "placeholder" or not isinstance(value, torch.Tensor):
            return
        if not torch._prims_common.is_non_overlapping_and_dense_or_false(value):
            raise self.refuse("as_strided of a computed tensor that is not dense")

    def call(self, node: fx.Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) or type(value) in (int, float, bool):
            return  # computes with sizes only; whoever uses it writes the expression
        target = self.target(node.target)
        if target in _CHECKED_WHILE_TRACING:
            return
        if target == "aten._assert_scalar.default":
            self.check_assertion(node.args[0])
            return
        if target.startswith("aten.as_strided"):
            self.check_strided(node)
        entry = {"op": "call", "name": node.name, "target": target, "args": [self.arg(a) for a in node.args]}
        if node.kwargs:
            entry["kwargs"] = {k: self.arg(v) for k, v in node.kwargs.items()}
        entry["out"] = self.out(value)
        loc = self.location(node)
        if loc is not None:
            entry["loc"] = loc
        self.nodes.append(entry)
        self.targets[target] = self.targets.get(target, 0) + 1

    def check_assertion(self, condition: Any) -> None:
        """An assertion over sizes that guards hold can go; one over a size without a traced value must be checked."""
        value = condition.meta.get("val") if isinstance(condition, fx.Node) else condition
        if isinstance(value, torch.SymBool):
            env = value.node.shape_env
            if any(s not in env.backed_var_to_val for s in value.node.expr.free_symbols):
                raise self.refuse("an assertion over a size known at run time only cannot be described")

    # ---- the whole

    def bind_symbols(self) -> None:
        """Notes the symbols that are an integer input or a size of one; a stride alone does not tell a value."""
        self.bound = set()
        for entry in self.inputs:
            out = entry["out"]
            if isinstance(out, dict):
                candidates = out["sizes"] if "sizes" in out else [out["sym"]]
                self.bound.update(s for s in candidates if isinstance(s, str))
        for name in sorted(self.symbols.keys() - self.bound):
            raise self.refuse(f"symbol `{name}` of the inputs is no size of any")

    def symbol_entries(self) -> list[dict[str, Any]]:
        entries = []
        for name in sorted(self.symbols):
            symbol, env = self.symbols[name]
            bounds = env.var_to_range.get(symbol)
            low = _bound(bounds.lower) if bounds is not None else None
            high = _bound(bounds.upper) if bounds is not None else None
            hint = env.backed_var_to_val.get(symbol)
            if hint is None:
                hint = max(UNBACKED_HINT if high is None else min(UNBACKED_HINT, high), low or 0)
            entries.append({"name": name, "min": low, "max": high, "hint": int(hint)})
        return entries

    def write(self, gm: fx.GraphModule) -> Document:
        graph = gm.graph
        placeholders = graph.find_nodes(op="placeholder")
        for index, node in enumerate(placeholders):
            self.current = node
            self.placeholder(index, node)
        self.bind_symbols()
        self._first_constant = len(self.nodes)
        for node in graph.find_nodes(op="get_attr"):
            self.current = node
            self.get_attr(node, operator.attrgetter(node.target)(gm))
        for node in graph.nodes:
            self.current = node
            if node.op == "call_function":
                self.call(node)
            elif node.op == "output":
                results = node.args[0]
                results = results if isinstance(results, (list, tuple)) else (results,)
                self.nodes.append({"op": "output", "name": node.name, "args": [self.arg(r) for r in results]})
            elif node.op not in ("placeholder", "get_attr"):
                raise self.refuse(f"a node of kind {node.op} cannot be described")
        graph = {"version": VERSION, "symbols": self.symbol_entries(), "nodes": self.nodes}
        unnamed = json.dumps(graph, allow_nan=False, separators=(",", ":"))
        return Document(
            named(unnamed, self.name), unnamed, self.constants, self.devices, sum(self.targets.values()), self.targets
        )


def named(unnamed: str, name: str) -> str:
    """The text of a document from what it is without its name."""
    return f'{{"name":{json.dumps(name)},{unnamed[1:]}'


def _bound(value: Any) -> int | None:
    """A symbol's bound, None where it is unbounded or beyond 64 bits."""
    if value in (int_oo, -int_oo, sympy.oo, -sympy.oo):
        return None
    number = int(value)
    return number if INT64_MIN < number < INT64_MAX - 1 else None


def write(gm: fx.GraphModule, *, name: str, kind_of: Callable[[int, fx.Node], str] | None = None) -> Document:
    """The document of a functional ATen graph from AOTAutograd.

    `kind_of(index, placeholder)` names the kind of each input (`parameter`, `buffer`, `input`; the default is `input`).
    Raises UnsupportedGraphError where the graph holds something that FX JSON cannot carry.
    """
    return _Writer(name, kind_of or (lambda index, node: "input")).write(gm)
