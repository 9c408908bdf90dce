"""`accel cache …`: what each subcommand prints, its JSON, and its exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from torch_accel import cache, cli


def key(graph, target="cpu:avx2"):
    return cache.CacheKey([("target", target), ("version", "0.1.0"), ("graph", graph)])


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    store = cache.CacheStore(tmp_path / "cache")
    store.put("executable", key("relu"), b"payload")
    store.put("executable", key("relu", "cpu:avx512"), b"payload")
    store.put("tuning", key("relu"), b"record")
    return store


def run(*arguments, status=0):
    result = CliRunner().invoke(cli.app, ["cache", *arguments])
    assert result.exit_code == status, result.output
    return result


def run_json(*arguments, status=0):
    return json.loads(run(*arguments, "--json", status=status).stdout)


def file_of(store, wanted, kind="executable"):
    (file,) = Path(store.folder, "v1").rglob(f"{wanted.hash}.{kind}")
    return file


def test_stats(store):
    found = run_json("stats")
    assert found == {"folder": store.folder} | store.stats()
    assert (found["executable_entries"], found["tuning_entries"]) == (2, 1)
    text = run("stats").stdout
    assert store.folder in text
    assert "executable" in text
    assert "left by writers" not in text
    Path(store.folder, "tmp", "left").write_text("half")
    assert "1 files are being written, or were left by writers that were killed" in run("stats").stdout


def test_list_is_by_use(store):
    os.utime(file_of(store, key("relu")), (1000, 1000))
    entries = run_json("list")["entries"]
    assert len(entries) == 3
    assert entries[-1]["hash"] == key("relu").hash
    assert entries[-1]["used_at"] == 1000
    assert entries[-1]["fields"] == {"target": "cpu:avx2", "version": "0.1.0", "graph": "relu"}
    text = run("list").stdout
    assert key("relu").hash[:12] in text
    assert "target=cpu:avx512" in text


def test_why_names_the_field(store):
    wanted = key("relu", "cpu:avx512")
    (found,) = run_json("why", wanted.hash[:10])["entries"]
    assert found["entry"]["hash"] == wanted.hash
    assert found["nearest"]["hash"] == key("relu").hash
    assert found["differences"] == [{"field": "target", "this": "cpu:avx512", "nearest": "cpu:avx2"}]
    text = run("why", wanted.hash).stdout
    assert "differs in 1 of its fields" in text
    assert "cpu:avx512" in text
    # This key has an entry of each kind, and the tuning record is alone.
    both = run_json("why", key("relu").hash)["entries"]
    assert [e["entry"]["kind"] for e in both] == ["executable", "tuning"]
    assert both[1]["nearest"] is None
    assert "the only tuning entry" in run("why", key("relu").hash).stdout


def test_why_without_an_answer(store):
    assert "no entry's key begins with 'xyz'" in run("why", "xyz", status=1).stderr
    assert "3 entries' keys begin with ''; give more digits" in run("why", "", status=1).stderr
    file_of(store, key("relu")).write_text("damaged, and longer than a head has to be, so that it is foreign")
    assert "magic word" in run("why", key("relu").hash, status=1).stderr


def test_verify(store):
    assert run_json("verify") == {"checked": 3, "bad": [], "removed": 0, "strangers": []}
    file = file_of(store, key("relu"))
    file.write_bytes(file.read_bytes()[:-1])
    (bad,) = run_json("verify", status=1)["bad"]
    assert (bad["hash"], bad["status"]) == (key("relu").hash, "truncated")
    text = run("verify", status=1).stdout
    assert "truncated" in text
    assert "3 entries checked, 1 bad, 0 removed" in text
    assert "3 entries checked, 1 bad, 1 removed" in run("verify", "--remove").stdout
    assert run_json("verify")["checked"] == 2


def test_prune(store):
    assert run_json("prune")["removed_entries"] == 0
    os.utime(file_of(store, key("relu")), (1000, 1000))
    assert run_json("prune", "--max-age", "30d")["removed_entries"] == 1
    assert "2 entries removed" in run("prune", "--max-size", "0").stdout
    assert run_json("list")["entries"] == []


@pytest.mark.parametrize(("text", "size"), [("0", 0), ("800", 800), ("2K", 2048), ("1.5M", 1572864), ("2GiB", 2**31)])
def test_sizes(text, size):
    assert cli.parse_size(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("2m", 120), ("1.5h", 5400), ("30d", 2592000)])
def test_ages(text, seconds):
    assert cli.parse_age(text) == seconds


def test_wrong_quantities(store):
    assert "'much' is no size" in run("prune", "--max-size", "much", status=2).stderr
    assert "'30' is no age" in run("prune", "--max-age", "30", status=2).stderr


def test_export_and_import(store, tmp_path):
    file = str(tmp_path / "archive")
    assert run_json("export", file)["entries"] == 3
    other = str(tmp_path / "other")
    assert run_json("import", file, "--dir", other)["entries"] == 3
    assert "0 entries taken (0 B), 3 were here already" in run("import", file, "--dir", other).stdout
    assert cache.CacheStore(other).get("tuning", key("relu")).payload == b"record"
    Path(file).write_bytes(Path(file).read_bytes()[:100])
    error = run("import", file, status=1).stderr
    assert "truncated" in error
    assert file in error


def test_refused_folder_is_an_error_with_the_reason(store):
    os.chmod(store.folder, 0o770)
    for command in ("stats", "list", "verify", "prune"):
        result = run(command, status=1)
        assert result.stdout == ""
        assert "mode 0770" in result.stderr
    assert run_json("stats", "--trust", "group")["tuning_entries"] == 1
    assert "known values are owner, group" in run("stats", "--trust", "all", status=1).stderr


def test_no_cache_yet(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCEL_CACHE", "off")
    folder = str(tmp_path / "none")
    assert run_json("stats", "--dir", folder)["executable_entries"] == 0
    assert run_json("verify", "--dir", folder)["checked"] == 0
    assert not Path(folder).exists()


def test_long_values_are_shown_where_they_differ():
    same = "x" * 1000
    shown = cli.excerpt(same + "here" + same, same + "there" + same)
    assert "here" in shown
    assert len(shown) < 100
    assert "(2004 characters)" in shown
    assert cli.excerpt(None, "x") == "(not in this key)"


def test_as_a_program(store):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "torch_accel.cli", "cache", "stats", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout)["executable_entries"] == 2
    assert done.stderr == ""
