/// Tensors made of numbers and positions: their sizes, dtype and layout are eager's.
#include "compiler/import/Families.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace accel {
namespace {

/// A tensor of the argument's number.
LogicalResult yieldFilled(NodeImporter &n, unsigned index, StringRef keyword) {
  FailureOr<Tensor> result = fillWith(n, n.arg(index, keyword), n.resultSizes(), n.resultDType());
  return failed(result) ? failure() : n.yield(*result);
}

LogicalResult lowerFull(NodeImporter &n) { return yieldFilled(n, 1, "fill_value"); }
LogicalResult lowerNewFull(NodeImporter &n) { return yieldFilled(n, 2, "fill_value"); }
LogicalResult lowerScalarTensor(NodeImporter &n) { return yieldFilled(n, 0, "s"); }
LogicalResult lowerFillScalar(NodeImporter &n) { return yieldFilled(n, 1, "value"); }

/// Whatever the overload, the result says how many. `empty` may hold anything, so zeros too.
LogicalResult lowerZeros(NodeImporter &n) { return n.yield(n.fill(0.0, n.resultSizes(), n.resultDType())); }
LogicalResult lowerOnes(NodeImporter &n) { return n.yield(n.fill(1.0, n.resultSizes(), n.resultDType())); }

LogicalResult lowerFillTensor(NodeImporter &n) {
  FailureOr<Tensor> value = n.tensor(1, "value");
  if (failed(value))
    return failure();
  if (value->rank() != 0)
    return n.refuse("fill takes a tensor of rank 0");
  DType dtype = n.resultDType();
  return n.yield(n.pointwise(*value, n.resultSizes(), dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    return convertScalar(b, args[0], value->dtype, dtype);
  }));
}

/// A number that may be absent.
FailureOr<ScalarArg> scalarOr(NodeImporter &n, unsigned index, StringRef keyword, int64_t fallback, DType dtype) {
  FxArg constant;
  constant.kind = FxArg::Int;
  constant.integer = fallback;
  const FxArg *arg = n.arg(index, keyword);
  return ScalarArg::get(n, arg ? arg : &constant, dtype);
}

/// `arange(end)`, `arange(start, end)` and `arange(start, end, step)`: start + position * step, in i64 or f64 as in
/// eager.
LogicalResult lowerArange(NodeImporter &n) {
  DType dtype = n.resultDType(), wide = isFloat(dtype) ? DType::F64 : DType::I64;
  bool hasStart = n.target() != "aten.arange.default";
  FailureOr<ScalarArg> start = scalarOr(n, hasStart ? 0 : ~0u, "start", 0, wide);
  FailureOr<ScalarArg> step = scalarOr(n, n.target() == "aten.arange.start_step" ? 2 : ~0u, "step", 1, wide);
  if (failed(start) || failed(step))
    return failure();
  return n.yield(n.pointwise({}, n.resultSizes(), dtype, [&](ImplicitLocOpBuilder &b, ValueRange) {
    Value position = fromIndex(b, loopIndex(b, 0), wide), value;
    if (isFloat(wide))
      value = arith::AddFOp::create(b, start->in(b), arith::MulFOp::create(b, position, step->in(b)));
    else
      value = arith::AddIOp::create(b, start->in(b), arith::MulIOp::create(b, position, step->in(b)));
    return convertScalar(b, value, wide, dtype);
  }));
}

/// `linspace(start, end, steps)`. As in eager, the second half counts down from the end, so that both ends are exact.
LogicalResult lowerLinspace(NodeImporter &n) {
  DType dtype = n.resultDType(), wide = dtype == DType::F32 || isLowPrecision(dtype) ? DType::F32 : DType::F64;
  // An integer result starts from ends that are integers themselves.
  DType ends = isFloat(dtype) ? wide : dtype;
  FailureOr<ScalarArg> start = ScalarArg::get(n, n.arg(0, "start"), ends),
                       end = ScalarArg::get(n, n.arg(1, "end"), ends);
  FailureOr<AffineExpr> steps = n.expr(2, "steps");
  if (failed(start) || failed(end) || failed(steps))
    return failure();
  SizeScalar last(n, normalize(*steps - 1)), half(n, normalize(steps->floorDiv(2)));
  return n.yield(n.pointwise({}, n.resultSizes(), dtype, [&](ImplicitLocOpBuilder &b, ValueRange) {
    Value first = convertScalar(b, start->in(b), ends, wide), final = convertScalar(b, end->in(b), ends, wide);
    if (last.constant() && *last.constant() <= 0)
      return convertScalar(b, first, wide, dtype);
    Value step = arith::DivFOp::create(b, arith::SubFOp::create(b, final, first), last.as(b, wide));
    Value index = loopIndex(b, 0);
    auto along = [&](Value distance) { return arith::MulFOp::create(b, step, fromIndex(b, distance, wide)); };
    Value up = arith::AddFOp::create(b, first, along(index));
    Value down = arith::SubFOp::create(b, final, along(arith::SubIOp::create(b, last.asIndex(b), index)));
    Value isUp = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, half.asIndex(b));
    return convertScalar(b, arith::SelectOp::create(b, isUp, up, down), wide, dtype);
  }));
}

LogicalResult lowerEye(NodeImporter &n) {
  DType dtype = n.resultDType();
  return n.yield(n.pointwise({}, n.resultSizes(), dtype, [&](ImplicitLocOpBuilder &b, ValueRange) {
    Value isDiagonal = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, loopIndex(b, 0), loopIndex(b, 1));
    return arith::SelectOp::create(b, isDiagonal, scalarConstant(b, 1.0, dtype), scalarConstant(b, 0.0, dtype));
  }));
}

} // namespace

void populateCreation(LoweringTable &table) {
  table.add({"aten.full.default", "aten.full_like.default"}, lowerFull);
  table.add("aten.new_full.default", lowerNewFull);
  table.add("aten.scalar_tensor.default", lowerScalarTensor);
  table.add("aten.fill.Scalar", lowerFillScalar);
  table.add("aten.fill.Tensor", lowerFillTensor);
  table.add({"aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default", "aten.zero.default",
             "aten.empty.memory_format", "aten.empty_like.default", "aten.new_empty.default",
             "aten.empty_strided.default", "aten.new_empty_strided.default"},
            lowerZeros);
  table.add({"aten.ones.default", "aten.ones_like.default", "aten.new_ones.default"}, lowerOnes);
  table.add({"aten.arange.default", "aten.arange.start", "aten.arange.start_step"}, lowerArange);
  table.add("aten.linspace.default", lowerLinspace);
  table.add({"aten.eye.default", "aten.eye.m"}, lowerEye);
}

} // namespace accel
