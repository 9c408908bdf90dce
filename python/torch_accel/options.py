"""The options of the backend: one table with type, default, environment variable and documentation.

`torch.compile(model, backend="accel", options={...})` wins over the environment, which wins over the default.
"""

from __future__ import annotations

import fnmatch
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

MODES: dict[str, str] = {
    "default": "compile time and run time in balance",
    "reduce-overhead": "accepted; on the CPU the same as `default`, for a call has no launch queue to record",
    "max-autotune": "accepted; the same as `default` as long as no tuner measures candidates",
    "max-autotune-no-cudagraphs": "accepted; the same as `max-autotune`",
}


def option(default: str, doc: str, choices: tuple[str, ...] = ()) -> Any:
    """A field of `Options`; `choices` lists the legal values (`*` stands for any text), empty for any text."""
    return field(default=default, metadata={"doc": doc, "choices": choices})


@dataclass(frozen=True)
class Options:
    """Settings of one compilation. Each field's environment variable is `ACCEL_<NAME>` in capitals."""

    target: str = option(
        "auto",
        "What to compile for. `auto` takes the device that holds the tensors; `cpu:NAME` another x86 processor that "
        "LLVM knows, such as `cpu:x86-64-v3`.",
        ("auto", "cpu", "cpu:*"),
    )
    fallback: str = option(
        "allow",
        "What happens to an op without a lowering: `allow` runs PyTorch's own kernel for it in the middle of the "
        "compiled graph (counted, listed by `explain`, warned of once), `error` refuses to compile.",
        ("allow", "error"),
    )
    on_error: str = option(
        "raise",
        "What happens when the compiler breaks one of its own invariants: `raise` ends the call with an exception, "
        "`eager` warns once and runs that graph without compiling it.",
        ("raise", "eager"),
    )
    contractions: str = option(
        "auto",
        "Whose kernels matrix products get: `auto` lets a cost model decide, `own` and `library` force one where it is "
        "possible. `explain` shows each choice with its reason.",
        ("auto", "own", "library"),
    )
    constant_weights: str = option(
        "on",
        "Whether an inference graph (no gradients) computes what depends on parameters and buffers alone once, packed "
        "weights first of all, and keeps it until one of them is written to or replaced: faster, for memory that "
        "`explain` shows. Writes that PyTorch doesn't count (through `.data`) are not seen.",
        ("on", "off"),
    )
    cache: str = option(
        "on",
        "Whether compiled graphs and tuning results are kept on disk and taken from there.",
        ("on", "off"),
    )
    cache_dir: str = option(
        "",
        "The folder of the persistent cache, made with mode 0700 if it is missing. Empty: `$XDG_CACHE_HOME/accel`, or "
        "`~/.cache/accel`.",
    )
    cache_trust: str = option(
        "owner",
        "Whose files in the cache are believed, for an entry is machine code: `owner` those that only root and this "
        "user can write; `group` also those of a group of this user's, for a cache that a cluster shares. A folder, "
        "parent or file that others could have written is refused with the reason.",
        ("owner", "group"),
    )
    cache_locks: str = option(
        "on",
        "Whether processes wait for each other, so that one does the work on a key; `off` for file systems without "
        "locks. The cache is right either way.",
        ("on", "off"),
    )
    record: str = option(
        "",
        "A folder that keeps every graph that is compiled, for `accel warm`. Empty: none is kept.",
    )
    dump_dir: str = option(
        "",
        "A folder for the document and the IR of each phase, one subfolder for each graph. Empty: nothing is written.",
    )
    progress: str = option(
        "auto",
        "The progress line on stderr while compiling: `auto` shows it on a terminal.",
        ("auto", "on", "off"),
    )


def environment_variable(name: str) -> str:
    """The environment variable of an option: `dump_dir` gives `ACCEL_DUMP_DIR`."""
    return f"ACCEL_{name.upper()}"


def _checked(value: Any, choices: tuple[str, ...], origin: str) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise ValueError(f"{origin} must be text, not {value!r}")
    if choices and not any(fnmatch.fnmatchcase(value, choice) for choice in choices):
        raise ValueError(f"{origin} is {value!r}; known values are {', '.join(choices)}")
    return value


def resolve(options: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Options:
    """Settings from `options`, then the environment, then the defaults.

    Raises ValueError for an unknown option or value; the message lists the known ones.
    """
    given = dict(options or {})
    environ = os.environ if environ is None else environ
    known = fields(Options)
    unknown = sorted(set(map(str, given)) - {f.name for f in known})
    if unknown:
        names = ", ".join(f.name for f in known)
        raise ValueError(f"unknown option {', '.join(map(repr, unknown))}; known options are {names}")
    values = {}
    for f in known:
        variable = environment_variable(f.name)
        if f.name in given:
            values[f.name] = _checked(given[f.name], f.metadata["choices"], f"option {f.name!r}")
        elif variable in environ:
            values[f.name] = _checked(environ[variable], f.metadata["choices"], f"environment variable {variable}")
    return Options(**values)


def check_mode(mode: str | None) -> str:
    """The mode's name, `default` for None. Raises ValueError for an unknown one; the message lists the known ones."""
    name = "default" if mode is None else mode
    if name not in MODES:
        raise ValueError(f"unknown mode {name!r}; known modes are {', '.join(MODES)}")
    return name


def graph_options(options: Options, *, is_inference: bool = False) -> dict[str, Any]:
    """The options that say what becomes of a graph, whatever the target."""
    return {
        "fallback": options.fallback,
        "contractions": options.contractions,
        "constant_weights": is_inference and options.constant_weights == "on",
    }


def compiler_options(of_graph: Mapping[str, Any], target: str, dump_dir: str = "") -> str:
    """The JSON text that the C++ compiler reads: a graph's options, with the target resolved."""
    return json.dumps({"target": target, "dump_dir": dump_dir, **of_graph})


def markdown() -> str:
    """The text of `docs/options.md`."""
    lines = [
        "# Options",
        "",
        'Given as `torch.compile(model, backend="accel", options={"fallback": "error"})`, or through the environment',
        "(`ACCEL_FALLBACK=error`). `options=` wins over the environment, the environment over the default. An unknown",
        "option, mode or value is an error that lists the known ones.",
        "",
        "| option | environment | values | default | meaning |",
        "|---|---|---|---|---|",
    ]
    for f in fields(Options):
        values = ", ".join(f"`{c}`" for c in f.metadata["choices"]) or "text"
        default = f"`{f.default}`" if f.default else "empty"
        lines.append(f"| `{f.name}` | `{environment_variable(f.name)}` | {values} | {default} | {f.metadata['doc']} |")
    lines += ["", "## Modes", "", "| mode | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {doc} |" for name, doc in MODES.items()]
    return "\n".join(lines) + "\n"
