// Whose files the cache believes. Most of it needs root, which can give files away.

#include "CacheFolderFixture.h"

#include <grp.h>

using namespace accel::runtime;

namespace {

constexpr EntryKind kExecutable = EntryKind::Executable;
/// Nobody's.
constexpr uid_t kOther = 54321;
constexpr gid_t kOtherGroup = 54322;

class CacheTrustTest : public CacheFolderTest {
protected:
  void SetUp() override {
    ASSERT_FALSE(store().put(kExecutable, key, "x"));
    ASSERT_TRUE(store().get(kExecutable, key).payload);
  }

  CacheProblem problem(TrustPolicy trust = TrustPolicy::Owner) const {
    return store(trust).get(kExecutable, key).problem;
  }

  /// That every operation refuses, and which path it names.
  void expectRefused(const std::string &path, TrustPolicy trust = TrustPolicy::Owner) const {
    CacheProblem why = problem(trust);
    EXPECT_EQ(why.status, CacheStatus::Refused) << why.message;
    EXPECT_NE((why.message + " ").find(path + " "), std::string::npos) << why.message;
    EXPECT_EQ(store(trust).put(kExecutable, key, "y").status, CacheStatus::Refused);
  }

  CacheKey key = keyOf("k");
};

#define NEEDS_ROOT()                                                                                                   \
  if (::geteuid() != 0)                                                                                                \
  GTEST_SKIP() << "needs root"

TEST_F(CacheTrustTest, MadeForTheOwnerAlone) {
  for (const char *name : {"", "/v1", "/tmp"}) {
    struct stat status;
    ASSERT_EQ(::stat((folder + name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700u) << name;
  }
  struct stat status;
  ASSERT_EQ(::stat(fileOf(key).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(CacheTrustTest, FolderThatOthersCanWriteTo) {
  ::chmod(folder.c_str(), 0777);
  expectRefused(folder);
  expectRefused(folder, TrustPolicy::Group);
  EXPECT_NE(problem().message.find("mode 0777"), std::string::npos);
  EXPECT_NE(problem().message.find("uid " + std::to_string(::geteuid())), std::string::npos);
  EXPECT_EQ(store().list().problem.status, CacheStatus::Refused);
  EXPECT_EQ(store().verify().problem.status, CacheStatus::Refused);
  EXPECT_EQ(store().prune({}).problem.status, CacheStatus::Refused);
  EXPECT_EQ(store().remove(kExecutable, key.hash()).status, CacheStatus::Refused);
  EXPECT_THROW(store().exportTo(base + "/archive"), CacheError);
  // Sticky doesn't help the folder itself: others could add entries.
  ::chmod(folder.c_str(), 01777);
  expectRefused(folder);
  ::chmod(folder.c_str(), 0755);
  EXPECT_FALSE(problem());
}

TEST_F(CacheTrustTest, FolderThatTheGroupCanWriteTo) {
  ::chmod(folder.c_str(), 0770);
  expectRefused(folder);
  EXPECT_FALSE(problem(TrustPolicy::Group));
}

TEST_F(CacheTrustTest, ParentThatOthersCanWriteTo) {
  ::chmod(base.c_str(), 0777);
  expectRefused(base);
  // Now nobody else can exchange the folder.
  ::chmod(base.c_str(), 01777);
  EXPECT_FALSE(problem());
}

TEST_F(CacheTrustTest, ParentThatOthersCanWriteToOfAFolderToBe) {
  ::chmod(base.c_str(), 0777);
  folder = base + "/not/there/yet";
  EXPECT_EQ(store().put(kExecutable, key, "x").status, CacheStatus::Refused);
  EXPECT_FALSE(std::filesystem::exists(base + "/not"));
}

TEST_F(CacheTrustTest, FolderBetweenThatOthersCanWriteTo) {
  std::string shard = folder + "/v1/" + key.hash().substr(0, 2);
  ::chmod(shard.c_str(), 0777);
  expectRefused(shard);
  ::chmod(shard.c_str(), 0700);
  ::chmod((folder + "/v1").c_str(), 0777);
  expectRefused(folder + "/v1");
}

TEST_F(CacheTrustTest, EntryThatOthersCanWriteTo) {
  for (mode_t mode : {0666, 0606, 0660}) {
    ::chmod(fileOf(key).c_str(), mode);
    EXPECT_EQ(problem().status, CacheStatus::Refused);
    EXPECT_EQ(store().verify().entries.at(0).problem.status, CacheStatus::Refused);
  }
  // The last one is the group's.
  EXPECT_FALSE(problem(TrustPolicy::Group));
}

TEST_F(CacheTrustTest, EntryThatIsNoFile) {
  std::string file = fileOf(key);
  std::filesystem::rename(file, base + "/real");
  std::filesystem::create_symlink(base + "/real", file);
  CacheProblem why = problem();
  EXPECT_EQ(why.status, CacheStatus::Refused);
  EXPECT_NE(why.message.find("symbolic link"), std::string::npos) << why.message;
  // Written over, not through.
  ASSERT_FALSE(store().put(kExecutable, key, "new"));
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(file)));

  std::filesystem::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(problem().status, CacheStatus::Refused);
  EXPECT_EQ(store().list().entries.at(0).problem.status, CacheStatus::Refused);
}

TEST_F(CacheTrustTest, LinkInPlaceOfAFolderBelow) {
  std::filesystem::rename(folder + "/v1", base + "/elsewhere");
  std::filesystem::create_symlink(base + "/elsewhere", folder + "/v1");
  EXPECT_EQ(problem().status, CacheStatus::Refused);
  std::filesystem::remove_all(folder + "/tmp");
  std::filesystem::create_symlink(base, folder + "/tmp");
  EXPECT_EQ(store().put(kExecutable, key, "x").status, CacheStatus::Refused);
}

TEST_F(CacheTrustTest, LinksOnTheWayAreFollowedAndJudged) {
  std::string real = folder;
  std::filesystem::create_directories(base + "/deep/er");
  std::filesystem::create_symlink("../../cache", base + "/deep/er/link");
  folder = base + "/deep/er/link";
  EXPECT_FALSE(problem());
  // What the link leads to is judged, not where it lies.
  ::chmod(real.c_str(), 0777);
  expectRefused(real);
  ::chmod(real.c_str(), 0700);
  ::chmod((base + "/deep").c_str(), 0777);
  expectRefused(base + "/deep");
}

TEST_F(CacheTrustTest, LinksInACircle) {
  std::filesystem::create_symlink(base + "/b", base + "/a");
  std::filesystem::create_symlink(base + "/a", base + "/b");
  folder = base + "/a/cache";
  EXPECT_EQ(problem().status, CacheStatus::Refused);
  EXPECT_EQ(store().put(kExecutable, key, "x").status, CacheStatus::Refused);
}

TEST_F(CacheTrustTest, LinkToNowhereIsMadeWhereItLeads) {
  std::filesystem::create_symlink("there/below", base + "/link");
  folder = base + "/link";
  ASSERT_FALSE(store().put(kExecutable, key, "x"));
  EXPECT_TRUE(std::filesystem::is_directory(base + "/there/below/v1"));
}

TEST_F(CacheTrustTest, AnothersFolder) {
  NEEDS_ROOT();
  ASSERT_EQ(::chown(folder.c_str(), kOther, kOtherGroup), 0);
  expectRefused(folder);
  EXPECT_NE(problem().message.find("uid 54321"), std::string::npos) << problem().message;
  expectRefused(folder, TrustPolicy::Group);
  // Of our group, which the policy trusts.
  ASSERT_EQ(::chown(folder.c_str(), kOther, ::getegid()), 0);
  expectRefused(folder);
  EXPECT_FALSE(problem(TrustPolicy::Group));
}

TEST_F(CacheTrustTest, AnothersParent) {
  NEEDS_ROOT();
  ASSERT_EQ(::chown(base.c_str(), kOther, kOtherGroup), 0);
  expectRefused(base);
  expectRefused(base, TrustPolicy::Group);
  // A sticky folder lets its owner exchange what is in it.
  ::chmod(base.c_str(), 01777);
  expectRefused(base);
  ASSERT_EQ(::chown(base.c_str(), 0, 0), 0);
  EXPECT_FALSE(problem());
}

TEST_F(CacheTrustTest, AnothersFolderInAStickyOne) {
  NEEDS_ROOT();
  ::chmod(base.c_str(), 01777);
  ASSERT_EQ(::chown(folder.c_str(), kOther, ::getegid()), 0);
  expectRefused(folder);
  expectRefused(folder, TrustPolicy::Group);
}

TEST_F(CacheTrustTest, AnothersEntry) {
  NEEDS_ROOT();
  ASSERT_EQ(::chown(fileOf(key).c_str(), kOther, kOtherGroup), 0);
  EXPECT_EQ(problem().status, CacheStatus::Refused);
  EXPECT_EQ(problem(TrustPolicy::Group).status, CacheStatus::Refused);
  ASSERT_EQ(::chown(fileOf(key).c_str(), kOther, ::getegid()), 0);
  EXPECT_EQ(problem().status, CacheStatus::Refused);
  EXPECT_FALSE(problem(TrustPolicy::Group));
}

TEST_F(CacheTrustTest, AnothersLink) {
  NEEDS_ROOT();
  std::string link = base + "/link";
  std::filesystem::create_symlink(folder, link);
  folder = link;
  EXPECT_FALSE(problem());
  ASSERT_EQ(::lchown(link.c_str(), kOther, kOtherGroup), 0);
  expectRefused(link);
}

/// Runs `body` as another user with one group more; returns what it returns.
int asOther(const std::function<int()> &body) {
  return inChild([&] {
    gid_t group = kOtherGroup;
    if (::setgroups(1, &group) != 0 || ::setgid(kOther) != 0 || ::setuid(kOther) != 0)
      return 100;
    return body();
  });
}

TEST_F(CacheTrustTest, RootsCacheServesOthersWhoCannotWrite) {
  NEEDS_ROOT();
  std::filesystem::remove_all(folder);
  ::chmod(base.c_str(), 0755);
  std::filesystem::create_directory(folder);
  ::chmod(folder.c_str(), 0755);
  ASSERT_FALSE(store().put(kExecutable, key, "x"));
  EXPECT_EQ(asOther([&] {
              CacheStore cache = store();
              if (cache.get(kExecutable, key).payload != "x")
                return 1;
              if (cache.put(kExecutable, key, "y").status != CacheStatus::Unwritable)
                return 2;
              if (!cache.prune({.maxBytes = 0, .maxAge = {}}).problem)
                return 3;
              // Nothing to wait for where nobody can store a result.
              std::unique_ptr<CacheLock> lock = cache.lockFor(kExecutable, key);
              if (!lock->tryLock() || lock->isHeld() || !lock->problem())
                return 4;
              return 0;
            }),
            0);
  EXPECT_EQ(store().get(kExecutable, key).payload, "x");
}

// One's own folder, made read-only: what is there is used, what isn't can't be added.
TEST_F(CacheTrustTest, ReadOnlyFolderIsStillRead) {
  auto check = [&] {
    CacheStore cache = store();
    if (cache.get(kExecutable, key).payload != "x")
      return 1;
    if (cache.put(kExecutable, key, "y").status != CacheStatus::Unwritable)
      return 2;
    if (cache.put(kExecutable, keyOf("other"), "y").status != CacheStatus::Unwritable)
      return 3;
    return cache.get(kExecutable, key).payload == "x" ? 0 : 4;
  };
  bool isRoot = ::geteuid() == 0;
  ::chmod(base.c_str(), 0755);
  std::vector<std::string> paths = {folder};
  for (const auto &item : std::filesystem::recursive_directory_iterator(folder))
    paths.push_back(item.path());
  for (const std::string &path : paths) {
    // Root may write anywhere, so it lends the folder to somebody.
    if (isRoot)
      ASSERT_EQ(::chown(path.c_str(), kOther, kOtherGroup), 0);
    ::chmod(path.c_str(), std::filesystem::is_directory(path) ? 0500 : 0400);
  }
  EXPECT_EQ(isRoot ? asOther(check) : inChild(check), 0);
  for (const std::string &path : paths)
    if (!isRoot)
      ::chmod(path.c_str(), 0700);
}

TEST_F(CacheTrustTest, AnothersEyesSeeAnUnreadableCache) {
  NEEDS_ROOT();
  ::chmod(base.c_str(), 0755);
  EXPECT_EQ(asOther([&] {
              CacheStatus status = store().get(kExecutable, key).problem.status;
              return status == CacheStatus::Unreadable ? 0 : 1 + static_cast<int>(status);
            }),
            0);
}

TEST_F(CacheTrustTest, GroupSharesOneCache) {
  NEEDS_ROOT();
  std::filesystem::remove_all(folder);
  ::chmod(base.c_str(), 0755);
  std::filesystem::create_directory(folder);
  ASSERT_EQ(::chown(folder.c_str(), 0, kOtherGroup), 0);
  ::chmod(folder.c_str(), 0770);
  mode_t mask = ::umask(077);
  int result = asOther([&] { return store(TrustPolicy::Group).put(kExecutable, key, "theirs") ? 1 : 0; });
  ::umask(mask);
  EXPECT_EQ(result, 0);
  struct stat status;
  ASSERT_EQ(::stat(fileOf(key).c_str(), &status), 0);
  EXPECT_EQ(status.st_gid, kOtherGroup);
  EXPECT_EQ(status.st_mode & 07777, 0660u);
  ASSERT_EQ(::stat((folder + "/v1").c_str(), &status), 0);
  EXPECT_EQ(status.st_gid, kOtherGroup);
  EXPECT_EQ(status.st_mode & 07777, 0770u);
  // Another member of the group reads it and writes beside it.
  EXPECT_EQ(inChild([&] {
              gid_t group = kOtherGroup;
              if (::setgroups(1, &group) != 0 || ::setgid(kOther + 10) != 0 || ::setuid(kOther + 10) != 0)
                return 100;
              CacheStore cache = store(TrustPolicy::Group);
              if (cache.get(kExecutable, key).payload != "theirs")
                return 1;
              if (cache.put(kExecutable, key, "ours"))
                return 2;
              return store().get(kExecutable, key).problem.status == CacheStatus::Refused ? 0 : 3;
            }),
            0);
}

} // namespace
