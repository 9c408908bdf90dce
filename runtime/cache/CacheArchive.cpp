#include "runtime/cache/CacheArchive.h"
#include "runtime/LittleEndian.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace accel::runtime {
namespace {

constexpr std::string_view kMagic = "ACCELARC";
/// 32 digits, a dot and `executable` are 43.
constexpr uint32_t kMaxNameBytes = 64;

template <typename T> std::string integerBytes(T value) {
  std::string out;
  appendInteger(out, value);
  return out;
}

[[noreturn]] void fail(const std::string &file, const std::string &why) { throw CacheError(file + ": " + why); }

[[noreturn]] void failOfSystem(const std::string &file) { fail(file, std::generic_category().message(errno)); }

/// A hash over all bytes that went by.
class StreamHash {
public:
  StreamHash() : state(XXH3_createState()) {
    if (!state)
      throw std::bad_alloc();
    XXH3_64bits_reset(state);
  }
  StreamHash(const StreamHash &) = delete;
  StreamHash &operator=(const StreamHash &) = delete;
  ~StreamHash() { XXH3_freeState(state); }

  void update(std::string_view bytes) { XXH3_64bits_update(state, bytes.data(), bytes.size()); }
  uint64_t value() const { return XXH3_64bits_digest(state); }

private:
  XXH3_state_t *state;
};

std::string folderOf(const std::string &file) {
  size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : file.substr(0, slash);
}

/// Reads from front to back, and never past the end.
class ArchiveCursor {
public:
  ArchiveCursor(const std::string &file, int fd, uint64_t size) : file(file), fd(fd), size(size) {}

  std::string take(uint64_t count, const std::string &what) {
    if (count > size - position)
      fail(file, "the archive is truncated: " + what + " needs " + std::to_string(count) + " bytes, " +
                     std::to_string(size - position) + " are left");
    std::string bytes;
    if (!readAt(fd, position, count, bytes))
      failOfSystem(file);
    if (bytes.size() != count)
      fail(file, "the archive became shorter while it was read");
    position += count;
    return bytes;
  }

  template <typename T> T takeInteger(const std::string &what) { return integerAt<T>(takeHashed(sizeof(T), what), 0); }

  std::string takeHashed(uint64_t count, const std::string &what) {
    std::string bytes = take(count, what);
    hash.update(bytes);
    return bytes;
  }

  uint64_t at() const { return position; }
  uint64_t left() const { return size - position; }
  uint64_t hashSoFar() const { return hash.value(); }

private:
  const std::string &file;
  int fd;
  uint64_t size;
  uint64_t position = 0;
  StreamHash hash;
};

/// Bytes as text for a message: what isn't plain is shown as `?`.
std::string printable(std::string_view bytes) {
  std::string out(bytes);
  for (char &c : out)
    if (c < ' ' || c > '~')
      c = '?';
  return out;
}

/// Checks an entry and returns the name that it has to have.
std::string nameOfEntry(const std::string &file, const std::string &what, std::string_view bytes) {
  EntryView entry;
  if (CacheProblem problem = readEntry(bytes, entry))
    fail(file, what + ": " + problem.message);
  std::optional<CacheKey> key = CacheKey::parse(entry.key);
  if (!key)
    fail(file, what + ": the key's text is malformed");
  return entryFileName(entry.kind, key->hash());
}

} // namespace

struct ArchiveWriter::Hash : StreamHash {};

ArchiveWriter::ArchiveWriter(std::string target)
    : file(std::move(target)), temporary(file + "." + randomName() + ".tmp"), hash(std::make_unique<Hash>()) {
  fd = Fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd)
    failOfSystem(file);
  try {
    write(kMagic);
    write(integerBytes(kArchiveVersion));
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

ArchiveWriter::~ArchiveWriter() {
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

void ArchiveWriter::write(std::string_view bytes) {
  if (!writeAll(fd.get(), bytes))
    failOfSystem(file);
  hash->update(bytes);
}

void ArchiveWriter::add(std::string_view entry) {
  std::string name = nameOfEntry(file, "an entry to export", entry);
  write(integerBytes(static_cast<uint32_t>(name.size())));
  write(name);
  write(integerBytes<uint64_t>(entry.size()));
  write(entry);
}

void ArchiveWriter::finish() {
  write(integerBytes<uint32_t>(0));
  write(integerBytes(hash->value()));
  if (::fsync(fd.get()) != 0 || !fd.close() || ::rename(temporary.c_str(), file.c_str()) != 0)
    failOfSystem(file);
  temporary.clear();
  // The name has to survive a power cut too; some file systems can't sync folders.
  Fd folder(::open(folderOf(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder)
    static_cast<void>(::fsync(folder.get()) == 0);
}

ArchiveReader::ArchiveReader(std::string source) : file(std::move(source)) {
  fd = Fd(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status;
  if (!fd || ::fstat(fd.get(), &status) != 0)
    failOfSystem(file);
  if (!S_ISREG(status.st_mode))
    fail(file, "not a regular file");

  ArchiveCursor cursor(file, fd.get(), static_cast<uint64_t>(status.st_size));
  if (cursor.takeHashed(kMagic.size(), "the magic word") != kMagic)
    fail(file, "not an archive of a cache: the magic word is wrong");
  uint32_t version = cursor.takeInteger<uint32_t>("the version");
  if (version != kArchiveVersion)
    fail(file, "the archive's version is " + std::to_string(version) + ", this build reads " +
                   std::to_string(kArchiveVersion));
  std::set<std::string> seen;
  while (uint32_t nameBytes = cursor.takeInteger<uint32_t>("the size of an entry's name")) {
    if (nameBytes > kMaxNameBytes)
      fail(file, "an entry's name has " + std::to_string(nameBytes) + " bytes, at most " +
                     std::to_string(kMaxNameBytes) + " are allowed");
    std::string name = cursor.takeHashed(nameBytes, "an entry's name");
    std::string what = "entry `" + printable(name) + "`";
    EntryKind kind;
    std::string keyHash;
    if (!parseEntryFileName(name, kind, keyHash))
      fail(file, what + ": this is no entry's name");
    if (!seen.insert(name).second)
      fail(file, what + " is there twice");
    uint64_t entryBytes = cursor.takeInteger<uint64_t>("the size of " + what);
    if (entryBytes > kMaxEntryBytes)
      fail(file, what + " has " + std::to_string(entryBytes) + " bytes, at most " + std::to_string(kMaxEntryBytes) +
                     " are allowed");
    uint64_t offset = cursor.at();
    std::string entry = cursor.takeHashed(entryBytes, what);
    if (std::string expected = nameOfEntry(file, what, entry); expected != name)
      fail(file, what + ": its key gives the name `" + expected + "`");
    items.push_back({offset, entryBytes, XXH3_64bits(entry.data(), entry.size())});
  }
  uint64_t expected = cursor.hashSoFar();
  uint64_t stored = cursor.takeInteger<uint64_t>("the checksum");
  if (cursor.left() != 0)
    fail(file, std::to_string(cursor.left()) + " bytes follow the archive's checksum");
  if (stored != expected)
    fail(file, "the archive's checksum does not match its contents");
}

std::string ArchiveReader::entry(size_t index) const {
  const Item &item = items.at(index);
  std::string bytes;
  if (!readAt(fd.get(), item.offset, item.size, bytes))
    failOfSystem(file);
  if (bytes.size() != item.size || XXH3_64bits(bytes.data(), bytes.size()) != item.checksum)
    fail(file, "the archive changed while it was read");
  return bytes;
}

} // namespace accel::runtime
