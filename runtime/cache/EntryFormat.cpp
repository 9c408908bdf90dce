#include "runtime/cache/EntryFormat.h"
#include "runtime/LittleEndian.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace accel::runtime {
namespace {

constexpr std::string_view kMagic = "ACCELENT";
constexpr size_t kChecksumBytes = 8;
constexpr size_t kVersionAt = 8;
constexpr size_t kKindAt = 12;
constexpr size_t kKeySizeAt = 16;
constexpr size_t kPayloadSizeAt = 24;

/// Whether the last bytes are the checksum of those before them.
bool hasRightChecksum(std::string_view bytes) {
  size_t hashed = bytes.size() - kChecksumBytes;
  return integerAt<uint64_t>(bytes, hashed) == XXH3_64bits(bytes.data(), hashed);
}

bool isKind(uint32_t number) {
  return number == static_cast<uint32_t>(EntryKind::Executable) || number == static_cast<uint32_t>(EntryKind::Tuning);
}

} // namespace

std::string_view kindName(EntryKind kind) { return kind == EntryKind::Executable ? "executable" : "tuning"; }

std::optional<EntryKind> kindOfName(std::string_view name) {
  for (EntryKind kind : {EntryKind::Executable, EntryKind::Tuning})
    if (kindName(kind) == name)
      return kind;
  return std::nullopt;
}

std::string entryFileName(EntryKind kind, std::string_view hash) {
  return std::string(hash) + "." + std::string(kindName(kind));
}

bool parseEntryFileName(std::string_view fileName, EntryKind &kind, std::string &hash) {
  size_t dot = fileName.find('.');
  if (dot == std::string_view::npos || !isKeyHash(fileName.substr(0, dot)))
    return false;
  std::optional<EntryKind> found = kindOfName(fileName.substr(dot + 1));
  if (!found)
    return false;
  kind = *found;
  hash = fileName.substr(0, dot);
  return true;
}

std::string writeEntry(EntryKind kind, const CacheKey &key, std::string_view payload) {
  std::string out;
  out.reserve(kEntryPrefixBytes + key.text().size() + payload.size() + 2 * kChecksumBytes);
  out += kMagic;
  appendInteger<uint32_t>(out, kEntryVersion);
  appendInteger<uint32_t>(out, static_cast<uint32_t>(kind));
  appendInteger<uint64_t>(out, key.text().size());
  appendInteger<uint64_t>(out, payload.size());
  out += key.text();
  appendInteger<uint64_t>(out, XXH3_64bits(out.data(), out.size()));
  out += payload;
  appendInteger<uint64_t>(out, XXH3_64bits(out.data(), out.size()));
  return out;
}

CacheProblem entryHeadSize(std::string_view prefix, uint64_t fileBytes, uint64_t &headBytes) {
  if (!kMagic.starts_with(prefix.substr(0, kMagic.size())))
    return {CacheStatus::ForeignMagic, "not an entry of this cache: the magic word is wrong"};
  if (prefix.size() < kKindAt)
    return {CacheStatus::Truncated, "entry is truncated: it has " + std::to_string(fileBytes) + " bytes"};
  uint32_t version = integerAt<uint32_t>(prefix, kVersionAt);
  if (version != kEntryVersion)
    return {CacheStatus::OtherVersion,
            "entry version is " + std::to_string(version) + ", this build reads " + std::to_string(kEntryVersion)};
  if (prefix.size() < kEntryPrefixBytes)
    return {CacheStatus::Truncated, "entry is truncated: it has " + std::to_string(fileBytes) + " bytes"};
  uint32_t kind = integerAt<uint32_t>(prefix, kKindAt);
  if (!isKind(kind))
    return {CacheStatus::Malformed, "entry kind is " + std::to_string(kind) + ", not 1 or 2"};
  uint64_t keyBytes = integerAt<uint64_t>(prefix, kKeySizeAt);
  uint64_t payloadBytes = integerAt<uint64_t>(prefix, kPayloadSizeAt);
  if (keyBytes > kMaxEntryBytes || payloadBytes > kMaxEntryBytes)
    return {CacheStatus::Malformed, "entry size is wrong: it claims a key of " + std::to_string(keyBytes) +
                                        " and a payload of " + std::to_string(payloadBytes) + " bytes"};
  headBytes = kEntryPrefixBytes + keyBytes + kChecksumBytes;
  uint64_t needed = headBytes + payloadBytes + kChecksumBytes;
  if (fileBytes < needed)
    return {CacheStatus::Truncated,
            "entry is truncated: it has " + std::to_string(fileBytes) + " of " + std::to_string(needed) + " bytes"};
  if (fileBytes > needed)
    return {CacheStatus::Malformed,
            "entry size is wrong: " + std::to_string(fileBytes - needed) + " bytes follow the checksum"};
  return {};
}

CacheProblem readEntryHead(std::string_view head, uint64_t fileBytes, EntryHead &out) {
  uint64_t headBytes = 0;
  if (CacheProblem problem = entryHeadSize(head.substr(0, kEntryPrefixBytes), fileBytes, headBytes))
    return problem;
  if (head.size() != headBytes)
    return {CacheStatus::Truncated, "entry is truncated inside its head"};
  if (!hasRightChecksum(head))
    return {CacheStatus::BadChecksum, "entry checksum does not match its head"};
  out.kind = static_cast<EntryKind>(integerAt<uint32_t>(head, kKindAt));
  out.key = head.substr(kEntryPrefixBytes, headBytes - kEntryPrefixBytes - kChecksumBytes);
  out.payloadBytes = integerAt<uint64_t>(head, kPayloadSizeAt);
  return {};
}

CacheProblem readEntry(std::string_view bytes, EntryView &out) {
  uint64_t headBytes = 0;
  if (CacheProblem problem = entryHeadSize(bytes.substr(0, kEntryPrefixBytes), bytes.size(), headBytes))
    return problem;
  EntryHead head;
  if (CacheProblem problem = readEntryHead(bytes.substr(0, headBytes), bytes.size(), head))
    return problem;
  if (!hasRightChecksum(bytes))
    return {CacheStatus::BadChecksum, "entry checksum does not match its contents"};
  out = {head.kind, head.key, bytes.substr(headBytes, head.payloadBytes)};
  return {};
}

} // namespace accel::runtime
