#include "compiler/import/IndexMath.h"
#include "compiler/import/Pointwise.h"
#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace accel {

SizeScalar::SizeScalar(NodeImporter &n, AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    known = constant.getValue();
  else
    value = n.index(expr);
}

Value SizeScalar::asIndex(ImplicitLocOpBuilder &b) const {
  return known ? arith::ConstantIndexOp::create(b, *known).getResult() : value;
}

Value SizeScalar::as(ImplicitLocOpBuilder &b, DType dtype) const {
  return known ? integerConstant(b, *known, dtype) : fromIndex(b, value, dtype);
}

FailureOr<ScalarArg> ScalarArg::get(NodeImporter &n, const FxArg *arg, DType dtype) {
  if (!arg)
    return n.refuse("a number is absent");
  ScalarArg result(dtype);
  switch (arg->kind) {
  case FxArg::Int:
  case FxArg::Bool:
  case FxArg::Float:
    if (!fits(*arg, dtype))
      return n.refuse("a number is out of the range of dtype " + dtypeName(dtype));
    result.attribute =
        arg->kind == FxArg::Float ? scalarAttribute(n.b, arg->real, dtype) : integerAttribute(n.b, arg->integer, dtype);
    return result;
  case FxArg::Symbol: {
    FailureOr<AffineExpr> expr = n.exprOf(*arg);
    if (failed(expr))
      return failure();
    result.symbolic.emplace(n, *expr);
    return result;
  }
  default:
    return n.refuse("an argument is not a number");
  }
}

Value ScalarArg::in(ImplicitLocOpBuilder &b) const {
  return symbolic ? symbolic->as(b, dtype) : arith::ConstantOp::create(b, attribute).getResult();
}

Value loopIndex(ImplicitLocOpBuilder &b, int64_t dim) { return linalg::IndexOp::create(b, dim); }

Value toIndex(ImplicitLocOpBuilder &b, Value integer, DType dtype) {
  return arith::IndexCastOp::create(b, b.getIndexType(), convertScalar(b, integer, dtype, DType::I64));
}

Value fromIndex(ImplicitLocOpBuilder &b, Value index, DType dtype) {
  return convertScalar(b, arith::IndexCastOp::create(b, b.getI64Type(), index), DType::I64, dtype);
}

FailureOr<Tensor> fillWith(NodeImporter &n, const FxArg *value, ArrayRef<AffineExpr> sizes, DType dtype) {
  FailureOr<ScalarArg> scalar = ScalarArg::get(n, value, dtype);
  if (failed(scalar))
    return failure();
  return n.pointwise({}, sizes, dtype, [&](ImplicitLocOpBuilder &b, ValueRange) { return scalar->in(b); });
}

} // namespace accel
