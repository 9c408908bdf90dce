/// Layer, group and RMS normalization. Statistics are computed in f32 at least.
#include "compiler/import/Normalization.h"
#include "compiler/import/Families.h"
#include "compiler/import/ReductionMath.h"
#include "compiler/import/ScalarMath.h"

#include <limits>

using namespace mlir;

namespace accel {

Moments momentsOver(NodeImporter &n, const Tensor &x, Dims dims, double eps) {
  Moments m;
  m.mean = meanOver(n, x, dims);
  m.squares = squaredDeviationsOver(n, x, m.mean, dims);
  Tensor variance = divideByCount(n, m.squares, countOver(x, dims));
  m.rstd = compute(n, variance, [&](ArrayRef<Scalar> s) { return rsqrt(s[0] + eps); });
  return m;
}

bool wants(NodeImporter &n, unsigned maskIndex, unsigned k) {
  const FxArg *mask = n.arg(maskIndex, "output_mask");
  return n.hasResult(k) && (!mask || (k < mask->list.size() && mask->list[k].integer));
}

namespace {

Tensor castOrNone(NodeImporter &n, const std::optional<Tensor> &tensor, DType dtype) {
  return tensor ? n.cast(*tensor, dtype) : Tensor();
}

/// Where a normalization takes its statistics, and where its weights lie.
struct Scheme {
  SmallVector<int64_t> dims; // the statistics are over these
  AffineMap identity, kept, weights;
};

/// (x - mean) * rstd; without a mean, x * rstd.
Scalar standardized(Scalar x, Scalar mean, Scalar rstd) { return (mean.isLiteral() ? x : x - mean) * rstd; }

Scalar timesWeight(Scalar x, Scalar weight) { return weight.isLiteral() ? x : x * weight; }

/// (x - mean) * rstd * weight + bias, of which mean, weight and bias may be absent.
Tensor normalized(NodeImporter &n, const Tensor &x, const Moments &m, const Scheme &s, const Tensor &weight,
                  const Tensor &bias) {
  Operand operands[] = {{x, s.identity}, {m.mean, s.kept}, {m.rstd, s.kept}, {weight, s.weights}, {bias, s.weights}};
  return compute(n, operands, x.sizes, x.dtype, [](ArrayRef<Scalar> s) {
    Scalar y = timesWeight(standardized(s[0], s[1], s[2]), s[3]);
    return s[4].isLiteral() ? y : y + s[4];
  });
}

/// With h = standardized x and w = gradient * weight: (w - h * mean(h w) - mean(w)) * rstd, the means over the scheme's
/// dimensions. Without a mean of x (RMS norm) there is no mean(w) either.
Tensor inputGradient(NodeImporter &n, const Tensor &gradient, const Tensor &x, const Moments &m, const Scheme &s,
                     const Tensor &weight) {
  SmallVector<Operand> operands = {
      {gradient, s.identity}, {x, s.identity}, {m.mean, s.kept}, {m.rstd, s.kept}, {weight, s.weights}};
  Tensor products = compute(n, operands, x.sizes, x.dtype, [](ArrayRef<Scalar> s) {
    return timesWeight(s[0], s[4]) * standardized(s[1], s[2], s[3]);
  });
  Tensor alongX = meanOver(n, products, s.dims), alongOne;
  if (m.mean.value) {
    Operand weighted[] = {operands[0], operands[4]};
    alongOne = compute(n, weighted, x.sizes, x.dtype, [](ArrayRef<Scalar> s) { return timesWeight(s[0], s[1]); });
    alongOne = meanOver(n, alongOne, s.dims);
  }
  operands.push_back({alongX, s.kept});
  operands.push_back({alongOne, s.kept});
  return compute(n, operands, x.sizes, x.dtype, [](ArrayRef<Scalar> s) {
    Scalar result = timesWeight(s[0], s[4]) - standardized(s[1], s[2], s[3]) * s[5];
    return (s[6].isLiteral() ? result : result - s[6]) * s[3];
  });
}

/// gradient * standardized x, summed over `dims`: the gradient of the weight.
Tensor weightGradient(NodeImporter &n, const Tensor &gradient, const Tensor &x, const Moments &m, const Scheme &s,
                      Dims dims) {
  Operand operands[] = {{gradient, s.identity}, {x, s.identity}, {m.mean, s.kept}, {m.rstd, s.kept}};
  Tensor products =
      compute(n, operands, x.sizes, x.dtype, [](ArrayRef<Scalar> s) { return s[0] * standardized(s[1], s[2], s[3]); });
  return sumOver(n, products, dims);
}

//===-- Layer and RMS norm ----------------------------------------------------------------------------------------===//

/// Statistics over the last `count` dimensions, weights along them.
Scheme trailingScheme(NodeImporter &n, int64_t rank, int64_t count) {
  Scheme s;
  s.dims = llvm::to_vector(llvm::seq(rank - count, rank));
  s.identity = n.b.getMultiDimIdentityMap(rank);
  s.kept = keptMap(n, rank, s.dims);
  s.weights = keptMap(n, rank, llvm::to_vector(llvm::seq<int64_t>(0, rank - count)));
  return s;
}

FailureOr<Scheme> trailingSchemeOf(NodeImporter &n, const Tensor &x, unsigned index) {
  FailureOr<SmallVector<AffineExpr>> shape = n.exprs(index, "normalized_shape");
  if (failed(shape))
    return failure();
  if (shape->empty() || int64_t(shape->size()) > x.rank())
    return n.refuse("normalized_shape does not fit the input");
  return trailingScheme(n, x.rank(), shape->size());
}

/// `native_layer_norm(input, normalized_shape, weight, bias, eps)` and `layer_norm(…)`, which has one result.
LogicalResult lowerLayerNorm(NodeImporter &n) {
  FailureOr<Tensor> input = n.tensor(0, "input");
  FailureOr<double> eps = n.real(4, "eps", 1e-5);
  if (failed(input) || failed(eps))
    return failure();
  FailureOr<Scheme> s = trailingSchemeOf(n, *input, 1);
  if (failed(s))
    return failure();
  DType dtype = computeDType(input->dtype);
  Tensor x = n.cast(*input, dtype);
  Moments m = momentsOver(n, x, s->dims, *eps);
  Tensor out = normalized(n, x, m, *s, castOrNone(n, n.optionalTensor(2, "weight"), dtype),
                          castOrNone(n, n.optionalTensor(3, "bias"), dtype));
  if (n.numResults() == 1)
    return n.yield(out);
  return n.yield({out, keepDims(n, n.cast(m.mean, n.resultDType(1)), s->dims),
                  keepDims(n, n.cast(m.rstd, n.resultDType(2)), s->dims)});
}

/// A statistic as a forward op left it, without its dimensions of size 1.
Tensor withoutDims(NodeImporter &n, const Tensor &statistic, Dims dims, DType dtype) {
  SmallVector<AffineExpr> sizes, indices;
  for (int64_t d = 0; d < statistic.rank(); ++d) {
    if (llvm::is_contained(dims, d)) {
      indices.push_back(n.constant(0));
      continue;
    }
    indices.push_back(n.b.getAffineDimExpr(sizes.size()));
    sizes.push_back(statistic.sizes[d]);
  }
  return n.cast(n.view(statistic, sizes, indices), dtype);
}

/// `native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)`.
LogicalResult lowerLayerNormBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_out"), input = n.tensor(1, "input");
  FailureOr<Tensor> mean = n.tensor(3, "mean"), rstd = n.tensor(4, "rstd");
  if (failed(gradient) || failed(input) || failed(mean) || failed(rstd))
    return failure();
  FailureOr<Scheme> s = trailingSchemeOf(n, *input, 2);
  if (failed(s))
    return failure();
  DType dtype = computeDType(input->dtype);
  Tensor x = n.cast(*input, dtype), g = n.cast(*gradient, dtype);
  Moments m;
  m.mean = withoutDims(n, *mean, s->dims, dtype);
  m.rstd = withoutDims(n, *rstd, s->dims, dtype);
  SmallVector<int64_t> leading = llvm::to_vector(llvm::seq<int64_t>(0, s->dims.front()));
  SmallVector<Tensor> results(3);
  if (wants(n, 7, 0))
    results[0] = inputGradient(n, g, x, m, *s, castOrNone(n, n.optionalTensor(5, "weight"), dtype));
  if (wants(n, 7, 1))
    results[1] = weightGradient(n, g, x, m, *s, leading);
  if (wants(n, 7, 2))
    results[2] = sumOver(n, g, leading);
  return n.yield(results);
}

/// `_fused_rms_norm(input, normalized_shape, weight, eps)`, with the reciprocal root as second result, and `rms_norm`.
LogicalResult lowerRmsNorm(NodeImporter &n) {
  FailureOr<Tensor> input = n.tensor(0, "input");
  if (failed(input))
    return failure();
  double smallest = input->dtype == DType::F64 ? std::numeric_limits<double>::epsilon()
                                               : double(std::numeric_limits<float>::epsilon());
  FailureOr<double> eps = n.real(3, "eps", smallest);
  FailureOr<Scheme> s = trailingSchemeOf(n, *input, 1);
  if (failed(eps) || failed(s))
    return failure();
  DType dtype = computeDType(input->dtype);
  Tensor x = n.cast(*input, dtype);
  Tensor squares = compute(n, x, [](ArrayRef<Scalar> s) { return s[0] * s[0]; });
  Moments m;
  m.rstd = compute(n, meanOver(n, squares, s->dims), [&](ArrayRef<Scalar> s) { return rsqrt(s[0] + *eps); });
  Tensor out = normalized(n, x, m, *s, castOrNone(n, n.optionalTensor(2, "weight"), dtype), {});
  if (n.numResults() == 1)
    return n.yield(out);
  return n.yield({out, keepDims(n, n.cast(m.rstd, n.resultDType(1)), s->dims)});
}

//===-- Group norm ------------------------------------------------------------------------------------------------===//

/// The input [N, C, spatial...] as [N, groups, C / groups, spatial...], by which a group is a set of dimensions.
struct Groups {
  SmallVector<AffineExpr> sizes;
  Scheme scheme;

