#include "CacheFolderFixture.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace accel::runtime;

namespace {

constexpr EntryKind kExecutable = EntryKind::Executable;
constexpr EntryKind kTuning = EntryKind::Tuning;

template <typename T> std::string integerBytes(T value) {
  std::string out;
  for (size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<char>((static_cast<uint64_t>(value) >> (8 * i)) & 0xff));
  return out;
}

struct Item {
  std::string name;
  std::string entry;
};

Item itemOf(const CacheKey &key, const std::string &payload) {
  return {entryFileName(kExecutable, key.hash()), writeEntry(kExecutable, key, payload)};
}

/// An archive with right checksums, whatever is in it.
std::string archiveOf(const std::vector<Item> &items) {
  std::string out = "ACCELARC" + integerBytes<uint32_t>(1);
  for (const Item &item : items)
    out +=
        integerBytes<uint32_t>(item.name.size()) + item.name + integerBytes<uint64_t>(item.entry.size()) + item.entry;
  out += integerBytes<uint32_t>(0);
  return out + integerBytes<uint64_t>(XXH3_64bits(out.data(), out.size()));
}

class CacheArchiveTest : public CacheFolderTest {
protected:
  CacheArchiveTest() : archive(base + "/archive") {}

  /// The message with which an import ends, having checked that it left nothing behind.
  std::string errorOf(const std::string &bytes) {
    writeText(archive, bytes);
    std::string message;
    try {
      store().importFrom(archive);
    } catch (const CacheError &error) {
      message = error.what();
    }
    EXPECT_FALSE(std::filesystem::exists(folder)) << message;
    return message;
  }

