"""The command `accel`. `accel cache …` tends the persistent cache, `accel record` and `accel warm` fill it.

Every subcommand has `--json`, which prints one JSON object and nothing else. Trouble goes to stderr with exit status 1.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from torch_accel import cache, fx_json, options, recording

app = typer.Typer(no_args_is_help=True, add_completion=False, help="A graph compiler for PyTorch.")
cache_app = typer.Typer(no_args_is_help=True, help="Looks at the persistent cache and tends it.")
app.add_typer(cache_app, name="cache")

SIZE_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
AGE_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
SHOWN_HASH_DIGITS = 12
SHOWN_VALUE_CHARACTERS = 60


class Quantity(typer.BadParameter):
    """A size or an age that can't be understood."""


def parse_size(text: str) -> int:
    """Bytes of a size such as `800`, `500M` or `1.5G` (powers of 1024)."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise Quantity(f"{text!r} is no size; write a number of bytes, or one with K, M, G or T")
    return int(float(match[1]) * SIZE_UNITS[match[2].upper()])


def parse_age(text: str) -> int:
    """Seconds of an age such as `90s`, `12h` or `30d`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if not match:
        raise Quantity(f"{text!r} is no age; write a number with s, m, h, d or w")
    return int(float(match[1]) * AGE_UNITS[match[2]])


def format_size(count: int) -> str:
    """A number of bytes for people: `1.5 MiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def excerpt(value: str | None, other: str | None) -> str:
    """What fits on a line of a value, around where it begins to differ from the other."""
    if value is None:
        return "(not in this key)"
    if len(value) <= SHOWN_VALUE_CHARACTERS:
        return value
    differs = next((i for i, (a, b) in enumerate(zip(value, other or "", strict=False)) if a != b), 0)
    if differs == 0 and other:
        differs = min(len(value), len(other))
    begin = max(0, min(differs - SHOWN_VALUE_CHARACTERS // 3, len(value) - SHOWN_VALUE_CHARACTERS))
    end = begin + SHOWN_VALUE_CHARACTERS
    return f"{'…' if begin else ''}{value[begin:end]}{'…' if end < len(value) else ''} ({len(value)} characters)"


Folder = Annotated[str, typer.Option("--dir", help="The cache's folder, instead of the one in use (ACCEL_CACHE_DIR).")]
Trust = Annotated[str, typer.Option("--trust", help="owner or group, instead of ACCEL_CACHE_TRUST.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Archive = Annotated[str, typer.Argument(metavar="FILE")]


def _fail(message: str) -> typer.Exit:
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"[red]error:[/] {escape(message)}")
    return typer.Exit(1)


@contextmanager
def _errors_for_people():
    try:
        yield
    except (cache.CacheError, ValueError) as error:
        raise _fail(str(error)) from None


def _open(folder: str, trust: str) -> cache.CacheStore:
    """The store that environment and command line name; `cache=off` doesn't hide it from its commands."""
    given = {"cache": "on"} | ({"cache_dir": folder} if folder else {}) | ({"cache_trust": trust} if trust else {})
    store = cache.open_store(options.resolve(given))
    if store is None:
        raise _fail("this user has no home, so the cache has no folder; name one with --dir")
    return store


def _print_json(value: dict[str, Any]) -> None:
    typer.echo(json.dumps(value, indent=2))


def _print(text: str) -> None:
    Console(soft_wrap=True, highlight=False).print(text)


def _entry_line(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry for JSON: its fields as a dictionary, in the key's order."""
    return entry | {"fields": None if entry["fields"] is None else dict(entry["fields"])}


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in ("size", "entries") else "left", overflow="fold")
    return table


@cache_app.command()
def stats(folder: Folder = "", trust: Trust = "", as_json: Json = False) -> None:
    """How many entries of which kind there are, and how large they are."""
    with _errors_for_people():
        store = _open(folder, trust)
        found = store.stats()
    if as_json:
        return _print_json({"folder": store.folder} | found)
    table = _table("kind", "entries", "size")
    for kind in cache.KINDS:
        table.add_row(kind, str(found[f"{kind}_entries"]), format_size(found[f"{kind}_bytes"]))
    _print(escape(store.folder))
    Console().print(table)
    if found["temporaries"]:
        _print(f"{found['temporaries']} files are being written, or were left by writers that were killed")
    return None


