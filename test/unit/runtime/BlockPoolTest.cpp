#include "runtime/BlockPool.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

using namespace accel::runtime;

namespace {

constexpr size_t kMiB = size_t(1) << 20;

TEST(BlockPoolTest, ReusesBlocks) {
  BlockPool pool(64 * kMiB);
  void *first = nullptr;
  {
    at::DataPtr block = pool.allocate(3 * kMiB);
    first = block.get();
    std::memset(first, 1, 3 * kMiB);
    EXPECT_GE(pool.counters().inUseBytes, 3 * kMiB);
  }
  EXPECT_EQ(pool.counters().inUseBytes, 0u);
  at::DataPtr again = pool.allocate(3 * kMiB);
  EXPECT_EQ(again.get(), first);
  EXPECT_EQ(pool.counters().hits, 1u);
  EXPECT_EQ(pool.counters().misses, 1u);
}

TEST(BlockPoolTest, Aligns) {
  BlockPool pool(64 * kMiB);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pool.allocate(100).get()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pool.allocate(5 * kMiB).get()) % (2 * kMiB), 0u);
}

TEST(BlockPoolTest, RoundsUpByAnEighthAtMost) {
  for (size_t bytes : {size_t(1), size_t(4097), size_t(100000), kMiB, 2 * kMiB + 1, 33 * kMiB}) {
    EXPECT_GE(BlockPool::roundUp(bytes), bytes);
    size_t slack = std::max(bytes / 8, bytes >= 2 * kMiB ? 2 * kMiB : size_t(4096));
    EXPECT_LE(BlockPool::roundUp(bytes), bytes + slack);
  }
}

TEST(BlockPoolTest, KeepsNoMoreThanItsLimit) {
  BlockPool pool(10 * kMiB);
  {
    std::vector<at::DataPtr> blocks;
    for (int i = 0; i < 8; ++i)
      blocks.push_back(pool.allocate(4 * kMiB));
  }
  EXPECT_EQ(pool.counters().idleBytes, 8 * kMiB);
  pool.setLimit(0);
  EXPECT_EQ(pool.counters().idleBytes, 0u);
}

TEST(BlockPoolTest, TooMuchIsAnOutOfMemoryError) {
  BlockPool pool(kMiB);
  EXPECT_THROW(pool.allocate(size_t(1) << 60), c10::OutOfMemoryError);
}

TEST(BlockPoolTest, ThreadsShareIt) {
  BlockPool pool(32 * kMiB);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 500; ++i) {
        at::DataPtr block = pool.allocate(kMiB + static_cast<size_t>(i % 7) * 100000);
        auto *bytes = static_cast<char *>(block.get());
        bytes[0] = static_cast<char>(t);
        bytes[kMiB - 1] = static_cast<char>(i);
        ASSERT_EQ(bytes[0], static_cast<char>(t));
        ASSERT_EQ(bytes[kMiB - 1], static_cast<char>(i));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(pool.counters().inUseBytes, 0u);
  EXPECT_LE(pool.counters().idleBytes, 32 * kMiB);
}

// A child is forked while other threads use the pool: it must find the lock free.
TEST(BlockPoolTest, WorksInAForkedChild) {
  BlockPool pool(32 * kMiB);
  pool.allocate(2 * kMiB);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop)
      pool.allocate(2 * kMiB);
  });
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      at::DataPtr block = pool.allocate(2 * kMiB);
      std::memset(block.get(), 1, 2 * kMiB);
      block.clear();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
}

} // namespace
