#include "passes/kernels/Layouts.h"

#include "TestModule.h"
#include "llvm/ADT/STLExtras.h"
#include <random>

using namespace mlir;

namespace accel {
namespace {

using Ints = SmallVector<int64_t>;

class ReshapeStridesTest : public TestModule {
protected:
  std::optional<Ints> reshape(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, ArrayRef<int64_t> newSizes) {
    auto result = reshapeStrides(constants(sizes), constants(strides), constants(newSizes), &context);
    if (!result)
      return std::nullopt;
    Ints values;
    for (AffineExpr expr : *result)
      values.push_back(cast<AffineConstantExpr>(expr).getValue());
    return values;
  }
};

int64_t product(ArrayRef<int64_t> values) {
  int64_t result = 1;
  for (int64_t value : values)
    result *= value;
  return result;
}

/// Where each element lies, in row-major order of the indices.
Ints offsetsOf(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  Ints offsets = {0};
  for (auto [size, stride] : llvm::zip(sizes, strides)) {
    Ints next;
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < size; ++i)
        next.push_back(offset + i * stride);
    offsets = next;
  }
  return offsets;
}

/// Strides under which the elements lie in that order, found by looking at where the first neighbour along each
/// dimension lies.
std::optional<Ints> stridesThatGive(ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes) {
  Ints strides;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t step = product(sizes.drop_front(d + 1));
    strides.push_back(sizes[d] > 1 ? offsets[step] - offsets[0] : 1);
  }
  if (offsetsOf(sizes, strides) != Ints(offsets))
    return std::nullopt;
  return strides;
}

/// All ways to write `elements` as a product of at most `rank` sizes, ones included.
void factorizations(int64_t elements, unsigned rank, Ints &prefix, std::vector<Ints> &found) {
  if (rank == 0) {
    if (elements == 1)
      found.push_back(prefix);
    return;
  }
  for (int64_t size = 1; size <= elements; ++size)
    if (elements % size == 0) {
      prefix.push_back(size);
      factorizations(elements / size, rank - 1, prefix, found);
      prefix.pop_back();
    }
}

std::string describe(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, ArrayRef<int64_t> newSizes) {
  auto list = [](ArrayRef<int64_t> values) {
    std::string result;
    for (int64_t value : values)
      result += " " + std::to_string(value);
    return result;
  };
  return "sizes" + list(sizes) + ", strides" + list(strides) + ", new sizes" + list(newSizes);
}

TEST_F(ReshapeStridesTest, AgreesWithTheElementsOfRandomTensors) {
  std::mt19937 random(11);
  const int64_t someSizes[] = {1, 2, 3, 4, 6};
  int views = 0, copies = 0;
  for (int round = 0; round < 2000; ++round) {
    Ints sizes, strides;
    for (unsigned d = 0, rank = random() % 5; d < rank && product(sizes) <= 24; ++d)
      sizes.push_back(someSizes[random() % 5]);
    // Start from memory order, then permute, expand, flip and leave gaps as slices do.
    strides.assign(sizes.size(), 0);
    SmallVector<unsigned> order(sizes.size());
    for (unsigned d = 0; d < order.size(); ++d)
      order[d] = d;
    if (random() % 2)
      std::shuffle(order.begin(), order.end(), random);
    int64_t stride = 1;
    for (unsigned d : llvm::reverse(order)) {
      if (random() % 4 == 0)
        stride *= 1 + random() % 3;
      strides[d] = random() % 8 == 0 ? 0 : random() % 16 == 0 ? -stride : stride;
      stride *= sizes[d];
    }
    std::vector<Ints> all;
    Ints prefix;
    factorizations(product(sizes), 1 + random() % 4, prefix, all);
    Ints newSizes = all[random() % all.size()];

    Ints offsets = offsetsOf(sizes, strides);
    std::optional<Ints> expected = stridesThatGive(offsets, newSizes), got = reshape(sizes, strides, newSizes);
    ++(expected ? views : copies);
    ASSERT_EQ(got.has_value(), expected.has_value()) << describe(sizes, strides, newSizes);
    if (got)
      ASSERT_EQ(offsetsOf(newSizes, *got), offsets) << describe(sizes, strides, newSizes);
  }
  // Both answers are common.
  EXPECT_GT(views, 300);
  EXPECT_GT(copies, 300);
}

TEST_F(ReshapeStridesTest, KnownCases) {
  EXPECT_EQ(reshape({4, 8}, {8, 1}, {32}), Ints({1}));
  EXPECT_EQ(reshape({4, 8}, {1, 4}, {32}), std::nullopt);
  EXPECT_EQ(reshape({4, 8}, {1, 4}, {2, 2, 8}), Ints({2, 1, 4}));
  EXPECT_EQ(reshape({4, 8}, {16, 2}, {32}), Ints({2}));
  EXPECT_EQ(reshape({4, 8}, {9, 1}, {32}), std::nullopt);
  EXPECT_EQ(reshape({4, 8}, {0, 1}, {2, 2, 8}), Ints({0, 0, 1}));
  EXPECT_EQ(reshape({}, {}, {1, 1}), Ints({1, 1}));
  EXPECT_EQ(reshape({0, 3}, {3, 1}, {5, 0}), Ints({1, 1})) << "without elements any strides do";
}

TEST_F(ReshapeStridesTest, SymbolicSizes) {
  AffineExpr b = symbol(0), s = symbol(1);
  auto reshaped = [&](ArrayRef<AffineExpr> sizes, ArrayRef<AffineExpr> strides, ArrayRef<AffineExpr> newSizes) {
    auto result = reshapeStrides(sizes, strides, newSizes, &context);
    return result ? text(*result) : std::string("a copy");
  };
  AffineExpr one = constant(1), heads = constant(12), width = constant(64), all = constant(768);
  // Heads split off and joined again.
  EXPECT_EQ(reshaped({b, s, all}, {s * 768, all, one}, {b, s, heads, width}), "s1 * 768, 768, 64, 1");
  EXPECT_EQ(reshaped({b, s, heads, width}, {s * 768, all, width, one}, {b, s, all}), "s1 * 768, 768, 1");
  // Joined while they lie transposed: [b, heads, s, width] seen as [b, s, heads, width].
  EXPECT_EQ(reshaped({b, s, heads, width}, {s * 768, width, s * 64, one}, {b, s, all}), "a copy");
  // Batch and sequence become one dimension, and come apart again.
  EXPECT_EQ(reshaped({b, s, all}, {s * 768, all, one}, {b * s, all}), "768, 1");
  EXPECT_EQ(reshaped({s * b, all}, {all, one}, {b, s, all}), "s1 * 768, 768, 1");
  // A slice of the sequence leaves gaps.
  EXPECT_EQ(reshaped({b, s - 1, all}, {s * 768, all, one}, {b * (s - 1), all}), "a copy");
}

} // namespace
} // namespace accel
