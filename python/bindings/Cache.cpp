#include "python/bindings/Cache.h"

#include "runtime/cache/CacheStore.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>

namespace py = pybind11;
using namespace accel::runtime;

namespace {

/// What `CacheStore.get` returns.
struct Result {
  py::object payload;
  std::string status;
  std::string reason;
};

/// What `CacheStore.put` and `remove` return.
struct Outcome {
  std::string status;
  std::string reason;
};

/// Keys and messages may hold any bytes: paths that aren't UTF-8, damaged values.
py::str toText(std::string_view text) {
  PyObject *decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (!decoded)
    throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

py::object toTextOrNone(const std::optional<std::string> &text) {
  return text ? py::object(toText(*text)) : py::object(py::none());
}

EntryKind kindOf(const std::string &name) {
  if (std::optional<EntryKind> kind = kindOfName(name))
    return *kind;
  throw py::value_error("kind is '" + name + "'; known kinds are executable, tuning");
}

TrustPolicy trustOf(const std::string &name) {
  if (name == "owner")
    return TrustPolicy::Owner;
  if (name == "group")
    return TrustPolicy::Group;
  throw py::value_error("trust is '" + name + "'; known values are owner, group");
}

/// What commands of a user's do about a folder's problem.
void raiseProblem(const CacheProblem &problem) {
  if (problem)
    throw CacheError(problem.message);
}

CacheKey makeKey(const std::vector<std::pair<std::string, std::string>> &pairs) {
  std::vector<KeyField> fields;
  fields.reserve(pairs.size());
  for (const auto &[name, value] : pairs)
    fields.push_back({name, value});
  return CacheKey(std::move(fields));
}

py::list fieldsOf(const CacheKey &key) {
  py::list fields;
  for (const KeyField &field : key.fields())
    fields.append(py::make_tuple(toText(field.name), toText(field.value)));
  return fields;
}

py::list toPython(const std::vector<FieldDifference> &differences) {
  py::list list;
  for (const FieldDifference &difference : differences)
    list.append(
        py::make_tuple(toText(difference.name), toTextOrNone(difference.wanted), toTextOrNone(difference.found)));
  return list;
}

py::dict toPython(const EntryInfo &info) {
  py::dict entry;
  entry["kind"] = kindName(info.kind);
  entry["hash"] = info.hash;
  entry["fields"] = info.key ? py::object(fieldsOf(*info.key)) : py::object(py::none());
  entry["payload_bytes"] = info.payloadBytes;
  entry["file_bytes"] = info.fileBytes;
  entry["used_at"] = info.usedAt;
  entry["status"] = statusName(info.problem.status);
  entry["reason"] = toText(info.problem.message);
  return entry;
}

py::dict toPython(const Inventory &inventory) {
  raiseProblem(inventory.problem);
  py::list entries, strangers;
  for (const EntryInfo &info : inventory.entries)
    entries.append(toPython(info));
  for (const std::string &path : inventory.strangers)
    strangers.append(toText(path));
  py::dict result;
  result["entries"] = entries;
  result["strangers"] = strangers;
  return result;
}

py::dict toPython(const ArchiveReport &report) {
  py::dict result;
  result["entries"] = report.entries;
  result["bytes"] = report.bytes;
  result["skipped"] = report.skipped;
  return result;
}

/// Calls `function` without the GIL.
template <typename Function> auto withoutGil(Function function) {
  py::gil_scoped_release released;
  return function();
}

Result get(const CacheStore &store, const std::string &kind, const CacheKey &key) {
  EntryKind entryKind = kindOf(kind);
  CacheResult found = withoutGil([&] { return store.get(entryKind, key); });
  py::object payload = py::none();
  if (found.payload)
    payload = py::bytes(*found.payload);
  return {payload, std::string(statusName(found.problem.status)), found.problem.message};
}

Outcome outcomeOf(const CacheProblem &problem) { return {std::string(statusName(problem.status)), problem.message}; }

Outcome put(const CacheStore &store, const std::string &kind, const CacheKey &key, const py::bytes &payload) {
  EntryKind entryKind = kindOf(kind);
  std::string_view bytes(payload);
  return outcomeOf(withoutGil([&] { return store.put(entryKind, key, bytes); }));
}

py::dict prune(const CacheStore &store, std::optional<uint64_t> maxBytes, std::optional<uint64_t> maxAge) {
  PruneReport report = withoutGil([&] { return store.prune({.maxBytes = maxBytes, .maxAge = maxAge}); });
  raiseProblem(report.problem);
  py::dict result;
  result["removed_entries"] = report.removedEntries;
  result["removed_bytes"] = report.removedBytes;
  result["kept_entries"] = report.keptEntries;
  result["kept_bytes"] = report.keptBytes;
  result["removed_temporaries"] = report.removedTemporaries;
  result["removed_locks"] = report.removedLocks;
  return result;
}

py::dict stats(const CacheStore &store) {
  CacheStats stats = withoutGil([&] { return store.stats(); });
  raiseProblem(stats.problem);
  py::dict result;
  result["executable_entries"] = stats.executables.entries;
  result["executable_bytes"] = stats.executables.bytes;
  result["tuning_entries"] = stats.tunings.entries;
  result["tuning_bytes"] = stats.tunings.bytes;
  result["temporaries"] = stats.temporaries;
  return result;
}

py::dict counters(const CacheStore &store) {
  CacheCounters counters = store.counters();
  py::dict result;
  result["hits"] = counters.hits;
  result["misses"] = counters.misses;
  result["puts"] = counters.puts;
  result["failed_puts"] = counters.failedPuts;
  return result;
}

py::object nearest(const CacheStore &store, const std::string &kind, const CacheKey &key) {
  EntryKind entryKind = kindOf(kind);
  std::optional<NearestEntry> found = withoutGil([&] { return store.nearest(entryKind, key); });
  if (!found)
    return py::none();
  return py::make_tuple(toPython(found->entry), toPython(found->differences));
}

/// Seconds as given by Python; what is too long to count is as long as can be waited for.
bool lock(CacheLock &self, double seconds) {
  constexpr double kLongestSeconds = 1e9;
  if (std::isnan(seconds))
    throw py::value_error("timeout is not a number");
  double limit = std::clamp(seconds, 0.0, kLongestSeconds);
  auto end = std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(limit));
  // In pieces, so that Ctrl-C is noticed.
  constexpr auto kPiece = std::chrono::milliseconds(100);
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (withoutGil([&] { return self.lock(std::clamp(left, std::chrono::milliseconds(0), kPiece)); }))
      return true;
    if (PyErr_CheckSignals() != 0)
      throw py::error_already_set();
    if (left <= kPiece)
      return false;
  }
}

