// The container that the compiler writes and the runtime reads: a magic word, a version, named
// sections and a checksum. It links neither libtorch nor MLIR, so that both sides can use it.
//
//   bundle   := "ACCELBDL" version:u32 count:u32 section* checksum:u64
//   section  := name_size:u32 name size:u64 payload
//   checksum := XXH3-64 of all bytes before it
//
// All integers are little endian. `name_size` is 1 to 255, `count` at most 1024, and no name occurs
// twice. Nothing follows the checksum.

#ifndef ACCEL_RUNTIME_BUNDLE_H
#define ACCEL_RUNTIME_BUNDLE_H

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace accel::runtime {

/// The version that `writeBundle` writes and the only one that `readBundle` accepts.
inline constexpr uint32_t kBundleVersion = 1;

/// A bundle, or something inside it, that can't be used here: damaged, of another version, at odds
/// with itself, or made for another machine. Callers that hold a cache treat it as a miss.
class BundleError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// One named section. The payload is a view: it lives as long as the bytes it was made from.
struct BundleSection {
  std::string name;
  std::string_view payload;
};

/// Returns the bytes of a bundle with these sections, in this order. The same sections give the
/// same bytes. Throws BundleError for a name that is empty, over 255 bytes long, or there twice.
std::string writeBundle(std::span<const BundleSection> sections);

/// Checks `bytes` from end to end and returns its sections as views into it. Throws BundleError,
/// which says whether magic, version, size or checksum is at fault.
std::vector<BundleSection> readBundle(std::string_view bytes);

/// Returns the section of that name, or null.
const BundleSection *findSection(std::span<const BundleSection> sections, std::string_view name);

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_BUNDLE_H
