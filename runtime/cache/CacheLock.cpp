#include "runtime/cache/CacheLock.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace accel::runtime {
namespace {

using namespace std::chrono_literals;
constexpr auto kFirstPause = 1ms;
constexpr auto kLongestPause = 50ms;

int lockNow(int fd) {
  int result = 0;
  do
    result = ::flock(fd, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  return result;
}

/// Whether `fd` is still the file of that name: removeIdleLocks may have taken it away before we had
/// the lock, and the next process would lock another file.
bool isStillThere(int folder, const std::string &name, int fd) {
  struct stat there;
  struct stat ours;
  return ::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(fd, &ours) == 0 &&
         there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

/// Opens the lock file, or makes it. Other processes make and remove it meanwhile.
CacheProblem openLockFile(const CacheFolder &folder, const OpenFolder &locks, const std::string &name, Fd &out) {
  while (true) {
    // For writing, because network file systems make an exclusive lock of flock's only then.
    out = Fd(::openat(locks.fd.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (out)
      return {};
    if (errno != ENOENT)
      return systemProblem(CacheStatus::Unwritable, locks.path + "/" + name);
    CacheProblem problem = folder.createFile(locks, name, out);
    if (!problem || errno != EEXIST)
      return problem;
  }
}

} // namespace

CacheLock::CacheLock(CacheFolder folder, EntryKind kind, const CacheKey &key, bool useLocks)
    : folder(std::move(folder)), name(entryFileName(kind, key.hash())), useLocks(useLocks) {}

bool CacheLock::tryLock() {
  if (file)
    return true;
  lastProblem = {};
  if (!useLocks)
    return true;
  OpenFolder locks;
  lastProblem = folder.open({kLocksFolder}, CacheFolder::Access::Create, locks);
  while (!lastProblem) {
    Fd opened;
    lastProblem = openLockFile(folder, locks, name, opened);
    if (lastProblem)
      break;
    if (lockNow(opened.get()) != 0) {
      if (errno == EWOULDBLOCK)
        return false;
      lastProblem = systemProblem(CacheStatus::Unwritable, "the file system of " + locks.path + " has no locks");
      break;
    }
    if (!isStillThere(locks.fd.get(), name, opened.get()))
      continue;
    file = std::move(opened);
    holder = ::getpid();
    return true;
  }
  return true;
}

bool CacheLock::lock(std::chrono::milliseconds limit) {
  auto end = std::chrono::steady_clock::now() + limit;
  auto pause = std::chrono::milliseconds(kFirstPause);
  while (!tryLock()) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left <= 0ms)
      return false;
    std::this_thread::sleep_for(std::min(pause, left));
    pause = std::min(2 * pause, std::chrono::milliseconds(kLongestPause));
  }
  return true;
}

void CacheLock::unlock() {
  if (!file)
    return;
  // Unlocking frees it for forked children too, closing alone doesn't; a child frees nothing.
  if (holder == ::getpid())
    static_cast<void>(::flock(file.get(), LOCK_UN) == 0);
  file.close();
}

size_t removeIdleLocks(const CacheFolder &folder, int64_t seconds) {
  OpenFolder locks;
  std::vector<std::string> names;
  if (folder.open({kLocksFolder}, CacheFolder::Access::Read, locks) || !namesIn(locks.fd.get(), names))
    return 0;
  size_t removed = 0;
  for (const std::string &name : names) {
    Fd opened(::openat(locks.fd.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status;
    if (!opened || ::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    if (std::llabs(static_cast<int64_t>(::time(nullptr)) - status.st_mtime) < seconds)
      continue;
    // Only its holder may remove it, as `isStillThere` expects.
    if (lockNow(opened.get()) == 0 && isStillThere(locks.fd.get(), name, opened.get()) &&
        ::unlinkat(locks.fd.get(), name.c_str(), 0) == 0)
      ++removed;
  }
  return removed;
}

} // namespace accel::runtime
