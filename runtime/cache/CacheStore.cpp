#include "runtime/cache/CacheStore.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

namespace accel::runtime {
namespace {

using Access = CacheFolder::Access;

/// A use within this many seconds of the last one isn't written down again.
constexpr int64_t kTouchSeconds = 60;

/// The folder of an entry's file: the first digits of its hash.
std::vector<std::string_view> folderOf(std::string_view hash) { return {kEntriesFolder, hash.substr(0, 2)}; }

/// Writes the time of this use. A reader of somebody else's cache may not, which is all right.
void touch(int fd, const struct stat &status) {
  if (std::llabs(static_cast<int64_t>(::time(nullptr)) - status.st_mtime) >= kTouchSeconds)
    static_cast<void>(::futimens(fd, nullptr) == 0);
}

/// A file in `tmp` that is removed unless it is renamed.
class TemporaryFile {
public:
  TemporaryFile(const CacheFolder &folder, const OpenFolder &temporaries, const std::string &entryName)
      : temporaries(temporaries),
        name(entryName + "." + std::to_string(static_cast<long>(::getpid())) + "." + randomName()) {
    failure = folder.createFile(temporaries, name, fd);
  }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  ~TemporaryFile() {
    if (fd && !isRenamed)
      ::unlinkat(temporaries.fd.get(), name.c_str(), 0);
  }

  const CacheProblem &problem() const { return failure; }

  /// Writes, brings to the disk, reads back.
  CacheProblem fill(std::string_view bytes) {
    std::string back;
    if (!writeAll(fd.get(), bytes) || ::fsync(fd.get()) != 0 || !readAt(fd.get(), 0, bytes.size() + 1, back))
      return systemProblem(CacheStatus::Unwritable, temporaries.path + "/" + name);
    if (back != bytes)
      return {CacheStatus::Unwritable, temporaries.path + "/" + name + ": what was written reads back differently"};
    return {};
  }

  CacheProblem renameTo(const OpenFolder &target, const std::string &targetName) {
    if (!moveTo(target, targetName))
      return systemProblem(CacheStatus::Unwritable, target.path + "/" + targetName);
    isRenamed = true;
    // The name has to survive a power cut too; some file systems can't sync folders.
    static_cast<void>(::fsync(target.fd.get()) == 0);
    return {};
  }

private:
  bool moveTo(const OpenFolder &target, const std::string &targetName) {
    auto move = [&] {
      return ::renameat(temporaries.fd.get(), name.c_str(), target.fd.get(), targetName.c_str()) == 0;
    };
    if (move())
      return true;
    // A folder in the entry's place gives way if it is empty.
    return errno == EISDIR && ::unlinkat(target.fd.get(), targetName.c_str(), AT_REMOVEDIR) == 0 && move();
  }

