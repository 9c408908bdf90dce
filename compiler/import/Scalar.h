/// One value in the body of a linalg op, with operators and functions that write arith and math ops by the rules of its
/// dtype.
///
///   Scalar silu(Scalar x) { return x / (1 + exp(-x)); }
#ifndef ACCEL_COMPILER_IMPORT_SCALAR_H
#define ACCEL_COMPILER_IMPORT_SCALAR_H

#include "compiler/import/FxJson.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <cassert>

namespace accel {

/// A value of a dtype that eager computes in (never f16 or bf16 where there is arithmetic), or a literal: a number that
/// becomes a constant of the dtype that it meets.
class Scalar {
public:
  Scalar(double literal) : number(literal) {}
  Scalar(mlir::ImplicitLocOpBuilder &b, mlir::Value value, DType dtype) : b(&b), val(value), type(dtype) {}

  bool isLiteral() const { return !b; }
  double literal() const { return number; }
  mlir::Value value() const { return val; }
  DType dtype() const { return type; }
  mlir::ImplicitLocOpBuilder &builder() const {
    assert(b && "a formula over literals alone has no builder");
    return *b;
  }

  /// Converted with PyTorch's rules.
  Scalar to(DType dtype) const;
  /// A value of the same dtype.
  Scalar with(mlir::Value value) const { return {builder(), value, type}; }
  /// A constant of the same dtype.
  Scalar like(double number) const;
  Scalar like(Scalar other) const { return other.isLiteral() ? like(other.number) : other; }

private:
  mlir::ImplicitLocOpBuilder *b = nullptr;
  mlir::Value val;
  DType type = DType::F64;
  double number = 0;
};

bool isUnsigned(DType dtype);

//===-- Arithmetic: both sides have one dtype; integers wrap round, bool adds by or ------------------------------===//
Scalar operator+(Scalar x, Scalar y);
Scalar operator-(Scalar x, Scalar y);
Scalar operator-(Scalar x);
Scalar operator*(Scalar x, Scalar y);
/// Of floats only.
Scalar operator/(Scalar x, Scalar y);
/// C's fmod, of floats only.
Scalar fmod(Scalar x, Scalar y);
/// Integers by a constant other than zero; the quotient rounds towards zero, or down.
Scalar truncDivide(Scalar x, int64_t divisor);
Scalar floorDivide(Scalar x, int64_t divisor);
/// Their remainders: with the sign of the dividend, or of the divisor.
Scalar truncRemainder(Scalar x, int64_t divisor);
Scalar floorRemainder(Scalar x, int64_t divisor);
/// By repeated multiplication.
Scalar powi(Scalar x, uint64_t exponent);

//===-- Comparisons: bool; false with a NaN, but for != ----------------------------------------------------------===//
Scalar operator<(Scalar x, Scalar y);
Scalar operator<=(Scalar x, Scalar y);
Scalar operator>(Scalar x, Scalar y);
Scalar operator>=(Scalar x, Scalar y);
Scalar operator==(Scalar x, Scalar y);
Scalar operator!=(Scalar x, Scalar y);
Scalar isNaN(Scalar x);
Scalar select(Scalar condition, Scalar x, Scalar y);

//===-- Bits of bool and integers --------------------------------------------------------------------------------===//
Scalar operator&(Scalar x, Scalar y);
Scalar operator|(Scalar x, Scalar y);
Scalar operator^(Scalar x, Scalar y);
Scalar operator~(Scalar x);
/// ATen's shifts: a count that is negative or has no bit left to move gives 0, or the sign on the right.
Scalar shiftLeft(Scalar x, Scalar count);
Scalar shiftRight(Scalar x, Scalar count);

//===-- Functions ------------------------------------------------------------------------------------------------===//
/// A NaN on either side wins.
Scalar maximum(Scalar x, Scalar y);
Scalar minimum(Scalar x, Scalar y);
/// A NaN loses.
Scalar fmax(Scalar x, Scalar y);
Scalar fmin(Scalar x, Scalar y);
/// Bounded by a number that is no NaN, as eager clamps: a NaN in x stays, and x itself where both are zeros.
Scalar atLeast(Scalar x, Scalar low);
Scalar atMost(Scalar x, Scalar high);
Scalar clamp(Scalar x, Scalar low, Scalar high);
Scalar abs(Scalar x);
/// -1, 0 or 1; 0 for a NaN.
Scalar sign(Scalar x);
Scalar copysign(Scalar magnitude, Scalar sign);
/// Of floats; identity on integers.
Scalar floor(Scalar x);
Scalar ceil(Scalar x);
Scalar trunc(Scalar x);
/// To the nearest, half to even.
Scalar round(Scalar x);

Scalar sqrt(Scalar x);
Scalar rsqrt(Scalar x);
Scalar reciprocal(Scalar x);
Scalar exp(Scalar x);
Scalar exp2(Scalar x);
Scalar expm1(Scalar x);
Scalar log(Scalar x);
Scalar log2(Scalar x);
Scalar log10(Scalar x);
Scalar log1p(Scalar x);
Scalar sin(Scalar x);
Scalar cos(Scalar x);
Scalar tan(Scalar x);
Scalar asin(Scalar x);
Scalar acos(Scalar x);
Scalar atan(Scalar x);
Scalar sinh(Scalar x);
Scalar cosh(Scalar x);
Scalar tanh(Scalar x);
Scalar asinh(Scalar x);
Scalar acosh(Scalar x);
Scalar atanh(Scalar x);
Scalar erf(Scalar x);
Scalar erfc(Scalar x);
Scalar pow(Scalar x, Scalar y);
Scalar atan2(Scalar y, Scalar x);
/// 1 / (1 + exp(-x)).
Scalar sigmoid(Scalar x);

} // namespace accel

#endif
