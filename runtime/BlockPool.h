// Memory for arenas and large outputs: blocks that stay mapped between calls.

#ifndef ACCEL_RUNTIME_BLOCKPOOL_H
#define ACCEL_RUNTIME_BLOCKPOOL_H

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace accel::runtime {

/// A bounded cache of mapped blocks.
///
/// A fresh large tensor costs more in page faults than many kernels cost in work, because PyTorch's
/// CPU allocator gives memory back to the system each time. Blocks from here keep their pages, and
/// those of 2 MiB and more ask for huge ones. Sizes are rounded up to one of eight steps per
/// doubling, and at most `limit` bytes lie idle: the block that was idle longest is unmapped first.
/// Safe to use from any thread and in a forked child.
class BlockPool {
public:
  struct Counters {
    uint64_t hits = 0;       ///< blocks served from the idle ones
    uint64_t misses = 0;     ///< blocks that had to be mapped
    uint64_t idleBytes = 0;  ///< mapped and unused
    uint64_t inUseBytes = 0; ///< owned by a tensor or a running call
  };

  explicit BlockPool(size_t limit) : limit(limit) {}
  ~BlockPool();
  BlockPool(const BlockPool &) = delete;
  BlockPool &operator=(const BlockPool &) = delete;

  /// The process's pool, bounded by ACCEL_POOL_BYTES (a number of bytes; 1 GiB if it isn't set).
  /// Never destroyed, for tensors may outlive every static object.
  static BlockPool &process();

  /// Returns at least `bytes` bytes, aligned to 64 bytes and, from 2 MiB on, to 2 MiB. The contents
  /// are unspecified. The block returns to the pool when the DataPtr goes. Throws
  /// c10::OutOfMemoryError if the system has no more. The pool must outlive its blocks.
  at::DataPtr allocate(size_t bytes);

  /// Sets how many bytes may lie idle, and unmaps what is over it.
  void setLimit(size_t bytes);

  Counters counters() const;

  /// The size that a request of `bytes` gets.
  static size_t roundUp(size_t bytes);

private:
  struct Block {
    BlockPool *pool;
    void *memory;
    size_t size;
    uint64_t idleSince; ///< a count of returns, not a time
  };

  Block *takeIdle(size_t size);
  Block *map(size_t size);
  void giveBack(Block *block);
  /// Moves idle blocks to `dropped` until the rest fits `limit`. Called under the lock.
  void evict(std::vector<Block *> &dropped);
  static void unmap(Block *block);
  static void release(void *block);

  size_t limit;
  std::map<size_t, std::vector<Block *>> idle; ///< by size; the last of a list was used last
  uint64_t returns = 0;
  Counters state;
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_BLOCKPOOL_H
