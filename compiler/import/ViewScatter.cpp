/// Ops that write a part into a whole: the backward of views, and copies of a tensor with a part replaced.
#include "compiler/import/Families.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/ScalarMath.h"
#include "compiler/import/ViewMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace accel {
namespace {

/// A whole tensor, or zeros where there is none, of which a part is replaced.
struct Whole {
  std::optional<Tensor> tensor;
  SmallVector<AffineExpr> sizes;
  DType dtype;

  /// The whole's range of a dimension.
  Tensor range(NodeImporter &n, int64_t dim, AffineExpr start, AffineExpr length) const {
    if (tensor)
      return sliced(n, *tensor, dim, start, length);
    SmallVector<AffineExpr> part = sizes;
    part[dim] = length;
    return n.fill(0.0, part, dtype);
  }
};

/// `part` in the positions [start, start + length) of dimension `dim`.
Tensor withRange(NodeImporter &n, const Whole &whole, const Tensor &part, int64_t dim, AffineExpr start) {
  AffineExpr end = normalize(start + part.sizes[dim]), behind = normalize(whole.sizes[dim] - end);
  SmallVector<Tensor> parts = {part};
  if (start != n.constant(0))
    parts.insert(parts.begin(), whole.range(n, dim, n.constant(0), start));
  if (behind != n.constant(0))
    parts.push_back(whole.range(n, dim, end, behind));
  return parts.size() == 1 ? part : n.concat(parts, dim);
}

/// The element of the whole that a body works on; the part's element where `isInside`, read at `indices`. Outside the
/// part, where the indices may lie anywhere, element 0 is read and not used.
Value choose(ImplicitLocOpBuilder &b, const Tensor &part, Value isInside, ArrayRef<Value> indices, Value otherwise) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  SmallVector<Value> safe;
  for (Value index : indices)
    safe.push_back(arith::SelectOp::create(b, isInside, index, zero));
  Value element = tensor::ExtractOp::create(b, part.value, safe);
  return arith::SelectOp::create(b, isInside, element, otherwise);
}

Tensor pointwiseOverWhole(NodeImporter &n, const Whole &whole, NodeImporter::Body body) {
  auto complete = [&](ImplicitLocOpBuilder &b, ValueRange args) {
    return body(b, whole.tensor ? args[0] : scalarConstant(b, 0.0, whole.dtype));
  };
  return whole.tensor ? n.pointwise(*whole.tensor, whole.sizes, whole.dtype, complete)
                      : n.pointwise({}, whole.sizes, whole.dtype, complete);
}

/// `part` in every `step`-th position of the dimension from `start` on.
Tensor withSteps(NodeImporter &n, const Whole &whole, const Tensor &part, int64_t dim, AffineExpr start, int64_t step) {
  SizeScalar first(n, start), length(n, part.sizes[dim]);
  return pointwiseOverWhole(n, whole, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    SmallVector<Value> indices;
    for (int64_t d = 0; d < part.rank(); ++d)
      indices.push_back(loopIndex(b, d));
    using P = arith::CmpIPredicate;
    Value zero = arith::ConstantIndexOp::create(b, 0), stride = arith::ConstantIndexOp::create(b, step);
    Value offset = arith::SubIOp::create(b, indices[dim], first.asIndex(b));
    Value isAfter = arith::CmpIOp::create(b, P::sge, offset, zero);
    indices[dim] = arith::DivSIOp::create(b, offset, stride);
    Value isBefore = arith::CmpIOp::create(b, P::slt, indices[dim], length.asIndex(b));
    Value isStep = arith::CmpIOp::create(b, P::eq, arith::RemSIOp::create(b, offset, stride), zero);
    Value isInside = arith::AndIOp::create(b, isAfter, arith::AndIOp::create(b, isBefore, isStep));
    return choose(b, part, isInside, indices, args[0]);
  });
}

LogicalResult yieldWithSlice(NodeImporter &n, const Whole &whole, const Tensor &part, unsigned dimIndex) {
  if (whole.sizes.empty())
    return n.refuse("a tensor of rank 0 has no slices");
  FailureOr<int64_t> dim = dimArg(n, dimIndex, "dim", whole.sizes.size(), 0);
  FailureOr<int64_t> step = n.integer(dimIndex + 3, "step", 1);
  if (failed(dim) || failed(step))
    return failure();
  if (part.sizes.size() != whole.sizes.size())
    return n.refuse("the slice and the tensor have different ranks");
  AffineExpr length = part.sizes[*dim];
  FailureOr<AffineExpr> start = sliceStart(n, dimIndex + 1, whole.sizes[*dim], length, *step);
  if (failed(start))
    return failure();
  bool isEmpty = llvm::any_of(part.sizes, [&](AffineExpr size) { return size == n.constant(0); });
  if (isEmpty)
    return n.yield(whole.tensor ? *whole.tensor : n.fill(0.0, whole.sizes, whole.dtype));
  return n.yield(*step == 1 ? withRange(n, whole, part, *dim, *start) : withSteps(n, whole, part, *dim, *start, *step));
}

/// `slice_scatter(self, src, dim, start, end, step)`.
LogicalResult lowerSliceScatter(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self"), src = n.tensor(1, "src");
  if (failed(self) || failed(src))
    return failure();
  Whole whole{*self, llvm::to_vector<6>(self->sizes), self->dtype};
  return yieldWithSlice(n, whole, n.cast(*src, self->dtype), 2);
}

/// `slice_backward(grad_output, input_sizes, dim, start, end, step)`.
LogicalResult lowerSliceBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_output");
  return failed(gradient) ? failure() : yieldWithSlice(n, {{}, n.resultSizes(), gradient->dtype}, *gradient, 2);
}

