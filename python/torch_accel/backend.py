"""The Dynamo backend: `torch.compile(model, backend="accel")` ends up in `accel` below."""

from __future__ import annotations

import inspect
import itertools
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from torch_accel import fx_json, progress, recording
from torch_accel import options as settings
from torch_accel import report as reports
from torch_accel.whole_ops import resizing_stays_whole

# Ops that AOTAutograd must take apart before the graph leaves Python. Empty: every op arrives whole and is decomposed
# in `passes/graph`, where composites are easier to recognise and no tracing in Python is paid for.
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {}

_graph_numbers = itertools.count()
_warned_targets: set[str] = set()
_warned_caches: set[str] = set()


class FallbackWarning(UserWarning):
    """Part of a compiled graph runs through PyTorch's own kernels; `torch_accel.explain` lists what and why."""


def accel(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles a Dynamo graph. `mode` and `options` are those of `torch.compile`.

    Raises ValueError for an unknown mode, option or value.
    """
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd

    # `aot_autograd` drops `mode` and `options`, so they are read here.
    chosen = settings.resolve(options)
    number = next(_graph_numbers)
    unit = _Unit(f"graph_{number}", settings.check_mode(mode), chosen, _input_kinds(gm, example_inputs))
    start = time.perf_counter()
    with resizing_stays_whole():
        compiled = aot_autograd(
            fw_compiler=unit.compiler("forward"),
            bw_compiler=unit.compiler("backward"),
            inference_compiler=unit.compiler("inference"),
            partition_fn=min_cut_rematerialization_partition,
            decompositions=DECOMPOSITIONS,
            keep_inference_input_mutations=True,
        )(gm, example_inputs)
    unit.finish(time.perf_counter() - start)
    return unit.without_wrappers(compiled)


def _input_kinds(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> list[str]:
    """Kind of each input of a Dynamo graph: `parameter`, `buffer` or `input`."""
    if any(isinstance(value, (list, tuple, dict)) for value in example_inputs):
        return []  # AOTAutograd's wrapper flattens these, so positions do not correspond
    kinds = []
    for node, value in zip(gm.graph.find_nodes(op="placeholder"), example_inputs, strict=True):
        static = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
        if isinstance(value, torch.Tensor) and value.is_inference():
            kinds.append("input")  # PyTorch doesn't count the writes to it
        elif isinstance(value, torch.nn.Parameter):
            kinds.append("parameter")
        else:
            kinds.append("buffer" if static else "input")
    return kinds


@dataclass
class _Inference:
    """An executable that serves calls without gradients, and what AOTAutograd was given and knew of the graph."""

    executable: Any
    constants: list[torch.Tensor]
    run: Callable[[list[Any]], Any] | None = None
    metadata: Any = None

    def is_wrapped_idly(self, compiled: Callable[..., Any]) -> bool:
        """Whether `compiled` only puts its arguments into a list and calls `run` on it with gradients off."""
        meta = self.metadata
        has_work = meta is None or (
            meta.num_mutated_inp_runtime_indices
            or meta.num_mutated_graph_handled_indices
            or meta.num_outputs_aliased
            or meta.num_intermediate_bases
            or meta.dynamic_outputs
            or meta.grad_enabled_mutation is not None
            or meta.tokens
        )
        if has_work:
            return False
        # Subclasses, duplicate and overlapping inputs, random numbers and so on each add a function in between.
        outer = _closure(getattr(compiled, "_torchdynamo_orig_callable", compiled))
        if "compiled_fn" not in outer or outer.get("params_buffers_flat") != []:
            return False
        return _closure(outer["compiled_fn"]).get("_inner_compiled_fn") is self.run


def _closure(function: Any) -> Mapping[str, Any]:
    return inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}


@dataclass
class _CacheEntry:
    """A graph's place in the persistent cache; trouble with the cache is an outcome, never an error."""

    cache: Any  # a CacheStore, or None
    key: Any = None
    outcome: str = "off"  # hit, stored, off, or what went wrong

    @classmethod
    def find(cls, options: settings.Options, graph: str, target: str, graph_options: Mapping[str, Any]) -> _CacheEntry:
        """Who dumps phases wants to see them all, so nothing is taken from the cache then."""
        if options.cache == "off" or options.dump_dir:
            return cls(None)
        from torch_accel import cache

        store = cache.open_store(options)
        return cls(store, cache.executable_key(graph, target, graph_options) if store else None)

    def load(self, name: str) -> tuple[Any, Any]:
        """The executable and its report, or None for both."""
        if self.cache is None:
            return None, None
        from torch_accel import _runtime

        found = self.cache.get("executable", self.key)
        self.outcome = found.reason
        if not found:
            self._warn(found)
            return None, None
        try:
            executable = _runtime.Executable(found.payload, boxed=True, name=name)
        except _runtime.BundleError as error:
            self.outcome = str(error)
            return None, None
        self.outcome = "hit"
        report = reports.GraphReport.from_json(executable.report)
        report.name = name
        return executable, report

    def store(self, bundle: bytes) -> None:
        if self.cache is None:
            return
        put = self.cache.put("executable", self.key, bundle)
        self.outcome = "stored" if put else f"not stored: {put.reason}"
        self._warn(put)

    @staticmethod
    def _warn(result: Any) -> None:
        """A cache that others can write to is refused as a whole: its owner would wait for ever for it to help."""
        if result.status == "refused" and result.reason not in _warned_caches:
            _warned_caches.add(result.reason)
            warnings.warn(f"accel: the persistent cache is not used: {result.reason}", RuntimeWarning, stacklevel=2)


@dataclass
class _Unit:
    """What the compilers of one Dynamo graph share: its forward, backward or inference graph come one by one."""

    name: str
    mode: str
    options: settings.Options
    input_kinds: list[str]
    own_seconds: float = 0.0
    first_report: reports.GraphReport | None = None
    inference: _Inference | None = None

    def compiler(self, part: str) -> Callable[[fx.GraphModule, Sequence[Any]], Callable[[list[Any]], Any]]:
        def compile_part(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
            run = self.compile(gm, part)
            if self.inference is not None:
                context = torch._guards.TracingContext.try_get()
                self.inference.run, self.inference.metadata = run, context.fw_metadata if context else None
            return run

        return compile_part

    def without_wrappers(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """What AOTAutograd returned, or the bare executable where AOTAutograd's wrappers have nothing to do.

        They cost more than a small graph. With every op native or in a library of tensors' own ops there is no
        Python code to run either, which Dynamo would have to be kept away from.
        """
        inference = self.inference
        if inference is None or not inference.is_wrapped_idly(compiled):
            return compiled
        return inference.executable.function(inference.constants)

    def finish(self, seconds: float) -> None:
        """Books what AOTAutograd itself took (all but our compilers) on the first graph that it made."""
        if self.first_report is not None:
            self.first_report.seconds["aot_autograd"] = max(0.0, seconds - self.own_seconds)

    def kind_of(self, index: int, node: fx.Node) -> str:
        from torch._functorch._aot_autograd.descriptors import BufferAOTInput, ParamAOTInput, PlainAOTInput

        desc = node.meta.get("desc")
        if isinstance(desc, ParamAOTInput):
            return "parameter"
        if isinstance(desc, BufferAOTInput):
            return "buffer"
        if isinstance(desc, PlainAOTInput) and desc.idx < len(self.input_kinds):
            return self.input_kinds[desc.idx]
        return "input"

    def compile(self, gm: fx.GraphModule, part: str) -> Callable[[list[Any]], Any]:
        """The executable of one ATen graph, called with the list of its inputs, which it clears."""
        start = time.perf_counter()
        name = self.name if part == "inference" else f"{self.name}_{part}"
        try:
            try:
                run, report = self._compile(gm, name, is_inference=part == "inference")
            except fx_json.UnsupportedGraphError as error:
                if self.options.fallback == "error":
                    raise
                run, report = _boxed(gm), _whole_graph_report(gm, name, error)
            except Exception as error:
                if self.options.on_error != "eager" or not _is_broken_invariant(error):
                    raise
                warnings.warn(f"accel: {name} runs without compilation: {error}", RuntimeWarning, stacklevel=2)
                run, report = _boxed(gm), _whole_graph_report(gm, name, error)
        finally:
            self.own_seconds += time.perf_counter() - start
        report.part, report.mode = part, self.mode
        report.seconds["total"] = time.perf_counter() - start
        self.first_report = self.first_report or report
        _warn_of_fallbacks(report)
        reports.record(report)
        return run

    def _compile(
        self, gm: fx.GraphModule, name: str, *, is_inference: bool
    ) -> tuple[Callable[[list[Any]], Any], reports.GraphReport]:
        start = time.perf_counter()
        document = fx_json.write(gm, name=name, kind_of=self.kind_of)
        target = _resolve_target(self.options.target, document.devices)
        dump_dir = self._dump(name, document)
        graph_options = settings.graph_options(self.options, is_inference=is_inference)
        if self.options.record:
            _record(self.options.record, document, graph_options)
        captured = time.perf_counter()
        entry = _CacheEntry.find(self.options, document.unnamed, target, graph_options)
        executable, report = entry.load(name)
        looked_up = time.perf_counter()
        seconds = {"capture": captured - start, "cache": looked_up - captured}
        if executable is None:
            compiler_options = settings.compiler_options(graph_options, target, dump_dir)
            executable, report = self._compile_anew(document.text, name, compiler_options, entry)
        report.seconds = {**seconds, **report.seconds}
        report.cache = entry.outcome
        if is_inference and not report.fallbacks:
            self.inference = _Inference(executable, document.constants)
        return _with_constants(executable, document.constants), report

    def _compile_anew(
        self, document: str, name: str, compiler_options: str, entry: _CacheEntry
    ) -> tuple[Any, reports.GraphReport]:
        start = time.perf_counter()
        from torch_accel import _compiler, _runtime  # the compiler loads LLVM, so not before it is needed

        imported = time.perf_counter()
        with progress.line(name, self.options.progress) as callback:
            bundle, report_text = _compiler.compile(document, compiler_options, callback)
        compiled = time.perf_counter()
        executable = _runtime.Executable(bundle, boxed=True)
        loaded = time.perf_counter()
        entry.store(bundle)
        report = reports.GraphReport.from_json(report_text)
        report.seconds = {
            "load_compiler": imported - start,
            **report.seconds,
            "load": loaded - compiled,
            "store": time.perf_counter() - loaded,
        }
        return executable, report

    def _dump(self, name: str, document: fx_json.Document) -> str:
        """Writes the document where the phases of this graph will be dumped; the folder, empty for none."""
        if not self.options.dump_dir:
            return ""
        folder = os.path.join(self.options.dump_dir, name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "00-capture.json"), "w", encoding="utf-8") as file:
            file.write(document.text)
        return folder


def _record(folder: str, document: fx_json.Document, graph_options: Mapping[str, Any]) -> None:
    try:
        recording.write(folder, document, graph_options)
    except OSError as error:
        warnings.warn(f"accel: a graph is not recorded: {error}", RuntimeWarning, stacklevel=2)


def _resolve_target(target: str, devices: set[str]) -> str:
    """The target for tensors on these devices. Raises UnsupportedGraphError where no target serves them."""
    foreign = sorted(devices - {"cpu"})
    if foreign:
        raise fx_json.UnsupportedGraphError("graph", "", f"no target for tensors on {', '.join(foreign)}")
    return "cpu" if target == "auto" else target


def _with_constants(executable: Any, constants: list[torch.Tensor]) -> Callable[[list[Any]], Any]:
    """A boxed function that passes the graph's own tensors after the caller's inputs.

    A plain function even without constants: AOTAutograd wraps the backward's in `functools.wraps`, which carries
    `_boxed_call` over from a function's own attributes only.
    """
    if constants:

        def run(inputs: list[Any]) -> Any:
            inputs.extend(constants)
            return executable(inputs)
    else:

        def run(inputs: list[Any]) -> Any:
            return executable(inputs)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _boxed(gm: fx.GraphModule) -> Callable[[list[Any]], Any]:
    from functorch.compile import make_boxed_func

    return make_boxed_func(gm.forward)


def _is_broken_invariant(error: Exception) -> bool:
    """Whether the compiler failed on its own account, rather than on an option or an op that it refused."""
    if isinstance(error, ImportError):
        return False
    from torch_accel import _compiler

    return isinstance(error, (_compiler.CompilerError, _compiler.GraphError))


def _whole_graph_report(gm: fx.GraphModule, name: str, error: Exception) -> reports.GraphReport:
    """The report of a graph that runs as PyTorch traced it: every op fell back, for one reason."""
    reason = getattr(error, "reason", str(error).partition("\n")[0])
    fallbacks = []
    for node in gm.graph.nodes:
        if node.op == "call_function" and isinstance(node.meta.get("val"), (torch.Tensor, tuple, list)):
            frame = fx_json.user_frame(node.meta.get("stack_trace"))
            source = f"{frame[0]}:{frame[1]}" if frame else ""
            fallbacks.append({"node": node.name, "target": str(node.target), "reason": reason, "source": source})
    counts = {"native": 0, "library": 0, "fallback": len(fallbacks)}
    return reports.GraphReport(name=name, nodes=counts, fallbacks=fallbacks, whole_graph_reason=str(error))


def _warn_of_fallbacks(report: reports.GraphReport) -> None:
    """One warning for each op target that fell back, the first time this process meets it."""
    if report.whole_graph_reason:
        warnings.warn(
            f"accel: {report.name} is not compiled: {report.whole_graph_reason}", FallbackWarning, stacklevel=2
        )
        return
    new = [f for f in report.fallbacks if f["target"] not in _warned_targets]
    if not new:
        return
    counts: dict[str, int] = {}
    for fallback in new:
        counts[fallback["target"]] = counts.get(fallback["target"], 0) + 1
    _warned_targets.update(counts)
    listed = ", ".join(f"{target} ({count})" for target, count in counts.items())
    warnings.warn(
        f"accel: {report.name}: ops without a lowering run in PyTorch: {listed}", FallbackWarning, stacklevel=2
    )
