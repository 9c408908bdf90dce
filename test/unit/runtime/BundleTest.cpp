#include "runtime/Bundle.h"

#include <gtest/gtest.h>

using namespace accel::runtime;

namespace {

std::string smallBundle() {
  return writeBundle(std::vector<BundleSection>{{"plan", "{\"version\": 1}"}, {"code", "\x7f"}, {"report", ""}});
}

std::string errorOf(std::string_view bytes) {
  try {
    readBundle(bytes);
  } catch (const BundleError &error) {
    return error.what();
  }
  return "";
}

TEST(BundleTest, ReadsWhatItWrote) {
  std::string payload("a\0b\xff", 4);
  std::string bytes = writeBundle(std::vector<BundleSection>{{"plan", payload}, {"code", ""}});
  std::vector<BundleSection> sections = readBundle(bytes);
  ASSERT_EQ(sections.size(), 2u);
  EXPECT_EQ(sections[0].name, "plan");
  EXPECT_EQ(sections[0].payload, payload);
  EXPECT_EQ(findSection(sections, "code")->payload, "");
  EXPECT_EQ(findSection(sections, "report"), nullptr);
}

TEST(BundleTest, IsDeterministic) { EXPECT_EQ(smallBundle(), smallBundle()); }

TEST(BundleTest, EmptyBundleIsValid) { EXPECT_TRUE(readBundle(writeBundle({})).empty()); }

// Whatever bit of a stored bundle goes bad, it is an error and not a crash.
TEST(BundleTest, EveryFlippedBitIsAnError) {
  std::string good = smallBundle();
  for (size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      EXPECT_THROW(readBundle(bad), BundleError) << "byte " << i << " bit " << bit;
    }
}

TEST(BundleTest, EveryTruncationIsAnError) {
  std::string good = smallBundle();
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(errorOf(good.substr(0, size)).find("truncated"), std::string::npos)
        << size << ": " << errorOf(good.substr(0, size));
}

TEST(BundleTest, SaysWhatIsWrong) {
  std::string good = smallBundle();
  EXPECT_NE(errorOf(good + "x").find("1 bytes follow the checksum"), std::string::npos);

  std::string magic = good;
  magic[0] = 'X';
  EXPECT_NE(errorOf(magic).find("magic"), std::string::npos);

  std::string version = good;
  version[8] = 9;
  EXPECT_EQ(errorOf(version), "bundle version is 9, this runtime reads 1");

  std::string payload = good;
  payload[32] ^= 1;
  EXPECT_NE(errorOf(payload).find("checksum"), std::string::npos);
}

TEST(BundleTest, RefusesBadNames) {
  using Sections = std::vector<BundleSection>;
  EXPECT_THROW(writeBundle(Sections{{"", "x"}}), BundleError);
  EXPECT_THROW(writeBundle(Sections{{std::string(256, 'n'), "x"}}), BundleError);
  EXPECT_THROW(writeBundle(Sections{{"plan", "x"}, {"plan", "y"}}), BundleError);
}

} // namespace
