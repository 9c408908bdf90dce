#include "runtime/cache/CacheKey.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace accel::runtime {
namespace {

constexpr std::string_view kFirstLine = "accel-key 1\n";
constexpr size_t kMaxNameSize = 64;
constexpr size_t kHashDigits = 32;
constexpr std::string_view kHexDigits = "0123456789abcdef";

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

bool isFieldName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameSize && std::all_of(name.begin(), name.end(), isNameCharacter);
}

std::string hexHash(std::string_view text) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, XXH3_128bits(text.data(), text.size()));
  std::string hex;
  for (unsigned char byte : bytes.digest) {
    hex.push_back(kHexDigits[byte >> 4]);
    hex.push_back(kHexDigits[byte & 15]);
  }
  return hex;
}

/// Takes a decimal number and the colon behind it off the front of `rest`.
std::optional<size_t> takeSize(std::string_view &rest) {
  size_t colon = rest.find(':');
  constexpr size_t kMaxDigits = 12;
  if (colon == std::string_view::npos || colon == 0 || colon > kMaxDigits || (colon > 1 && rest[0] == '0'))
    return std::nullopt;
  size_t size = 0;
  for (char c : rest.substr(0, colon)) {
    if (c < '0' || c > '9')
      return std::nullopt;
    size = 10 * size + static_cast<size_t>(c - '0');
  }
  rest.remove_prefix(colon + 1);
  return size;
}

} // namespace

CacheKey::CacheKey(std::vector<KeyField> fields) : list(std::move(fields)), canonical(kFirstLine) {
  std::set<std::string_view> seen;
  for (const KeyField &field : list) {
    if (!isFieldName(field.name))
      throw std::invalid_argument("a key field's name must be 1 to 64 letters, digits, `_`, `.` or `-`, not `" +
                                  field.name + "`");
    if (!seen.insert(field.name).second)
      throw std::invalid_argument("a key has two fields `" + field.name + "`");
    canonical += field.name + " " + std::to_string(field.value.size()) + ":" + field.value + "\n";
  }
  digest = hexHash(canonical);
}

std::optional<CacheKey> CacheKey::parse(std::string_view text) {
  if (!text.starts_with(kFirstLine))
    return std::nullopt;
  std::string_view rest = text.substr(kFirstLine.size());
  std::vector<KeyField> fields;
  std::set<std::string_view> seen;
  while (!rest.empty()) {
    size_t space = rest.find(' ');
    std::string_view name = rest.substr(0, space);
    if (space == std::string_view::npos || !isFieldName(name) || !seen.insert(name).second)
      return std::nullopt;
    rest.remove_prefix(space + 1);
    std::optional<size_t> size = takeSize(rest);
    if (!size || *size >= rest.size() || rest[*size] != '\n')
      return std::nullopt;
    fields.push_back({std::string(name), std::string(rest.substr(0, *size))});
    rest.remove_prefix(*size + 1);
  }
  return CacheKey(std::move(fields));
}

const std::string *CacheKey::find(std::string_view name) const {
  for (const KeyField &field : list)
    if (field.name == name)
      return &field.value;
  return nullptr;
}

bool isKeyHash(std::string_view text) {
  return text.size() == kHashDigits && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

std::vector<FieldDifference> differingFields(const CacheKey &wanted, const CacheKey &found) {
  std::vector<FieldDifference> differences;
  for (const KeyField &field : wanted.fields()) {
    const std::string *other = found.find(field.name);
    if (!other)
      differences.push_back({field.name, field.value, std::nullopt});
    else if (*other != field.value)
      differences.push_back({field.name, field.value, *other});
  }
  for (const KeyField &field : found.fields())
    if (!wanted.find(field.name))
      differences.push_back({field.name, std::nullopt, field.value});
  return differences;
}

} // namespace accel::runtime
