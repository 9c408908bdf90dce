/// Gathers: `tensor.extract` at positions that other tensors hold. The code generator checks the bounds.
#include "compiler/import/Families.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/IndexSpace.h"
#include "compiler/import/ScalarMath.h"
#include "compiler/import/ViewMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace accel {
namespace {

/// `gather(self, dim, index)`.
LogicalResult lowerGather(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self"), index = n.tensor(2, "index");
  if (failed(self) || failed(index))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", self->rank());
  if (failed(dim))
    return failure();
  if (!isIndexDType(index->dtype))
    return n.refuse("gather takes an index of int64 or int32");
  Tensor source = atLeastRank1(n, *self);
  if (std::max<int64_t>(index->rank(), 1) != source.rank())
    return n.refuse("gather takes an index of the tensor's rank");
  return n.yield(n.pointwise(*index, index->sizes, source.dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    SmallVector<Value> indices;
    for (int64_t d = 0; d < source.rank(); ++d)
      indices.push_back(d == *dim ? toIndex(b, args[0], index->dtype) : loopIndex(b, d));
    return tensor::ExtractOp::create(b, source.value, indices);
  }));
}

/// Elements of `source` with dimension `dim` replaced by the dimensions of `index`, whose elements are positions along
/// it.
Tensor takenAlong(NodeImporter &n, const Tensor &source, int64_t dim, const Tensor &index) {
  SmallVector<AffineExpr> sizes(source.sizes.begin(), source.sizes.begin() + dim), loops;
  for (AffineExpr size : index.sizes) {
    loops.push_back(n.b.getAffineDimExpr(sizes.size()));
    sizes.push_back(size);
  }
  sizes.append(source.sizes.begin() + dim + 1, source.sizes.end());
  AffineMap map = AffineMap::get(sizes.size(), 0, loops, n.b.getContext());
  return n.pointwise(index, map, sizes, source.dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    SmallVector<Value> indices;
    for (int64_t d = 0; d < dim; ++d)
      indices.push_back(loopIndex(b, d));
    indices.push_back(toIndex(b, args[0], index.dtype));
    for (int64_t d = dim + 1; d < source.rank(); ++d)
      indices.push_back(loopIndex(b, d - 1 + index.rank()));
    return tensor::ExtractOp::create(b, source.value, indices);
  });
}

/// `index_select(self, dim, index)`: the index has rank 1 or 0, the result always the tensor's rank.
LogicalResult lowerIndexSelect(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self"), index = n.tensor(2, "index");
  if (failed(self) || failed(index))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", self->rank());
  if (failed(dim))
    return failure();
  if (index->rank() > 1 || !isIndexDType(index->dtype))
    return n.refuse("index_select takes a row of int64 or int32");
  Tensor result = takenAlong(n, atLeastRank1(n, *self), *dim, atLeastRank1(n, *index));
  return n.yield(viewed(n, result, n.resultSizes()));
}

/// `embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)`: all but the first two concern the backward.
LogicalResult lowerEmbedding(NodeImporter &n) {
  FailureOr<Tensor> weight = n.tensor(0, "weight"), indices = n.tensor(1, "indices");
  if (failed(weight) || failed(indices))
    return failure();
  if (weight->rank() != 2 || !isIndexDType(indices->dtype))
    return n.refuse("embedding takes a matrix and indices of int64 or int32");
  return n.yield(takenAlong(n, *weight, 0, *indices));
}

/// A position counted from the end if it is negative. One that is out of range stays out of range.
Value wrapped(ImplicitLocOpBuilder &b, Value index, const SizeScalar &size) {
  Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, arith::ConstantIndexOp::create(b, 0));
  Value fromEnd = arith::AddIOp::create(b, index, size.asIndex(b));
  return arith::SelectOp::create(b, isNegative, fromEnd, index);
}

/// `take(self, index)`: positions in the tensor as one row.
LogicalResult lowerTake(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self"), index = n.tensor(1, "index");
  if (failed(self) || failed(index))
    return failure();
  if (!isIndexDType(index->dtype))
    return n.refuse("take takes an index of int64");
  AffineExpr count = n.constant(1);
  for (AffineExpr size : self->sizes)
    count = normalize(count * size);
  Tensor row = viewed(n, *self, count);
  SizeScalar size(n, count);
  return n.yield(n.pointwise(*index, index->sizes, row.dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    return tensor::ExtractOp::create(b, row.value, wrapped(b, toIndex(b, args[0], index->dtype), size));
  }));
}

/// `index(self, [i, None, j, …])`.
LogicalResult lowerIndex(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  FailureOr<SmallVector<Tensor>> entries = n.tensors(1, "indices");
  if (failed(self) || failed(entries))
    return failure();
  FailureOr<IndexSpace> space = indexSpace(n, *self, *entries);
  if (failed(space))
    return failure();
  if (space->indices.empty())
    return n.yield(*self);
  SmallVector<SizeScalar> extents;
  for (int64_t d : space->indexed)
    extents.emplace_back(n, self->sizes[d]);
  return n.yield(n.pointwise(
      space->indices, space->maps, space->sizes, self->dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
        SmallVector<Value> at;
        unsigned next = 0;
        for (int64_t d = 0; d < self->rank(); ++d) {
          if (space->loopOf[d] >= 0) {
            at.push_back(loopIndex(b, space->loopOf[d]));
            continue;
          }
          at.push_back(wrapped(b, toIndex(b, args[next], space->indices[next].dtype), extents[next]));
          ++next;
        }
        return tensor::ExtractOp::create(b, self->value, at);
      }));
}

} // namespace

void populateIndexing(LoweringTable &table) {
  table.add("aten.gather.default", lowerGather);
  table.add("aten.index_select.default", lowerIndexSelect);
  table.add("aten.embedding.default", lowerEmbedding);
  table.add("aten.take.default", lowerTake);
  table.add({"aten.index.Tensor", "aten._unsafe_index.Tensor"}, lowerIndex);
}

} // namespace accel
