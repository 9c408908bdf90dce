#include "compiler/import/ViewMath.h"

#include <limits>

using namespace mlir;

namespace accel {

FailureOr<int64_t> dimArg(NodeImporter &n, unsigned index, StringRef keyword, int64_t rank,
                          std::optional<int64_t> fallback) {
  FailureOr<int64_t> dim = n.integer(index, keyword, fallback);
  return failed(dim) ? dim : n.wrapDim(*dim, rank);
}

static std::optional<int64_t> constantOf(AffineExpr expr) {
  auto constant = dyn_cast<AffineConstantExpr>(expr);
  return constant ? std::optional<int64_t>(constant.getValue()) : std::nullopt;
}

static bool isNonNegative(NodeImporter &n, AffineExpr expr) { return n.lowerBound(expr).value_or(-1) >= 0; }
static bool isNegative(NodeImporter &n, AffineExpr expr) { return n.upperBound(expr).value_or(0) < 0; }

FailureOr<AffineExpr> sliceStart(NodeImporter &n, unsigned index, AffineExpr size, AffineExpr length, int64_t step) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  FailureOr<AffineExpr> start = n.expr(index, "start", 0), end = n.expr(index + 1, "end", kEnd);
  if (failed(start) || failed(end))
    return failure();
  // Nothing is read from an empty slice.
  if (constantOf(length) == 0)
    return n.constant(0);
  std::optional<int64_t> from = constantOf(*start), to = constantOf(*end), extent = constantOf(size);
  if (from && extent)
    return n.constant(std::clamp<int64_t>(*from < 0 ? *from + *extent : *from, 0, *extent));
  // A slice that is not empty starts inside the dimension.
  if ((from && *from >= 0) || isNonNegative(n, *start))
    return *start;
  // The length is that of the clamped slice, so from the end it leads back to the start.
  bool toEnd = *end == size || (to && *to == kEnd);
  if (step == 1 && toEnd)
    return normalize(size - length);
  if (step == 1 && isNegative(n, *end))
    return normalize(size + *end - length);
  AffineExpr wrapped = normalize(size + *start);
  if (isNegative(n, *start) && isNonNegative(n, wrapped))
    return wrapped;
  return n.refuse("a symbolic slice may start before or behind the dimension's first position");
}

FailureOr<AffineExpr> selectedPosition(NodeImporter &n, unsigned index, AffineExpr size) {
  FailureOr<AffineExpr> position = n.expr(index, "index");
  if (failed(position) || isNonNegative(n, *position))
    return position;
  if (isNegative(n, *position))
    return normalize(size + *position);
  return n.refuse("a symbolic index may count from the start or from the end");
}

Tensor sliced(NodeImporter &n, const Tensor &source, int64_t dim, AffineExpr start, AffineExpr length, int64_t step) {
  if (constantOf(start) == 0 && length == source.sizes[dim] && step == 1)
    return source;
  SmallVector<AffineExpr> sizes(source.sizes.begin(), source.sizes.end()), indices;
  sizes[dim] = length;
  for (int64_t d = 0; d < source.rank(); ++d) {
    AffineExpr index = n.b.getAffineDimExpr(d);
    indices.push_back(d == dim ? index * step + start : index);
  }
  return n.view(source, sizes, indices);
}

Tensor selected(NodeImporter &n, const Tensor &source, int64_t dim, AffineExpr position) {
  SmallVector<AffineExpr> sizes, indices;
  for (int64_t d = 0; d < source.rank(); ++d) {
    indices.push_back(d == dim ? position : n.b.getAffineDimExpr(sizes.size()));
    if (d != dim)
      sizes.push_back(source.sizes[d]);
  }
  return n.view(source, sizes, indices);
}

/// The source's indices by the result's dimensions, if every source dimension is a product of neighbouring result
/// dimensions; dimensions of size 1 come and go.
static std::optional<SmallVector<AffineExpr>> splitIndices(NodeImporter &n, ArrayRef<AffineExpr> source,
                                                           ArrayRef<AffineExpr> result) {
  AffineExpr one = n.constant(1), zero = n.constant(0);
  if (llvm::is_contained(source, zero) || llvm::is_contained(result, zero))
    return std::nullopt;
  SmallVector<AffineExpr> indices;
  size_t next = 0;
  for (AffineExpr size : source) {
    if (size == one) {
      indices.push_back(zero);
      continue;
    }
    AffineExpr product = one, index = zero;
    while (product != size) {
      if (next == result.size())
        return std::nullopt;
      if (result[next] != one) {
        product = normalize(product * result[next]);
        index = index * result[next] + n.b.getAffineDimExpr(next);
      }
      ++next;
    }
    indices.push_back(normalize(index));
  }
  // What is left of the result must be of size 1.
  if (llvm::any_of(result.drop_front(next), [&](AffineExpr size) { return size != one; }))
    return std::nullopt;
  return indices;
}

Tensor viewed(NodeImporter &n, const Tensor &source, ArrayRef<AffineExpr> sizes) {
  if (ArrayRef<AffineExpr>(source.sizes) == sizes)
    return source;
  if (auto indices = splitIndices(n, source.sizes, sizes))
    return n.view(source, sizes, *indices);
  return n.reshape(source, sizes);
}

Tensor expanded(NodeImporter &n, const Tensor &source, ArrayRef<AffineExpr> sizes) {
  if (ArrayRef<AffineExpr>(source.sizes) == sizes)
    return source;
  SmallVector<AffineExpr> indices;
  int64_t added = sizes.size() - source.rank();
  for (int64_t d = 0; d < source.rank(); ++d) {
    bool broadcasts = source.isUnit(d) && sizes[added + d] != source.sizes[d];
    indices.push_back(broadcasts ? n.constant(0) : n.b.getAffineDimExpr(added + d));
  }
  return n.view(source, sizes, indices);
}

} // namespace accel