@cache_app.command("list")
def list_entries(folder: Folder = "", trust: Trust = "", as_json: Json = False) -> None:
    """All entries, the last used first."""
    with _errors_for_people():
        found = _open(folder, trust).list()
    entries = sorted(found["entries"], key=lambda e: (-e["used_at"], e["hash"], e["kind"]))
    if as_json:
        return _print_json({"entries": [_entry_line(e) for e in entries], "strangers": found["strangers"]})
    table = _table("key", "kind", "size", "last used", "fields")
    for entry in entries:
        used = datetime.fromtimestamp(entry["used_at"]).isoformat(" ", "minutes")
        shown = entry["reason"] or ", ".join(f"{n}={excerpt(v, None)}" for n, v in entry["fields"])
        table.add_row(
            entry["hash"][:SHOWN_HASH_DIGITS], entry["kind"], format_size(entry["file_bytes"]), used, escape(shown)
        )
    Console().print(table)
    return None


@cache_app.command()
def why(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The beginning of an entry's key, as `list` shows it.")],
    folder: Folder = "",
    trust: Trust = "",
    as_json: Json = False,
) -> None:
    """Why an entry was made instead of an earlier one taken: the fields in which it differs from the nearest."""
    with _errors_for_people():
        store = _open(folder, trust)
        matches = [e for e in store.list()["entries"] if e["hash"].startswith(key.lower())]
        if not matches:
            raise _fail(f"no entry's key begins with {key!r}")
        if len({e["hash"] for e in matches}) > 1:
            raise _fail(f"{len(matches)} entries' keys begin with {key!r}; give more digits")
        explained = []
        for entry in matches:
            if entry["fields"] is None:
                raise _fail(entry["reason"])
            explained.append((entry, store.nearest(entry["kind"], cache.CacheKey(entry["fields"]))))
    if as_json:
        return _print_json({"entries": [_explanation(entry, nearest) for entry, nearest in explained]})
    for entry, nearest in explained:
        _print(f"{entry['kind']} {entry['hash']}")
        if nearest is None:
            _print(f"the only {entry['kind']} entry: nothing to compare it with")
            continue
        other, differences = nearest
        _print(f"nearest: {other['hash']}, which differs in {len(differences)} of its fields")
        table = _table("field", "this entry", "nearest entry")
        for name, wanted, found in differences:
            table.add_row(escape(name), escape(excerpt(wanted, found)), escape(excerpt(found, wanted)))
        Console().print(table)
    return None


def _explanation(entry: dict[str, Any], nearest: tuple[dict[str, Any], list] | None) -> dict[str, Any]:
    differences = [{"field": n, "this": w, "nearest": f} for n, w, f in (nearest[1] if nearest else [])]
    return {
        "entry": _entry_line(entry),
        "nearest": _entry_line(nearest[0]) if nearest else None,
        "differences": differences,
    }


@cache_app.command()
def verify(
    remove: Annotated[bool, typer.Option("--remove", help="Remove the bad entries.")] = False,
    folder: Folder = "",
    trust: Trust = "",
    as_json: Json = False,
) -> None:
    """Reads and checks every entry. Exit status 1 if one is bad and stays."""
    with _errors_for_people():
        store = _open(folder, trust)
        found = store.verify()
    bad = [e for e in found["entries"] if e["status"] != "ok"]
    removals = [store.remove(e["kind"], e["hash"]) for e in bad] if remove else []
    removed = sum(map(bool, removals))
    if as_json:
        _print_json(
            {
                "checked": len(found["entries"]),
                "bad": [_entry_line(e) for e in bad],
                "removed": removed,
                "strangers": found["strangers"],
            }
        )
    else:
        for entry in bad:
            _print(f"[red]{entry['status']}[/] {escape(entry['reason'])}")
        for failure in (r for r in removals if not r):
            _print(f"[red]not removed[/] {escape(failure.reason)}")
        for path in found["strangers"]:
            _print(f"[yellow]not of the cache[/] {escape(path)}")
        _print(f"{len(found['entries'])} entries checked, {len(bad)} bad, {removed} removed")
    if len(bad) > removed:
        raise typer.Exit(1)


