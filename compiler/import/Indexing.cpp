/// Gathers: `tensor.extract` at positions that other tensors hold. The code generator checks the bounds.
#include "compiler/import/Families.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/ScalarMath.h"
#include "compiler/import/ViewMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace accel {
namespace {

/// A tensor of rank 0 as one of rank 1, which an index can be checked against.
Tensor atLeastRank1(NodeImporter &n, const Tensor &tensor) { return tensor.rank() ? tensor : n.unsqueeze(tensor, 0); }

bool isIndexDType(DType dtype) { return dtype == DType::I64 || dtype == DType::I32; }

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

/// The sizes that tensors broadcast to together.
FailureOr<SmallVector<AffineExpr>> broadcastSizes(NodeImporter &n, ArrayRef<Tensor> tensors) {
  SmallVector<AffineExpr> sizes;
  for (const Tensor &tensor : tensors) {
    while (int64_t(sizes.size()) < tensor.rank())
      sizes.insert(sizes.begin(), n.constant(1));
    for (int64_t d = 0; d < tensor.rank(); ++d) {
      AffineExpr &size = sizes[sizes.size() - tensor.rank() + d];
      if (size == n.constant(1))
        size = tensor.sizes[d];
      else if (!tensor.isUnit(d) && tensor.sizes[d] != size)
        return n.refuse("index tensors that do not broadcast");
    }
  }
  return sizes;
}

/// `index(self, [i, None, j, …])`. The broadcast indices' dimensions stand where the first indexed dimension was if the
/// indexed dimensions are neighbours, else in front.
LogicalResult lowerIndex(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  FailureOr<SmallVector<Tensor>> entries = n.tensors(1, "indices");
  if (failed(self) || failed(entries))
    return failure();
  if (int64_t(entries->size()) > self->rank())
    return n.refuse("more indices than dimensions");
  entries->resize(self->rank());
  SmallVector<Tensor> indices;
  SmallVector<int64_t> indexed;
  for (auto [d, entry] : llvm::enumerate(*entries))
    if (entry.value) {
      if (!isIndexDType(entry.dtype))
        return n.refuse("an index that is a mask");
      indices.push_back(entry);
      indexed.push_back(d);
    }
  if (indices.empty())
    return n.yield(*self);
  FailureOr<SmallVector<AffineExpr>> together = broadcastSizes(n, indices);
  if (failed(together))
    return failure();
  bool areNeighbours = indexed.back() - indexed.front() + 1 == int64_t(indexed.size());
  int64_t place = areNeighbours ? indexed.front() : 0, added = together->size();

  // For each dimension of the tensor that is not indexed, the loop over it.
  SmallVector<int64_t> loopOf(self->rank());
  SmallVector<AffineExpr> sizes;
  for (int64_t d = 0; d < self->rank(); ++d)
    if (!(*entries)[d].value) {
      loopOf[d] = sizes.size() + (int64_t(sizes.size()) >= place ? added : 0);
      sizes.push_back(self->sizes[d]);
    }
  sizes.insert(sizes.begin() + place, together->begin(), together->end());

  SmallVector<AffineMap> maps;
  for (const Tensor &index : indices) {
    SmallVector<AffineExpr> results;
    for (int64_t d = 0; d < index.rank(); ++d) {
      int64_t loop = place + added - index.rank() + d;
      bool broadcasts = index.isUnit(d) && sizes[loop] != index.sizes[d];
      results.push_back(broadcasts ? n.constant(0) : n.b.getAffineDimExpr(loop));
    }
    maps.push_back(AffineMap::get(sizes.size(), 0, results, n.b.getContext()));
  }
  SmallVector<SizeScalar> extents;
  for (int64_t d : indexed)
    extents.emplace_back(n, self->sizes[d]);
  return n.yield(n.pointwise(indices, maps, sizes, self->dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    SmallVector<Value> at;
    unsigned next = 0;
    for (int64_t d = 0; d < self->rank(); ++d) {
      if (!(*entries)[d].value) {
        at.push_back(loopIndex(b, loopOf[d]));
        continue;
      }
      at.push_back(wrapped(b, toIndex(b, args[next], indices[next].dtype), extents[next]));
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
