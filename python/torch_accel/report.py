"""What the compiler did: one report for each graph compiled in this process."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

# A long-lived process may compile without end; only the newest reports are kept.
KEPT_REPORTS = 1024

# Seconds that are the compiler's own share, in the order in which they pass. `aot_autograd` (PyTorch's tracing) is not.
PHASES = (
    "capture",
    "cache",
    "load_compiler",
    "import",
    "graph",
    "fusion",
    "kernels",
    "schedule",
    "codegen",
    "executable",
    "load",
    "store",
)


@dataclass
class GraphReport:
    """One compiled graph. Lists of dicts have the fields that `docs/report.md` names."""

    name: str
    part: str = "inference"  # inference, forward or backward
    mode: str = "default"
    nodes: dict[str, int] = field(default_factory=dict)  # native, library, fallback: numbers of FX nodes
    fallbacks: list[dict[str, Any]] = field(default_factory=list)  # node, target, reason, source
    library: list[dict[str, Any]] = field(default_factory=list)  # node, target, reason
    kernels: list[dict[str, Any]] = field(default_factory=list)  # symbol, label, class, launches, ops, nodes, source, …
    kernels_before: int = 0  # kernels before equal ones were merged
    kernels_after: int = 0
    constants: dict[str, int] = field(default_factory=dict)  # values, bytes: of what depends on weights alone
    refusals: list[dict[str, Any]] = field(default_factory=list)  # producer, consumer, reason
    seconds: dict[str, float] = field(default_factory=dict)  # by phase, with `total` of all but aot_autograd
    cache: str = "off"  # hit, stored, off, or what was wrong with the persistent cache
    whole_graph_reason: str = ""  # why nothing of the graph was compiled; empty if it was

    @classmethod
    def from_json(cls, text: str) -> GraphReport:
        """The compiler's report; fields that it leaves out are empty."""
        data = json.loads(text)
        kernels = data.get("kernels", {})
        return cls(
            name=data["graph"],
            nodes=data.get("nodes", {}),
            fallbacks=data.get("fallbacks", []),
            library=data.get("library", []),
            kernels=kernels.get("list", []),
            kernels_before=kernels.get("before", 0),
            kernels_after=kernels.get("after", 0),
            constants=data.get("constants", {}),
            refusals=data.get("refusals", []),
            seconds=dict(data.get("phases", {})),
        )

    def to_dict(self) -> dict[str, Any]:
        """The report as plain dicts, lists and numbers."""
        return asdict(self)


_recorded: deque[GraphReport] = deque(maxlen=KEPT_REPORTS)
_collectors: list[list[GraphReport]] = []


def record(report: GraphReport) -> None:
    """Keeps a report for `reports` and for whoever collects at the moment."""
    _recorded.append(report)
    for collector in _collectors:
        collector.append(report)


@contextlib.contextmanager
def collected() -> Iterator[list[GraphReport]]:
    """A list that receives the reports of the graphs compiled inside the block."""
    collector: list[GraphReport] = []
    _collectors.append(collector)
    try:
        yield collector
    finally:
        _collectors[:] = [c for c in _collectors if c is not collector]


def reports() -> list[GraphReport]:
    """The reports of the graphs compiled in this process, oldest first (the newest 1024 are kept)."""
    return list(_recorded)


def reset_reports() -> None:
    """Forgets the reports so far."""
    _recorded.clear()
