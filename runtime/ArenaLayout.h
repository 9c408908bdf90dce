// Places buffers with known lifetimes in one block of memory.

#ifndef ACCEL_RUNTIME_ARENALAYOUT_H
#define ACCEL_RUNTIME_ARENALAYOUT_H

#include <cstdint>
#include <span>
#include <vector>

namespace accel::runtime {

/// The boundary at which every buffer starts, in bytes: a cache line, and the widest vector.
inline constexpr int64_t kArenaAlignment = 64;

struct ArenaBuffer {
  int64_t bytes; ///< 0: needs no place
  int firstUse;  ///< first step that touches it
  int lastUse;   ///< last step that touches it, at least `firstUse`
};

struct ArenaLayout {
  std::vector<int64_t> offsets; ///< of each buffer, in bytes
  int64_t bytes = 0;            ///< of the whole block
};

/// Lays out the buffers so that no two that live at the same step overlap. Greedy: largest first,
/// each into the smallest gap that holds it (best fit), else behind everything that lives with it.
/// Throws std::length_error if the block would not fit 63 bits.
ArenaLayout layoutArena(std::span<const ArenaBuffer> buffers);

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_ARENALAYOUT_H
