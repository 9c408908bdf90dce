"""Measures one case in this process and prints one line of JSON; `run.py` starts it.

worker.py CASE BACKEND         first call, latency and error of one backend
worker.py CASE A,B,C           latency of several backends in turn, call by call
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch

from cases import CASES, built

MEASURE_SECONDS = 2.0
SAMPLE_SECONDS = 2e-3  # a call shorter than this is measured in batches
FEWEST, MOST = 7, 400  # samples


def flat(value):
    """The tensors in a nest of tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else []


def prepared(name, backend):
    """(step, results): `step()` makes one measured call, `results()` makes one and returns its tensors."""
    function, arguments = built(name)
    train = CASES[name].group == "train"
    run = function if backend == "eager" else torch.compile(function, backend=backend)

    def step():
        if not train:
            with torch.no_grad():
                return run(*arguments)
        function.zero_grad(set_to_none=True)
        loss = run(*arguments)
        loss.backward()
        return loss

    def results():
        out = flat(step())
        if train:
            out += [p.grad for p in function.parameters() if p.grad is not None]
        return [t.detach().clone() for t in out]

    return step, results


def largest_error(got, expected):
    """The largest difference over all tensors, each relative to its largest expected value."""
    worst = 0.0
    for g, e in zip(got, expected, strict=True):
        if g.dtype != e.dtype or g.shape != e.shape or g.stride() != e.stride():
            return float("inf")
        scale = e.double().abs().max().item() or 1.0
        worst = max(worst, (g.double() - e.double()).abs().max().item() / scale)
    return worst


def alternated(steps):
    """Median milliseconds of a call of each step; samples alternate, so that noise hits all alike."""
    batches = []
    for step in steps:
        step()
        start = time.perf_counter()
        step()
        batches.append(max(1, int(SAMPLE_SECONDS / max(time.perf_counter() - start, 1e-7))))
    samples = [[] for _ in steps]
    gc.collect()
    gc.disable()
    end = time.perf_counter() + MEASURE_SECONDS * len(steps)
    while len(samples[0]) < FEWEST or (time.perf_counter() < end and len(samples[0]) < MOST):
        for step, batch, taken in zip(steps, batches, samples, strict=True):
            start = time.perf_counter()
            for _ in range(batch):
                step()
            taken.append((time.perf_counter() - start) / batch * 1e3)
    gc.enable()
    return [statistics.median(taken) for taken in samples]


def one(name, backend):
    _, expected = prepared(name, "eager")
    expected = expected()
    torch.manual_seed(0)
    start = time.perf_counter()
    step, results = prepared(name, backend)
    build = time.perf_counter() - start
    start = time.perf_counter()
    got = results()
    first = time.perf_counter() - start
    record = {"build_s": build, "first_call_s": first, "error": largest_error(got, expected)}
    (record["median_ms"],) = alternated([step])
    if backend == "accel":
        import torch_accel

        reports = torch_accel.reports()
        phases = {}
        for report in reports:
            for phase, seconds in report.seconds.items():
                phases[phase] = phases.get(phase, 0.0) + seconds
        record |= {
            "graphs": len(reports),
            "own_s": phases.get("total", 0.0),
            "phases_s": phases,
            "nodes": {w: sum(r.nodes.get(w, 0) for r in reports) for w in ("native", "library", "fallback")},
            "kernels": [sum(r.kernels_before for r in reports), sum(r.kernels_after for r in reports)],
            "fallbacks": sorted({f["target"] for r in reports for f in r.fallbacks}),
        }
    return record


def several(name, backends):
    steps = [prepared(name, backend)[0] for backend in backends]
    return {"median_ms": dict(zip(backends, alternated(steps), strict=True))}


def main():
    name, backends = sys.argv[1], sys.argv[2].split(",")
    if "accel" in backends:
        import torch_accel  # noqa: F401  registers the backend where it is not installed
    record = one(name, backends[0]) if len(backends) == 1 else several(name, backends)
    print(json.dumps(record))


if __name__ == "__main__":
    main()
