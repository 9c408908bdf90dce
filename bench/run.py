"""Measures eager, TorchInductor and accel side by side and prints Markdown tables.

Each case and backend runs in two fresh processes that share a cache folder, empty at first: the cold and the warm
start. Then one more process for each case compiles it with all backends and lets their calls alternate: read ratios
there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

BACKENDS = ("eager", "inductor", "accel")
PHASES = (
    "capture",
    "load_compiler",
    "import",
    "graph",
    "fusion",
    "kernels",
    "schedule",
    "codegen",
    "executable",
    "load",
)


def worker(case: str, backends: str, cache: Path, timeout: float) -> dict:
    """The record of one worker process, or {"failed": last line of its output}."""
    environment = os.environ | {
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "ACCEL_CACHE_DIR": str(cache / "accel"),
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, str(HERE / "worker.py"), case, backends]
    try:
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"no result within {timeout:.0f} s"}
    if run.returncode:
        lines = run.stderr.strip().splitlines() or [f"exit status {run.returncode}"]
        return {"failed": next((x for x in reversed(lines) if "Error" in x), lines[-1])[:200]}
    return json.loads(run.stdout.strip().splitlines()[-1])


def cell(record: dict, key: str, form: str) -> str:
    if "failed" in record:
        return "failed"
    return format(record[key], form) if key in record else "–"


def processor() -> str:
    """The processor's name and the number of cores at hand."""
    names = [
        x.split(":", 1)[1].strip() for x in Path("/proc/cpuinfo").read_text().splitlines() if x[:10] == "model name"
    ]
    return f"{names[0] if names else platform.machine()}, {len(os.sched_getaffinity(0))} cores"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def measure(arguments: argparse.Namespace, cases: list[str], backends: list[str]) -> dict:
    """All records: {case: {"cold": {backend: record}, "warm": …, "together": {backend: milliseconds}}}."""
    from cases import CASES

    results: dict = {}
    for name in cases:
        caches = {b: Path(tempfile.mkdtemp(prefix="accel-bench-")) for b in (*backends, "together")}
        entry = results[name] = {"cold": {}, "warm": {}}
        try:
            tracing = ["aot_eager"] if CASES[name].group in ("model", "train") and not arguments.alternate_only else []
            for start in ("cold", "warm"):
                for backend in [] if arguments.alternate_only else [*backends, *(tracing if start == "cold" else [])]:
                    if start == "warm" and (backend == "eager" or arguments.cold_only):
                        continue
                    cache = caches.get(backend, caches["together"])
                    entry[start][backend] = record = worker(name, backend, cache, arguments.timeout)
                    print(f"{name} {backend} {start}: {json.dumps(record)}", file=sys.stderr, flush=True)
            # The caches are warm by now, one for each backend, so that this process compiles quickly.
            shared = caches["together"]
            for backend in backends:
                if (caches[backend] / backend).exists():
                    shutil.copytree(caches[backend] / backend, shared / backend, dirs_exist_ok=True)
            if len(backends) > 1:
                entry["together"] = worker(name, ",".join(backends), shared, arguments.timeout)
                print(f"{name} together: {json.dumps(entry['together'])}", file=sys.stderr, flush=True)
        finally:
            for folder in caches.values():
                shutil.rmtree(folder, ignore_errors=True)
    return results


def report(results: dict, backends: list[str]) -> str:
    """The Markdown text of all tables."""
    import torch

    from cases import CASES

    text = [f"{processor()}; torch {torch.__version__}, {torch.get_num_threads()} threads\n"]

    rows = []
    for name, entry in results.items():
        together = entry.get("together", {})
        medians = together.get("median_ms", {})
        row = [CASES[name].title] + [f"{medians[b]:.4g}" if b in medians else "failed" for b in backends]
        ratio = medians.get("accel", 0) / medians["inductor"] if medians.get("inductor") else 0
        rows.append([*row, f"{ratio:.2f}" if ratio else "–"])
    if any("together" in e for e in results.values()):
        text += ["## Latency, calls alternating in one process (median, ms)\n"]
        text += [table(["case", *backends, "accel / inductor"], rows)]

    if any(entry["cold"] for entry in results.values()):
        rows = []
        for name, entry in results.items():
            for backend, cold in entry["cold"].items():
                warm = entry["warm"].get(backend, {})
                best = min((r for r in (cold, warm) if "median_ms" in r), key=lambda r: r["median_ms"], default=cold)
                seconds = [cell(cold, "first_call_s", ".2f"), cell(warm, "first_call_s", ".2f") if warm else "–"]
                rows.append(
                    [CASES[name].title, backend, *seconds, cell(best, "median_ms", ".4g"), cell(cold, "error", ".1e")]
                )
        text += ["## Each in a process of its own\n"]
        text += [
            table(["case", "backend", "first call cold, s", "warm, s", "median, ms", "largest relative error"], rows)
        ]

        rows = []
        for name, entry in results.items():
            record = entry["cold"].get("accel", {})
            if "phases_s" not in record:
                continue
            phases = record["phases_s"]
            nodes = " / ".join(str(record["nodes"][w]) for w in ("native", "library", "fallback"))
            kernels = " → ".join(map(str, record["kernels"]))
            tracing = entry["cold"].get("aot_eager", {})
            spent = [f"{phases.get(p, 0.0):.3f}" for p in PHASES]
            first = [cell(record, "first_call_s", ".2f"), cell(tracing, "first_call_s", ".2f") if tracing else "–"]
            rows.append([CASES[name].title, *first, f"{record['own_s']:.2f}", *spent, nodes, kernels])
        if rows:
            text += ["## Where accel's first call goes (cold, seconds)\n"]
            header = ["case", "first call", "aot_eager's first call", "own share", *PHASES]
            text += [table([*header, "nodes native / library / fallback", "kernels, unequal"], rows)]

    failures = [
        f"- {CASES[name].title}, {backend}, {start}: {record['failed']}"
        for name, entry in results.items()
        for start in ("cold", "warm")
        for backend, record in entry[start].items()
        if "failed" in record
    ]
    failures += [
        f"- {CASES[name].title}, together: {entry['together']['failed']}"
        for name, entry in results.items()
        if "failed" in entry.get("together", {})
    ]
    if failures:
        text += ["## Failures\n", "\n".join(failures) + "\n"]
    return "\n".join(text)


def main() -> int:
    """Returns 1 if any measurement failed."""
    from cases import CASES

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default="all", help=f"all, or some of: {', '.join(CASES)}; or a group's name")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--cold-only", action="store_true", help="no second process for the warm start")
    parser.add_argument("--alternate-only", action="store_true", help="only the process in which calls alternate")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one process")
    parser.add_argument("--json", type=Path, help="also writes all records here")
    parser.add_argument("--out", type=Path, help="also writes the Markdown here")
    arguments = parser.parse_args()
    asked = arguments.cases.split(",")
    cases = [n for n, c in CASES.items() if arguments.cases == "all" or n in asked or c.group in asked]
    unknown = [a for a in asked if a != "all" and a not in CASES and a not in {c.group for c in CASES.values()}]
    if unknown:
        parser.error(f"unknown case {', '.join(unknown)}; known are {', '.join(CASES)}")
    backends = arguments.backends.split(",")
    results = measure(arguments, cases, backends)
    text = report(results, backends)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    return int("## Failures" in text)


if __name__ == "__main__":
    sys.exit(main())