  std::string archive;
};

TEST_F(CacheArchiveTest, CarriesEverythingToAnotherFolder) {
  CacheStore cache = store();
  for (size_t i = 0; i < 20; ++i)
    ASSERT_FALSE(cache.put(i % 2 ? kTuning : kExecutable, keyOf(std::to_string(i)), std::string(100 * i, 'x')));
  ArchiveReport report = cache.exportTo(archive);
  EXPECT_EQ(report.entries, 20u);
  EXPECT_EQ(report.skipped, 0u);

  folder = base + "/another/place";
  CacheStore other = store();
  EXPECT_EQ(other.importFrom(archive).entries, 20u);
  for (size_t i = 0; i < 20; ++i)
    EXPECT_EQ(other.get(i % 2 ? kTuning : kExecutable, keyOf(std::to_string(i))).payload, std::string(100 * i, 'x'));
  EXPECT_EQ(other.importFrom(archive).skipped, 20u);
  EXPECT_EQ(temporaries(), 0u);

  // The same entries give the same file.
  std::string first = readText(archive);
  other.exportTo(archive);
  EXPECT_EQ(readText(archive), first);
  EXPECT_EQ(first.size(), archiveOf({}).size() + report.bytes + size_t(20) * 12 + size_t(10) * (43 + 39));
}

TEST_F(CacheArchiveTest, EmptyCacheGivesAnEmptyArchive) {
  EXPECT_EQ(store().exportTo(archive).entries, 0u);
  EXPECT_EQ(readText(archive), archiveOf({}));
  EXPECT_EQ(store().importFrom(archive).entries, 0u);
}

TEST_F(CacheArchiveTest, DamagedEntriesStayBehind) {
  CacheStore cache = store();
  ASSERT_FALSE(cache.put(kExecutable, keyOf("good"), "x"));
  ASSERT_FALSE(cache.put(kExecutable, keyOf("bad"), "x"));
  ASSERT_FALSE(cache.put(kExecutable, keyOf("moved"), "x"));
  writeText(fileOf(keyOf("bad")), "garbage");
  writeText(fileOf(keyOf("moved")), readText(fileOf(keyOf("good"))));
  ArchiveReport report = cache.exportTo(archive);
  EXPECT_EQ(report.entries, 1u);
  EXPECT_EQ(report.skipped, 2u);
}

TEST_F(CacheArchiveTest, WhatIsHereStaysUnlessDamaged) {
  writeText(archive, archiveOf({itemOf(keyOf("a"), "theirs"), itemOf(keyOf("b"), "theirs")}));
  CacheStore cache = store();
  ASSERT_FALSE(cache.put(kExecutable, keyOf("a"), "ours"));
  ASSERT_FALSE(cache.put(kExecutable, keyOf("b"), "ours"));
  writeText(fileOf(keyOf("b")), "damaged");
  ArchiveReport report = cache.importFrom(archive);
  EXPECT_EQ(report.entries, 1u);
  EXPECT_EQ(report.skipped, 1u);
  EXPECT_EQ(cache.get(kExecutable, keyOf("a")).payload, "ours");
  EXPECT_EQ(cache.get(kExecutable, keyOf("b")).payload, "theirs");
}

TEST_F(CacheArchiveTest, EveryFlippedBitIsAnError) {
  std::string good = archiveOf({itemOf(CacheKey({{"a", "b"}}), "x"), itemOf(CacheKey({{"a", "c"}}), "y")});
  for (size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      EXPECT_NE(errorOf(bad), "") << "byte " << i << " bit " << bit;
    }
}

TEST_F(CacheArchiveTest, EveryTruncationIsAnError) {
  std::string good = archiveOf({itemOf(CacheKey({{"a", "b"}}), "x"), itemOf(CacheKey({{"a", "c"}}), "y")});
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(errorOf(good.substr(0, size)).find("truncated"), std::string::npos) << size;
  EXPECT_NE(errorOf(good + "x").find("1 bytes follow"), std::string::npos);
}

TEST_F(CacheArchiveTest, PathTricksAreErrors) {
  Item good = itemOf(keyOf("k"), "x");
  for (const std::string &name :
       {std::string("../../escaped"), "/" + good.name, "../" + good.name, "ab/" + good.name, good.name + "/..",
        good.name + std::string("\0", 1), std::string("."), good.name.substr(0, 32) + ".other", good.name.substr(0, 32),
        ".." + good.name.substr(2), std::string(64, 'a')}) {
    std::string message = errorOf(archiveOf({itemOf(keyOf("first"), "x"), {name, good.entry}}));
    EXPECT_NE(message.find("this is no entry's name"), std::string::npos) << name << ": " << message;
  }
  EXPECT_FALSE(std::filesystem::exists(base + "/escaped"));
  std::string message = errorOf(archiveOf({{std::string(70, 'a'), good.entry}}));
  EXPECT_NE(message.find("70 bytes"), std::string::npos) << message;
}

// The checksums are right: only the name, or the entry, is not what it has to be.
TEST_F(CacheArchiveTest, WrongContentsAreErrors) {
  Item a = itemOf(keyOf("a"), "x");
  Item b = itemOf(keyOf("b"), "x");
  EXPECT_NE(errorOf(archiveOf({{a.name, b.entry}})).find("its key gives the name"), std::string::npos);
  Item tuning = {a.name, writeEntry(kTuning, keyOf("a"), "x")};
  EXPECT_NE(errorOf(archiveOf({tuning})).find("its key gives the name"), std::string::npos);
  EXPECT_NE(errorOf(archiveOf({b, a, b})).find("is there twice"), std::string::npos);
  Item bad = a;
  bad.entry[bad.entry.size() - 9] ^= 1;
  EXPECT_NE(errorOf(archiveOf({b, bad})).find("checksum"), std::string::npos);
  Item foreign = {a.name, "nothing of the kind"};
  EXPECT_NE(errorOf(archiveOf({b, foreign})).find("magic"), std::string::npos);
  EXPECT_NE(errorOf("").find("truncated"), std::string::npos);
  EXPECT_NE(errorOf("PK\3\4 some other archive").find("magic"), std::string::npos);
}

TEST_F(CacheArchiveTest, MissingAndOddFilesAreErrors) {
  EXPECT_THROW(store().importFrom(base + "/missing"), CacheError);
  EXPECT_THROW(store().importFrom(base), CacheError);
  ASSERT_EQ(::mkfifo(archive.c_str(), 0600), 0);
  EXPECT_THROW(store().importFrom(archive), CacheError);
  EXPECT_THROW(store().exportTo(base + "/missing/archive"), CacheError);
}

TEST_F(CacheArchiveTest, RefusedFolderTakesNothing) {
  writeText(archive, archiveOf({itemOf(keyOf("a"), "x")}));
  std::filesystem::create_directory(folder);
  ::chmod(folder.c_str(), 0777);
  EXPECT_THROW(store().importFrom(archive), CacheError);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

} // namespace
