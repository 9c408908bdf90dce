"""The cache's store as Python sees it; what it does with files is tested in C++ (test/unit/runtime/Cache*)."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from torch_accel import cache, options

KEY = cache.CacheKey([("target", "cpu:avx2"), ("graph", "relu")])
OTHER = cache.CacheKey([("target", "cpu:avx512"), ("graph", "relu")])


@pytest.fixture
def store(tmp_path):
    return cache.CacheStore(tmp_path / "cache")


def test_keys():
    assert KEY.fields == [("target", "cpu:avx2"), ("graph", "relu")]
    assert KEY.text == "accel-key 1\ntarget 8:cpu:avx2\ngraph 4:relu\n"
    assert cache.CacheKey(KEY.fields) == KEY
    assert hash(KEY) == hash(cache.CacheKey(KEY.fields))
    assert KEY != OTHER
    assert KEY != "a text"
    assert KEY.differences(OTHER) == [("target", "cpu:avx2", "cpu:avx512")]
    assert cache.CacheKey([("graph", "ä\n")]).fields == [("graph", "ä\n")]


def test_bad_keys():
    with pytest.raises(ValueError, match="a key has two fields `a`"):
        cache.CacheKey([("a", ""), ("a", "")])
    with pytest.raises(ValueError, match="a key field's name must be"):
        cache.CacheKey([("a b", "")])


def test_put_and_get(store):
    missed = store.get("executable", KEY)
    assert (bool(missed), missed.payload, missed.status) == (False, None, "absent")
    assert "does not exist" in missed.reason
    assert store.put("executable", KEY, b"a\0b\xff")
    found = store.get("executable", KEY)
    assert (bool(found), found.payload, found.status, found.reason) == (True, b"a\0b\xff", "ok", "")
    assert store.put("tuning", KEY, b"")
    assert store.get("tuning", KEY).payload == b""
    assert store.get("tuning", KEY)
    assert store.counters() == {"hits": 3, "misses": 1, "puts": 2, "failed_puts": 0}


def test_trouble_is_a_reason(store, tmp_path):
    store.put("executable", KEY, b"x")
    os.chmod(store.folder, 0o777)
    for outcome in (store.get("executable", KEY), store.put("executable", KEY, b"y"), store.remove("tuning", KEY.hash)):
        assert not outcome
        assert outcome.status == "refused"
        assert f"{store.folder} is owned by" in outcome.reason
        assert "mode 0777" in outcome.reason
    assert store.nearest("executable", OTHER) is None
    for operation in (store.list, store.verify, store.stats, store.prune, lambda: store.export_to(str(tmp_path / "a"))):
        with pytest.raises(cache.CacheError, match="mode 0777"):
            operation()


def test_group_trust(store):
    store.put("executable", KEY, b"x")
    os.chmod(store.folder, 0o770)
    assert store.get("executable", KEY).status == "refused"
    assert cache.CacheStore(store.folder, trust="group").get("executable", KEY)


def test_wrong_words(store):
    with pytest.raises(ValueError, match="kind is 'kernel'; known kinds are executable, tuning"):
        store.get("kernel", KEY)
    with pytest.raises(ValueError, match="trust is 'all'; known values are owner, group"):
        cache.CacheStore("x", trust="all")


def test_list_verify_and_nearest(store):
    store.put("executable", KEY, b"payload")
    (entry,) = store.list()["entries"]
    assert entry["hash"] == KEY.hash
    assert entry["fields"] == KEY.fields
    assert (entry["kind"], entry["payload_bytes"], entry["status"], entry["reason"]) == ("executable", 7, "ok", "")
    nearest, differences = store.nearest("executable", OTHER)
    assert nearest["hash"] == KEY.hash
    assert differences == [("target", "cpu:avx512", "cpu:avx2")]
    assert store.nearest("executable", KEY) is None

    (file,) = Path(store.folder, "v1").rglob("*.executable")
    file.write_bytes(file.read_bytes()[:-1])
    (entry,) = store.verify()["entries"]
    assert entry["status"] == "truncated"
    assert str(file) in entry["reason"]


def test_prune(store):
    store.put("executable", KEY, b"payload")
    size = store.stats()["executable_bytes"]
    kept = store.prune(max_bytes=size, max_age=1000)
    assert (kept["kept_entries"], kept["kept_bytes"], kept["removed_entries"]) == (1, size, 0)
    assert store.prune(max_bytes=size - 1)["removed_entries"] == 1
    assert store.list()["entries"] == []


def test_export_and_import(store, tmp_path):
    store.put("executable", KEY, b"payload")
    file = tmp_path / "archive"
    assert store.export_to(str(file))["entries"] == 1
    other = cache.CacheStore(tmp_path / "other")
    assert other.import_from(str(file))["entries"] == 1
    assert other.get("executable", KEY).payload == b"payload"
    assert other.import_from(str(file))["skipped"] == 1
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(cache.CacheError, match="truncated"):
        other.import_from(str(file))


def test_locks(store):
    with store.lock_for("tuning", KEY) as first, store.lock_for("tuning", KEY) as second:
        assert not first.held
        assert first.try_lock()
        assert first.held
        assert first.reason == ""
        assert not second.try_lock()
        assert not second.lock(0.01)
        first.unlock()
        assert second.lock(10)
    assert not second.held
    without = cache.CacheStore(store.folder, locks=False).lock_for("tuning", KEY)
    assert without.try_lock()
    assert not without.held


def test_waiting_lets_other_threads_run_and_ends(store):
    holder = store.lock_for("tuning", KEY)
    assert holder.try_lock()
    results = []
    waiter = threading.Thread(target=lambda: results.append(store.lock_for("tuning", KEY).lock(60)))
    waiter.start()
    holder.unlock()
    waiter.join()
    assert results == [True]


def test_lock_of_a_killed_process_is_free(store):
    code = f"""
import time
from torch_accel import cache
store = cache.CacheStore({store.folder!r})
lock = store.lock_for("tuning", cache.CacheKey({KEY.fields!r}))
print(lock.lock(60), flush=True)
time.sleep(600)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert child.stdout.readline() == "True\n"
    lock = store.lock_for("tuning", KEY)
    assert not lock.try_lock()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert lock.try_lock()


def test_folder():
    def of(given, environ):
        return cache.folder(options.resolve(given, environ), environ)

    home = Path("~/.cache/accel").expanduser()
    assert of({}, {}) == home
    assert of({}, {"XDG_CACHE_HOME": "/xdg"}) == Path("/xdg/accel")
    assert of({}, {"XDG_CACHE_HOME": "not/absolute"}) == home
    assert of({}, {"XDG_CACHE_HOME": "/xdg", "ACCEL_CACHE_DIR": "/mine"}) == Path("/mine")
    assert of({"cache_dir": "/given"}, {"ACCEL_CACHE_DIR": "/mine"}) == Path("/given")


def test_options_open_the_store(tmp_path):
    assert cache.open_store(options.resolve({"cache": "off"}, {})) is None
    store = cache.open_store(options.resolve({"cache_dir": tmp_path / "c", "cache_locks": "off"}, {}))
    assert store.folder == str(tmp_path / "c")
    assert not (tmp_path / "c").exists()
    lock = store.lock_for("tuning", KEY)
    assert lock.try_lock()
    assert not lock.held