/// `part`, which lacks dimension `dim`, in the one position of it that argument `index` names.
LogicalResult yieldWithSelection(NodeImporter &n, const Whole &whole, const Tensor &part) {
  int64_t rank = whole.sizes.size();
  if (rank == 0)
    return n.refuse("a tensor of rank 0 has no parts");
  FailureOr<int64_t> dim = dimArg(n, 2, "dim", rank);
  if (failed(dim))
    return failure();
  FailureOr<AffineExpr> position = selectedPosition(n, 3, whole.sizes[*dim]);
  if (failed(position))
    return failure();
  if (part.rank() != rank - 1)
    return n.refuse("the part and the tensor do not fit");
  SmallVector<AffineExpr> kept;
  for (int64_t d = 0; d < rank; ++d)
    if (d != *dim)
      kept.push_back(n.b.getAffineDimExpr(d));
  SmallVector<Tensor> inputs = {part};
  SmallVector<AffineMap> maps = {AffineMap::get(rank, 0, kept, n.b.getContext())};
  if (whole.tensor) {
    inputs.push_back(*whole.tensor);
    maps.push_back(n.b.getMultiDimIdentityMap(rank));
  }
  SizeScalar at(n, *position);
  return n.yield(n.pointwise(inputs, maps, whole.sizes, whole.dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, loopIndex(b, *dim), at.asIndex(b));
    Value otherwise = whole.tensor ? args[1] : scalarConstant(b, 0.0, whole.dtype);
    return arith::SelectOp::create(b, isHere, args[0], otherwise);
  }));
}

/// `select_scatter(self, src, dim, index)`.
LogicalResult lowerSelectScatter(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self"), src = n.tensor(1, "src");
  if (failed(self) || failed(src))
    return failure();
  return yieldWithSelection(n, {*self, llvm::to_vector<6>(self->sizes), self->dtype}, n.cast(*src, self->dtype));
}

/// `select_backward(grad_output, input_sizes, dim, index)`.
LogicalResult lowerSelectBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_output");
  return failed(gradient) ? failure() : yieldWithSelection(n, {{}, n.resultSizes(), gradient->dtype}, *gradient);
}

/// `part` along the diagonal of two dimensions; its own last dimension runs along it.
LogicalResult yieldWithDiagonal(NodeImporter &n, const Whole &whole, const Tensor &part) {
  int64_t rank = whole.sizes.size();
  FailureOr<int64_t> offset = n.integer(2, "offset", 0);
  FailureOr<int64_t> dim1 = dimArg(n, 3, "dim1", rank, 0), dim2 = dimArg(n, 4, "dim2", rank, 1);
  if (failed(offset) || failed(dim1) || failed(dim2))
    return failure();
  if (llvm::any_of(part.sizes, [&](AffineExpr size) { return size == n.constant(0); }))
    return n.yield(whole.tensor ? *whole.tensor : n.fill(0.0, whole.sizes, whole.dtype));
  return n.yield(pointwiseOverWhole(n, whole, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    SmallVector<Value> indices;
    for (int64_t d = 0; d < rank; ++d)
      if (d != *dim1 && d != *dim2)
        indices.push_back(loopIndex(b, d));
    Value row = loopIndex(b, *dim1), column = loopIndex(b, *dim2);
    Value distance = arith::ConstantIndexOp::create(b, *offset);
    Value isInside =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, column, arith::AddIOp::create(b, row, distance));
    indices.push_back(*offset >= 0 ? row : column);
    return choose(b, part, isInside, indices, args[0]);
  }));
}

/// `diagonal_scatter(self, src, offset, dim1, dim2)`.
LogicalResult lowerDiagonalScatter(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self"), src = n.tensor(1, "src");
  if (failed(self) || failed(src))
    return failure();
  return yieldWithDiagonal(n, {*self, llvm::to_vector<6>(self->sizes), self->dtype}, n.cast(*src, self->dtype));
}

/// `diagonal_backward(grad_output, input_sizes, offset, dim1, dim2)`.
LogicalResult lowerDiagonalBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_output");
  return failed(gradient) ? failure() : yieldWithDiagonal(n, {{}, n.resultSizes(), gradient->dtype}, *gradient);
}

/// `tril(self, diagonal)` and `triu(self, diagonal)` of the last two dimensions.
template <bool IsLower> LogicalResult lowerTriangle(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  FailureOr<AffineExpr> diagonal = n.expr(1, "diagonal", 0);
  if (failed(self) || failed(diagonal))
    return failure();
  int64_t rank = self->rank();
  if (rank < 2)
    return n.refuse("a triangle needs two dimensions");
  SizeScalar offset(n, *diagonal);
  return n.yield(n.pointwise(*self, self->sizes, self->dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    Value limit = arith::AddIOp::create(b, loopIndex(b, rank - 2), offset.asIndex(b));
    auto predicate = IsLower ? arith::CmpIPredicate::sle : arith::CmpIPredicate::sge;
    Value isKept = arith::CmpIOp::create(b, predicate, loopIndex(b, rank - 1), limit);
    return arith::SelectOp::create(b, isKept, args[0], scalarConstant(b, 0.0, self->dtype));
  }));
}

} // namespace

void populateViewScatter(LoweringTable &table) {
  table.add("aten.slice_scatter.default", lowerSliceScatter);
  table.add("aten.slice_backward.default", lowerSliceBackward);
  table.add("aten.select_scatter.default", lowerSelectScatter);
  table.add("aten.select_backward.default", lowerSelectBackward);
  table.add("aten.diagonal_scatter.default", lowerDiagonalScatter);
  table.add("aten.diagonal_backward.default", lowerDiagonalBackward);
  table.add("aten.tril.default", lowerTriangle<true>);
  table.add("aten.triu.default", lowerTriangle<false>);
}

} // namespace accel