  static FailureOr<Groups> get(NodeImporter &n, const Tensor &x, int64_t groups) {
    if (x.rank() < 2 || groups <= 0)
      return n.refuse("group norm of a tensor without channels");
    if (x.size(1).value_or(0) % groups != 0)
      return n.refuse("the number of channels is no multiple of the number of groups");
    Groups result;
    result.sizes = {x.sizes[0], n.constant(groups), normalize(x.sizes[1].floorDiv(groups))};
    result.sizes.append(x.sizes.begin() + 2, x.sizes.end());
    int64_t rank = result.sizes.size();
    Scheme &s = result.scheme;
    s.dims = llvm::to_vector(llvm::seq<int64_t>(2, rank));
    s.identity = n.b.getMultiDimIdentityMap(rank);
    s.kept = keptMap(n, rank, s.dims);
    s.weights = AffineMap::get(rank, 0, {n.b.getAffineDimExpr(1), n.b.getAffineDimExpr(2)}, n.b.getContext());
    return result;
  }

  Tensor split(NodeImporter &n, const Tensor &x) const {
    SmallVector<AffineExpr> indices = {n.b.getAffineDimExpr(0),
                                       n.b.getAffineDimExpr(1) * sizes[2] + n.b.getAffineDimExpr(2)};
    for (unsigned d = 3; d < sizes.size(); ++d)
      indices.push_back(n.b.getAffineDimExpr(d));
    return n.view(x, sizes, indices);
  }
  /// Weights [C] as [groups, C / groups].
  Tensor splitWeights(NodeImporter &n, const std::optional<Tensor> &weights, DType dtype) const {
    if (!weights)
      return {};
    AffineExpr index = n.b.getAffineDimExpr(0) * sizes[2] + n.b.getAffineDimExpr(1);
    return n.view(n.cast(*weights, dtype), {sizes[1], sizes[2]}, index);
  }
};

/// `native_group_norm(input, weight, bias, N, C, HxW, group, eps)` and `group_norm(input, num_groups, weight, bias,
/// eps)`.
LogicalResult lowerGroupNorm(NodeImporter &n) {
  bool isNative = n.numResults() > 1;
  FailureOr<Tensor> input = n.tensor(0, "input");
  FailureOr<int64_t> count = isNative ? n.integer(6, "group") : n.integer(1, "num_groups");
  FailureOr<double> eps = isNative ? n.real(7, "eps") : n.real(4, "eps", 1e-5);
  if (failed(input) || failed(count) || failed(eps))
    return failure();
  FailureOr<Groups> groups = Groups::get(n, *input, *count);
  if (failed(groups))
    return failure();
  DType dtype = computeDType(input->dtype);
  Tensor x = groups->split(n, n.cast(*input, dtype));
  Moments m = momentsOver(n, x, groups->scheme.dims, *eps);
  Tensor weight = groups->splitWeights(n, n.optionalTensor(isNative ? 1 : 2, "weight"), dtype);
  Tensor bias = groups->splitWeights(n, n.optionalTensor(isNative ? 2 : 3, "bias"), dtype);
  Tensor out = n.cast(normalized(n, x, m, groups->scheme, weight, bias), n.resultDType());
  out = n.reshape(out, input->sizes);
  return isNative ? n.yield({out, m.mean, m.rstd}) : n.yield(out);
}

/// `native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)`.
LogicalResult lowerGroupNormBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_out"), input = n.tensor(1, "input");
  FailureOr<Tensor> mean = n.tensor(2, "mean"), rstd = n.tensor(3, "rstd");
  FailureOr<int64_t> count = n.integer(8, "group");
  if (failed(gradient) || failed(input) || failed(mean) || failed(rstd) || failed(count))
    return failure();
  FailureOr<Groups> groups = Groups::get(n, *input, *count);
  if (failed(groups))
    return failure();
  const Scheme &s = groups->scheme;
  DType dtype = computeDType(input->dtype);
  Tensor x = groups->split(n, n.cast(*input, dtype)), g = groups->split(n, n.cast(*gradient, dtype));
  Moments m;
  m.mean = n.cast(*mean, dtype);
  m.rstd = n.cast(*rstd, dtype);
  SmallVector<int64_t> others = {0};
  llvm::append_range(others, llvm::seq<int64_t>(3, x.rank()));
  SmallVector<Tensor> results(3);
  if (wants(n, 9, 0)) {
    Tensor dx = inputGradient(n, g, x, m, s, groups->splitWeights(n, n.optionalTensor(4, "weight"), dtype));
    results[0] = n.reshape(n.cast(dx, n.resultDType(0)), input->sizes);
  }
  if (wants(n, 9, 1))
    results[1] = n.reshape(weightGradient(n, g, x, m, s, others), n.resultSizes(1));
  if (wants(n, 9, 2))
    results[2] = n.reshape(sumOver(n, g, others), n.resultSizes(2));
  return n.yield(results);
}

} // namespace

void populateNormalization(LoweringTable &table) {
  table.add({"aten.native_layer_norm.default", "aten.layer_norm.default"}, lowerLayerNorm);
  table.add("aten.native_layer_norm_backward.default", lowerLayerNormBackward);
  table.add({"aten._fused_rms_norm.default", "aten.rms_norm.default"}, lowerRmsNorm);
  table.add({"aten.native_group_norm.default", "aten.group_norm.default"}, lowerGroupNorm);
  table.add("aten.native_group_norm_backward.default", lowerGroupNormBackward);
}

} // namespace accel
