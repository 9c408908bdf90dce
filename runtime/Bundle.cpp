#include "runtime/Bundle.h"
#include "runtime/LittleEndian.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <set>

namespace accel::runtime {
namespace {

constexpr std::string_view kMagic = "ACCELBDL";
constexpr size_t kMaxNameSize = 255;
constexpr uint32_t kMaxSections = 1024;

/// Reads integers and strings off the front of `rest`; what doesn't fit is a BundleError.
class Cursor {
public:
  explicit Cursor(std::string_view bytes) : rest(bytes) {}

  std::string_view take(uint64_t size, std::string_view what) {
    if (size > rest.size())
      throw BundleError("bundle is truncated: " + std::string(what) + " needs " + std::to_string(size) + " bytes, " +
                        std::to_string(rest.size()) + " are left");
    std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  }

  template <typename T> T takeInteger(std::string_view what) { return integerAt<T>(take(sizeof(T), what), 0); }

  size_t left() const { return rest.size(); }

private:
  std::string_view rest;
};

void checkName(std::string_view name, std::set<std::string, std::less<>> &seen) {
  if (name.empty() || name.size() > kMaxNameSize)
    throw BundleError("bundle section name has " + std::to_string(name.size()) + " bytes, not 1 to " +
                      std::to_string(kMaxNameSize));
  if (!seen.insert(std::string(name)).second)
    throw BundleError("bundle has two sections `" + std::string(name) + "`");
}

} // namespace

std::string writeBundle(std::span<const BundleSection> sections) {
  if (sections.size() > kMaxSections)
    throw BundleError("bundle has " + std::to_string(sections.size()) + " sections, at most " +
                      std::to_string(kMaxSections) + " are allowed");
  std::set<std::string, std::less<>> seen;
  std::string out(kMagic);
  appendInteger<uint32_t>(out, kBundleVersion);
  appendInteger<uint32_t>(out, static_cast<uint32_t>(sections.size()));
  for (const BundleSection &section : sections) {
    checkName(section.name, seen);
    appendInteger<uint32_t>(out, static_cast<uint32_t>(section.name.size()));
    out += section.name;
    appendInteger<uint64_t>(out, section.payload.size());
    out += section.payload;
  }
  appendInteger<uint64_t>(out, XXH3_64bits(out.data(), out.size()));
  return out;
}

std::vector<BundleSection> readBundle(std::string_view bytes) {
  Cursor cursor(bytes);
  if (cursor.take(kMagic.size(), "the magic word") != kMagic)
    throw BundleError("not a bundle: the magic word is wrong");
  uint32_t version = cursor.takeInteger<uint32_t>("the version");
  if (version != kBundleVersion)
    throw BundleError("bundle version is " + std::to_string(version) + ", this runtime reads " +
                      std::to_string(kBundleVersion));
  uint32_t count = cursor.takeInteger<uint32_t>("the section count");
  if (count > kMaxSections)
    throw BundleError("bundle size is wrong: it claims " + std::to_string(count) + " sections, at most " +
                      std::to_string(kMaxSections) + " are allowed");

  std::set<std::string, std::less<>> seen;
  std::vector<BundleSection> sections;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t nameSize = cursor.takeInteger<uint32_t>("the size of a section's name");
    std::string name(cursor.take(nameSize, "a section's name"));
    checkName(name, seen);
    uint64_t size = cursor.takeInteger<uint64_t>("the size of section `" + name + "`");
    std::string_view payload = cursor.take(size, "section `" + name + "`");
    sections.push_back({std::move(name), payload});
  }

  size_t hashed = bytes.size() - cursor.left();
  uint64_t stored = cursor.takeInteger<uint64_t>("the checksum");
  if (cursor.left() != 0)
    throw BundleError("bundle size is wrong: " + std::to_string(cursor.left()) + " bytes follow the checksum");
  if (stored != XXH3_64bits(bytes.data(), hashed))
    throw BundleError("bundle checksum does not match its contents");
  return sections;
}

const BundleSection *findSection(std::span<const BundleSection> sections, std::string_view name) {
  for (const BundleSection &section : sections)
    if (section.name == name)
      return &section;
  return nullptr;
}

} // namespace accel::runtime
