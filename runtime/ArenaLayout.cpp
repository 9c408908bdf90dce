#include "runtime/ArenaLayout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace accel::runtime {
namespace {

struct Placed {
  int64_t begin, end;
  int firstUse, lastUse;
};

bool livesWith(const Placed &placed, const ArenaBuffer &buffer) {
  return placed.firstUse <= buffer.lastUse && buffer.firstUse <= placed.lastUse;
}

int64_t alignUp(int64_t bytes) {
  if (bytes > std::numeric_limits<int64_t>::max() - kArenaAlignment)
    throw std::length_error("the arena does not fit the address space");
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

/// Returns where `size` bytes fit best among `placed`, which is sorted by `begin`.
int64_t findPlace(const std::vector<Placed> &placed, const ArenaBuffer &buffer, int64_t size) {
  int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Placed &other : placed) {
    if (!livesWith(other, buffer))
      continue;
    int64_t gap = other.begin - end;
    if (gap >= size && gap < bestGap) {
      best = end;
      bestGap = gap;
    }
    end = std::max(end, other.end);
  }
  return best >= 0 ? best : end;
}

} // namespace

ArenaLayout layoutArena(std::span<const ArenaBuffer> buffers) {
  ArenaLayout layout;
  layout.offsets.assign(buffers.size(), 0);
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffers[a].bytes != buffers[b].bytes ? buffers[a].bytes > buffers[b].bytes : a < b;
  });

  std::vector<Placed> placed;
  for (size_t index : order) {
    const ArenaBuffer &buffer = buffers[index];
    if (buffer.bytes <= 0)
      continue;
    int64_t size = alignUp(buffer.bytes);
    int64_t begin = findPlace(placed, buffer, size);
    if (begin > std::numeric_limits<int64_t>::max() - size)
      throw std::length_error("the arena does not fit the address space");
    Placed place{begin, begin + size, buffer.firstUse, buffer.lastUse};
    auto after = std::upper_bound(placed.begin(), placed.end(), place,
                                  [](const Placed &a, const Placed &b) { return a.begin < b.begin; });
    placed.insert(after, place);
    layout.offsets[index] = begin;
    layout.bytes = std::max(layout.bytes, place.end);
  }
  return layout;
}

} // namespace accel::runtime
