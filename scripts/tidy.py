"""Runs clang-tidy on the sources of the build; a source that passed is not checked again until something changes.

A stamp in the build folder holds the checksum of the source, of all headers of the project and of `.clang-tidy`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("runtime", "dialects", "passes", "codegen", "compiler", "python", "test")


def digest(paths: list[Path]) -> str:
    """One checksum over the names and contents of files."""
    total = hashlib.sha256()
    for path in paths:
        total.update(str(path).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def main() -> int:
    """Returns 0 if every source passes, 1 otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    database = arguments.build / "compile_commands.json"
    if not database.exists():
        print(f"tidy: no {database}; build first", file=sys.stderr)
        return 1
    entries = {Path(e["directory"], e["file"]).resolve() for e in json.loads(database.read_text())}
    sources = sorted(
        s for s in entries if s.is_relative_to(ROOT) and s.relative_to(ROOT).parts[0] in PARTS and s.exists()
    )
    headers = sorted(h for part in PARTS for h in (ROOT / part).rglob("*.h"))
    shared = digest([ROOT / ".clang-tidy", *headers])
    stamps = arguments.build / "tidy"
    stamps.mkdir(exist_ok=True)

    def check(source: Path) -> str:
        stamp = stamps / str(source.relative_to(ROOT)).replace("/", ".")
        wanted = shared + digest([source])
        if stamp.exists() and stamp.read_text() == wanted:
            return ""
        run = subprocess.run(
            ["clang-tidy-22", "--quiet", f"-p={arguments.build}", str(source)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode == 0 and "warning:" not in run.stdout:
            stamp.write_text(wanted)
            return ""
        return run.stdout or run.stderr

    failed = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for output in pool.map(check, sources):
            if output:
                failed += 1
                print(output, end="")
    print(f"tidy: {len(sources)} sources, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
