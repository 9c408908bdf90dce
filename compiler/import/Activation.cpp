#include "compiler/import/Families.h"
#include "compiler/import/Pointwise.h"

#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;

namespace accel {
namespace {

using llvm::numbers::inv_sqrtpi;
using llvm::numbers::sqrt2;

//===-- Piecewise ------------------------------------------------------------------------------------------------===//

Scalar relu(Scalar x) { return atLeast(x, 0); }
Scalar relu6(Scalar x) { return clamp(x, 0, 6); }
Scalar leakyRelu(Scalar x, Scalar slope) { return select(x > 0, x, x * slope); }
Scalar prelu(Scalar x, Scalar weight) { return select(x > 0, x, weight * x); }
Scalar threshold(Scalar x, Scalar limit, Scalar value) { return select(x <= limit, value, x); }
Scalar hardsigmoid(Scalar x) { return clamp(x + 3, 0, 6) / 6; }
Scalar hardswish(Scalar x) { return x * clamp(x + 3, 0, 6) / 6; }

Scalar isBetween(Scalar x, Scalar low, Scalar high) { return (x >= low) & (x <= high); }
Scalar hardshrink(Scalar x, Scalar lambda) { return select(isBetween(x, -lambda, lambda), 0, x); }
/// A NaN stays one: it is neither above nor below, and times 0 still a NaN.
Scalar softshrink(Scalar x, Scalar lambda) {
  return select(x > lambda, x - lambda, select(x < -lambda, x + lambda, x * 0));
}

//===-- Smooth ---------------------------------------------------------------------------------------------------===//

Scalar silu(Scalar x) { return x / (1 + exp(-x)); }
Scalar mish(Scalar x) { return x * tanh(log1p(exp(x))); }

Scalar elu(Scalar x, Scalar alpha, Scalar scale, Scalar inputScale) {
  return select(x <= 0, expm1(x * inputScale) * (alpha * scale), x * scale);
}
Scalar celu(Scalar x, Scalar alpha) { return elu(x, alpha, 1, 1 / alpha); }
/// Klambauer et al., Self-Normalizing Neural Networks, 2017: a fixed point of mean and variance.
Scalar selu(Scalar x) { return elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1); }

Scalar softplus(Scalar x, Scalar beta, Scalar limit) {
  Scalar scaled = x * beta;
  return select(scaled > limit, x, log1p(exp(scaled)) / beta);
}

Scalar geluOfNormal(Scalar x) { return x * 0.5 * (1 + erf(x * (1 / sqrt2))); }

// Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.
constexpr double kGeluScale = sqrt2 * inv_sqrtpi; // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;

Scalar geluTanhArgument(Scalar x) { return kGeluScale * (x + kGeluCubic * (x * x * x)); }
Scalar geluByTanh(Scalar x) { return 0.5 * x * (1 + tanh(geluTanhArgument(x))); }

bool isTanhGelu(NodeImporter &n, unsigned index) { return n.text(index, "approximate", "none") == "tanh"; }

LogicalResult lowerGelu(NodeImporter &n) {
  Scalar (*formula)(Scalar) = isTanhGelu(n, 1) ? geluByTanh : geluOfNormal;
  return lowerPointwise(n, kFloats, {"self"}, [=](ArrayRef<Scalar> x) { return formula(x[0]); });
}

Scalar expOfMinusAbs(Scalar x) { return exp(-abs(x)); }
Scalar logSigmoid(Scalar x) { return minimum(x, 0) - log1p(expOfMinusAbs(x)); }

/// Its second result is what the backward needs.
LogicalResult lowerLogSigmoid(NodeImporter &n) {
  Operands operands(n, kFloats);
  if (failed(operands.add(0, "self")))
    return failure();
  DType dtype = n.resultDType();
  auto result = operands.compute(dtype, [](ArrayRef<Scalar> x) { return logSigmoid(x[0]); });
  auto buffer = operands.compute(dtype, [](ArrayRef<Scalar> x) { return expOfMinusAbs(x[0]); }, 1);
  return failed(result) || failed(buffer) ? failure() : n.yield({*result, *buffer});
}

//===-- Backward -------------------------------------------------------------------------------------------------===//

Scalar sigmoidBackward(Scalar grad, Scalar result) { return grad * (1 - result) * result; }
Scalar tanhBackward(Scalar grad, Scalar result) { return grad * (1 - result * result); }
Scalar thresholdBackward(Scalar grad, Scalar x, Scalar limit) { return select(x <= limit, 0, grad); }
Scalar hardtanhBackward(Scalar grad, Scalar x, Scalar low, Scalar high) {
  return select((x > low) & (x < high), grad, 0);
}
/// With eager's constant, which is a float for doubles too.
Scalar hardsigmoidBackward(Scalar grad, Scalar x) { return select((x > -3) & (x < 3), grad * (1.0f / 6.0f), 0); }
Scalar hardswishBackward(Scalar grad, Scalar x) {
  return select(x <= -3, 0, select(x >= 3, grad, grad * (x / 3 + 0.5)));
}
Scalar shrinkBackward(Scalar grad, Scalar x, Scalar lambda) {
  return select(isBetween(x, -lambda, lambda) | isNaN(x), 0, grad);
}
Scalar leakyReluBackward(Scalar grad, Scalar x, Scalar slope) { return select(x > 0, grad, grad * slope); }

Scalar siluBackward(Scalar grad, Scalar x) {
  Scalar s = sigmoid(x);
  return grad * s * (1 + x * (1 - s));
}

Scalar mishBackward(Scalar grad, Scalar x) {
  Scalar t = tanh(log1p(exp(x)));
  return grad * (t + x * sigmoid(x) * (1 - t * t));
}

Scalar softplusBackward(Scalar grad, Scalar x, Scalar beta, Scalar limit) {
  Scalar scaled = x * beta, z = exp(scaled);
  return select(scaled > limit, grad, grad * z / (z + 1));
}

Scalar logSigmoidBackward(Scalar grad, Scalar x, Scalar buffer) {
  Scalar negative = x < 0;
  return grad * (select(negative, x.like(1), 0) - select(negative, x.like(1), -1) * (buffer / (1 + buffer)));
}

Scalar geluOfNormalBackward(Scalar grad, Scalar x) {
  Scalar cdf = 0.5 * (1 + erf(x * (1 / sqrt2)));
  Scalar pdf = exp(x * x * -0.5) * (inv_sqrtpi / sqrt2);
  return grad * (cdf + x * pdf);
}

Scalar geluByTanhBackward(Scalar grad, Scalar x) {
  Scalar t = tanh(geluTanhArgument(x));
  Scalar left = 0.5 * x, right = 1 + t;
  Scalar argumentDerivative = kGeluScale * (1 + 3 * kGeluCubic * (x * x));
  return grad * (0.5 * right + left * (1 - t * t) * argumentDerivative);
}

LogicalResult lowerGeluBackward(NodeImporter &n) {
  Scalar (*formula)(Scalar, Scalar) = isTanhGelu(n, 2) ? geluByTanhBackward : geluOfNormalBackward;
  return lowerPointwise(n, kFloats, {"grad_output", "self"}, [=](ArrayRef<Scalar> x) { return formula(x[0], x[1]); });
}

LogicalResult lowerEluBackward(NodeImporter &n) {
  Operands operands(n, kFloats | kExactNumbers);
  bool isResult = n.boolean(4, "is_result", false);
  if (failed(operands.add(0, "grad_output")) || failed(operands.add(1, "alpha")) || failed(operands.add(2, "scale")) ||
      failed(operands.add(3, "input_scale")) || failed(operands.add(5, "self_or_result")))
    return failure();
  FailureOr<Tensor> result = operands.compute(n.resultDType(), [=](ArrayRef<Scalar> args) {
    Scalar grad = args[0], scale = args[2], inputScale = args[3], x = args[4], negative = args[1] * scale;
    Scalar slope = isResult ? x + negative : negative * exp(x * inputScale);
    return select(x > 0, grad * scale, grad * inputScale * slope);
  });
  return failed(result) ? failure() : n.yield(*result);
}

LogicalResult lowerPreluBackward(NodeImporter &n) {
  Operands operands(n, kFloats);
  if (failed(operands.add(0, "grad_output")) || failed(operands.add(1, "self")) || failed(operands.add(2, "weight")))
    return failure();
  DType dtype = n.resultDType();
  auto self = operands.compute(dtype, [](ArrayRef<Scalar> x) { return select(x[1] > 0, x[0], x[2] * x[0]); });
  auto weight = operands.compute(dtype, [](ArrayRef<Scalar> x) { return select(x[1] > 0, 0, x[1] * x[0]); }, 1);
  return failed(self) || failed(weight) ? failure() : n.yield({*self, *weight});
}

Scalar insideOr(Scalar grad, Scalar x, Scalar low, Scalar high, Scalar outside) {
  return select(isBetween(x, low, high), grad / (x * (1 - x)), outside);
}

LogicalResult lowerLogitBackward(NodeImporter &n) {
  std::optional<double> eps = constantNumber(n.arg(2, "eps"));
  if (!eps || *eps < 0)
    return lowerPointwise(n, kFloats, {"grad_output", "self"}, [](ArrayRef<Scalar> x) {
      return insideOr(x[0], x[1], 0, 1, std::numeric_limits<double>::quiet_NaN());
    });
  return lowerPointwise(n, kFloats, {"grad_output", "self", "eps"},
                        [](ArrayRef<Scalar> x) { return insideOr(x[0], x[1], x[2], 1 - x[2], 0); });
}

/// The mask is 0 or 1, and multiplied rather than chosen: an infinite gradient of a dropped element is a NaN, as in
/// eager.
Scalar dropoutBackward(Scalar grad, Scalar mask, Scalar scale) { return grad * (mask * scale); }

} // namespace

