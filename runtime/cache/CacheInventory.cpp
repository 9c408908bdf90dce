// The functions of CacheStore that look at all entries.

#include "runtime/cache/CacheStore.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <tuple>
#include <unistd.h>

namespace accel::runtime {
namespace {

using Access = CacheFolder::Access;

/// A temporary file is a writer's for this long after it last grew. Writers that are slower than
/// that lose it and report so.
constexpr int64_t kStaleSeconds = 3600;

constexpr size_t kShardDigits = 2;

bool isShard(std::string_view name) {
  return name.size() == kShardDigits && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// How long ago, in seconds; a time in the future is now.
uint64_t ageOf(int64_t usedAt, int64_t now) { return usedAt < now ? static_cast<uint64_t>(now - usedAt) : 0; }

/// Fills in what an entry's head, and with `readsPayloads` all of it, says.
CacheProblem inspect(int fd, uint64_t size, bool readsPayloads, EntryInfo &info) {
  std::string prefix;
  if (!readAt(fd, 0, kEntryPrefixBytes, prefix))
    return systemProblem(CacheStatus::Unreadable, "entry");
  uint64_t headBytes = 0;
  if (CacheProblem problem = entryHeadSize(prefix, size, headBytes))
    return problem;
  std::string bytes;
  if (!readAt(fd, 0, readsPayloads ? size : headBytes, bytes))
    return systemProblem(CacheStatus::Unreadable, "entry");
  EntryHead head;
  if (CacheProblem problem = readEntryHead(std::string_view(bytes).substr(0, headBytes), size, head))
    return problem;
  info.key = CacheKey::parse(head.key);
  info.payloadBytes = head.payloadBytes;
  if (!info.key)
    return {CacheStatus::Malformed, "the key's text is malformed"};
  if (head.kind != info.kind)
    return {CacheStatus::Malformed,
            "its kind is " + std::string(kindName(head.kind)) + ", its name says " + std::string(kindName(info.kind))};
  if (info.key->hash() != info.hash)
    return {CacheStatus::OtherKey, "its key has the hash " + info.key->hash()};
  EntryView entry;
  return readsPayloads ? readEntry(bytes, entry) : CacheProblem();
}

/// Removes the files of `tmp` whose writers are gone.
size_t removeStaleTemporaries(const CacheFolder &folder) {
  OpenFolder temporaries;
  std::vector<std::string> names;
  if (folder.open({kTemporaryFolder}, Access::Read, temporaries) || !namesIn(temporaries.fd.get(), names))
    return 0;
  size_t removed = 0;
  for (const std::string &name : names) {
    struct stat status;
    if (::fstatat(temporaries.fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    // A time far in the future is as old: the clock went backwards.
    bool isStale = std::llabs(static_cast<int64_t>(::time(nullptr)) - status.st_mtime) >= kStaleSeconds;
    if (isStale && ::unlinkat(temporaries.fd.get(), name.c_str(), 0) == 0)
      ++removed;
  }
  return removed;
}

} // namespace

Inventory CacheStore::takeInventory(bool readsPayloads) const {
  Inventory inventory;
  OpenFolder entries;
  CacheProblem problem = folder.open({kEntriesFolder}, Access::Read, entries);
  if (problem.status == CacheStatus::Absent)
    return inventory;
  std::vector<std::string> shards;
  if (!problem && !namesIn(entries.fd.get(), shards))
    problem = systemProblem(CacheStatus::Unreadable, entries.path);
  if (problem) {
    inventory.problem = std::move(problem);
    return inventory;
  }
  for (const std::string &shardName : shards) {
    OpenFolder shard;
    std::vector<std::string> names;
    if (!isShard(shardName) || folder.open({kEntriesFolder, shardName}, Access::Read, shard) ||
        !namesIn(shard.fd.get(), names)) {
      inventory.strangers.push_back(entries.path + "/" + shardName);
      continue;
    }
    for (const std::string &name : names) {
      EntryInfo info;
      if (!parseEntryFileName(name, info.kind, info.hash) || !info.hash.starts_with(shardName)) {
        inventory.strangers.push_back(shard.path + "/" + name);
        continue;
      }
      struct stat status;
      // Another process may have removed it meanwhile.
      if (::fstatat(shard.fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
        continue;
      info.fileBytes = static_cast<uint64_t>(status.st_size);
      info.usedAt = status.st_mtime;
      Fd file;
      info.problem = folder.openFile(shard, name, file, status);
      if (info.problem.status == CacheStatus::Absent)
        continue;
      if (!info.problem) {
        // It may also have been replaced.
        info.fileBytes = static_cast<uint64_t>(status.st_size);
        info.usedAt = status.st_mtime;
        info.problem = inspect(file.get(), info.fileBytes, readsPayloads, info);
      }
      if (info.problem && info.problem.message.find(shard.path) == std::string::npos)
        info.problem.message = shard.path + "/" + name + ": " + info.problem.message;
      inventory.entries.push_back(std::move(info));
    }
  }
  return inventory;
}

Inventory CacheStore::list() const { return takeInventory(/*readsPayloads=*/false); }

Inventory CacheStore::verify() const { return takeInventory(/*readsPayloads=*/true); }

PruneReport CacheStore::prune(const PruneLimits &limits) const {
  PruneReport report;
  Inventory inventory = takeInventory(/*readsPayloads=*/false);
  report.problem = std::move(inventory.problem);
  if (report.problem)
    return report;
  report.removedTemporaries = removeStaleTemporaries(folder);
  report.removedLocks = settings.useLocks ? removeIdleLocks(folder, kStaleSeconds) : 0;

  int64_t now = ::time(nullptr);
  uint64_t total = 0;
  for (const EntryInfo &info : inventory.entries)
    total += info.fileBytes;
  std::sort(inventory.entries.begin(), inventory.entries.end(), [](const EntryInfo &a, const EntryInfo &b) {
    return std::tie(a.usedAt, a.hash, a.kind) < std::tie(b.usedAt, b.hash, b.kind);
  });
  for (const EntryInfo &info : inventory.entries) {
    bool isTooOld = limits.maxAge && ageOf(info.usedAt, now) > *limits.maxAge;
    bool isTooMuch = limits.maxBytes && total > *limits.maxBytes;
    if (isTooOld || isTooMuch) {
      CacheProblem problem = remove(info.kind, info.hash);
      if (!problem || problem.status == CacheStatus::Absent) {
        total -= info.fileBytes;
        ++report.removedEntries;
        report.removedBytes += info.fileBytes;
        continue;
      }
      if (!report.problem)
        report.problem = std::move(problem);
    }
    ++report.keptEntries;
    report.keptBytes += info.fileBytes;
  }
  return report;
}

CacheStats CacheStore::stats() const {
  CacheStats stats;
  Inventory inventory = takeInventory(/*readsPayloads=*/false);
  stats.problem = std::move(inventory.problem);
  for (const EntryInfo &info : inventory.entries) {
    CacheStats::OfKind &kind = info.kind == EntryKind::Executable ? stats.executables : stats.tunings;
    ++kind.entries;
    kind.bytes += info.fileBytes;
  }
  OpenFolder temporaries;
  std::vector<std::string> names;
  if (!folder.open({kTemporaryFolder}, Access::Read, temporaries) && namesIn(temporaries.fd.get(), names))
    stats.temporaries = names.size();
  return stats;
}

std::optional<NearestEntry> CacheStore::nearest(EntryKind kind, const CacheKey &key) const {
  std::optional<NearestEntry> best;
  Inventory inventory = takeInventory(/*readsPayloads=*/false);
  for (EntryInfo &info : inventory.entries) {
    if (info.kind != kind || info.problem || *info.key == key)
      continue;
    std::vector<FieldDifference> differences = differingFields(key, *info.key);
    bool isBetter = !best || differences.size() < best->differences.size() ||
                    (differences.size() == best->differences.size() && info.usedAt > best->entry.usedAt);
    if (isBetter)
      best = NearestEntry{std::move(info), std::move(differences)};
  }
  return best;
}

} // namespace accel::runtime
