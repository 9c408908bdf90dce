#include "CacheFolderFixture.h"

using namespace accel::runtime;

namespace {

constexpr EntryKind kExecutable = EntryKind::Executable;
constexpr EntryKind kTuning = EntryKind::Tuning;

using CacheStoreTest = CacheFolderTest;

TEST_F(CacheStoreTest, GivesBackWhatWasPut) {
  CacheStore cache = store();
  std::string payload("a\0b\xff", 4);
  CacheKey key = keyOf("relu");
  EXPECT_EQ(cache.get(kExecutable, key).problem.status, CacheStatus::Absent);
  ASSERT_FALSE(cache.put(kExecutable, key, payload));
  EXPECT_EQ(cache.get(kExecutable, key).payload, payload);
  EXPECT_EQ(cache.get(kTuning, key).problem.status, CacheStatus::Absent);
  EXPECT_EQ(cache.get(kExecutable, keyOf("gelu")).problem.status, CacheStatus::Absent);
  EXPECT_EQ(store().get(kExecutable, key).payload, payload);
  EXPECT_EQ(temporaries(), 0u);

  CacheCounters counters = cache.counters();
  EXPECT_EQ(counters.hits, 1u);
  EXPECT_EQ(counters.misses, 3u);
  EXPECT_EQ(counters.puts, 1u);
}

TEST_F(CacheStoreTest, EmptyAndLargePayloads) {
  CacheStore cache = store();
  std::string large(3 << 20, 'x');
  ASSERT_FALSE(cache.put(kTuning, keyOf("empty"), ""));
  ASSERT_FALSE(cache.put(kTuning, keyOf("large"), large));
  EXPECT_EQ(cache.get(kTuning, keyOf("empty")).payload, "");
  EXPECT_EQ(cache.get(kTuning, keyOf("large")).payload, large);
}

TEST_F(CacheStoreTest, PutReplaces) {
  CacheStore cache = store();
  ASSERT_FALSE(cache.put(kTuning, keyOf("k"), "first, and longer"));
  ASSERT_FALSE(cache.put(kTuning, keyOf("k"), "second"));
  EXPECT_EQ(cache.get(kTuning, keyOf("k")).payload, "second");
  EXPECT_EQ(cache.list().entries.size(), 1u);
}

TEST_F(CacheStoreTest, SameContentsGiveTheSameFile) {
  CacheStore cache = store();
  ASSERT_FALSE(cache.put(kExecutable, keyOf("k"), "payload"));
  std::string first = readText(fileOf(keyOf("k")));
  ASSERT_FALSE(cache.put(kExecutable, keyOf("k"), "payload"));
  EXPECT_EQ(readText(fileOf(keyOf("k"))), first);
}

TEST_F(CacheStoreTest, NoFolderIsAMissAndNoCrash) {
  CacheStore cache({""});
  EXPECT_EQ(cache.get(kExecutable, keyOf("k")).problem.status, CacheStatus::Refused);
  EXPECT_EQ(cache.put(kExecutable, keyOf("k"), "x").status, CacheStatus::Refused);
  EXPECT_EQ(cache.list().problem.status, CacheStatus::Refused);
}

TEST_F(CacheStoreTest, FileInPlaceOfTheFolderIsRefused) {
  writeText(folder, "not a folder");
  EXPECT_EQ(store().get(kExecutable, keyOf("k")).problem.status, CacheStatus::Refused);
  EXPECT_EQ(store().put(kExecutable, keyOf("k"), "x").status, CacheStatus::Refused);
}

TEST_F(CacheStoreTest, MakesParentsThatAreMissing) {
  folder = base + "/a/b/../c";
  ASSERT_FALSE(store().put(kExecutable, keyOf("k"), "x"));
  EXPECT_TRUE(store().get(kExecutable, keyOf("k")).payload);
  struct stat status;
  ASSERT_EQ(::stat((base + "/a/c").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

/// What `get` says, having checked that the other readers also take the entry for a bad one.
CacheStatus statusOf(const CacheStore &cache, const CacheKey &key) {
  CacheResult result = cache.get(kExecutable, key);
  EXPECT_EQ(result.payload.has_value(), !result.problem);
  EXPECT_EQ(result.problem.message.empty(), !result.problem);
  Inventory inventory = cache.verify();
  EXPECT_EQ(inventory.entries.size(), 1u);
  if (!inventory.entries.empty())
    EXPECT_EQ(static_cast<bool>(inventory.entries[0].problem), static_cast<bool>(result.problem));
  return result.problem.status;
}

// Whatever bit of an entry goes bad, it is a miss with a reason.
TEST_F(CacheStoreTest, EveryFlippedBitIsAMiss) {
  CacheStore cache = store();
  CacheKey key({{"a", "b"}});
  ASSERT_FALSE(cache.put(kExecutable, key, "payload"));
  std::string good = readText(fileOf(key));
  for (size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      writeText(fileOf(key), bad);
      EXPECT_NE(statusOf(cache, key), CacheStatus::Ok) << "byte " << i << " bit " << bit;
    }
  writeText(fileOf(key), good);
  EXPECT_EQ(statusOf(cache, key), CacheStatus::Ok);
}

TEST_F(CacheStoreTest, EveryTruncationIsAMiss) {
  CacheStore cache = store();
  CacheKey key({{"a", "b"}});
  ASSERT_FALSE(cache.put(kExecutable, key, "payload"));
  std::string good = readText(fileOf(key));
  for (size_t size = 0; size < good.size(); ++size) {
    writeText(fileOf(key), good.substr(0, size));
    EXPECT_EQ(statusOf(cache, key), CacheStatus::Truncated) << size;
  }
  writeText(fileOf(key), good + "x");
  EXPECT_EQ(statusOf(cache, key), CacheStatus::Malformed);
}

TEST_F(CacheStoreTest, SaysWhatIsWrong) {
  CacheStore cache = store();
  CacheKey key = keyOf("k");
  ASSERT_FALSE(cache.put(kExecutable, key, "payload"));
  std::string good = readText(fileOf(key));

  writeText(fileOf(key), "#!/bin/sh\n" + std::string(200, 'x'));
  EXPECT_EQ(statusOf(cache, key), CacheStatus::ForeignMagic);

  std::string version = good;
  version[8] = 0;
  writeText(fileOf(key), version);
  EXPECT_EQ(statusOf(cache, key), CacheStatus::OtherVersion);
  std::string message = cache.get(kExecutable, key).problem.message;
  EXPECT_NE(message.find("entry version is 0, this build reads 1"), std::string::npos) << message;
  EXPECT_NE(message.find(fileOf(key)), std::string::npos) << message;

  std::string payload = good;
  payload[payload.size() - 10] ^= 1;
  writeText(fileOf(key), payload);
  EXPECT_EQ(statusOf(cache, key), CacheStatus::BadChecksum);
  // The head is still good: listing doesn't read further.
  EXPECT_FALSE(cache.list().entries.at(0).problem);

  // Sizes that would overflow a sum.
  std::string sizes = good;
  for (size_t i = 16; i < 32; ++i)
    sizes[i] = '\xff';
  writeText(fileOf(key), sizes);
  EXPECT_EQ(statusOf(cache, key), CacheStatus::Malformed);
}

// The file's name is right and so are its checksums, but it is another key's: as in a collision.
TEST_F(CacheStoreTest, OtherKeyWithTheSameHashIsAMiss) {
  CacheStore cache = store();
  CacheKey key = keyOf("k");
  ASSERT_FALSE(cache.put(kExecutable, key, "mine"));
  writeText(fileOf(key), writeEntry(kExecutable, keyOf("other"), "theirs"));
  EXPECT_EQ(statusOf(cache, key), CacheStatus::OtherKey);
  writeText(fileOf(key), writeEntry(kTuning, key, "a tuning record"));
  EXPECT_EQ(statusOf(cache, key), CacheStatus::Malformed);
  // And is replaced.
  ASSERT_FALSE(cache.put(kExecutable, key, "mine"));
  EXPECT_EQ(cache.get(kExecutable, key).payload, "mine");
}

TEST_F(CacheStoreTest, FolderInPlaceOfAnEntryIsAMissAndGivesWay) {
  CacheStore cache = store();
  CacheKey key = keyOf("k");
  std::filesystem::create_directories(fileOf(key));
  ::chmod(folder.c_str(), 0700);
  EXPECT_EQ(statusOf(cache, key), CacheStatus::Refused);
  ASSERT_FALSE(cache.put(kExecutable, key, "x"));
  EXPECT_EQ(cache.get(kExecutable, key).payload, "x");

  ASSERT_FALSE(cache.remove(kExecutable, key.hash()));
  std::filesystem::create_directories(fileOf(key) + "/full");
  CacheProblem problem = cache.put(kExecutable, key, "x");
  EXPECT_EQ(problem.status, CacheStatus::Unwritable);
  EXPECT_EQ(temporaries(), 0u);
}

TEST_F(CacheStoreTest, ListIsSortedAndKnowsTheFields) {
  CacheStore cache = store();
  for (const char *graph : {"a", "b", "c", "d"})
    ASSERT_FALSE(cache.put(kExecutable, keyOf(graph), "12345"));
  ASSERT_FALSE(cache.put(kTuning, keyOf("a"), "1"));
  Inventory inventory = cache.list();
  ASSERT_EQ(inventory.entries.size(), 5u);
  EXPECT_TRUE(inventory.strangers.empty());
  for (size_t i = 1; i < 5; ++i)
    EXPECT_LE(inventory.entries[i - 1].hash, inventory.entries[i].hash);
  for (const EntryInfo &info : inventory.entries) {
    ASSERT_TRUE(info.key);
    EXPECT_EQ(info.key->hash(), info.hash);
    EXPECT_EQ(info.payloadBytes, info.kind == kTuning ? 1u : 5u);
    EXPECT_EQ(info.fileBytes, std::filesystem::file_size(fileOf(*info.key, info.kind)));
    EXPECT_GT(info.usedAt, 0);
  }
  CacheStats stats = cache.stats();
  EXPECT_EQ(stats.executables.entries, 4u);
  EXPECT_EQ(stats.tunings.entries, 1u);
}

TEST_F(CacheStoreTest, VerifyNamesEachFaultAndWhatDoesNotBelong) {
  CacheStore cache = store();
  ASSERT_FALSE(cache.put(kExecutable, keyOf("good"), "x"));
  ASSERT_FALSE(cache.put(kExecutable, keyOf("bad"), "payload"));
  std::string bad = readText(fileOf(keyOf("bad")));
  bad[bad.size() - 9] ^= 1;
  writeText(fileOf(keyOf("bad")), bad);
  writeText(folder + "/v1/README", "a stranger");
  std::string shard = folder + "/v1/" + keyOf("good").hash().substr(0, 2);
  writeText(shard + "/notes.txt", "another");
  // A good entry in a folder that isn't its own.
  std::string elsewhere = folder + (shard.ends_with("00") ? "/v1/01" : "/v1/00");
  std::filesystem::create_directory(elsewhere);
  std::filesystem::copy(fileOf(keyOf("good")), elsewhere + "/" + entryFileName(kExecutable, keyOf("good").hash()));

  Inventory inventory = cache.verify();
  ASSERT_EQ(inventory.entries.size(), 2u);
  for (const EntryInfo &info : inventory.entries)
    EXPECT_EQ(info.problem.status, info.hash == keyOf("bad").hash() ? CacheStatus::BadChecksum : CacheStatus::Ok);
  EXPECT_EQ(inventory.strangers.size(), 3u);
}

TEST_F(CacheStoreTest, RemoveTakesOnlyHashes) {
  CacheStore cache = store();
  ASSERT_FALSE(cache.put(kExecutable, keyOf("k"), "x"));
  EXPECT_EQ(cache.remove(kExecutable, "../../../etc/passwd").status, CacheStatus::Absent);
  EXPECT_EQ(cache.remove(kTuning, keyOf("k").hash()).status, CacheStatus::Absent);
  EXPECT_FALSE(cache.remove(kExecutable, keyOf("k").hash()));
  EXPECT_EQ(cache.get(kExecutable, keyOf("k")).problem.status, CacheStatus::Absent);
}

TEST_F(CacheStoreTest, PrunesTheLongestUnusedFirst) {
  CacheStore cache = store();
  const char *graphs[] = {"a", "b", "c", "d"};
  for (int i = 0; i < 4; ++i) {
    ASSERT_FALSE(cache.put(kExecutable, keyOf(graphs[i]), "payload"));
    age(fileOf(keyOf(graphs[i])), 1000 - 100 * i);
  }
  // Reading is using: `a` is now the youngest.
  ASSERT_TRUE(cache.get(kExecutable, keyOf("a")).payload);
  uint64_t each = std::filesystem::file_size(fileOf(keyOf("a")));
  PruneReport report = cache.prune({.maxBytes = 2 * each + 1, .maxAge = {}});
  EXPECT_FALSE(report.problem);
  EXPECT_EQ(report.removedEntries, 2u);
  EXPECT_EQ(report.removedBytes, 2 * each);
  EXPECT_EQ(report.keptEntries, 2u);
  EXPECT_EQ(report.keptBytes, 2 * each);
  EXPECT_TRUE(cache.get(kExecutable, keyOf("a")).payload);
  EXPECT_FALSE(cache.get(kExecutable, keyOf("b")).payload);
  EXPECT_FALSE(cache.get(kExecutable, keyOf("c")).payload);
  EXPECT_TRUE(cache.get(kExecutable, keyOf("d")).payload);
}

TEST_F(CacheStoreTest, PrunesByAgeAndForgivesClocks) {
  CacheStore cache = store();
  ASSERT_FALSE(cache.put(kExecutable, keyOf("old"), "x"));
  ASSERT_FALSE(cache.put(kExecutable, keyOf("young"), "x"));
  ASSERT_FALSE(cache.put(kExecutable, keyOf("future"), "x"));
  age(fileOf(keyOf("old")), 10000);
  age(fileOf(keyOf("future")), -1000000);
  EXPECT_EQ(cache.prune({}).removedEntries, 0u);
  EXPECT_EQ(cache.prune({.maxBytes = {}, .maxAge = 5000}).removedEntries, 1u);
  EXPECT_FALSE(cache.get(kExecutable, keyOf("old")).payload);
  // A use brings a time in the future back to now.
  EXPECT_TRUE(cache.get(kExecutable, keyOf("future")).payload);
  for (const EntryInfo &info : cache.list().entries)
    EXPECT_LE(info.usedAt, ::time(nullptr));
  EXPECT_EQ(cache.prune({.maxBytes = 0, .maxAge = {}}).keptEntries, 0u);
}

TEST_F(CacheStoreTest, PruneRemovesWhatKilledWritersLeft) {
  CacheStore cache = store();
  ASSERT_FALSE(cache.put(kExecutable, keyOf("k"), "x"));
  for (const char *name : {"old", "future", "young"})
    writeText(folder + "/tmp/" + name, "half an ent");
  age(folder + "/tmp/old", 4000);
  age(folder + "/tmp/future", -4000);
  EXPECT_EQ(cache.stats().temporaries, 3u);
  EXPECT_EQ(cache.prune({}).removedTemporaries, 2u);
  EXPECT_TRUE(std::filesystem::exists(folder + "/tmp/young"));
  EXPECT_TRUE(cache.get(kExecutable, keyOf("k")).payload);
}

TEST_F(CacheStoreTest, NearestDiffersInFewestFields) {
  CacheStore cache = store();
  EXPECT_FALSE(cache.nearest(kExecutable, keyOf("relu")));
  ASSERT_FALSE(cache.put(kExecutable, keyOf("relu", "cpu:avx512"), "x"));
  ASSERT_FALSE(cache.put(kExecutable, keyOf("gelu", "cpu:sse2"), "x"));
  ASSERT_FALSE(cache.put(kTuning, keyOf("relu", "cpu:avx2"), "x"));
  std::optional<NearestEntry> nearest = cache.nearest(kExecutable, keyOf("relu", "cpu:avx2"));
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->entry.hash, keyOf("relu", "cpu:avx512").hash());
  ASSERT_EQ(nearest->differences.size(), 1u);
  EXPECT_EQ(nearest->differences[0].name, "target");
  EXPECT_EQ(*nearest->differences[0].wanted, "cpu:avx2");
  EXPECT_EQ(*nearest->differences[0].found, "cpu:avx512");

  // Of equally near ones the last used; the key's own entry doesn't count; nor do damaged ones.
  ASSERT_FALSE(cache.put(kExecutable, keyOf("relu", "cpu:avx2"), "x"));
  ASSERT_FALSE(cache.put(kExecutable, keyOf("relu", "cpu:avx"), "x"));
  age(fileOf(keyOf("relu", "cpu:avx512")), 100);
  EXPECT_EQ(cache.nearest(kExecutable, keyOf("relu", "cpu:avx2"))->entry.hash, keyOf("relu", "cpu:avx").hash());
  writeText(fileOf(keyOf("relu", "cpu:avx")), "damaged");
  EXPECT_EQ(cache.nearest(kExecutable, keyOf("relu", "cpu:avx2"))->entry.hash, keyOf("relu", "cpu:avx512").hash());
}

} // namespace
