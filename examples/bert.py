"""BERT-base (random weights from its configuration) under `torch.compile(model, backend="accel")`, beside eager."""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import torch
from rich import box
from rich.console import Console
from rich.table import Table

import torch_accel
from torch_accel.report import PHASES

TOLERANCE = 1e-4  # of the largest difference, relative to the largest value

PHASE_NOTES = {
    "capture": "FX graph to JSON",
    "load_compiler": "MLIR and LLVM into the process",
    "import": "JSON to tensor ops",
    "graph": "simplification, library calls",
    "fusion": "which ops share a kernel",
    "kernels": "equal kernels once, memory",
    "schedule": "vectors and blocks",
    "codegen": "machine code",
    "executable": "code and plan into a bundle",
    "load": "bundle into the runtime",
}


def latencies(functions, runs):
    """Median milliseconds of a call of each function; the calls alternate, so that noise hits all alike."""
    times = [[] for _ in functions]
    for _ in range(runs):
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            taken.append((time.perf_counter() - start) * 1e3)
    return [statistics.median(taken) for taken in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()

    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    model = BertModel(BertConfig(num_hidden_layers=arguments.layers)).eval()
    tokens = torch.randint(0, model.config.vocab_size, (arguments.batch, arguments.tokens))
    compiled = torch.compile(model, backend="accel", options={"progress": "on"})

    with torch.inference_mode():
        expected = model(tokens).last_hidden_state
        start = time.perf_counter()
        result = compiled(tokens).last_hidden_state
        first_call = time.perf_counter() - start
        eager_ms, accel_ms = latencies((lambda: model(tokens), lambda: compiled(tokens)), arguments.runs)
    absolute = (result - expected).abs().max().item()
    relative = absolute / expected.abs().max().item()

    reports = torch_accel.reports()
    nodes = {way: sum(r.nodes.get(way, 0) for r in reports) for way in ("native", "library", "fallback")}
    seconds = {phase: sum(r.seconds.get(phase, 0.0) for r in reports) for phase in (*PHASES, "total", "aot_autograd")}

    console = Console(highlight=False)
    title = f"BERT-base, batch {arguments.batch}, {arguments.tokens} tokens, torch {torch.__version__}"
    console.print(f"\n[bold]{title}, {torch.get_num_threads()} threads[/bold]")
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("", justify="right")
    table.add_column("", style="dim")
    table.add_row("eager, median", f"{eager_ms:.1f} ms")
    table.add_row("accel, median", f"{accel_ms:.1f} ms", f"{eager_ms / accel_ms:.2f} x eager's speed")
    table.add_row("largest difference", f"{absolute:.1e}", f"{relative:.1e} of the largest value", end_section=True)
    table.add_row("graphs", str(len(reports)))
    table.add_row("FX nodes in kernels of ours, or views", str(nodes["native"]), "native")
    table.add_row("FX nodes given to PyTorch's library", str(nodes["library"]), "library")
    table.add_row("FX nodes without a lowering", str(nodes["fallback"]), "fallback")
    after = sum(r.kernels_after for r in reports)
    merged = f"{sum(r.kernels_before for r in reports)} before equal ones were merged"
    table.add_row("kernels", str(after), merged, end_section=True)
    table.add_row("first call", f"{first_call:.2f} s")
    table.add_row("  Dynamo, and the first run", f"{first_call - seconds['total'] - seconds['aot_autograd']:.2f} s")
    table.add_row("  AOTAutograd", f"{seconds['aot_autograd']:.2f} s")
    table.add_row("  accel", f"{seconds['total']:.2f} s")
    for phase in PHASES:
        table.add_row(f"    {phase}", f"{seconds[phase]:.3f} s", PHASE_NOTES[phase])
    console.print(table)
    for line in sorted({f"{f['target']}: {f['reason']}" for r in reports for f in r.fallbacks}):
        console.print(f"fell back: {line}", markup=False)
    if relative > TOLERANCE:
        console.print(f"the relative difference is above {TOLERANCE:g}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
