// What happens to the cache when processes are killed, run side by side, or run out of disk; and locks.

#include "CacheFolderFixture.h"

#include <random>
#include <sys/resource.h>
#include <thread>

using namespace accel::runtime;

namespace {

constexpr EntryKind kExecutable = EntryKind::Executable;

/// A payload that shows whether it is whole: one letter, as often as its first four digits say.
std::string payloadOf(char letter, size_t size) {
  std::string digits = std::to_string(size + 1000);
  return digits + std::string(size, letter);
}

bool isWhole(const std::string &payload) {
  if (payload.size() < 4)
    return false;
  size_t size = std::stoul(payload.substr(0, 4)) - 1000;
  return payload.size() == size + 4 && payload.find_first_not_of(payload[4], 4) == std::string::npos;
}

/// A pipe whose reading end tells when the writer is ready or dead.
class Pipe {
public:
  Pipe() {
    if (::pipe(ends) != 0)
      std::abort();
  }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void tell() { static_cast<void>(::write(ends[1], "x", 1) == 1); }
  void await() {
    char c;
    while (::read(ends[0], &c, 1) < 0 && errno == EINTR)
      ;
  }

private:
  int ends[2];
};

void killAndWait(pid_t child) {
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  ASSERT_TRUE(WIFSIGNALED(status));
}

using CacheProcessesTest = CacheFolderTest;

// Wherever a writer is killed, a reader finds a whole entry or none.
TEST_F(CacheProcessesTest, KilledWritersLeaveNoBadEntry) {
  CacheStore cache = store();
  std::minstd_rand random(1);
  std::vector<CacheKey> keys = {keyOf("a"), keyOf("b"), keyOf("c")};
  for (int round = 0; round < 200; ++round) {
    Pipe ready;
    pid_t child = ::fork();
    if (child == 0) {
      ready.tell();
      for (size_t i = 0;; ++i)
        static_cast<void>(cache.put(kExecutable, keys[i % keys.size()], payloadOf('a' + round % 26, 37 * i % 8000)));
    }
    ready.await();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    killAndWait(child);
    for (const CacheKey &key : keys) {
      CacheResult result = cache.get(kExecutable, key);
      if (result.payload)
        EXPECT_TRUE(isWhole(*result.payload)) << round;
      else
        EXPECT_EQ(result.problem.status, CacheStatus::Absent) << result.problem.message;
    }
  }
  for (const EntryInfo &info : cache.verify().entries)
    EXPECT_FALSE(info.problem) << info.problem.message;
  // What the writers left is cleaned up once it is old.
  size_t left = temporaries();
  for (const auto &item : std::filesystem::directory_iterator(folder + "/tmp"))
    age(item.path(), 4000);
  EXPECT_EQ(cache.prune({}).removedTemporaries, left);
  EXPECT_EQ(temporaries(), 0u);
}

// Eight processes write and read the same few keys, and prune now and then.
TEST_F(CacheProcessesTest, EightProcessesAtOnce) {
  std::vector<pid_t> children;
  for (int id = 0; id < 8; ++id) {
    pid_t child = ::fork();
    if (child == 0) {
      CacheStore cache = store();
      for (int i = 0; i < 200; ++i) {
        CacheKey key = keyOf(std::to_string((i + id) % 5));
        if (i % 3 == 0) {
          if (cache.put(kExecutable, key, payloadOf(static_cast<char>('a' + id), 41 * i % 8000)))
            ::_exit(1);
        } else {
          CacheResult result = cache.get(kExecutable, key);
          if (result.payload ? !isWhole(*result.payload) : result.problem.status != CacheStatus::Absent)
            ::_exit(2);
        }
        if (i % 50 == 49 && cache.prune({.maxBytes = 12000, .maxAge = {}}).problem)
          ::_exit(3);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_EQ(temporaries(), 0u);
  for (const EntryInfo &info : store().verify().entries)
    EXPECT_FALSE(info.problem) << info.problem.message;
}

TEST_F(CacheProcessesTest, ManyThreadsOneStore) {
  CacheStore cache = store();
  std::vector<std::thread> threads;
  std::atomic<int> bad = 0;
  for (int id = 0; id < 4; ++id)
    threads.emplace_back([&cache, &bad, id] {
      for (size_t i = 0; i < 100; ++i) {
        CacheKey key = keyOf(std::to_string(i % 3));
        if (cache.put(kExecutable, key, payloadOf(static_cast<char>('a' + id), 10 * i)))
          ++bad;
        CacheResult result = cache.get(kExecutable, key);
        if (!result.payload || !isWhole(*result.payload))
          ++bad;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(cache.counters().hits, 400u);
}

// A file that may not grow is as good as a full disk: the write ends in the middle.
TEST_F(CacheProcessesTest, FullDiskKeepsWhatWasThere) {
  CacheKey key = keyOf("k");
  ASSERT_FALSE(store().put(kExecutable, key, "small"));
  std::string archive = base + "/archive";
  EXPECT_EQ(inChild([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              rlimit limit = {4096, 4096};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              CacheStore cache = store();
              CacheProblem problem = cache.put(kExecutable, key, std::string(100000, 'x'));
              if (problem.status != CacheStatus::Unwritable)
                return 1;
              if (temporaries() != 0 || cache.counters().failedPuts != 1)
                return 2;
              if (cache.get(kExecutable, key).payload != "small")
                return 3;
              if (cache.put(kExecutable, keyOf("other"), "fits"))
                return 4;
              return 0;
            }),
            0);
  ASSERT_FALSE(store().put(kExecutable, keyOf("large"), std::string(100000, 'x')));
  EXPECT_EQ(inChild([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              rlimit limit = {4096, 4096};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              try {
                store().exportTo(archive);
              } catch (const CacheError &) {
                return 0;
              }
              return 1;
            }),
            0);
  // Neither the archive nor its beginning.
  for (const auto &item : std::filesystem::directory_iterator(base))
    EXPECT_EQ(item.path().string(), folder);
}

using CacheLockTest = CacheFolderTest;

TEST_F(CacheLockTest, OneHolderForEachKeyAndKind) {
  CacheStore cache = store();
  std::unique_ptr<CacheLock> first = cache.lockFor(kExecutable, keyOf("a"));
  std::unique_ptr<CacheLock> second = cache.lockFor(kExecutable, keyOf("a"));
  std::unique_ptr<CacheLock> otherKey = cache.lockFor(kExecutable, keyOf("b"));
  std::unique_ptr<CacheLock> otherKind = cache.lockFor(EntryKind::Tuning, keyOf("a"));
  EXPECT_FALSE(first->isHeld());
  EXPECT_TRUE(first->tryLock());
  EXPECT_TRUE(first->tryLock());
  EXPECT_TRUE(first->isHeld());
  EXPECT_FALSE(second->tryLock());
  EXPECT_FALSE(second->lock(std::chrono::milliseconds(20)));
  EXPECT_FALSE(second->isHeld());
  EXPECT_TRUE(otherKey->tryLock());
  EXPECT_TRUE(otherKind->tryLock());
  first->unlock();
  EXPECT_TRUE(second->lock(std::chrono::milliseconds(0)));
  second.reset();
  EXPECT_TRUE(first->tryLock());
}

// No matter how: the kernel gives it free.
TEST_F(CacheLockTest, KilledHolderFreesIt) {
  CacheStore cache = store();
  Pipe ready;
  pid_t child = ::fork();
  if (child == 0) {
    std::unique_ptr<CacheLock> lock = cache.lockFor(kExecutable, keyOf("a"));
    if (!lock->tryLock() || !lock->isHeld())
      ::_exit(1);
    ready.tell();
    while (true)
      ::pause();
  }
  ready.await();
  std::unique_ptr<CacheLock> lock = cache.lockFor(kExecutable, keyOf("a"));
  EXPECT_FALSE(lock->tryLock());
  killAndWait(child);
  EXPECT_TRUE(lock->tryLock());
  EXPECT_TRUE(lock->isHeld());
}

// A forked child has a copy of the lock, but giving it up frees nothing; the holder's giving up frees
// it though the child still lives.
TEST_F(CacheLockTest, ForkedChildIsNoHolder) {
  CacheStore cache = store();
  std::unique_ptr<CacheLock> lock = cache.lockFor(kExecutable, keyOf("a"));
  ASSERT_TRUE(lock->tryLock());
  EXPECT_EQ(inChild([&] {
              lock->unlock();
              return cache.lockFor(kExecutable, keyOf("a"))->tryLock() ? 1 : 0;
            }),
            0);
  EXPECT_FALSE(cache.lockFor(kExecutable, keyOf("a"))->tryLock());
  Pipe done;
  pid_t child = ::fork();
  if (child == 0) {
    while (true)
      ::pause();
  }
  lock->unlock();
  EXPECT_TRUE(cache.lockFor(kExecutable, keyOf("a"))->tryLock());
  killAndWait(child);
}

TEST_F(CacheLockTest, WithoutLocksEverybodyGoesAhead) {
  CacheStore cache = store(TrustPolicy::Owner, /*useLocks=*/false);
  std::unique_ptr<CacheLock> first = cache.lockFor(kExecutable, keyOf("a"));
  std::unique_ptr<CacheLock> second = cache.lockFor(kExecutable, keyOf("a"));
  EXPECT_TRUE(first->tryLock());
  EXPECT_TRUE(second->lock(std::chrono::milliseconds(0)));
  EXPECT_FALSE(first->isHeld());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(CacheLockTest, RefusedFolderGivesNoLockButLetsGoAhead) {
  std::filesystem::create_directory(folder);
  ::chmod(folder.c_str(), 0777);
  std::unique_ptr<CacheLock> lock = store().lockFor(kExecutable, keyOf("a"));
  EXPECT_TRUE(lock->tryLock());
  EXPECT_FALSE(lock->isHeld());
  EXPECT_EQ(lock->problem().status, CacheStatus::Refused);
}

// Pruning takes away idle lock files; whoever waits for one that is gone must not hold it.
TEST_F(CacheLockTest, IdleFilesAreRemovedAndHeldOnesStay) {
  CacheStore cache = store();
  std::unique_ptr<CacheLock> held = cache.lockFor(kExecutable, keyOf("held"));
  ASSERT_TRUE(held->tryLock());
  ASSERT_TRUE(cache.lockFor(kExecutable, keyOf("idle"))->tryLock());
  ASSERT_TRUE(cache.lockFor(kExecutable, keyOf("young"))->tryLock());
  ASSERT_FALSE(cache.put(kExecutable, keyOf("k"), "x"));
  for (const char *name : {"held", "idle"})
    age(folder + "/locks/" + entryFileName(kExecutable, keyOf(name).hash()), 4000);
  EXPECT_EQ(cache.prune({}).removedLocks, 1u);
  EXPECT_FALSE(cache.lockFor(kExecutable, keyOf("held"))->tryLock());
  EXPECT_TRUE(cache.lockFor(kExecutable, keyOf("idle"))->tryLock());
}

// Mutual exclusion while lock files come and go.
TEST_F(CacheLockTest, ExcludesWhileFilesAreRemoved) {
  CacheStore cache = store();
  std::atomic<int> inside = 0, collisions = 0, withoutLock = 0, left = 3;
  std::vector<std::thread> threads;
  for (int id = 0; id < 3; ++id)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        std::unique_ptr<CacheLock> lock = cache.lockFor(kExecutable, keyOf("a"));
        while (!lock->lock(std::chrono::milliseconds(100)))
          ;
        if (!lock->isHeld()) {
          ++withoutLock;
          continue;
        }
        if (++inside != 1)
          ++collisions;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        --inside;
      }
      --left;
    });
  CacheFolder raw(folder, TrustPolicy::Owner);
  while (left > 0)
    removeIdleLocks(raw, 0);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(withoutLock, 0);
  EXPECT_EQ(collisions, 0);
}

} // namespace
