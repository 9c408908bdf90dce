#include "compiler/import/Scalar.h"
#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace accel {
namespace {

/// A literal takes the dtype of the other side.
void meet(Scalar &x, Scalar &y) {
  if (x.isLiteral())
    x = y.like(x);
  y = x.like(y);
}

bool isOne(Scalar x) { return x.isLiteral() && x.literal() == 1; }
bool bothLiteral(Scalar x, Scalar y) { return x.isLiteral() && y.isLiteral(); }

template <typename Op> Scalar binary(Scalar x, Scalar y) {
  meet(x, y);
  return x.with(Op::create(x.builder(), x.value(), y.value()));
}

/// The op for floats, or for signed or unsigned integers.
template <typename Float, typename Signed, typename Unsigned> Scalar bySign(Scalar x, Scalar y) {
  meet(x, y);
  if (isFloat(x.dtype()))
    return binary<Float>(x, y);
  return isUnsigned(x.dtype()) ? binary<Unsigned>(x, y) : binary<Signed>(x, y);
}

template <typename Op> Scalar unary(Scalar x) { return x.with(Op::create(x.builder(), x.value())); }

template <typename Op> Scalar rounded(Scalar x) { return isFloat(x.dtype()) ? unary<Op>(x) : x; }

Scalar compare(Scalar x, Scalar y, arith::CmpFPredicate floats, arith::CmpIPredicate signedInts,
               arith::CmpIPredicate unsignedInts) {
  meet(x, y);
  ImplicitLocOpBuilder &b = x.builder();
  Value result;
  if (isFloat(x.dtype()))
    result = arith::CmpFOp::create(b, floats, x.value(), y.value());
  else
    result = arith::CmpIOp::create(b, isUnsigned(x.dtype()) ? unsignedInts : signedInts, x.value(), y.value());
  return {b, result, DType::Bool};
}

unsigned bits(Scalar x) { return x.value().getType().getIntOrFloatBitWidth(); }

/// The constant as the dtype holds it: 256 is 0 in u8, for example.
Scalar integer(Scalar x, int64_t value) { return x.with(integerConstant(x.builder(), value, x.dtype())); }

} // namespace

bool isUnsigned(DType dtype) { return dtype == DType::U8 || dtype == DType::Bool; }

Scalar Scalar::to(DType dtype) const { return {builder(), convertScalar(builder(), val, type, dtype), dtype}; }
Scalar Scalar::like(double number) const { return with(scalarConstant(builder(), number, type)); }

//===-- Arithmetic -----------------------------------------------------------------------------------------------===//

Scalar operator+(Scalar x, Scalar y) {
  meet(x, y);
  if (isFloat(x.dtype()))
    return binary<arith::AddFOp>(x, y);
  return x.dtype() == DType::Bool ? x | y : binary<arith::AddIOp>(x, y);
}

Scalar operator-(Scalar x, Scalar y) {
  meet(x, y);
  return isFloat(x.dtype()) ? binary<arith::SubFOp>(x, y) : binary<arith::SubIOp>(x, y);
}

Scalar operator-(Scalar x) {
  if (x.isLiteral())
    return -x.literal();
  return isFloat(x.dtype()) ? unary<arith::NegFOp>(x) : 0 - x;
}

Scalar operator*(Scalar x, Scalar y) {
  if (bothLiteral(x, y))
    return x.literal() * y.literal();
  if (isOne(x) || isOne(y))
    return isOne(x) ? y : x;
  meet(x, y);
  if (isFloat(x.dtype()))
    return binary<arith::MulFOp>(x, y);
  return x.dtype() == DType::Bool ? x & y : binary<arith::MulIOp>(x, y);
}

Scalar operator/(Scalar x, Scalar y) {
  if (bothLiteral(x, y))
    return x.literal() / y.literal();
  return isOne(y) ? x : binary<arith::DivFOp>(x, y);
}

Scalar fmod(Scalar x, Scalar y) { return binary<arith::RemFOp>(x, y); }

Scalar truncDivide(Scalar x, int64_t divisor) {
  if (divisor == -1 && !isUnsigned(x.dtype()))
    return -x; // the least integer wraps round, where a division would trap
  return bySign<arith::DivSIOp, arith::DivSIOp, arith::DivUIOp>(x, integer(x, divisor));
}

