#include "codegen/cpu/InlineMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

// Where the coefficients come from: each polynomial is the minimax one of its interval by weighted least squares
// (Lawson's iteration), in extended precision; then its coefficients are rounded to f32 from the lowest on, each
// followed by a fit of those that are left. The errors given are of the rounded polynomials, in units of 2^-24.

using namespace mlir;

namespace accel {
namespace {

constexpr float kLog2E = 0x1.715476p+0f;
/// log(2) in two parts. Multiplied by an integer and subtracted from what it is near, the first one is exact.
constexpr float kLn2High = 0x1.62e43p-1f, kLn2Low = -0x1.05c61p-29f;
/// Adding it to a small number rounds that to an integer, in the lowest bits of the sum.
constexpr float kRound = 0x1.8p+23f;

/// Ops on vectors of f32 of one type.
class Emitter {
public:
  Emitter(ImplicitLocOpBuilder &b, VectorType type) : b(b), type(type), integers(type.clone(b.getI32Type())) {}

  /// e^x = 2^n e^r, n = round(x / log 2), |r| <= log(2) / 2.
  Value exp(Value x) {
    // Beyond these the result is infinite or zero.
    x = atLeast(atMost(x, 89.0f), -104.0f);
    // 2^n in two factors, since n reaches from -150 to 128: half of the biased sum has a bias of 127 in its low byte.
    constexpr float bias = kRound + 254;
    Value sum = fma(x, constant(kLog2E), constant(bias)), r = reduce(x, sub(sum, constant(bias)));
    Value all = bits(sum), half = arith::ShRUIOp::create(b, all, integer(1));
    Value other = arith::SubIOp::create(b, all, half);
    // Only the last product rounds to a denormal.
    return mul(mul(exponential(r), exponent(half)), exponent(other));
  }

  /// x + x^3 p(x^2) up to 0.625; 1 - 2 / (e^2|x| + 1) above.
  Value tanh(Value x) {
    Value square = mul(x, x);
    // 0.08
    Value near =
        polynomial(square, {-0x1.555532p-2f, 0x1.1106fcp-3f, -0x1.b83738p-5f, 0x1.5207b8p-6f, -0x1.75619ap-8f});
    near = fma(mul(x, square), near, x);
    Value t = abs(x);
    // 1 from there on
    Value twice = atMost(add(t, t), 18.1f);
    constexpr float bias = kRound + 127;
    Value sum = fma(twice, constant(kLog2E), constant(bias)), r = reduce(twice, sub(sum, constant(bias)));
    Value below = arith::DivFOp::create(b, constant(2.0f), fma(exponential(r), exponent(bits(sum)), constant(1.0f)));
    Value result = arith::SelectOp::create(b, greater(t, constant(0.625f)), sub(constant(1.0f), below), near);
    return math::CopySignOp::create(b, result, x); // also of -0, which the sum above makes +0
  }

  /// x + x p(x^2) up to 0.9; 1 - 2^v(|x|) above, v = log2(erfc).
  Value erf(Value x) {
    // 0.24
    Value near = polynomial(mul(x, x), {0x1.06eba6p-3f, -0x1.8126eep-2f, 0x1.ce1c18p-4f, -0x1.b6a63ep-6f,
                                        0x1.47e776p-8f, -0x1.3d0b0ap-11f});
    near = fma(x, near, x);
    Value t = abs(x);
    // 1 from there on
    Value bounded = atMost(t, 3.95f);
    // 0.03 of the result
    Value v = polynomial(bounded, {-0x1.f79882p-13f, -0x1.a0877ep+0f, -0x1.d6823ep-1f, -0x1.339e26p-3f, 0x1.07bb52p-5f,
                                   -0x1.21d4eep-8f, 0x1.2bd96cp-12f});
    constexpr float bias = kRound + 127;
    Value sum = add(v, constant(bias)), f = sub(v, sub(sum, constant(bias)));
    // 2^f: 1.6, of which the result has a quarter at most
    Value p = polynomial(f, {1.0f, 0x1.62e42ap-1f, 0x1.ebf9c2p-3f, 0x1.c6b6d8p-5f, 0x1.3ce8aep-7f, 0x1.5bda58p-10f});
    Value far = fma(arith::NegFOp::create(b, p), exponent(bits(sum)), constant(1.0f));
    far = math::CopySignOp::create(b, far, x);
    return arith::SelectOp::create(b, greater(t, constant(0.9f)), far, near);
  }

private:
  Value constant(float value) { return arith::ConstantOp::create(b, DenseElementsAttr::get(type, value)).getResult(); }
  Value integer(int32_t value) {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(integers, value)).getResult();
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
  Value abs(Value x) { return math::AbsFOp::create(b, x); }
  Value greater(Value x, Value y) { return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, y); }
  Value bits(Value x) { return arith::BitcastOp::create(b, integers, x); }

  // NaN passes through both.
  Value atMost(Value x, float bound) {
    return arith::SelectOp::create(b, greater(x, constant(bound)), constant(bound), x);
  }
  Value atLeast(Value x, float bound) {
    return arith::SelectOp::create(b, greater(constant(bound), x), constant(bound), x);
  }

  /// The power of two whose biased exponent is in the low byte.
  Value exponent(Value biased) {
    return arith::BitcastOp::create(b, type, arith::ShLIOp::create(b, biased, integer(23)));
  }

  /// x - n log 2.
  Value reduce(Value x, Value n) { return fma(n, constant(-kLn2Low), fma(n, constant(-kLn2High), x)); }

  /// e^r for |r| <= log(2) / 2: 0.05.
  Value exponential(Value r) {
    return polynomial(r, {1.0f, 1.0f, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558b4p-5f, 0x1.1239ap-7f, 0x1.6a495cp-10f});
  }

  /// By Horner's rule, the lowest coefficient first.
  Value polynomial(Value x, ArrayRef<float> coefficients) {
    Value sum = constant(coefficients.back());
    for (float c : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, x, constant(c));
    return sum;
  }

  ImplicitLocOpBuilder &b;
  VectorType type, integers;
};

bool isInlineMath(Operation *op) { return isa<math::ExpOp, math::TanhOp, math::ErfOp>(op); }

} // namespace

void inlineVectorMath(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    auto type = isInlineMath(op) ? dyn_cast<VectorType>(op->getResult(0).getType()) : VectorType();
    if (type && type.getElementType().isF32())
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Emitter emitter(b, cast<VectorType>(op->getResult(0).getType()));
    Value x = op->getOperand(0);
    Value result = isa<math::ExpOp>(op) ? emitter.exp(x) : isa<math::TanhOp>(op) ? emitter.tanh(x) : emitter.erf(x);
    op->replaceAllUsesWith(ValueRange(result));
    op->erase();
  }
}

} // namespace accel
