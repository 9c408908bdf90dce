// What an entry of the persistent cache is for: tagged fields in an order, such as the target, the
// compiler's version, each option and the graph.
//
//   key   := "accel-key 1\n" field*
//   field := name " " size ":" value "\n"
//
// `name` is 1 to 64 letters, digits, `_`, `.` and `-`, and occurs once; `size` is the decimal number
// of bytes of `value`, without leading zeros. The sizes make the text unambiguous: two lists of
// fields give the same text only if they are the same list.
//
// A file's name is the hash of this text, 128 bits of XXH3, which is fast but not cryptographic:
// someone could make two keys with one hash. Entries therefore hold the whole text, and a reader
// compares it with the text it wants. A collision of hashes is a miss, never a wrong answer.

#ifndef ACCEL_RUNTIME_CACHE_CACHEKEY_H
#define ACCEL_RUNTIME_CACHE_CACHEKEY_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace accel::runtime {

struct KeyField {
  std::string name;
  std::string value;

  bool operator==(const KeyField &) const = default;
};

class CacheKey {
public:
  /// Throws std::invalid_argument for a name that is no name, or that occurs twice.
  explicit CacheKey(std::vector<KeyField> fields);

  /// Reads what `text()` wrote; nothing if `text` is not exactly that.
  static std::optional<CacheKey> parse(std::string_view text);

  const std::vector<KeyField> &fields() const { return list; }

  /// The value of that field, or null.
  const std::string *find(std::string_view name) const;

  /// The canonical text, as in the grammar above.
  const std::string &text() const { return canonical; }

  /// The hash of `text()`: 32 hexadecimal digits, lower case.
  const std::string &hash() const { return digest; }

  bool operator==(const CacheKey &other) const { return canonical == other.canonical; }

private:
  std::vector<KeyField> list;
  std::string canonical;
  std::string digest;
};

/// Whether `text` has the form of a key's hash.
bool isKeyHash(std::string_view text);

/// One field that two keys don't agree on; a side that lacks the field has no value.
struct FieldDifference {
  std::string name;
  std::optional<std::string> wanted;
  std::optional<std::string> found;
};

/// The fields on which two keys differ: those of `wanted` in its order, then what `found` has more.
std::vector<FieldDifference> differingFields(const CacheKey &wanted, const CacheKey &found);

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CACHE_CACHEKEY_H
