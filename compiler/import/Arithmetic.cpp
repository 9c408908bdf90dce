#include "compiler/import/Families.h"
#include "compiler/import/Pointwise.h"

#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace accel {
namespace {

using llvm::numbers::ln2;
using llvm::numbers::pi;

//===-- Sums and products ----------------------------------------------------------------------------------------===//

Scalar add(Scalar x, Scalar y, Scalar alpha) { return x + alpha * y; }
Scalar subtract(Scalar x, Scalar y, Scalar alpha) { return x - alpha * y; }
Scalar subtractFrom(Scalar x, Scalar y, Scalar alpha) { return y - alpha * x; }
Scalar multiply(Scalar x, Scalar y) { return x * y; }
Scalar addProduct(Scalar x, Scalar y, Scalar z, Scalar value) { return x + value * y * z; }
Scalar addQuotient(Scalar x, Scalar y, Scalar z, Scalar value) { return x + value * y / z; }

/// From both ends, so that a weight of 0 and of 1 gives an end exactly.
Scalar lerp(Scalar start, Scalar end, Scalar weight) {
  Scalar difference = end - start;
  return select(abs(weight) < 0.5, start + weight * difference, end - difference * (1 - weight));
}

Scalar hypot(Scalar x, Scalar y) {
  Scalar a = abs(x), b = abs(y);
  Scalar larger = maximum(a, b), smaller = minimum(a, b);
  Scalar ratio = smaller / larger;
  Scalar length = larger * sqrt(1 + ratio * ratio);
  // Two zeros have no ratio, and infinity wins over NaN.
  Scalar infinity = x.like(std::numeric_limits<double>::infinity());
  return select((a == infinity) | (b == infinity), infinity, select(larger == 0, larger, length));
}

//===-- Division -------------------------------------------------------------------------------------------------===//

Scalar divide(Scalar x, Scalar y) { return x / y; }
Scalar truncatedQuotient(Scalar x, Scalar y) { return trunc(x / y); }

/// Whether a remainder that isn't zero has another sign than the divisor.
Scalar hasOtherSign(Scalar remainder, Scalar divisor) { return (remainder != 0) & ((divisor < 0) ^ (remainder < 0)); }

Scalar remainder(Scalar x, Scalar y) {
  Scalar mod = fmod(x, y);
  return select(hasOtherSign(mod, y), mod + y, mod);
}

/// c10::div_floor_floating: Python's floor division, where x is the quotient times y plus the remainder.
Scalar flooredQuotient(Scalar x, Scalar y) {
  Scalar mod = fmod(x, y);
  Scalar quotient = (x - mod) / y;
  quotient = select(hasOtherSign(mod, y), quotient - 1, quotient);
  Scalar whole = floor(quotient);
  whole = select(quotient - whole > 0.5, whole + 1, whole);
  Scalar plain = x / y;
  whole = select(quotient == 0, copysign(x.like(0), plain), whole);
  return select(y == 0, plain, whole);
}

/// A division of floats, and the same of integers by a constant.
struct Division {
  Scalar (*floats)(Scalar, Scalar);
  Scalar (*integers)(Scalar, int64_t);
  unsigned flags;
};

constexpr Division kFloor = {flooredQuotient, floorDivide, kExactNumbers};
constexpr Division kTrunc = {truncatedQuotient, truncDivide, kExactNumbers};
constexpr Division kRemainder = {remainder, floorRemainder, kAnyDType};
constexpr Division kFmod = {fmod, truncRemainder, kAnyDType};

LogicalResult lowerDivision(NodeImporter &n, Division division) {
  DType dtype = n.resultDType();
  if (isFloat(dtype))
    return lowerPointwise(n, division.flags, {"self", "other"},
                          [=](ArrayRef<Scalar> x) { return division.floats(x[0], x[1]); });
  const FxArg *divisor = n.arg(1, "other");
  if (dtype == DType::Bool || !divisor || (divisor->kind != FxArg::Int && divisor->kind != FxArg::Bool))
    return n.refuse("an integer divisor must raise if it is zero");
  if (divisor->integer == 0 || !fits(*divisor, dtype))
    return n.refuse("integer division by " + Twine(divisor->integer) + " of dtype " + dtypeName(dtype));
  return lowerPointwise(n, kAnyDType, {"self"},
                        [=](ArrayRef<Scalar> x) { return division.integers(x[0], divisor->integer); });
}

template <const Division &division> LogicalResult lowerDivision(NodeImporter &n) { return lowerDivision(n, division); }

LogicalResult lowerRoundedDivision(NodeImporter &n) {
  std::string mode = n.text(2, "rounding_mode", "");
  if (mode == "floor" || mode == "trunc")
    return lowerDivision(n, mode == "floor" ? kFloor : kTrunc);
  return lowerPointwise(n, kFloats | kExactNumbers, {"self", "other"}, [](ArrayRef<Scalar> x) { return x[0] / x[1]; });
}

//===-- Powers ---------------------------------------------------------------------------------------------------===//

/// The power of a float to a constant, with the exponents that eager treats by themselves.
Scalar constantPower(Scalar x, Scalar exponent, double value) {
  if (value == 0)
    return 1;
  if (value == 1)
    return x;
  if (value == 0.5)
    return sqrt(x);
  if (value == -0.5)
    return rsqrt(x);
  if (value == -1)
    return reciprocal(x);
  if (value == 2 || value == 3)
    return powi(x, uint64_t(value));
  if (value == -2)
    return reciprocal(x * x);
  return pow(x, exponent);
}

constexpr StringLiteral kIntegerPower = "an integer power takes a constant exponent that is not negative";

LogicalResult lowerPower(NodeImporter &n) {
  if (!isFloat(n.resultDType()))
    return n.refuse(kIntegerPower);
  return lowerPointwise(n, kFloats, {"self", "exponent"}, [](ArrayRef<Scalar> x) { return pow(x[0], x[1]); });
}

LogicalResult lowerPowerToScalar(NodeImporter &n) {
  const FxArg *exponent = n.arg(1, "exponent");
  std::optional<double> value = constantNumber(exponent);
  if (isFloat(n.resultDType()))
    return lowerPointwise(n, kFloats, {"self", "exponent"}, [=](ArrayRef<Scalar> x) {
      return value ? constantPower(x[0], x[1], *value) : pow(x[0], x[1]);
    });
  if (!value || *value < 0 || exponent->kind == FxArg::Float)
    return n.refuse(kIntegerPower);
  return lowerPointwise(n, kNumbers, {"self"}, [=](ArrayRef<Scalar> x) { return powi(x[0], exponent->integer); });
}

//===-- One operand ----------------------------------------------------------------------------------------------===//

Scalar negate(Scalar x) { return -x; }
Scalar square(Scalar x) { return x * x; }
Scalar frac(Scalar x) { return x - trunc(x); }
Scalar toRadians(Scalar x) { return x * (pi / 180); }
Scalar toDegrees(Scalar x) { return x * (180 / pi); }

Scalar sinc(Scalar x) {
  Scalar angle = pi * x;
  return select(x == 0, 1.0, sin(angle) / angle);
}

/// To a number of decimal places, left of the point where it is negative.
LogicalResult lowerRoundToDecimals(NodeImporter &n) {
  FailureOr<int64_t> decimals = n.integer(1, "decimals", 0);
  if (failed(decimals))
    return failure();
  double power = std::pow(10.0, std::abs(double(*decimals)));
  return lowerPointwise(n, kFloats, {"self"}, [=](ArrayRef<Scalar> x) {
    if (*decimals == 0)
      return round(x[0]);
    return *decimals < 0 ? round(x[0] / power) * power : round(x[0] * power) / power;
  });
}

Scalar logit(Scalar x) { return log(x / (1 - x)); }
Scalar clampedLogit(Scalar x, Scalar eps) { return logit(clamp(x, eps, 1 - eps)); }

LogicalResult lowerLogit(NodeImporter &n) {
  std::optional<double> eps = constantNumber(n.arg(1, "eps"));
  if (!eps || *eps < 0)
    return lowerPointwise(n, kFloats, {"self"}, [](ArrayRef<Scalar> x) { return logit(x[0]); });
  return lowerPointwise(n, kFloats, {"self", "eps"}, [](ArrayRef<Scalar> x) { return clampedLogit(x[0], x[1]); });
}

Scalar entropy(Scalar x) {
  Scalar inside = select(x == 0, 0.0, -x * log(x));
  return select(x < 0, -std::numeric_limits<double>::infinity(), inside);
}

//===-- Two operands ---------------------------------------------------------------------------------------------===//

/// x * f(y), which is 0 where x is, but for a NaN in y.
Scalar timesOrZero(Scalar x, Scalar y, Scalar f) { return select((x == 0) & (y == y), 0.0, x * f); }
Scalar xlogy(Scalar x, Scalar y) { return timesOrZero(x, y, log(y)); }
Scalar xlog1py(Scalar x, Scalar y) { return timesOrZero(x, y, log1p(y)); }

/// log(exp(x) + exp(y)) from the larger one; equal infinities have no difference.
Scalar logaddexp(Scalar x, Scalar y) {
  Scalar infinite = (x == y) & (abs(x) == std::numeric_limits<double>::infinity());
  return select(infinite, x, maximum(x, y) + log1p(exp(-abs(x - y))));
}
Scalar logaddexp2(Scalar x, Scalar y) {
  Scalar infinite = (x == y) & (abs(x) == std::numeric_limits<double>::infinity());
  return select(infinite, x, maximum(x, y) + log1p(exp2(-abs(x - y))) * (1 / ln2));
}

Scalar heaviside(Scalar x, Scalar atZero) { return select(x == 0, atZero, (x > 0).to(x.dtype())); }
Scalar ldexp(Scalar x, Scalar exponent) { return x * exp2(exponent); }

//===-- Bounds ---------------------------------------------------------------------------------------------------===//

/// How the value at `index` bounds another; nothing if the argument is absent.
using Bound = std::function<Scalar(Scalar x, Scalar bound)>;

std::optional<Bound> readBound(NodeImporter &n, unsigned index, StringRef keyword, bool lower) {
  const FxArg *arg = n.arg(index, keyword);
  if (!arg)
    return std::nullopt;
  std::optional<double> number = constantNumber(arg);
  if (number && !std::isnan(*number))
    return lower ? atLeast : atMost;
  return lower ? maximum : minimum;
}

/// Clamps between bounds of which each may be absent.
LogicalResult lowerClamp(NodeImporter &n) {
  Operands operands(n, kFittingNumbers);
  std::optional<Bound> low = readBound(n, 1, "min", true), high = readBound(n, 2, "max", false);
  if (failed(operands.add(0, "self")) || (low && failed(operands.add(1, "min"))) ||
      (high && failed(operands.add(2, "max"))))
    return failure();
  FailureOr<Tensor> result = operands.compute(n.resultDType(), [&](ArrayRef<Scalar> x) {
    Scalar bounded = low ? (*low)(x[0], x[1]) : x[0];
    return high ? (*high)(bounded, x.back()) : bounded;
  });
  return failed(result) ? failure() : n.yield(*result);
}

/// The bound is the second argument.
LogicalResult lowerClampMax(NodeImporter &n) {
  std::optional<Bound> high = readBound(n, 1, "max", false);
  if (!high)
    return n.refuse("argument 'max' is absent");
  return lowerPointwise(n, kFittingNumbers, {"self", "max"}, [&](ArrayRef<Scalar> x) { return (*high)(x[0], x[1]); });
}

/// NaN and the infinities replaced by numbers; by default 0 and the dtype's largest and smallest.
LogicalResult lowerNanToNum(NodeImporter &n) {
  DType dtype = n.resultDType();
  if (!isFloat(dtype))
    return lowerPointwise(n, kAnyDType, {"self"}, [](ArrayRef<Scalar> x) { return x[0]; });
  double largest = largestNumber(dtype), infinity = std::numeric_limits<double>::infinity();
  Parameter parameters[] = {"self", {"nan", 0}, {"posinf", largest}, {"neginf", -largest}};
  return lowerPointwise(n, kFloats, parameters, [=](ArrayRef<Scalar> x) {
    Scalar finite = select(x[0] == infinity, x[2], select(x[0] == -infinity, x[3], x[0]));
    return select(isNaN(x[0]), x[1], finite);
  });
}

} // namespace

