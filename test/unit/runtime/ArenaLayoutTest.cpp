#include "runtime/ArenaLayout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace accel::runtime;

namespace {

bool liveTogether(const ArenaBuffer &a, const ArenaBuffer &b) {
  return a.firstUse <= b.lastUse && b.firstUse <= a.lastUse;
}

TEST(ArenaLayoutTest, ReusesMemoryOfTheDead) {
  std::vector<ArenaBuffer> buffers = {{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}};
  ArenaLayout layout = layoutArena(buffers);
  EXPECT_EQ(layout.bytes, 2048);
  EXPECT_EQ(layout.offsets[0], layout.offsets[2]);
}

TEST(ArenaLayoutTest, NothingToPlace) {
  EXPECT_EQ(layoutArena({}).bytes, 0);
  EXPECT_EQ(layoutArena(std::vector<ArenaBuffer>{{0, 0, 5}}).bytes, 0);
}

TEST(ArenaLayoutTest, TooLargeIsAnError) {
  int64_t huge = int64_t(1) << 62;
  std::vector<ArenaBuffer> buffers = {{huge, 0, 1}, {huge, 0, 1}};
  EXPECT_THROW(layoutArena(buffers), std::length_error);
}

// No two buffers that live at the same step overlap, whatever the lifetimes; each is aligned; and
// the block is never larger than all of them side by side.
TEST(ArenaLayoutTest, LiveBuffersNeverOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    int count = 1 + static_cast<int>(random() % 60), steps = 1 + static_cast<int>(random() % 40);
    std::vector<ArenaBuffer> buffers;
    int64_t total = 0;
    for (int i = 0; i < count; ++i) {
      int first = static_cast<int>(random() % steps);
      int last = first + static_cast<int>(random() % (steps - first));
      int64_t bytes = random() % 10 == 0 ? 0 : static_cast<int64_t>(random() % 5000);
      buffers.push_back({bytes, first, last});
      total += (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    }
    ArenaLayout layout = layoutArena(buffers);
    EXPECT_LE(layout.bytes, total);
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(layout.offsets[i] % kArenaAlignment, 0);
      EXPECT_LE(layout.offsets[i] + buffers[i].bytes, layout.bytes);
      for (int j = 0; j < i; ++j) {
        bool apart = layout.offsets[i] + buffers[i].bytes <= layout.offsets[j] ||
                     layout.offsets[j] + buffers[j].bytes <= layout.offsets[i];
        bool empty = buffers[i].bytes == 0 || buffers[j].bytes == 0;
        EXPECT_TRUE(empty || apart || !liveTogether(buffers[i], buffers[j])) << i << " and " << j;
      }
    }
  }
}

} // namespace