void populateActivation(LoweringTable &table) {
  addPointwise(table, kNumbers | kFittingNumbers,
               {{"aten.relu.default", {"self"}, relu},
                {"aten.relu6.default", {"self"}, relu6},
                {"aten.hardtanh.default", {"self", {"min_val", -1}, {"max_val", 1}}, clamp}});
  addPointwise(table, kNumbers | kExactNumbers | kFittingNumbers,
               {{"aten.threshold.default", {"self", "threshold", "value"}, threshold},
                {"aten.threshold_backward.default", {"grad_output", "self", "threshold"}, thresholdBackward}});
  addPointwise(table, kFloats | kExactNumbers,
               {{"aten.leaky_relu.default", {"self", {"negative_slope", 0.01}}, leakyRelu},
                {"aten.softshrink.default", {"self", {"lambd", 0.5}}, softshrink},
                {"aten.elu.default", {"self", {"alpha", 1}, {"scale", 1}, {"input_scale", 1}}, elu},
                {"aten.celu.default", {"self", {"alpha", 1}}, celu},
                {"aten.softplus.default", {"self", {"beta", 1}, {"threshold", 20}}, softplus},
                {"aten.hardtanh_backward.default", {"grad_output", "self", "min_val", "max_val"}, hardtanhBackward},
                {"aten.leaky_relu_backward.default", {"grad_output", "self", "negative_slope"}, leakyReluBackward},
                {"aten.softplus_backward.default", {"grad_output", "self", "beta", "threshold"}, softplusBackward},
                {"aten.native_dropout_backward.default", {"grad_output", "mask", "scale"}, dropoutBackward}});
  addPointwise(table, kFloats,
               {{"aten._prelu_kernel.default", {"self", "weight"}, prelu},
                {"aten.hardsigmoid.default", {"self"}, hardsigmoid},
                {"aten.hardswish.default", {"self"}, hardswish},
                {"aten.hardshrink.default", {"self", {"lambd", 0.5}}, hardshrink},
                {"aten.sigmoid.default", {"self"}, sigmoid},
                {"aten.silu.default", {"self"}, silu},
                {"aten.mish.default", {"self"}, mish},
                {"aten.selu.default", {"self"}, selu},
                {"aten.sigmoid_backward.default", {"grad_output", "output"}, sigmoidBackward},
                {"aten.tanh_backward.default", {"grad_output", "output"}, tanhBackward},
                {"aten.silu_backward.default", {"grad_output", "self"}, siluBackward},
                {"aten.mish_backward.default", {"grad_output", "self"}, mishBackward},
                {"aten.hardsigmoid_backward.default", {"grad_output", "self"}, hardsigmoidBackward},
                {"aten.hardswish_backward.default", {"grad_output", "self"}, hardswishBackward},
                {"aten.hardshrink_backward.default", {"grad_out", "self", "lambd"}, shrinkBackward},
                {"aten.softshrink_backward.default", {"grad_output", "self", "lambd"}, shrinkBackward},
                {"aten.log_sigmoid_backward.default", {"grad_output", "self", "buffer"}, logSigmoidBackward}});
  table.add("aten.gelu.default", lowerGelu);
  table.add("aten.gelu_backward.default", lowerGeluBackward);
  table.add("aten.elu_backward.default", lowerEluBackward);
  table.add("aten.log_sigmoid_forward.default", lowerLogSigmoid);
  table.add("aten._prelu_kernel_backward.default", lowerPreluBackward);
  table.add("aten.logit_backward.default", lowerLogitBackward);
}

} // namespace accel
