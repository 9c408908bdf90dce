/// Writing where indices say: `accel.scatter`. The code generator checks the bounds.
#include "compiler/import/Families.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/IndexSpace.h"
#include "compiler/import/ScalarMath.h"
#include "compiler/import/ViewMath.h"
#include "dialects/accel/AccelDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace accel {
namespace {

enum class Negative { IsOutOfRange, CountsFromEnd, IsLeftOut };

/// What accel.scatter takes.
struct Scatter {
  Tensor into; // without a value: zeros of its sizes
  Tensor updates;
  SmallVector<Tensor> indices;
  SmallVector<AffineMap> indexMaps;
  SmallVector<AffineExpr> places; // for each dimension of `into`: a dimension of `updates`, or symbol k for index k
  bool accumulates = false;
  Negative negative = Negative::IsOutOfRange;
};

/// A tensor of zeros, which the scatter makes itself.
bool isZeros(const Tensor &tensor) {
  auto generic = tensor.value.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumDpsInputs() != 0)
    return false;
  Value yielded = generic.getRegion().front().getTerminator()->getOperand(0);
  return matchPattern(yielded, m_Zero()) || matchPattern(yielded, m_PosZeroFloat());
}

Tensor build(NodeImporter &n, const Scatter &s) {
  SmallVector<Value> indices;
  for (const Tensor &index : s.indices)
    indices.push_back(index.value);
  AffineMap map = AffineMap::get(s.updates.rank(), indices.size(), s.places, n.b.getContext());
  Value into = s.into.value && !isZeros(s.into) ? s.into.value : Value();
  auto flag = [&](Negative negative) { return s.negative == negative ? n.b.getUnitAttr() : UnitAttr(); };
  Value result = ScatterOp::create(
      n.b, n.type(s.into.dtype, s.into.sizes), n.b.getStringAttr(s.accumulates ? "add" : "set"), s.updates.value,
      indices, into, n.dynamicSizes(s.into.sizes), AffineMapAttr::get(map), n.b.getAffineMapArrayAttr(s.indexMaps),
      flag(Negative::CountsFromEnd), flag(Negative::IsLeftOut));
  return {result, s.into.dtype, s.into.sizes};
}

/// Adds low precision in f32, as scatter_add and index_add do, and rounds at the end. index_put rounds each time.
void inComputeDType(NodeImporter &n, Scatter &s) {
  DType dtype = computeDType(s.into.dtype);
  s.into = isZeros(s.into) ? n.fill(0, s.into.sizes, dtype) : n.cast(s.into, dtype);
  s.updates = n.cast(s.updates, dtype);
}

//===-- scatter ---------------------------------------------------------------------------------------------------===//

/// Writes `source`, of at least the index's sizes, along one dimension.
LogicalResult scatterAlong(NodeImporter &n, Tensor source, bool accumulates) {
  FailureOr<Tensor> self = n.tensor(0, "self"), index = n.tensor(2, "index");
  if (failed(self) || failed(index))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", self->rank());
  if (failed(dim))
    return failure();
  Scatter s;
  s.into = atLeastRank1(n, *self);
  Tensor at = atLeastRank1(n, *index);
  s.updates = atLeastRank1(n, source);
  if (!isIndexDType(at.dtype) || at.rank() != s.into.rank() || s.updates.rank() != s.into.rank() ||
      s.updates.dtype != s.into.dtype)
    return n.refuse("scatter takes an index of int64 or int32 and a source of the tensor's rank and dtype");
  for (int64_t d = 0; d < at.rank(); ++d) {
    if (d != *dim && at.sizes[d] != s.into.sizes[d])
      return n.callLibrary("a scatter whose index leaves rows out");
    s.updates = sliced(n, s.updates, d, n.constant(0), at.sizes[d]);
    s.places.push_back(d == *dim ? n.b.getAffineSymbolExpr(0) : n.b.getAffineDimExpr(d));
  }
  s.indices = {at};
  s.indexMaps = {n.b.getMultiDimIdentityMap(at.rank())};
  s.accumulates = accumulates;
  if (accumulates)
    inComputeDType(n, s);
  return n.yield(viewed(n, n.cast(build(n, s), self->dtype), n.resultSizes()));
}

