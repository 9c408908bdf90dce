#include "compiler/import/ReductionMath.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/ScalarMath.h"

#include <limits>

using namespace mlir;

namespace accel {

//===-- Pointwise ops ---------------------------------------------------------------------------------------------===//

Tensor compute(NodeImporter &n, ArrayRef<Operand> operands, ArrayRef<AffineExpr> sizes, DType dtype, Formula formula) {
  SmallVector<Tensor> inputs;
  SmallVector<AffineMap> maps;
  for (const Operand &operand : operands)
    if (operand.tensor.value) {
      inputs.push_back(operand.tensor);
      maps.push_back(operand.map);
    }
  return n.pointwise(inputs, maps, sizes, dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    SmallVector<Scalar> scalars;
    unsigned next = 0;
    for (const Operand &operand : operands)
      scalars.push_back(operand.tensor.value ? Scalar(b, args[next++], operand.tensor.dtype) : Scalar(0.0));
    return formula(scalars).to(dtype).value();
  });
}

Tensor compute(NodeImporter &n, ArrayRef<Tensor> operands, Formula formula) {
  return compute(n, operands, ArrayRef<Tensor>(), Dims(), formula);
}

Tensor compute(NodeImporter &n, ArrayRef<Tensor> full, ArrayRef<Tensor> reduced, Dims dims, Formula formula) {
  int64_t rank = full[0].rank();
  SmallVector<Operand> operands;
  for (const Tensor &tensor : full)
    operands.push_back({tensor, n.b.getMultiDimIdentityMap(rank)});
  for (const Tensor &tensor : reduced)
    operands.push_back({tensor, keptMap(n, rank, dims)});
  return compute(n, operands, full[0].sizes, full[0].dtype, formula);
}

AffineMap keptMap(NodeImporter &n, int64_t rank, Dims dims) {
  SmallVector<AffineExpr> kept;
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(dims, d))
      kept.push_back(n.b.getAffineDimExpr(d));
  return AffineMap::get(rank, 0, kept, n.b.getContext());
}

//===-- Reductions ------------------------------------------------------------------------------------------------===//

static TypedAttr extremeValue(Builder &b, DType dtype, bool lowest) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (isFloat(dtype))
    return scalarAttribute(b, lowest ? -infinity : infinity, dtype);
  Type type = scalarType(b.getContext(), dtype);
  unsigned bits = type.getIntOrFloatBitWidth();
  if (isUnsigned(dtype))
    return b.getIntegerAttr(type, lowest ? APInt::getMinValue(bits) : APInt::getMaxValue(bits));
  return b.getIntegerAttr(type, lowest ? APInt::getSignedMinValue(bits) : APInt::getSignedMaxValue(bits));
}

TypedAttr lowestValue(Builder &b, DType dtype) { return extremeValue(b, dtype, true); }
TypedAttr highestValue(Builder &b, DType dtype) { return extremeValue(b, dtype, false); }

Tensor reduceOver(NodeImporter &n, const Tensor &x, Dims dims, TypedAttr init, Scalar (*combine)(Scalar, Scalar)) {
  if (dims.empty())
    return x;
  return n.reduce(x, dims, init, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    return SmallVector<Value>{combine(Scalar(b, args[0], x.dtype), Scalar(b, args[1], x.dtype)).value()};
  })[0];
}

Tensor sumOver(NodeImporter &n, const Tensor &x, Dims dims) {
  return reduceOver(n, x, dims, scalarAttribute(n.b, 0.0, x.dtype), [](Scalar x, Scalar y) { return x + y; });
}

Tensor maximumOver(NodeImporter &n, const Tensor &x, Dims dims) {
  return reduceOver(n, x, dims, lowestValue(n.b, x.dtype), maximum);
}

Tensor minimumOver(NodeImporter &n, const Tensor &x, Dims dims) {
  return reduceOver(n, x, dims, highestValue(n.b, x.dtype), minimum);
}

AffineExpr countOver(const Tensor &x, Dims dims) {
  AffineExpr count = getAffineConstantExpr(1, x.value.getContext());
  for (int64_t d : dims)
    count = count * x.sizes[d];
  return normalize(count);
}

Tensor divideByCount(NodeImporter &n, const Tensor &x, AffineExpr count) {
  SizeScalar divisor(n, count);
  if (divisor.constant() == 1)
    return x;
  return compute(n, x, [&](ArrayRef<Scalar> s) { return s[0] / s[0].with(divisor.as(s[0].builder(), x.dtype)); });
}

Tensor meanOver(NodeImporter &n, const Tensor &x, Dims dims) {
  return divideByCount(n, sumOver(n, x, dims), countOver(x, dims));
}

Tensor squaredDeviationsOver(NodeImporter &n, const Tensor &x, const Tensor &mean, Dims dims) {
  Tensor squares = compute(n, x, mean, dims, [](ArrayRef<Scalar> s) { return (s[0] - s[1]) * (s[0] - s[1]); });
  return sumOver(n, squares, dims);
}

Tensor keepDims(NodeImporter &n, const Tensor &reduced, Dims dims) {
  if (dims.empty())
    return reduced;
  SmallVector<AffineExpr> sizes, indices;
  for (int64_t d = 0, rank = reduced.rank() + dims.size(); d < rank; ++d) {
    if (llvm::is_contained(dims, d)) {
      sizes.push_back(n.constant(1));
      continue;
    }
    sizes.push_back(reduced.sizes[indices.size()]);
    indices.push_back(n.b.getAffineDimExpr(d));
  }
  return n.view(reduced, sizes, indices);
}

} // namespace accel