@cache_app.command()
def prune(
    max_size: Annotated[str, typer.Option(help="What the entries may take together: 500M, 2G.")] = "",
    max_age: Annotated[str, typer.Option(help="How long an entry may be unused: 12h, 30d.")] = "",
    folder: Folder = "",
    trust: Trust = "",
    as_json: Json = False,
) -> None:
    """Removes entries, the longest unused first, and always what killed writers left."""
    with _errors_for_people():
        done = _open(folder, trust).prune(
            max_bytes=parse_size(max_size) if max_size else None, max_age=parse_age(max_age) if max_age else None
        )
    if as_json:
        return _print_json(done)
    _print(
        f"{done['removed_entries']} entries removed ({format_size(done['removed_bytes'])}), "
        f"{done['kept_entries']} kept ({format_size(done['kept_bytes'])})"
    )
    return None


@cache_app.command("export")
def export_to(file: Archive, folder: Folder = "", trust: Trust = "", as_json: Json = False) -> None:
    """Writes all good entries to one file, for another machine."""
    with _errors_for_people():
        done = _open(folder, trust).export_to(file)
    if as_json:
        return _print_json(done)
    _print(f"{done['entries']} entries written ({format_size(done['bytes'])}), {done['skipped']} bad ones left out")
    return None


@cache_app.command("import")
def import_from(file: Archive, folder: Folder = "", trust: Trust = "", as_json: Json = False) -> None:
    """Takes the entries of a file that `export` wrote; entries are machine code, so take only what you trust."""
    with _errors_for_people():
        done = _open(folder, trust).import_from(file)
    if as_json:
        return _print_json(done)
    _print(f"{done['entries']} entries taken ({format_size(done['bytes'])}), {done['skipped']} were here already")
    return None


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def record(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Where the graphs are kept.")],
    command: Annotated[list[str], typer.Argument(metavar="COMMAND…", help="The program to run.")],
) -> None:
    """Runs a program and keeps every graph that it compiles; the exit status is the program's."""
    environment = os.environ | {options.environment_variable("record"): os.path.abspath(folder)}
    try:
        status = subprocess.run(command, env=environment, check=False).returncode
    except OSError as error:
        raise _fail(f"{command[0]}: {error.strerror}") from None
    raise typer.Exit(status if status >= 0 else 128 - status)


@app.command()
def warm(
    records: Annotated[str, typer.Argument(metavar="DIR", help="Graphs that `accel record` or ACCEL_RECORD kept.")],
    target: Annotated[str, typer.Option(help="What to compile for: cpu (this processor), or cpu:NAME.")] = "cpu",
    folder: Folder = "",
    trust: Trust = "",
    as_json: Json = False,
) -> None:
    """Compiles recorded graphs into the cache, without the model's code. Exit status 1 if one could not be kept."""
    with _errors_for_people():
        store = _open(folder, trust)
        chosen = options.resolve({"target": target}).target
        outcomes = [_warm(store, r, "cpu" if chosen == "auto" else chosen) for r in recording.read_all(records)]
    if as_json:
        _print_json({"graphs": outcomes})
    else:
        table = _table("graph", "outcome", "seconds")
        for outcome in outcomes:
            table.add_row(escape(outcome["record"]), escape(outcome["outcome"]), f"{outcome['seconds']:.2f}")
        Console().print(table)
    if any(outcome["outcome"] not in ("stored", "was there") for outcome in outcomes):
        raise typer.Exit(1)


def _warm(store: cache.CacheStore, record: recording.Record, target: str) -> dict[str, Any]:
    start = time.perf_counter()
    key = cache.executable_key(record.graph, target, record.options)
    outcome = "was there"
    if not store.get("executable", key):
        from torch_accel import _compiler

        try:
            document = fx_json.named(record.graph, "graph")
            bundle, _ = _compiler.compile(document, options.compiler_options(record.options, target))
            put = store.put("executable", key, bundle)
            outcome = "stored" if put else put.reason
        except (_compiler.GraphError, _compiler.UnsupportedError, _compiler.CompilerError) as error:
            outcome = str(error).partition("\n")[0]
    return {
        "record": record.path.name.removesuffix(recording.SUFFIX),
        "outcome": outcome,
        "seconds": time.perf_counter() - start,
    }


def main() -> None:
    """The entry point of the command."""
    app()


if __name__ == "__main__":
    main()