Scalar truncRemainder(Scalar x, int64_t divisor) {
  if (divisor == -1 && !isUnsigned(x.dtype()))
    return x.like(0);
  return bySign<arith::RemSIOp, arith::RemSIOp, arith::RemUIOp>(x, integer(x, divisor));
}

Scalar floorDivide(Scalar x, int64_t divisor) {
  Scalar quotient = truncDivide(x, divisor);
  if (isUnsigned(x.dtype()) || divisor == 1 || divisor == -1)
    return quotient;
  Scalar remainder = truncRemainder(x, divisor);
  Scalar roundedUp = divisor < 0 ? remainder > 0 : remainder < 0;
  return select(roundedUp, quotient - 1, quotient);
}

Scalar floorRemainder(Scalar x, int64_t divisor) {
  Scalar remainder = truncRemainder(x, divisor);
  if (isUnsigned(x.dtype()) || divisor == -1)
    return remainder;
  Scalar otherSign = divisor < 0 ? remainder > 0 : remainder < 0;
  return select(otherSign, remainder + integer(x, divisor), remainder);
}

Scalar powi(Scalar x, uint64_t exponent) {
  Scalar result = 1;
  for (Scalar square = x;; square = square * square) {
    if (exponent & 1)
      result = result * square;
    exponent >>= 1;
    if (exponent == 0)
      return x.like(result);
  }
}

//===-- Comparisons ----------------------------------------------------------------------------------------------===//

Scalar operator<(Scalar x, Scalar y) {
  return compare(x, y, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, arith::CmpIPredicate::ult);
}
Scalar operator<=(Scalar x, Scalar y) {
  return compare(x, y, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, arith::CmpIPredicate::ule);
}
Scalar operator>(Scalar x, Scalar y) {
  return compare(x, y, arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt, arith::CmpIPredicate::ugt);
}
Scalar operator>=(Scalar x, Scalar y) {
  return compare(x, y, arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge, arith::CmpIPredicate::uge);
}
Scalar operator==(Scalar x, Scalar y) {
  return compare(x, y, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, arith::CmpIPredicate::eq);
}
Scalar operator!=(Scalar x, Scalar y) {
  return compare(x, y, arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne, arith::CmpIPredicate::ne);
}
Scalar isNaN(Scalar x) {
  return compare(x, x, arith::CmpFPredicate::UNO, arith::CmpIPredicate::ne, arith::CmpIPredicate::ne);
}

Scalar select(Scalar condition, Scalar x, Scalar y) {
  meet(x, y);
  return x.with(arith::SelectOp::create(x.builder(), condition.value(), x.value(), y.value()));
}

//===-- Bits -----------------------------------------------------------------------------------------------------===//

Scalar operator&(Scalar x, Scalar y) { return binary<arith::AndIOp>(x, y); }
Scalar operator|(Scalar x, Scalar y) { return binary<arith::OrIOp>(x, y); }
Scalar operator^(Scalar x, Scalar y) { return binary<arith::XOrIOp>(x, y); }
Scalar operator~(Scalar x) { return x ^ integer(x, -1); }

// A negative count is a large unsigned one, so one comparison finds both kinds that are out of range.
Scalar shiftLeft(Scalar x, Scalar count) {
  Scalar zero = x.like(0), width = x.like(bits(x));
  Scalar inRange = compare(count, width, {}, arith::CmpIPredicate::ult, arith::CmpIPredicate::ult);
  return select(inRange, binary<arith::ShLIOp>(x, select(inRange, count, zero)), zero);
}

Scalar shiftRight(Scalar x, Scalar count) {
  if (isUnsigned(x.dtype())) {
    Scalar zero = x.like(0), inRange = count < x.like(bits(x));
    return select(inRange, binary<arith::ShRUIOp>(x, select(inRange, count, zero)), zero);
  }
  Scalar most = x.like(bits(x) - 1);
  return binary<arith::ShRSIOp>(x, binary<arith::MinUIOp>(count, most));
}

