// Many entries of the persistent cache in one file, to carry to another machine.
//
//   archive  := "ACCELARC" version:u32 item* end checksum:u64
//   item     := name_size:u32 name entry_size:u64 entry
//   end      := 0:u32
//   checksum := XXH3-64 of all bytes before it
//
// All integers are little endian; `entry` is EntryFormat.h's. `name` is the entry's file name,
// HASH.KIND, and has to be the one that the entry's own key and kind give: no name in an archive
// says where a file goes. No name occurs twice, and nothing follows the checksum.

#ifndef ACCEL_RUNTIME_CACHE_CACHEARCHIVE_H
#define ACCEL_RUNTIME_CACHE_CACHEARCHIVE_H

#include "runtime/cache/CacheProblem.h"
#include "runtime/cache/EntryFormat.h"
#include "runtime/cache/FileIo.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace accel::runtime {

/// The version that is written and the only one that is read.
inline constexpr uint32_t kArchiveVersion = 1;

/// What `exportTo` and `importFrom` did.
struct ArchiveReport {
  /// Entries written to the archive, or to the cache.
  size_t entries = 0;
  uint64_t bytes = 0;
  /// Entries left out: damaged ones when exporting, those that are here already when importing.
  size_t skipped = 0;
};

/// Writes an archive to a temporary file beside `file`, which `finish` renames. Without `finish`
/// nothing is left. All functions throw CacheError.
class ArchiveWriter {
public:
  explicit ArchiveWriter(std::string file);
  ArchiveWriter(const ArchiveWriter &) = delete;
  ArchiveWriter &operator=(const ArchiveWriter &) = delete;
  ~ArchiveWriter();

  /// `entry` has to be good: its name is made of its key.
  void add(std::string_view entry);
  void finish();

private:
  struct Hash;
  void write(std::string_view bytes);

  std::string file;
  std::string temporary;
  Fd fd;
  std::unique_ptr<Hash> hash;
};

/// Reads an archive, one entry at a time in memory. The constructor checks all of it and throws
/// CacheError, which says what is wrong with which entry.
class ArchiveReader {
public:
  explicit ArchiveReader(std::string file);

  size_t size() const { return items.size(); }

  /// The bytes of an entry, the very ones that were checked. Throws CacheError if the file changed.
  std::string entry(size_t index) const;

private:
  struct Item {
    uint64_t offset;
    uint64_t size;
    uint64_t checksum;
  };

  std::string file;
  Fd fd;
  std::vector<Item> items;
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CACHE_CACHEARCHIVE_H