/// `scatter.src(self, dim, index, src)`, `scatter_add(self, dim, index, src)`.
template <bool Accumulates> LogicalResult lowerScatter(NodeImporter &n) {
  FailureOr<Tensor> source = n.tensor(3, "src");
  return failed(source) ? failure() : scatterAlong(n, *source, Accumulates);
}

/// `scatter.value(self, dim, index, value)`.
LogicalResult lowerScatterValue(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self"), index = n.tensor(2, "index");
  if (failed(self) || failed(index))
    return failure();
  FailureOr<Tensor> value = fillWith(n, n.arg(3, "value"), {}, self->dtype);
  return failed(value) ? failure() : scatterAlong(n, expanded(n, *value, index->sizes), false);
}

/// `scatter_reduce.two(self, dim, index, src, reduce, include_self)`.
LogicalResult lowerScatterReduce(NodeImporter &n) {
  if (n.text(4, "reduce", "") != "sum" || !n.boolean(5, "include_self", true))
    return n.callLibrary("a scatter that reduces otherwise than by a sum");
  return lowerScatter<true>(n);
}

//===-- index_add, index_copy -------------------------------------------------------------------------------------===//

/// `index_add(self, dim, index, source, *, alpha)`, `index_copy(self, dim, index, source)`.
template <bool Accumulates> LogicalResult lowerIndexWrite(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self"), index = n.tensor(2, "index"), source = n.tensor(3, "source");
  if (failed(self) || failed(index) || failed(source))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", self->rank());
  if (failed(dim))
    return failure();
  if (Accumulates) {
    FailureOr<double> alpha = n.real(~0u, "alpha", 1.0);
    if (failed(alpha) || *alpha != 1.0)
      return n.callLibrary("index_add with a factor");
  }
  Scatter s;
  s.into = atLeastRank1(n, *self);
  s.updates = atLeastRank1(n, *source);
  if (!isIndexDType(index->dtype) || index->rank() > 1 || s.updates.rank() != s.into.rank() ||
      s.updates.dtype != s.into.dtype)
    return n.refuse("index_add and index_copy take a row of int64 or int32 and a source of the tensor's rank");
  for (int64_t d = 0; d < s.into.rank(); ++d) {
    if (d != *dim && s.updates.sizes[d] != s.into.sizes[d])
      return n.callLibrary("a source of other sizes than the tensor's");
    s.places.push_back(d == *dim ? n.b.getAffineSymbolExpr(0) : n.b.getAffineDimExpr(d));
  }
  s.indices = {atLeastRank1(n, *index)};
  s.indexMaps = {AffineMap::get(s.into.rank(), 0, n.b.getAffineDimExpr(*dim))};
  s.accumulates = Accumulates;
  if (Accumulates)
    inComputeDType(n, s);
  return n.yield(viewed(n, n.cast(build(n, s), self->dtype), n.resultSizes()));
}

//===-- index_put -------------------------------------------------------------------------------------------------===//

/// A mask beside nothing but `:`, and one number for all places: a choice between two.
LogicalResult putNumber(NodeImporter &n, const Tensor &self, const Tensor &mask, int64_t first, const Tensor &value) {
  SmallVector<AffineExpr> dims, none(value.rank(), n.constant(0));
  for (int64_t d = 0; d < mask.rank(); ++d) {
    if (first + d >= self.rank() || mask.sizes[d] != self.sizes[first + d])
      return n.refuse("a mask of other sizes than the tensor's");
    dims.push_back(n.b.getAffineDimExpr(first + d));
  }
  int64_t rank = self.rank();
  SmallVector<AffineMap> maps = {AffineMap::get(rank, 0, dims, n.b.getContext()), n.b.getMultiDimIdentityMap(rank),
                                 AffineMap::get(rank, 0, none, n.b.getContext())};
  return n.yield(
      n.pointwise({mask, self, value}, maps, self.sizes, self.dtype, [](ImplicitLocOpBuilder &b, ValueRange args) {
        return arith::SelectOp::create(b, args[0], args[2], args[1]);
      }));
}

