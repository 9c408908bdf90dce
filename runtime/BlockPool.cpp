#include "runtime/BlockPool.h"

#include "runtime/ForkSafeMutex.h"

#include <c10/util/Exception.h>

#include <sys/mman.h>

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace accel::runtime {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t(2) << 20;
constexpr size_t kDefaultLimit = size_t(1) << 30;

/// An idle block serves a request of down to 4/5 of its size: with shapes that vary a little, the
/// same few blocks serve all of them.
constexpr size_t kFitNumerator = 5, kFitDenominator = 4;

size_t limitFromEnvironment() {
  const char *text = std::getenv("ACCEL_POOL_BYTES");
  if (!text)
    return kDefaultLimit;
  size_t value = 0;
  auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc() && *end == '\0' ? value : kDefaultLimit;
}

void *mapAnonymous(size_t size) {
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

/// Maps `size` bytes at a huge page's boundary and asks for huge pages.
void *mapHuge(size_t size) {
  void *reserved = mapAnonymous(size + kHugePageBytes);
  if (!reserved)
    return nullptr;
  char *begin = static_cast<char *>(reserved);
  size_t skip = (kHugePageBytes - reinterpret_cast<uintptr_t>(begin) % kHugePageBytes) % kHugePageBytes;
  if (skip)
    munmap(begin, skip);
  munmap(begin + skip + size, kHugePageBytes - skip);
  // A kernel without transparent huge pages refuses; the block works all the same.
  madvise(begin + skip, size, MADV_HUGEPAGE);
  return begin + skip;
}

} // namespace

BlockPool &BlockPool::process() {
  static BlockPool *pool = new BlockPool(limitFromEnvironment());
  return *pool;
}

BlockPool::~BlockPool() {
  for (auto &[size, blocks] : idle)
    for (Block *block : blocks)
      unmap(block);
}

size_t BlockPool::roundUp(size_t bytes) {
  size_t page = bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  if (bytes <= page)
    return page;
  size_t step = std::max(page, std::bit_floor(bytes) / 8);
  TORCH_CHECK(bytes <= SIZE_MAX - step - kHugePageBytes, "a block of ", bytes, " bytes does not fit the address space");
  return (bytes + step - 1) / step * step;
}

at::DataPtr BlockPool::allocate(size_t bytes) {
  size_t size = roundUp(bytes);
  Block *block = takeIdle(size);
  if (!block)
    block = map(size);
  if (c10::memoryProfilingEnabled())
    c10::reportMemoryUsageToProfiler(block->memory, static_cast<int64_t>(block->size), counters().inUseBytes, 0,
                                     c10::Device(c10::kCPU));
  return {block->memory, block, &BlockPool::release, c10::Device(c10::kCPU)};
}

BlockPool::Block *BlockPool::takeIdle(size_t size) {
  std::lock_guard lock(forkSafeMutex());
  for (auto it = idle.lower_bound(size); it != idle.end(); ++it) {
    if (it->first > size / kFitDenominator * kFitNumerator)
      break;
    if (it->second.empty())
      continue;
    Block *block = it->second.back();
    it->second.pop_back();
    ++state.hits;
    state.idleBytes -= block->size;
    state.inUseBytes += block->size;
    return block;
  }
  ++state.misses;
  return nullptr;
}

BlockPool::Block *BlockPool::map(size_t size) {
  auto mapOnce = [&] { return size >= kHugePageBytes ? mapHuge(size) : mapAnonymous(size); };
  void *memory = mapOnce();
  if (!memory) {
    // What lies idle may be all that is missing.
    std::vector<Block *> dropped;
    {
      std::lock_guard lock(forkSafeMutex());
      for (auto &[idleSize, blocks] : idle) {
        dropped.insert(dropped.end(), blocks.begin(), blocks.end());
        blocks.clear();
      }
      state.idleBytes = 0;
    }
    for (Block *block : dropped)
      unmap(block);
    memory = mapOnce();
  }
  TORCH_CHECK_WITH(OutOfMemoryError, memory, "can't allocate memory: you tried to allocate ", size, " bytes");
  auto *block = new Block{this, memory, size, 0};
  std::lock_guard lock(forkSafeMutex());
  state.inUseBytes += size;
  return block;
}

void BlockPool::release(void *context) {
  auto *block = static_cast<Block *>(context);
  if (c10::memoryProfilingEnabled())
    c10::reportMemoryUsageToProfiler(block->memory, -static_cast<int64_t>(block->size),
                                     block->pool->counters().inUseBytes - block->size, 0, c10::Device(c10::kCPU));
  block->pool->giveBack(block);
}

void BlockPool::giveBack(Block *block) {
  std::vector<Block *> dropped;
  {
    std::lock_guard lock(forkSafeMutex());
    block->idleSince = ++returns;
    idle[block->size].push_back(block);
    state.inUseBytes -= block->size;
    state.idleBytes += block->size;
    if (state.idleBytes > limit)
      evict(dropped);
  }
  for (Block *each : dropped)
    unmap(each);
}

void BlockPool::evict(std::vector<Block *> &dropped) {
  while (state.idleBytes > limit) {
    std::vector<Block *> *oldest = nullptr;
    for (auto &[size, blocks] : idle)
      if (!blocks.empty() && (!oldest || blocks.front()->idleSince < oldest->front()->idleSince))
        oldest = &blocks;
    if (!oldest)
      return;
    state.idleBytes -= oldest->front()->size;
    dropped.push_back(oldest->front());
    oldest->erase(oldest->begin());
  }
}

void BlockPool::unmap(Block *block) {
  munmap(block->memory, block->size);
  delete block;
}

void BlockPool::setLimit(size_t bytes) {
  std::vector<Block *> dropped;
  {
    std::lock_guard lock(forkSafeMutex());
    limit = bytes;
    evict(dropped);
  }
  for (Block *block : dropped)
    unmap(block);
}

BlockPool::Counters BlockPool::counters() const {
  std::lock_guard lock(forkSafeMutex());
  return state;
}

} // namespace accel::runtime
