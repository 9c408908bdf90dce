/// Batch normalization: statistics over all dimensions but the channels, which are dimension 1.
#include "compiler/import/Families.h"
#include "compiler/import/Normalization.h"
#include "compiler/import/ScalarMath.h"

using namespace mlir;

namespace accel {
namespace {

/// Where an overload has its arguments.
struct Overload {
  int running = 3;  // number of running_mean, -1 if there is none
  int training = 5; // number of the flag, -1 if it is off
  unsigned eps = 7;
  bool returnsRunning = false; // results 3 and 4 are the new running statistics
};

/// The dimensions that statistics are over.
SmallVector<int64_t> batchDims(int64_t rank) {
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < rank; ++d)
    if (d != 1)
      dims.push_back(d);
  return dims;
}

/// A tensor argument with one element per channel, which may be absent.
Operand perChannel(NodeImporter &n, const std::optional<Tensor> &tensor, const Tensor &x) {
  return {tensor ? n.cast(*tensor, x.dtype) : Tensor(), keptMap(n, x.rank(), batchDims(x.rank()))};
}

/// (x - mean) * (rstd * weight) + bias.
Tensor normalizeChannels(NodeImporter &n, const Tensor &x, const Tensor &mean, const Tensor &rstd) {
  Operand operands[] = {{x, n.b.getMultiDimIdentityMap(x.rank())},
                        perChannel(n, mean, x),
                        perChannel(n, rstd, x),
                        perChannel(n, n.optionalTensor(1, "weight"), x),
                        perChannel(n, n.optionalTensor(2, "bias"), x)};
  return compute(n, operands, x.sizes, x.dtype, [&](ArrayRef<Scalar> s) {
    Scalar y = (s[0] - s[1]) * (s[3].isLiteral() ? s[2] : s[2] * s[3]);
    return s[4].isLiteral() ? y : y + s[4];
  });
}

/// x * scale + shift, as eager computes it with given statistics. Scale and shift are ops of their own, over the
/// channels alone: what they come from are parameters.
Tensor scaleChannels(NodeImporter &n, const Tensor &x, const Tensor &mean, const Tensor &variance, double eps) {
  AffineMap channels = n.b.getMultiDimIdentityMap(1);
  auto channelsOf = [&](const std::optional<Tensor> &tensor) {
    return Operand{tensor ? n.cast(*tensor, x.dtype) : Tensor(), channels};
  };
  Operand statistics[] = {channelsOf(variance), channelsOf(n.optionalTensor(1, "weight"))};
  Tensor scale = compute(n, statistics, variance.sizes, x.dtype, [&](ArrayRef<Scalar> s) {
    Scalar rstd = rsqrt(s[0] + eps);
    return s[1].isLiteral() ? rstd : rstd * s[1];
  });
  Operand offsets[] = {channelsOf(mean), {scale, channels}, channelsOf(n.optionalTensor(2, "bias"))};
  Tensor shift = compute(n, offsets, variance.sizes, x.dtype,
                         [](ArrayRef<Scalar> s) { return s[2].isLiteral() ? -(s[0] * s[1]) : s[2] - s[0] * s[1]; });
  return compute(n, x, {scale, shift}, batchDims(x.rank()), [](ArrayRef<Scalar> s) { return s[0] * s[1] + s[2]; });
}

/// momentum * batch + (1 - momentum) * running
Tensor updatedRunning(NodeImporter &n, const Tensor &running, const Tensor &batch, double momentum) {
  return compute(n, {batch, running},
                 [&](ArrayRef<Scalar> s) { return s[0] * momentum + s[1].to(batch.dtype) * (1.0 - momentum); });
}

LogicalResult lowerTraining(NodeImporter &n, const Overload &overload, const Tensor &x, double eps) {
  SmallVector<int64_t> dims = batchDims(x.rank());
  Moments m = momentsOver(n, x, dims, eps);
  SmallVector<Tensor> results = {normalizeChannels(n, x, m.mean, m.rstd), m.mean, m.rstd};
  if (!overload.returnsRunning)
    return n.yield(results);
  FailureOr<double> momentum = n.real(6, "momentum");
  FailureOr<Tensor> mean = n.tensor(3, "running_mean"), variance = n.tensor(4, "running_var");
  if (failed(momentum) || failed(mean) || failed(variance))
    return failure();
  // The running variance is the unbiased one.
  Tensor unbiased = divideByCount(n, m.squares, normalize(countOver(x, dims) - 1));
  results.push_back(updatedRunning(n, *mean, m.mean, *momentum));
  results.push_back(updatedRunning(n, *variance, unbiased, *momentum));
  return n.yield(results);
}

LogicalResult lowerInference(NodeImporter &n, const Overload &overload, const Tensor &x, double eps) {
  if (overload.running < 0)
    return n.refuse("there are no statistics to normalize with");
  FailureOr<Tensor> mean = n.tensor(overload.running, "running_mean");
  FailureOr<Tensor> variance = n.tensor(overload.running + 1, "running_var");
  if (failed(mean) || failed(variance))
    return failure();
  SmallVector<Tensor> results = {scaleChannels(n, x, *mean, *variance, eps)};
  // There are no batch statistics; the results that stand for them are empty.
  for (unsigned k = 1; k < std::min(n.numResults(), 3u); ++k)
    results.push_back(n.fill(0.0, n.resultSizes(k), n.resultDType(k)));
  if (overload.returnsRunning) {
    results.push_back(*mean);
    results.push_back(*variance);
  }
  return n.yield(results);
}

LogicalResult lowerBatchNorm(NodeImporter &n, const Overload &overload) {
  FailureOr<Tensor> input = n.tensor(0, "input");
  FailureOr<double> eps = n.real(overload.eps, "eps");
  if (failed(input) || failed(eps))
    return failure();
  if (input->rank() < 2)
    return n.refuse("batch norm of a tensor without channels");
  Tensor x = n.cast(*input, computeDType(input->dtype));
  if (overload.training < 0 || !n.boolean(overload.training, "training", false))
    return lowerInference(n, overload, x, *eps);
  if (overload.running >= 0 && !overload.returnsRunning && n.arg(overload.running, "running_mean"))
    return n.refuse("training updates the running statistics in place");
  return lowerTraining(n, overload, x, *eps);
}

/// `(input, weight, bias, running_mean, running_var, training, momentum, eps)`.
LogicalResult lowerNative(NodeImporter &n) { return lowerBatchNorm(n, {}); }
LogicalResult lowerFunctional(NodeImporter &n) { return lowerBatchNorm(n, {3, 5, 7, true}); }
/// `(input, weight, bias, running_mean, running_var, momentum, eps)`.
LogicalResult lowerNoTraining(NodeImporter &n) { return lowerBatchNorm(n, {3, -1, 6, false}); }
/// `(input, weight, bias, training, momentum, eps)`.
LogicalResult lowerNoStats(NodeImporter &n) { return lowerBatchNorm(n, {-1, 3, 5, false}); }

/// `(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)`.
///
/// With c = x - mean, r = 1 / sqrt(variance + eps) and g the gradient: (g - mean(g) - c * r^2 * mean(g c)) * r * weight
/// while training, else g * r * weight; for the weight, r * sum(g c); for the bias, sum(g).
LogicalResult lowerBatchNormBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_out"), input = n.tensor(1, "input");
  FailureOr<double> eps = n.real(8, "eps");
  bool training = n.boolean(7, "train", false);
  FailureOr<Tensor> mean = training ? n.tensor(5, "save_mean") : n.tensor(3, "running_mean");
  FailureOr<Tensor> scale = training ? n.tensor(6, "save_invstd") : n.tensor(4, "running_var");
  if (failed(gradient) || failed(input) || failed(eps) || failed(mean) || failed(scale))
    return failure();
  SmallVector<int64_t> dims = batchDims(input->rank());
  DType dtype = computeDType(input->dtype);
  Tensor g = n.cast(*gradient, dtype), x = n.cast(*input, dtype), m = n.cast(*mean, dtype), r = n.cast(*scale, dtype);
  if (!training)
    r = compute(n, r, [&](ArrayRef<Scalar> s) { return rsqrt(s[0] + *eps); });
  Tensor products = compute(n, {g, x}, m, dims, [](ArrayRef<Scalar> s) { return s[0] * (s[1] - s[2]); });
  Tensor alongX = sumOver(n, products, dims), alongOne = sumOver(n, g, dims);
  SmallVector<Tensor> results(3);
  if (wants(n, 9, 1))
    results[1] = compute(n, {alongX, r}, [](ArrayRef<Scalar> s) { return s[0] * s[1]; });
  if (wants(n, 9, 2))
    results[2] = alongOne;
  if (!wants(n, 9, 0))
    return n.yield(results);
  AffineExpr count = countOver(x, dims);
  Operand operands[] = {{g, n.b.getMultiDimIdentityMap(x.rank())},
                        perChannel(n, r, x),
                        perChannel(n, n.optionalTensor(2, "weight"), x),
                        {training ? x : Tensor(), n.b.getMultiDimIdentityMap(x.rank())},
                        perChannel(n, training ? m : Tensor(), x),
                        perChannel(n, training ? divideByCount(n, alongX, count) : Tensor(), x),
                        perChannel(n, training ? divideByCount(n, alongOne, count) : Tensor(), x)};
  results[0] = compute(n, operands, x.sizes, dtype, [&](ArrayRef<Scalar> s) {
    Scalar dx = training ? s[0] - s[6] - (s[3] - s[4]) * (s[1] * s[1] * s[5]) : s[0];
    return dx * (s[2].isLiteral() ? s[1] : s[1] * s[2]);
  });
  return n.yield(results);
}

} // namespace

void populateBatchNorm(LoweringTable &table) {
  table.add({"aten.native_batch_norm.default", "aten._native_batch_norm_legit.default"}, lowerNative);
  table.add("aten._native_batch_norm_legit_functional.default", lowerFunctional);
  table.add("aten._native_batch_norm_legit_no_training.default", lowerNoTraining);
  table.add("aten._native_batch_norm_legit.no_stats", lowerNoStats);
  table.add("aten.native_batch_norm_backward.default", lowerBatchNormBackward);
}

} // namespace accel
