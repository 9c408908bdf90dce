#include "compiler/import/Families.h"
#include "compiler/import/Pointwise.h"

#include <limits>

using namespace mlir;

namespace accel {
namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

//===-- To bool --------------------------------------------------------------------------------------------------===//

Scalar equal(Scalar x, Scalar y) { return x == y; }
Scalar notEqual(Scalar x, Scalar y) { return x != y; }
Scalar less(Scalar x, Scalar y) { return x < y; }
Scalar lessEqual(Scalar x, Scalar y) { return x <= y; }
Scalar greater(Scalar x, Scalar y) { return x > y; }
Scalar greaterEqual(Scalar x, Scalar y) { return x >= y; }

Scalar truth(Scalar x) { return x.to(DType::Bool); }
Scalar logicalAnd(Scalar x, Scalar y) { return truth(x) & truth(y); }
Scalar logicalOr(Scalar x, Scalar y) { return truth(x) | truth(y); }
Scalar logicalXor(Scalar x, Scalar y) { return truth(x) ^ truth(y); }
Scalar logicalNot(Scalar x) { return x == 0; }

// An integer is neither infinite nor NaN.
Scalar isPositiveInfinity(Scalar x) { return isFloat(x.dtype()) ? x == kInfinity : x != x; }
Scalar isNegativeInfinity(Scalar x) { return isFloat(x.dtype()) ? x == -kInfinity : x != x; }
Scalar isInfinite(Scalar x) { return isFloat(x.dtype()) ? abs(x) == kInfinity : x != x; }
Scalar isFinite(Scalar x) { return isFloat(x.dtype()) ? abs(x) < kInfinity : x == x; }

/// Also of a negative zero.
Scalar signbit(Scalar x) { return isFloat(x.dtype()) ? copysign(x.like(1), x) < 0 : x < 0; }

//===-- Bits -----------------------------------------------------------------------------------------------------===//

Scalar bitwiseAnd(Scalar x, Scalar y) { return x & y; }
Scalar bitwiseOr(Scalar x, Scalar y) { return x | y; }
Scalar bitwiseXor(Scalar x, Scalar y) { return x ^ y; }
Scalar bitwiseNot(Scalar x) { return ~x; }

//===-- Choices --------------------------------------------------------------------------------------------------===//

Scalar masked(Scalar x, Scalar mask, Scalar value) { return select(mask, value, x); }

} // namespace

void populateComparison(LoweringTable &table) {
  const Parameter condition("condition", Parameter::Condition), mask("mask", Parameter::Condition);
  addPointwise(table, kByOperands,
               {{"aten.eq.Tensor", {"self", "other"}, equal},
                {"aten.ne.Tensor", {"self", "other"}, notEqual},
                {"aten.lt.Tensor", {"self", "other"}, less},
                {"aten.le.Tensor", {"self", "other"}, lessEqual},
                {"aten.gt.Tensor", {"self", "other"}, greater},
                {"aten.ge.Tensor", {"self", "other"}, greaterEqual},
                {"aten.logical_and.default", {"self", "other"}, logicalAnd},
                {"aten.logical_or.default", {"self", "other"}, logicalOr},
                {"aten.logical_xor.default", {"self", "other"}, logicalXor},
                {"aten.logical_not.default", {"self"}, logicalNot},
                {"aten.isnan.default", {"self"}, isNaN},
                {"aten.isinf.default", {"self"}, isInfinite},
                {"aten.isposinf.default", {"self"}, isPositiveInfinity},
                {"aten.isneginf.default", {"self"}, isNegativeInfinity},
                {"aten.isfinite.default", {"self"}, isFinite},
                {"aten.signbit.default", {"self"}, signbit}});
  addPointwise(table, kByOperands | kFittingNumbers,
               {{"aten.eq.Scalar", {"self", "other"}, equal},
                {"aten.ne.Scalar", {"self", "other"}, notEqual},
                {"aten.lt.Scalar", {"self", "other"}, less},
                {"aten.le.Scalar", {"self", "other"}, lessEqual},
                {"aten.gt.Scalar", {"self", "other"}, greater},
                {"aten.ge.Scalar", {"self", "other"}, greaterEqual}});
  addPointwise(table, kIntegers,
               {{"aten.bitwise_and.Tensor", {"self", "other"}, bitwiseAnd},
                {"aten.bitwise_and.Scalar", {"self", "other"}, bitwiseAnd},
                {"aten.bitwise_and.Scalar_Tensor", {"self", "other"}, bitwiseAnd},
                {"aten.bitwise_or.Tensor", {"self", "other"}, bitwiseOr},
                {"aten.bitwise_or.Scalar", {"self", "other"}, bitwiseOr},
                {"aten.bitwise_or.Scalar_Tensor", {"self", "other"}, bitwiseOr},
                {"aten.bitwise_xor.Tensor", {"self", "other"}, bitwiseXor},
                {"aten.bitwise_xor.Scalar", {"self", "other"}, bitwiseXor},
                {"aten.bitwise_xor.Scalar_Tensor", {"self", "other"}, bitwiseXor},
                {"aten.bitwise_not.default", {"self"}, bitwiseNot}});
  addPointwise(table, kIntegers | kNumbers,
               {{"aten.__lshift__.Tensor", {"self", "other"}, shiftLeft},
                {"aten.__lshift__.Scalar", {"self", "other"}, shiftLeft},
                {"aten.bitwise_left_shift.Tensor", {"self", "other"}, shiftLeft},
                {"aten.bitwise_left_shift.Tensor_Scalar", {"self", "other"}, shiftLeft},
                {"aten.bitwise_left_shift.Scalar_Tensor", {"self", "other"}, shiftLeft},
                {"aten.__rshift__.Tensor", {"self", "other"}, shiftRight},
                {"aten.__rshift__.Scalar", {"self", "other"}, shiftRight},
                {"aten.bitwise_right_shift.Tensor", {"self", "other"}, shiftRight},
                {"aten.bitwise_right_shift.Tensor_Scalar", {"self", "other"}, shiftRight},
                {"aten.bitwise_right_shift.Scalar_Tensor", {"self", "other"}, shiftRight}});
  addPointwise(table, kMoves,
               {{"aten.where.self", {condition, "self", "other"}, select},
                {"aten.where.ScalarSelf", {condition, "self", "other"}, select},
                {"aten.where.ScalarOther", {condition, "self", "other"}, select},
                {"aten.where.Scalar", {condition, "self", "other"}, select}});
  addPointwise(table, kMoves | kFittingNumbers,
               {{"aten.masked_fill.Scalar", {"self", mask, "value"}, masked},
                {"aten.masked_fill.Tensor", {"self", mask, "value"}, masked}});
}

} // namespace accel