void addKey(py::module_ &module) {
  py::class_<CacheKey>(module, "CacheKey",
                       "CacheKey(fields: list[tuple[str, str]])\n\n"
                       "What an entry is for: named fields, in an order. Raises ValueError for a bad name or one that "
                       "occurs twice.")
      .def(py::init(&makeKey), py::arg("fields"))
      .def_property_readonly("hash", &CacheKey::hash, "32 hexadecimal digits, also the file's name.")
      .def_property_readonly(
          "text", [](const CacheKey &key) { return toText(key.text()); }, "The text that is hashed and compared.")
      .def_property_readonly("fields", &fieldsOf, "The fields, as (name, value).")
      .def(
          "differences",
          [](const CacheKey &key, const CacheKey &other) { return toPython(differingFields(key, other)); },
          py::arg("other"), "The fields that differ, as (name, value here or None, value there or None).")
      .def(
          "__eq__", [](const CacheKey &key, const CacheKey &other) { return key == other; }, py::is_operator())
      .def("__hash__", [](const CacheKey &key) { return py::hash(py::str(key.hash())); })
      .def("__repr__", [](const CacheKey &key) { return "<CacheKey " + key.hash() + ">"; });
}

void addResults(py::module_ &module) {
  py::class_<Result>(module, "CacheResult", "What `CacheStore.get` found.")
      .def_readonly("payload", &Result::payload, "The bytes, or None for a miss.")
      .def_readonly("status", &Result::status, "`ok`, or why there is none, in one word: `absent`, `bad_checksum`, …")
      .def_property_readonly(
          "reason", [](const Result &result) { return toText(result.reason); }, "The same in a sentence; empty if ok.")
      .def("__bool__", [](const Result &result) { return !result.payload.is_none(); });
  py::class_<Outcome>(module, "CacheOutcome", "What `CacheStore.put` or `remove` did; true if it did it.")
      .def_readonly("status", &Outcome::status, "`ok`, or why not, in one word.")
      .def_property_readonly(
          "reason", [](const Outcome &outcome) { return toText(outcome.reason); },
          "The same in a sentence; empty if ok.")
      .def("__bool__", [](const Outcome &outcome) { return outcome.status == "ok"; });
}

