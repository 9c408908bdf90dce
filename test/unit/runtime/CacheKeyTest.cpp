#include "runtime/cache/CacheKey.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

using namespace accel::runtime;

namespace {

using Fields = std::vector<KeyField>;

TEST(CacheKeyTest, TextIsTheGrammars) {
  CacheKey key(Fields{{"target", "cpu"}, {"graph", ""}});
  EXPECT_EQ(key.text(), "accel-key 1\ntarget 3:cpu\ngraph 0:\n");
  // `xxhsum -H2` of that text. Files are found by it: it must not change with the library or the machine.
  EXPECT_EQ(key.hash(), "6335155ea55ec9ac40b67c4ce8d93466");
  EXPECT_TRUE(isKeyHash(key.hash()));
}

// Values may hold what looks like more fields.
TEST(CacheKeyTest, DifferentFieldsGiveDifferentTexts) {
  std::vector<Fields> lists = {{},
                               {{"a", ""}},
                               {{"a", "b 0:\n"}},
                               {{"a", ""}, {"b", ""}},
                               {{"b", ""}, {"a", ""}},
                               {{"a", "\nb 0:"}},
                               {{"a", std::string("x\0y", 3)}},
                               {{"a", std::string("x\0z", 3)}},
                               {{"ab", "c"}},
                               {{"a", "bc"}}};
  std::set<std::string> texts, hashes;
  for (const Fields &list : lists) {
    texts.insert(CacheKey(list).text());
    hashes.insert(CacheKey(list).hash());
  }
  EXPECT_EQ(texts.size(), lists.size());
  EXPECT_EQ(hashes.size(), lists.size());
}

TEST(CacheKeyTest, ReadsWhatItWrote) {
  Fields fields = {{"target", "cpu:x86-64-v3"}, {"graph", std::string("a\n b 3:xyz\n\0\xff", 14)}, {"x.y-z_0", ""}};
  CacheKey key(fields);
  std::optional<CacheKey> back = CacheKey::parse(key.text());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->fields(), fields);
  EXPECT_EQ(back->hash(), key.hash());
}

TEST(CacheKeyTest, OtherTextsAreNoKeys) {
  EXPECT_TRUE(CacheKey::parse("accel-key 1\n"));
  for (const char *text : {"", "accel-key 2\n", "accel-key 1", "accel-key 1\na",
                           "accel-key 1\na 1:", "accel-key 1\na 0:", "accel-key 1\na 01:x\n", "accel-key 1\na 2:x\n",
                           "accel-key 1\na 1:x\nb", "accel-key 1\n 1:x\n", "accel-key 1\na -1:x\n",
                           "accel-key 1\na 99999999999999999999:x\n", "accel-key 1\n/ 1:x\n",
                           "accel-key 1\na 1:x\na 1:y\n", "accel-key 1\na 1:xy\n", "accel-key 1\na :x\n"})
    EXPECT_FALSE(CacheKey::parse(text)) << text;
}

// Every prefix and every changed byte is another key or none, but never the same.
TEST(CacheKeyTest, DamagedTextsAreOtherKeysOrNone) {
  std::string text = CacheKey(Fields{{"target", "cpu"}, {"graph", "relu 3:abc\n"}}).text();
  for (size_t size = 0; size < text.size(); ++size)
    if (std::optional<CacheKey> key = CacheKey::parse(text.substr(0, size)))
      EXPECT_EQ(key->text(), text.substr(0, size));
  for (size_t i = 0; i < text.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = text;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      if (std::optional<CacheKey> key = CacheKey::parse(bad))
        EXPECT_EQ(key->text(), bad);
    }
}

TEST(CacheKeyTest, RefusesBadNames) {
  for (const std::string &name : {std::string(), std::string("a b"), std::string("a\n"), std::string("a:"),
                                  std::string("ä"), std::string(65, 'a')})
    EXPECT_THROW(CacheKey(Fields{{name, "x"}}), std::invalid_argument) << name;
  EXPECT_THROW(CacheKey(Fields{{"a", "x"}, {"a", "x"}}), std::invalid_argument);
  EXPECT_NO_THROW(CacheKey(Fields{{std::string(64, 'a'), "x"}}));
}

TEST(CacheKeyTest, HashHasAForm) {
  EXPECT_TRUE(isKeyHash("0123456789abcdef0123456789abcdef"));
  for (const char *text : {"", "0123456789abcdef0123456789abcde", "0123456789ABCDEF0123456789abcdef",
                           "../3456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef0"})
    EXPECT_FALSE(isKeyHash(text)) << text;
}

TEST(CacheKeyTest, SaysWhichFieldsDiffer) {
  CacheKey wanted(Fields{{"target", "avx2"}, {"graph", "g"}, {"fallback", "allow"}});
  CacheKey found(Fields{{"target", "avx512"}, {"graph", "g"}, {"mode", "default"}});
  std::vector<FieldDifference> differences = differingFields(wanted, found);
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].name, "target");
  EXPECT_EQ(*differences[0].wanted, "avx2");
  EXPECT_EQ(*differences[0].found, "avx512");
  EXPECT_EQ(differences[1].name, "fallback");
  EXPECT_FALSE(differences[1].found);
  EXPECT_EQ(differences[2].name, "mode");
  EXPECT_FALSE(differences[2].wanted);
  EXPECT_TRUE(differingFields(wanted, wanted).empty());
}

} // namespace
