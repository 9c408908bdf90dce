// One process at a time works on one key; the others wait, or do without. Locks only save work: the
// store is right without them, for entries appear whole or not at all.

#ifndef ACCEL_RUNTIME_CACHE_CACHELOCK_H
#define ACCEL_RUNTIME_CACHE_CACHELOCK_H

#include "runtime/cache/CacheFolder.h"
#include "runtime/cache/EntryFormat.h"

#include <chrono>
#include <string>
#include <sys/types.h>

namespace accel::runtime {

/// An advisory lock (flock) on `DIR/locks/HASH.KIND`. The kernel releases it when the process that
/// holds it dies, also by SIGKILL. Two locks on one key exclude each other within a process too. Not
/// for use by two threads at once.
///
/// Where locking isn't possible, a caller always gets it and `isHeld` is false: with `useLocks`
/// false, on a file system without locks, in a folder that is refused or can't be written to.
/// `problem` says which.
///
/// Limit: a child that is forked while the lock is held keeps it alive until the child ends or runs
/// another program, if the holder dies without releasing it.
class CacheLock {
public:
  CacheLock(CacheFolder folder, EntryKind kind, const CacheKey &key, bool useLocks);
  CacheLock(const CacheLock &) = delete;
  CacheLock &operator=(const CacheLock &) = delete;
  ~CacheLock() { unlock(); }

  /// Returns at once; false if another one holds it.
  bool tryLock();

  /// Tries again and again; false if another one still holds it after `limit`.
  bool lock(std::chrono::milliseconds limit);

  /// Does nothing if it isn't held.
  void unlock();

  /// Whether the kernel holds the lock for this object.
  bool isHeld() const { return static_cast<bool>(file); }

  /// Why the last attempt went without a lock.
  const CacheProblem &problem() const { return lastProblem; }

private:
  CacheFolder folder;
  std::string name;
  bool useLocks;
  Fd file;
  pid_t holder = 0;
  CacheProblem lastProblem;
};

/// Removes the lock files that nobody holds and that are older than `seconds`. Returns how many.
size_t removeIdleLocks(const CacheFolder &folder, int64_t seconds);

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CACHE_CACHELOCK_H