void addLock(py::module_ &module) {
  py::class_<CacheLock>(module, "CacheLock",
                        "From `CacheStore.lock_for`; not for use by two threads at once. As a context manager it "
                        "releases what is held, and takes nothing by itself.")
      .def(
          "try_lock", [](CacheLock &self) { return withoutGil([&] { return self.tryLock(); }); },
          "False if another one holds it. True also where locking isn't possible: see `held`.")
      .def("lock", &lock, py::arg("timeout"), "Waits up to so many seconds; false if another one holds it still.")
      .def(
          "unlock", [](CacheLock &self) { withoutGil([&] { self.unlock(); }); }, "Does nothing if it isn't held.")
      .def_property_readonly("held", &CacheLock::isHeld, "Whether the kernel holds the lock for this object.")
      .def_property_readonly(
          "reason", [](const CacheLock &self) { return toText(self.problem().message); },
          "Why the last attempt went ahead without a lock; empty otherwise.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](CacheLock &self, const py::args &) { withoutGil([&] { self.unlock(); }); });
}

void addStore(py::module_ &module) {
  py::class_<CacheStore>(module, "CacheStore",
                         "CacheStore(folder: str, trust: str = 'owner', locks: bool = True)\n\n"
                         "A folder of entries that processes share; see runtime/cache/CacheStore.h. `kind` is "
                         "`executable` or `tuning`. Trouble with the folder is a reason in what `get` and `put` "
                         "return; the functions that look at all entries raise CacheError.")
      .def(py::init([](const py::object &folder, const std::string &trust, bool locks) {
             auto path = py::module_::import("os").attr("fsencode")(folder).cast<std::string>();
             return std::make_unique<CacheStore>(CacheOptions{std::move(path), trustOf(trust), locks});
           }),
           py::arg("folder"), py::arg("trust") = "owner", py::arg("locks") = true)
      .def_property_readonly(
          "folder", [](const CacheStore &store) { return toText(store.path()); }, "The folder, absolute.")
      .def("get", &get, py::arg("kind"), py::arg("key"), "A CacheResult: the payload, or why there is none.")
      .def("put", &put, py::arg("kind"), py::arg("key"), py::arg("payload"),
           "Stores bytes; a CacheOutcome. Doesn't raise for a full disk, a read-only folder and the like.")
      .def(
          "remove",
          [](const CacheStore &store, const std::string &kind, const std::string &hash) {
            EntryKind entryKind = kindOf(kind);
            return outcomeOf(withoutGil([&] { return store.remove(entryKind, hash); }));
          },
          py::arg("kind"), py::arg("hash"), "Removes an entry; a CacheOutcome.")
      .def(
          "lock_for",
          [](const CacheStore &store, const std::string &kind, const CacheKey &key) {
            return store.lockFor(kindOf(kind), key);
          },
          py::arg("kind"), py::arg("key"), "A CacheLock for working on this key, not taken yet.")
      .def(
          "list", [](const CacheStore &store) { return toPython(withoutGil([&] { return store.list(); })); },
          "{'entries': [...], 'strangers': [paths]}; reads heads alone.")
      .def(
          "verify", [](const CacheStore &store) { return toPython(withoutGil([&] { return store.verify(); })); },
          "As `list`, having read and checked everything.")
      .def("prune", &prune, py::arg("max_bytes") = py::none(), py::arg("max_age") = py::none(),
           "Removes what is unused for over `max_age` seconds, then the longest unused until `max_bytes` hold the "
           "rest; also what killed writers left.")
      .def("stats", &stats, "Entries and bytes of each kind, and temporary files.")
      .def("counters", &counters, "Of this object: hits, misses, puts, failed_puts.")
      .def("nearest", &nearest, py::arg("kind"), py::arg("key"),
           "The entry with another key that differs in fewest fields, and which: (entry, [(name, wanted, found)]). "
           "None if there is none.")
      .def(
          "export_to",
          [](const CacheStore &store, const std::string &file) {
            return toPython(withoutGil([&] { return store.exportTo(file); }));
          },
          py::arg("file"), "Writes all good entries to one file. Raises CacheError.")
      .def(
          "import_from",
          [](const CacheStore &store, const std::string &file) {
            return toPython(withoutGil([&] { return store.importFrom(file); }));
          },
          py::arg("file"), "Takes the entries of such a file, having checked all of it. Raises CacheError.");
}

} // namespace

namespace accel::python {

void addCache(py::module_ &module) {
  py::register_exception<CacheError>(module, "CacheError", PyExc_RuntimeError).doc() =
      "A cache that can't be looked at, or an archive that can't be read or written.";
  addKey(module);
  addResults(module);
  addLock(module);
  addStore(module);
}

} // namespace accel::python
