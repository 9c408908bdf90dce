"""`torch_accel.explain`: what the compiler made of a function, and why."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_accel.report import PHASES, GraphReport


@dataclass
class Explanation:
    """What `explain` returns. `print` it, or read `graphs`; `to_dict` gives plain data."""

    graphs: list[GraphReport] = field(default_factory=list)
    graph_breaks: list[str] = field(default_factory=list)  # Dynamo's reason, once for each time it broke

    def nodes(self) -> dict[str, int]:
        """Numbers of FX nodes over all graphs: native, library, fallback."""
        totals = {"native": 0, "library": 0, "fallback": 0}
        for graph in self.graphs:
            for way, count in graph.nodes.items():
                totals[way] = totals.get(way, 0) + count
        return totals

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, texts and numbers, fit for JSON."""
        return {
            "graphs": [graph.to_dict() for graph in self.graphs],
            "graph_breaks": list(self.graph_breaks),
            "nodes": self.nodes(),
        }

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=120, force_terminal=False, no_color=True, highlight=False)
        with console.capture() as capture:
            console.print(self)
        return "\n".join(line.rstrip() for line in capture.get().splitlines())

    def __rich_console__(self, console: Any, options: Any) -> Any:
        nodes = self.nodes()
        yield (
            f"{len(self.graphs)} graphs, {len(self.graph_breaks)} graph breaks; nodes: {nodes['native']} native, "
            f"{nodes['library']} library, {nodes['fallback']} fallback"
        )
        for reason in self.graph_breaks:
            yield _escaped(f"  graph break: {reason.splitlines()[0] if reason else 'no reason given'}")
        for graph in self.graphs:
            yield ""
            yield from _graph(graph)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def short_source(source: str) -> str:
    """`/a/b/model.py:12` as `model.py:12`."""
    return os.path.basename(source)


def _table(title: str, *columns: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in ("launches", "ms", "nodes") else "left", overflow="fold")
    return table


def _graph(graph: GraphReport) -> Any:
    """The parts of one graph's description, as rich renderables."""
    counts = graph.nodes
    yield _escaped(
        f"{graph.name} ({graph.part}): {counts.get('native', 0)} native, {counts.get('library', 0)} library, "
        f"{counts.get('fallback', 0)} fallback; {graph.kernels_after} kernels "
        f"({graph.kernels_before} before merging equal ones)"
    )
    if graph.whole_graph_reason:
        yield _escaped(f"  not compiled: {graph.whole_graph_reason}")
        return
    if graph.cache != "off":
        yield _escaped(f"  persistent cache: {graph.cache}")
    if graph.constants.get("values"):
        yield (
            f"  constants: {graph.constants['values']} values made of weights alone, "
            f"{graph.constants['bytes'] / 2**20:.1f} MiB, computed once"
        )
    if graph.kernels:
        table = _table("kernels", "kernel", "class", "launches", "ops", "source")
        for kernel in graph.kernels:
            table.add_row(
                _escaped(kernel.get("symbol", "")),
                _escaped(kernel.get("class", "")),
                "once" if kernel.get("once") else str(kernel.get("launches", "")),
                _escaped(", ".join(kernel.get("ops", []))),
                _escaped(short_source(kernel.get("source", ""))),
            )
        yield table
    chosen = [kernel for kernel in graph.kernels if kernel.get("choice")]
    if chosen:
        table = _table("own contractions", "reason", "launches", "first kernel")
        for (reason,), group in _grouped(chosen, "choice").items():
            table.add_row(_escaped(reason), str(sum(k["launches"] for k in group)), _escaped(group[0]["symbol"]))
        yield table
    for title, entries in (("library", graph.library), ("fallbacks", graph.fallbacks)):
        if entries:
            table = _table(title, "op", "nodes", "reason", "first source")
            for (target, reason), group in _grouped(entries, "target", "reason").items():
                source = next((short_source(e["source"]) for e in group if e.get("source")), "")
                table.add_row(_escaped(target), str(len(group)), _escaped(reason), _escaped(source))
            yield table
    if graph.refusals:
        table = _table("not fused", "reason", "times", "first pair")
        for (reason,), group in _grouped(graph.refusals, "reason").items():
            pair = f"{group[0].get('producer', '')} → {group[0].get('consumer', '')}"
            table.add_row(_escaped(reason), str(len(group)), _escaped(pair))
        yield table
    table = _table("compile time", "phase", "ms")
    for phase in (*PHASES, "total", "aot_autograd"):
        if phase in graph.seconds:
            table.add_row(phase, f"{graph.seconds[phase] * 1e3:.1f}")
    yield table


def _grouped(entries: list[dict[str, Any]], *keys: str) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for entry in entries:
        groups.setdefault(tuple(str(entry.get(k, "")) for k in keys), []).append(entry)
    return groups


def explain(
    fn: Callable[..., Any],
    *args: Any,
    options: Mapping[str, Any] | None = None,
    dynamic: bool | None = None,
    **kwargs: Any,
) -> Explanation:
    """Compiles `fn` afresh, runs it once on the arguments, and describes what the compiler did.

    `options` and `dynamic` are those of `torch.compile`; all other keywords go to `fn`. A backward graph is listed only
    if the call compiled it: PyTorch leaves that of a static graph until `backward()`. Raises what the call raises.
    """
    from torch._dynamo.utils import counters

    from torch_accel import report
    from torch_accel.backend import accel

    def backend(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        return accel(gm, example_inputs, options=options)

    breaks_before = dict(counters["graph_break"])
    with report.collected() as graphs:
        # A backend object of its own, in a region of its own: code compiled earlier is neither reused nor replaced.
        torch.compile(fn, backend=backend, dynamic=dynamic, isolate_recompiles=True)(*args, **kwargs)
    breaks = []
    for reason, count in counters["graph_break"].items():
        breaks += [reason] * (count - breaks_before.get(reason, 0))
    return Explanation(graphs=graphs, graph_breaks=breaks)
