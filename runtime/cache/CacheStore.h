// The persistent cache: a folder of entries, one file each, that any number of processes share.
//
// An entry is written to a temporary file in another folder, read back and checked, brought to the
// disk (fsync) and renamed into place. A reader sees a whole entry or none, whatever happens to the
// writer. What can't be read, or isn't what was asked for, is a miss with a reason.
//
// CacheFolder.h has the layout, EntryFormat.h the files, CacheKey.h the keys, FolderTrust.h whose
// files are believed, CacheArchive.h what `exportTo` writes. All functions may be called by many
// threads at once.

#ifndef ACCEL_RUNTIME_CACHE_CACHESTORE_H
#define ACCEL_RUNTIME_CACHE_CACHESTORE_H

#include "runtime/cache/CacheArchive.h"
#include "runtime/cache/CacheFolder.h"
#include "runtime/cache/CacheKey.h"
#include "runtime/cache/CacheLock.h"
#include "runtime/cache/EntryFormat.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace accel::runtime {

struct CacheOptions {
  std::string folder;
  TrustPolicy trust = TrustPolicy::Owner;
  /// False for file systems without locks.
  bool useLocks = true;
};

/// What `get` found: a payload, or why there is none.
struct CacheResult {
  std::optional<std::string> payload;
  CacheProblem problem;
};

/// What is known of one file of the cache without its payload.
struct EntryInfo {
  EntryKind kind = EntryKind::Executable;
  std::string hash;
  /// Empty if the head is damaged.
  std::optional<CacheKey> key;
  uint64_t payloadBytes = 0;
  uint64_t fileBytes = 0;
  /// When it was written or last read, in seconds since 1970.
  int64_t usedAt = 0;
  CacheProblem problem;
};

struct Inventory {
  /// Sorted by hash, then kind.
  std::vector<EntryInfo> entries;
  /// Paths of what lies among the entries and is none.
  std::vector<std::string> strangers;
  /// Why the folder could not be looked at. A folder that doesn't exist is empty, no problem.
  CacheProblem problem;
};

struct PruneLimits {
  std::optional<uint64_t> maxBytes;
  /// Seconds since an entry was last used.
  std::optional<uint64_t> maxAge;
};

struct PruneReport {
  size_t removedEntries = 0;
  uint64_t removedBytes = 0;
  size_t keptEntries = 0;
  uint64_t keptBytes = 0;
  /// Files that writers left behind when they were killed.
  size_t removedTemporaries = 0;
  size_t removedLocks = 0;
  /// The folder's problem, or the first file's that could not be removed.
  CacheProblem problem;
};

struct CacheStats {
  struct OfKind {
    uint64_t entries = 0;
    uint64_t bytes = 0;
  };
  OfKind executables;
  OfKind tunings;
  uint64_t temporaries = 0;
  CacheProblem problem;
};

/// Counts of one store object's calls.
struct CacheCounters {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t puts = 0;
  uint64_t failedPuts = 0;
};

/// The entry whose key is most like a given one.
struct NearestEntry {
  EntryInfo entry;
  /// `wanted` is the given key's side, `found` the entry's.
  std::vector<FieldDifference> differences;
};

class CacheStore {
public:
  /// Touches nothing yet; the folder is made by the first `put`.
  explicit CacheStore(CacheOptions options);

  const CacheOptions &options() const { return settings; }

  /// The folder, absolute. Empty if there is none, in which case everything is refused.
  const std::string &path() const { return folder.path(); }

  /// The payload that was put for this key, or a miss with its reason. A hit counts as a use.
  CacheResult get(EntryKind kind, const CacheKey &key) const;

  /// Stores a payload, instead of what was there for this key. Returns why it could not; then what
  /// was there before still is.
  CacheProblem put(EntryKind kind, const CacheKey &key, std::string_view payload) const;

  /// Removes an entry, or whatever file is in its place. Absent if there is none.
  CacheProblem remove(EntryKind kind, const std::string &hash) const;

  /// The lock for working on this key; not taken yet.
  std::unique_ptr<CacheLock> lockFor(EntryKind kind, const CacheKey &key) const;

  /// All entries. Reads heads, not payloads: an entry without a problem may still be damaged.
  Inventory list() const;

  /// All entries, each read and checked from end to end.
  Inventory verify() const;

  /// Removes entries over the age, then the longest unused until the rest fits. Entries with a time
  /// in the future count as just used. Also removes temporary files and idle locks that have been
  /// there for over an hour.
  PruneReport prune(const PruneLimits &limits) const;

  CacheStats stats() const;

  CacheCounters counters() const;

  /// Of the entries of that kind with another key, the one that differs from `key` in fewest fields;
  /// among equals the last used. Nothing if there is none.
  std::optional<NearestEntry> nearest(EntryKind kind, const CacheKey &key) const;

  /// Writes all good entries to one file, which appears whole or not at all. Throws CacheError.
  ArchiveReport exportTo(const std::string &file) const;

  /// Takes the entries of such a file; those that are here already stay. The file is checked from
  /// end to end before anything is written. Throws CacheError for a bad file, or a folder that
  /// can't be written to.
  ArchiveReport importFrom(const std::string &file) const;

private:
  CacheProblem readFile(EntryKind kind, const std::string &hash, std::string &bytes, EntryView &entry, Fd &file,
                        struct stat &status) const;
  CacheProblem writeFile(EntryKind kind, const CacheKey &key, std::string_view payload) const;
  Inventory takeInventory(bool readsPayloads) const;

  CacheOptions settings;
  CacheFolder folder;
  mutable std::atomic<uint64_t> hits = 0;
  mutable std::atomic<uint64_t> misses = 0;
  mutable std::atomic<uint64_t> puts = 0;
  mutable std::atomic<uint64_t> failedPuts = 0;
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CACHE_CACHESTORE_H
