"""The progress line on stderr while a graph compiles."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def line(name: str, setting: str) -> Iterator[Callable[[str, float], None] | None]:
    """Shows a progress line for the graph `name`; yields what the compiler calls with (phase, fraction from 0 to 1).

    `setting` is the option `progress`. Yields None where nothing is to be shown, so that rich is not even imported.
    """
    if setting == "off" or (setting == "auto" and not sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("accel {task.fields[graph]}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[phase]:<10}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=setting == "auto") as shown:
        task = shown.add_task("compile", total=1.0, graph=name, phase="")

        def update(phase: str, fraction: float) -> None:
            shown.update(task, completed=fraction, phase=phase)

        yield update
        shown.update(task, completed=1.0, phase="done")
