"""Graphs that a run compiled, kept as files: `accel warm` compiles them without the model's code.

A record is one JSON object: `version`, `options` (those of `options.graph_options`) and `graph` (FX JSON without its
name). Its file is named by a checksum of the contents, so equal graphs are kept once.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_accel.fx_json import Document

VERSION = 1
SUFFIX = ".graph.json"


@dataclass(frozen=True)
class Record:
    """One recorded graph."""

    path: Path
    graph: str  # FX JSON without a name
    options: dict[str, Any]


def write(folder: str, document: Document, graph_options: Mapping[str, Any]) -> None:
    """Keeps a graph. Raises OSError if the folder can't be written to."""
    text = f'{{"version":{VERSION},"options":{json.dumps(graph_options)},"graph":{document.unnamed}}}'
    path = Path(folder, hashlib.sha256(text.encode()).hexdigest()[:32] + SUFFIX)
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, prefix=".", delete=False) as file:
        file.write(text)
    os.replace(file.name, path)


def read(path: Path) -> Record:
    """Raises ValueError for a file that is no record."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise ValueError(f"{path}: a record of version {data['version']}, not {VERSION}")
        graph = json.dumps(data["graph"], allow_nan=False, separators=(",", ":"))
        return Record(path, graph, dict(data["options"]))
    except (KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: no recorded graph: {error}") from None


def read_all(folder: str) -> Iterator[Record]:
    """The records of a folder, by name. Raises ValueError if it holds none."""
    paths = sorted(path for path in Path(folder).glob(f"*{SUFFIX}") if not path.name.startswith("."))
    if not paths:
        raise ValueError(f"{folder}: no recorded graphs (*{SUFFIX})")
    return map(read, paths)
