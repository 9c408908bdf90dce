// A folder of its own for each test of the cache, and small things to do to files.

#ifndef ACCEL_TEST_UNIT_RUNTIME_CACHEFOLDERFIXTURE_H
#define ACCEL_TEST_UNIT_RUNTIME_CACHEFOLDERFIXTURE_H

#include "runtime/cache/CacheStore.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace accel::runtime {

inline std::string readText(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void writeText(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

inline CacheKey keyOf(const std::string &graph, const std::string &target = "cpu:avx2") {
  return CacheKey({{"target", target}, {"version", "0.1.0"}, {"graph", graph}});
}

/// Makes a file look as if it had last been used that many seconds ago.
inline void age(const std::string &path, int64_t seconds) {
  timespec then = {::time(nullptr) - seconds, 0};
  timespec times[2] = {then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
}

/// Runs `body` in a child process and returns its exit status, or 1000 plus the signal.
inline int inChild(const std::function<int()> &body) {
  pid_t child = ::fork();
  if (child == 0)
    ::_exit(body());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class CacheFolderTest : public testing::Test {
protected:
  CacheFolderTest() {
    char name[] = "/tmp/accel-cache-test-XXXXXX";
    base = ::mkdtemp(name);
    folder = base + "/cache";
  }

  ~CacheFolderTest() override {
    std::error_code error;
    std::filesystem::remove_all(base, error);
  }

  CacheStore store(TrustPolicy trust = TrustPolicy::Owner, bool useLocks = true) const {
    return CacheStore({folder, trust, useLocks});
  }

  std::string fileOf(const CacheKey &key, EntryKind kind = EntryKind::Executable) const {
    return folder + "/v1/" + key.hash().substr(0, 2) + "/" + entryFileName(kind, key.hash());
  }

  size_t temporaries() const {
    std::error_code error;
    size_t count = 0;
    for (auto it = std::filesystem::directory_iterator(folder + "/tmp", error);
         !error && it != std::filesystem::directory_iterator(); it.increment(error))
      ++count;
    return count;
  }

  /// A folder of the test's own, trusted; `folder` lies in it.
  std::string base;
  std::string folder;
};

} // namespace accel::runtime

#endif // ACCEL_TEST_UNIT_RUNTIME_CACHEFOLDERFIXTURE_H