void populateArithmetic(LoweringTable &table) {
  addPointwise(table, kAnyDType,
               {{"aten.add.Tensor", {"self", "other", {"alpha", 1}}, add},
                {"aten.add.Scalar", {"self", "other", {"alpha", 1}}, add},
                {"aten.maximum.default", {"self", "other"}, maximum},
                {"aten.minimum.default", {"self", "other"}, minimum},
                {"aten.fmax.default", {"self", "other"}, fmax},
                {"aten.fmin.default", {"self", "other"}, fmin},
                {"aten.sign.default", {"self"}, sign},
                {"aten.sgn.default", {"self"}, sign},
                {"aten.heaviside.default", {"self", "values"}, heaviside},
                {"aten.square.default", {"self"}, square}});
  addPointwise(table, kExactNumbers,
               {{"aten.mul.Tensor", {"self", "other"}, multiply}, {"aten.mul.Scalar", {"self", "other"}, multiply}});
  addPointwise(table, kNumbers,
               {{"aten.sub.Tensor", {"self", "other", {"alpha", 1}}, subtract},
                {"aten.sub.Scalar", {"self", "other", {"alpha", 1}}, subtract},
                {"aten.rsub.Tensor", {"self", "other", {"alpha", 1}}, subtractFrom},
                {"aten.rsub.Scalar", {"self", "other", {"alpha", 1}}, subtractFrom},
                {"aten.neg.default", {"self"}, negate},
                {"aten.abs.default", {"self"}, abs},
                {"aten.floor.default", {"self"}, floor},
                {"aten.ceil.default", {"self"}, ceil},
                {"aten.trunc.default", {"self"}, trunc},
                {"aten.round.default", {"self"}, round}});
  addPointwise(table, kNumbers | kExactNumbers,
               {{"aten.addcmul.default", {"self", "tensor1", "tensor2", {"value", 1}}, addProduct}});
  addPointwise(table, kFloats | kExactNumbers,
               {{"aten.addcdiv.default", {"self", "tensor1", "tensor2", {"value", 1}}, addQuotient},
                {"aten.div.Tensor", {"self", "other"}, divide},
                {"aten.true_divide.Tensor", {"self", "other"}, divide},
                {"aten.div.Scalar", {"self", "other"}, divide},
                {"aten.lerp.Scalar", {"self", "end", "weight"}, lerp},
                {"aten.lerp.Tensor", {"self", "end", "weight"}, lerp},
                {"aten.deg2rad.default", {"self"}, toRadians},
                {"aten.rad2deg.default", {"self"}, toDegrees}});
  addPointwise(table, kFloats,
               {{"aten.reciprocal.default", {"self"}, reciprocal},
                {"aten.sqrt.default", {"self"}, sqrt},
                {"aten.rsqrt.default", {"self"}, rsqrt},
                {"aten.exp.default", {"self"}, exp},
                {"aten.exp2.default", {"self"}, exp2},
                {"aten.expm1.default", {"self"}, expm1},
                {"aten.log.default", {"self"}, log},
                {"aten.log2.default", {"self"}, log2},
                {"aten.log10.default", {"self"}, log10},
                {"aten.log1p.default", {"self"}, log1p},
                {"aten.sin.default", {"self"}, sin},
                {"aten.cos.default", {"self"}, cos},
                {"aten.tan.default", {"self"}, tan},
                {"aten.asin.default", {"self"}, asin},
                {"aten.acos.default", {"self"}, acos},
                {"aten.atan.default", {"self"}, atan},
                {"aten.sinh.default", {"self"}, sinh},
                {"aten.cosh.default", {"self"}, cosh},
                {"aten.tanh.default", {"self"}, tanh},
                {"aten.asinh.default", {"self"}, asinh},
                {"aten.acosh.default", {"self"}, acosh},
                {"aten.atanh.default", {"self"}, atanh},
                {"aten.erf.default", {"self"}, erf},
                {"aten.erfc.default", {"self"}, erfc},
                {"aten.sinc.default", {"self"}, sinc},
                {"aten.frac.default", {"self"}, frac},
                {"aten.special_entr.default", {"self"}, entropy},
                {"aten.hypot.default", {"self", "other"}, hypot},
                {"aten.atan2.default", {"self", "other"}, atan2},
                {"aten.copysign.Tensor", {"self", "other"}, copysign},
                {"aten.copysign.Scalar", {"self", "other"}, copysign},
                {"aten.ldexp.Tensor", {"self", "other"}, ldexp},
                {"aten.logaddexp.default", {"self", "other"}, logaddexp},
                {"aten.logaddexp2.default", {"self", "other"}, logaddexp2},
                {"aten.xlogy.Tensor", {"self", "other"}, xlogy},
                {"aten.xlogy.Scalar_Self", {"self", "other"}, xlogy},
                {"aten.xlogy.Scalar_Other", {"self", "other"}, xlogy},
                {"aten.special_xlog1py.default", {"self", "other"}, xlog1py},
                {"aten.special_xlog1py.self_scalar", {"self", "other"}, xlog1py},
                {"aten.special_xlog1py.other_scalar", {"self", "other"}, xlog1py}});

  table.add({"aten.pow.Tensor_Tensor", "aten.pow.Scalar"}, lowerPower);
  table.add("aten.pow.Tensor_Scalar", lowerPowerToScalar);
  table.add({"aten.div.Tensor_mode", "aten.div.Scalar_mode"}, lowerRoundedDivision);
  table.add({"aten.floor_divide.default", "aten.floor_divide.Scalar"}, lowerDivision<kFloor>);
  table.add({"aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor"},
            lowerDivision<kRemainder>);
  table.add({"aten.fmod.Tensor", "aten.fmod.Scalar"}, lowerDivision<kFmod>);
  table.add({"aten.clamp.default", "aten.clamp.Tensor", "aten.clamp_min.default", "aten.clamp_min.Tensor"}, lowerClamp);
  table.add({"aten.clamp_max.default", "aten.clamp_max.Tensor"}, lowerClampMax);
  table.add("aten.round.decimals", lowerRoundToDecimals);
  table.add("aten.logit.default", lowerLogit);
  table.add("aten.nan_to_num.default", lowerNanToNum);
}

} // namespace accel