//===-- Functions ------------------------------------------------------------------------------------------------===//

Scalar maximum(Scalar x, Scalar y) { return bySign<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(x, y); }
Scalar minimum(Scalar x, Scalar y) { return bySign<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(x, y); }
Scalar fmax(Scalar x, Scalar y) { return bySign<arith::MaxNumFOp, arith::MaxSIOp, arith::MaxUIOp>(x, y); }
Scalar fmin(Scalar x, Scalar y) { return bySign<arith::MinNumFOp, arith::MinSIOp, arith::MinUIOp>(x, y); }
// One instruction on most machines, which a maximum that knows NaN and signed zeros is not.
Scalar atLeast(Scalar x, Scalar low) { return isFloat(x.dtype()) ? select(x < low, low, x) : maximum(x, low); }
Scalar atMost(Scalar x, Scalar high) { return isFloat(x.dtype()) ? select(x > high, high, x) : minimum(x, high); }
Scalar clamp(Scalar x, Scalar low, Scalar high) { return atMost(atLeast(x, low), high); }

Scalar abs(Scalar x) {
  if (isFloat(x.dtype()))
    return unary<math::AbsFOp>(x);
  return isUnsigned(x.dtype()) ? x : maximum(x, -x);
}

Scalar sign(Scalar x) {
  if (x.dtype() == DType::Bool)
    return x;
  Scalar positive = (x > 0).to(x.dtype());
  return isUnsigned(x.dtype()) ? positive : positive - (x < 0).to(x.dtype());
}

Scalar copysign(Scalar magnitude, Scalar sign) { return binary<math::CopySignOp>(magnitude, sign); }

Scalar floor(Scalar x) { return rounded<math::FloorOp>(x); }
Scalar ceil(Scalar x) { return rounded<math::CeilOp>(x); }
Scalar trunc(Scalar x) { return rounded<math::TruncOp>(x); }
Scalar round(Scalar x) { return rounded<math::RoundEvenOp>(x); }

Scalar sqrt(Scalar x) { return unary<math::SqrtOp>(x); }
Scalar rsqrt(Scalar x) { return 1 / sqrt(x); }
Scalar reciprocal(Scalar x) { return 1 / x; }
Scalar exp(Scalar x) { return unary<math::ExpOp>(x); }
Scalar exp2(Scalar x) { return unary<math::Exp2Op>(x); }
Scalar expm1(Scalar x) { return unary<math::ExpM1Op>(x); }
Scalar log(Scalar x) { return unary<math::LogOp>(x); }
Scalar log2(Scalar x) { return unary<math::Log2Op>(x); }
Scalar log10(Scalar x) { return unary<math::Log10Op>(x); }
Scalar log1p(Scalar x) { return unary<math::Log1pOp>(x); }
Scalar sin(Scalar x) { return unary<math::SinOp>(x); }
Scalar cos(Scalar x) { return unary<math::CosOp>(x); }
Scalar tan(Scalar x) { return unary<math::TanOp>(x); }
Scalar asin(Scalar x) { return unary<math::AsinOp>(x); }
Scalar acos(Scalar x) { return unary<math::AcosOp>(x); }
Scalar atan(Scalar x) { return unary<math::AtanOp>(x); }
Scalar sinh(Scalar x) { return unary<math::SinhOp>(x); }
Scalar cosh(Scalar x) { return unary<math::CoshOp>(x); }
Scalar tanh(Scalar x) { return unary<math::TanhOp>(x); }
Scalar asinh(Scalar x) { return unary<math::AsinhOp>(x); }
Scalar acosh(Scalar x) { return unary<math::AcoshOp>(x); }
Scalar atanh(Scalar x) { return unary<math::AtanhOp>(x); }
Scalar erf(Scalar x) { return unary<math::ErfOp>(x); }
Scalar erfc(Scalar x) { return unary<math::ErfcOp>(x); }
Scalar pow(Scalar x, Scalar y) { return binary<math::PowFOp>(x, y); }
Scalar atan2(Scalar y, Scalar x) { return binary<math::Atan2Op>(y, x); }
Scalar sigmoid(Scalar x) { return 1 / (1 + exp(-x)); }

} // namespace accel