/// `index_put(self, indices, values, accumulate)`.
LogicalResult lowerIndexPut(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self"), values = n.tensor(2, "values");
  FailureOr<SmallVector<Tensor>> entries = n.tensors(1, "indices");
  if (failed(self) || failed(values) || failed(entries))
    return failure();
  Scatter s;
  s.accumulates = n.boolean(3, "accumulate", false);
  SmallVector<int64_t> masks, others;
  for (auto [d, entry] : llvm::enumerate(*entries))
    if (entry.value)
      (isIndexDType(entry.dtype) ? others : masks).push_back(d);
  if (!masks.empty()) {
    bool isNumber = llvm::all_of(llvm::seq<int64_t>(0, values->rank()), [&](int64_t d) { return values->isUnit(d); });
    const Tensor &mask = (*entries)[masks[0]];
    if (masks.size() > 1 || !others.empty() || !isNumber || s.accumulates || mask.dtype != DType::Bool)
      return n.callLibrary("writing several values through a mask");
    return putNumber(n, *self, mask, masks[0], *values);
  }
  FailureOr<IndexSpace> space = indexSpace(n, *self, *entries);
  if (failed(space))
    return failure();
  if (space->indices.empty() || values->rank() > int64_t(space->sizes.size()) || values->dtype != self->dtype)
    return n.refuse("index_put without indices, or with values of more dimensions or another dtype");
  for (int64_t d = 0, added = space->sizes.size() - values->rank(); d < values->rank(); ++d)
    if (!values->isUnit(d) && values->sizes[d] != space->sizes[added + d])
      return n.refuse("values that do not broadcast to the indices");
  s.into = *self;
  s.updates = expanded(n, *values, space->sizes);
  s.indices = space->indices;
  s.indexMaps = space->maps;
  s.negative = Negative::CountsFromEnd;
  unsigned next = 0;
  for (int64_t d = 0; d < self->rank(); ++d)
    s.places.push_back(space->loopOf[d] >= 0 ? n.b.getAffineDimExpr(space->loopOf[d])
                                             : n.b.getAffineSymbolExpr(next++));
  return n.yield(build(n, s));
}

//===-- embedding -------------------------------------------------------------------------------------------------===//

/// `embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)`.
LogicalResult lowerEmbeddingBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_output"), indices = n.tensor(1, "indices");
  FailureOr<AffineExpr> rows = n.expr(2, "num_weights");
  FailureOr<int64_t> padding = n.integer(3, "padding_idx", -1);
  if (failed(gradient) || failed(indices) || failed(rows) || failed(padding))
    return failure();
  if (n.boolean(4, "scale_grad_by_freq", false))
    return n.callLibrary("an embedding's gradient scaled by frequency");
  if (!isIndexDType(indices->dtype) || gradient->rank() != indices->rank() + 1)
    return n.refuse("an embedding's indices are int64 or int32");
  Scatter s;
  s.into = Tensor{Value(), gradient->dtype, {*rows, gradient->sizes.back()}};
  s.updates = *gradient;
  s.indices = {*indices};
  if (*padding >= 0) {
    DType dtype = indices->dtype;
    s.negative = Negative::IsLeftOut;
    s.indices[0] = n.pointwise(*indices, indices->sizes, dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
      Value isPadding =
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, args[0], integerConstant(b, *padding, dtype));
      return arith::SelectOp::create(b, isPadding, integerConstant(b, -1, dtype), args[0]);
    });
  }
  SmallVector<AffineExpr> dims;
  for (int64_t d = 0; d < indices->rank(); ++d)
    dims.push_back(n.b.getAffineDimExpr(d));
  s.indexMaps = {AffineMap::get(gradient->rank(), 0, dims, n.b.getContext())};
  s.places = {n.b.getAffineSymbolExpr(0), n.b.getAffineDimExpr(indices->rank())};
  s.accumulates = true;
  return n.yield(build(n, s));
}

} // namespace

void populateScatter(LoweringTable &table) {
  table.add("aten.scatter.src", lowerScatter<false>);
  table.add("aten.scatter.value", lowerScatterValue);
  table.add("aten.scatter_add.default", lowerScatter<true>);
  table.add("aten.scatter_reduce.two", lowerScatterReduce);
  table.add("aten.index_add.default", lowerIndexWrite<true>);
  table.add("aten.index_copy.default", lowerIndexWrite<false>);
  table.add({"aten.index_put.default", "aten._unsafe_index_put.default"}, lowerIndexPut);
  table.add("aten.embedding_dense_backward.default", lowerEmbeddingBackward);
  table.add(
      {"aten.scatter.reduce", "aten.scatter.value_reduce", "aten.masked_scatter.default"},
      +[](NodeImporter &n) { return n.callLibrary("a scatter of a rare kind"); });
}

} // namespace accel
