// One entry of the persistent cache: a file that holds its key's text and a payload.
//
//   entry    := head payload checksum:u64
//   head     := "ACCELENT" version:u32 kind:u32 key_size:u64 payload_size:u64 key checksum:u64
//   kind     := 1 (executable: the payload is a bundle) | 2 (tuning: the payload is a tuning record)
//   key      := the canonical text of CacheKey.h
//   checksum := XXH3-64 of all bytes of the entry before it
//
// All integers are little endian. Nothing follows the last checksum. The head has a checksum of its
// own so that listing and comparing keys need not read payloads. The same key and payload give the
// same bytes: there is no date inside.

#ifndef ACCEL_RUNTIME_CACHE_ENTRYFORMAT_H
#define ACCEL_RUNTIME_CACHE_ENTRYFORMAT_H

#include "runtime/cache/CacheKey.h"
#include "runtime/cache/CacheProblem.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace accel::runtime {

/// The version that `writeEntry` writes and the only one that is read.
inline constexpr uint32_t kEntryVersion = 1;

/// No entry is larger: 4 GiB. Bounds what a damaged size can make a reader allocate.
inline constexpr uint64_t kMaxEntryBytes = uint64_t(4) << 30;

enum class EntryKind : uint32_t { Executable = 1, Tuning = 2 };

/// `executable` or `tuning`, also the ending of the file's name.
std::string_view kindName(EntryKind kind);

/// The kind of that name, or nothing.
std::optional<EntryKind> kindOfName(std::string_view name);

/// The name of an entry's file: hash, dot, kind.
std::string entryFileName(EntryKind kind, std::string_view hash);

/// Splits such a name; false if it is none. The only names that are ever opened, written or removed
/// as entries are those that pass here.
bool parseEntryFileName(std::string_view fileName, EntryKind &kind, std::string &hash);

/// How many bytes the head has up to its key. `entryHeadSize` needs these.
inline constexpr size_t kEntryPrefixBytes = 32;

struct EntryHead {
  EntryKind kind = EntryKind::Executable;
  std::string_view key;
  uint64_t payloadBytes = 0;
};

/// An entry whose checksums are right; views into the bytes it was read from.
struct EntryView {
  EntryKind kind = EntryKind::Executable;
  std::string_view key;
  std::string_view payload;
};

/// The bytes of an entry. What is over kMaxEntryBytes is for the caller to refuse.
std::string writeEntry(EntryKind kind, const CacheKey &key, std::string_view payload);

/// From an entry's first bytes (kEntryPrefixBytes, or fewer if the file has no more) and the size of
/// its file: the number of bytes of its head. Checks magic, version and sizes.
CacheProblem entryHeadSize(std::string_view prefix, uint64_t fileBytes, uint64_t &headBytes);

/// Checks the head alone; `head` has to be as long as `entryHeadSize` says.
CacheProblem readEntryHead(std::string_view head, uint64_t fileBytes, EntryHead &out);

/// Checks an entry from end to end.
CacheProblem readEntry(std::string_view bytes, EntryView &out);

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CACHE_ENTRYFORMAT_H