  const OpenFolder &temporaries;
  std::string name;
  Fd fd;
  CacheProblem failure;
  bool isRenamed = false;
};

} // namespace

CacheStore::CacheStore(CacheOptions options) : settings(std::move(options)), folder(settings.folder, settings.trust) {}

CacheProblem CacheStore::readFile(EntryKind kind, const std::string &hash, std::string &bytes, EntryView &entry,
                                  Fd &file, struct stat &status) const {
  OpenFolder at;
  if (CacheProblem problem = folder.open(folderOf(hash), Access::Read, at))
    return problem;
  std::string name = entryFileName(kind, hash);
  std::string path = at.path + "/" + name;
  if (CacheProblem problem = folder.openFile(at, name, file, status))
    return problem;
  uint64_t size = static_cast<uint64_t>(status.st_size);
  std::string prefix;
  if (!readAt(file.get(), 0, kEntryPrefixBytes, prefix))
    return systemProblem(CacheStatus::Unreadable, path);
  // Sizes are compared before memory is taken for them.
  uint64_t headBytes = 0;
  CacheProblem problem = entryHeadSize(prefix, size, headBytes);
  if (!problem && !readAt(file.get(), 0, size, bytes))
    return systemProblem(CacheStatus::Unreadable, path);
  if (!problem)
    problem = readEntry(bytes, entry);
  if (problem)
    problem.message = path + ": " + problem.message;
  return problem;
}

CacheResult CacheStore::get(EntryKind kind, const CacheKey &key) const {
  CacheResult result;
  std::string bytes;
  EntryView entry;
  Fd file;
  struct stat status;
  result.problem = readFile(kind, key.hash(), bytes, entry, file, status);
  if (!result.problem && entry.kind != kind)
    result.problem = {CacheStatus::Malformed, "the entry " + key.hash() + " is of kind " +
                                                  std::string(kindName(entry.kind)) + ", its name says " +
                                                  std::string(kindName(kind))};
  if (!result.problem && entry.key != key.text())
    result.problem = {CacheStatus::OtherKey, "the entry " + key.hash() + " is of another key with this hash"};
  if (result.problem) {
    ++misses;
    return result;
  }
  touch(file.get(), status);
  ++hits;
  size_t begin = static_cast<size_t>(entry.payload.data() - bytes.data());
  size_t count = entry.payload.size();
  bytes.erase(0, begin);
  bytes.resize(count);
  result.payload = std::move(bytes);
  return result;
}

CacheProblem CacheStore::writeFile(EntryKind kind, const CacheKey &key, std::string_view payload) const {
  if (key.text().size() + payload.size() > kMaxEntryBytes)
    return {CacheStatus::Unwritable, "an entry of " + std::to_string(payload.size()) + " bytes is over the limit of " +
                                         std::to_string(kMaxEntryBytes)};
  OpenFolder temporaries;
  if (CacheProblem problem = folder.open({kTemporaryFolder}, Access::Create, temporaries))
    return problem;
  OpenFolder target;
  if (CacheProblem problem = folder.open(folderOf(key.hash()), Access::Create, target))
    return problem;
  std::string name = entryFileName(kind, key.hash());
  TemporaryFile temporary(folder, temporaries, name);
  if (temporary.problem())
    return temporary.problem();
  std::string bytes = writeEntry(kind, key, payload);
  if (CacheProblem problem = temporary.fill(bytes))
    return problem;
  return temporary.renameTo(target, name);
}

CacheProblem CacheStore::put(EntryKind kind, const CacheKey &key, std::string_view payload) const {
  CacheProblem problem = writeFile(kind, key, payload);
  ++(problem ? failedPuts : puts);
  return problem;
}

CacheProblem CacheStore::remove(EntryKind kind, const std::string &hash) const {
  if (!isKeyHash(hash))
    return {CacheStatus::Absent, "`" + hash + "` is no entry's hash"};
  OpenFolder at;
  if (CacheProblem problem = folder.open(folderOf(hash), Access::Read, at))
    return problem;
  std::string name = entryFileName(kind, hash);
  if (::unlinkat(at.fd.get(), name.c_str(), 0) == 0)
    return {};
  if (errno == ENOENT)
    return {CacheStatus::Absent, at.path + "/" + name + " does not exist"};
  if (errno == EISDIR && ::unlinkat(at.fd.get(), name.c_str(), AT_REMOVEDIR) == 0)
    return {};
  return systemProblem(CacheStatus::Unwritable, at.path + "/" + name);
}

std::unique_ptr<CacheLock> CacheStore::lockFor(EntryKind kind, const CacheKey &key) const {
  return std::make_unique<CacheLock>(folder, kind, key, settings.useLocks);
}

CacheCounters CacheStore::counters() const { return {hits, misses, puts, failedPuts}; }

ArchiveReport CacheStore::exportTo(const std::string &file) const {
  Inventory inventory = takeInventory(/*readsPayloads=*/false);
  if (inventory.problem)
    throw CacheError(inventory.problem.message);
  ArchiveReport report;
  ArchiveWriter writer(file);
  for (const EntryInfo &info : inventory.entries) {
    std::string bytes;
    EntryView entry;
    Fd source;
    struct stat status;
    CacheProblem problem = readFile(info.kind, info.hash, bytes, entry, source, status);
    std::optional<CacheKey> key = problem ? std::nullopt : CacheKey::parse(entry.key);
    if (!key || key->hash() != info.hash || entry.kind != info.kind) {
      ++report.skipped;
      continue;
    }
    writer.add(bytes);
    ++report.entries;
    report.bytes += bytes.size();
  }
  writer.finish();
  return report;
}

ArchiveReport CacheStore::importFrom(const std::string &file) const {
  ArchiveReader reader(file);
  ArchiveReport report;
  for (size_t i = 0; i < reader.size(); ++i) {
    std::string bytes = reader.entry(i);
    EntryView entry;
    std::optional<CacheKey> key;
    // The reader checked it; this only keeps what follows from resting on that alone.
    if (!readEntry(bytes, entry))
      key = CacheKey::parse(entry.key);
    if (!key)
      throw CacheError(file + ": the archive changed while it was read");
    std::string present;
    EntryView presentEntry;
    Fd presentFile;
    struct stat status;
    bool isHere = !readFile(entry.kind, key->hash(), present, presentEntry, presentFile, status) &&
                  presentEntry.kind == entry.kind && presentEntry.key == entry.key;
    if (isHere) {
      ++report.skipped;
      continue;
    }
    if (CacheProblem problem = writeFile(entry.kind, *key, entry.payload))
      throw CacheError(problem.message);
    ++report.entries;
    report.bytes += bytes.size();
  }
  return report;
}

} // namespace accel::runtime
