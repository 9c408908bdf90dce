/// The negative log likelihood, which is the second half of cross entropy; losses of differences.
#include "compiler/import/Families.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/ReductionMath.h"
#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace accel {
namespace {

/// `at::Reduction`.
enum ReductionMode : int64_t { kNone = 0, kMean = 1, kSum = 2 };

/// What forward and backward share. The classes are dimension 1 of `self`, or 0 if it has no batch.
struct Nll {
  Tensor self, target;
  Tensor weight; // without a value if there is none: then each class weighs 1
  int64_t mode = kMean, ignored = -100;
  int64_t classDim = 1;
  DType dtype = DType::F32; // to compute in

  /// Arguments `self, target, weight, reduction, ignore_index` from `first` on.
  static FailureOr<Nll> get(NodeImporter &n, unsigned first) {
    FailureOr<Tensor> self = n.tensor(first, "self"), target = n.tensor(first + 1, "target");
    FailureOr<int64_t> mode = n.integer(first + 3, "reduction"), ignored = n.integer(first + 4, "ignore_index");
    if (failed(self) || failed(target) || failed(mode) || failed(ignored))
      return failure();
    if (target->rank() + 1 != self->rank() || target->dtype != DType::I64)
      return n.refuse("the target does not fit the input");
    return Nll{*self,
               *target,
               n.optionalTensor(first + 2, "weight").value_or(Tensor()),
               *mode,
               *ignored,
               self->rank() == 1 ? 0 : 1,
               computeDType(self->dtype)};
  }

  Scalar isIgnored(Scalar label) const {
    return label == label.with(integerConstant(label.builder(), ignored, target.dtype));
  }
  /// An ignored label may lie outside the classes, so it reads class 0.
  Value index(Scalar label) const {
    return toIndex(label.builder(), select(isIgnored(label), 0.0, label).value(), target.dtype);
  }
  Scalar extract(ImplicitLocOpBuilder &b, const Tensor &source, ValueRange indices) const {
    return Scalar(b, tensor::ExtractOp::create(b, source.value, indices), source.dtype).to(dtype);
  }
};

/// `nll_loss_forward`: the loss, and the sum of the weights of the labels.
LogicalResult lowerNllForward(NodeImporter &n) {
  FailureOr<Nll> nll = Nll::get(n, 0);
  if (failed(nll))
    return failure();
  const Tensor &target = nll->target;
  AffineMap identity = n.b.getMultiDimIdentityMap(target.rank());
  Tensor weights = compute(n, Operand{target, identity}, target.sizes, nll->dtype, [&](ArrayRef<Scalar> s) {
    ImplicitLocOpBuilder &b = s[0].builder();
    Scalar one(b, scalarConstant(b, 1.0, nll->dtype), nll->dtype);
    Scalar weight = nll->weight.value ? nll->extract(b, nll->weight, nll->index(s[0])) : one;
    return select(nll->isIgnored(s[0]), 0.0, weight);
  });
  Operand operands[] = {{target, identity}, {weights, identity}};
  Tensor losses = compute(n, operands, target.sizes, nll->dtype, [&](ArrayRef<Scalar> s) {
    ImplicitLocOpBuilder &b = s[0].builder();
    SmallVector<Value> indices;
    for (int64_t d = 0; d < target.rank(); ++d)
      indices.push_back(loopIndex(b, d));
    indices.insert(indices.begin() + nll->classDim, nll->index(s[0]));
    // An ignored label's loss is 0 even where the likelihood is no number.
    return select(nll->isIgnored(s[0]), 0.0, -nll->extract(b, nll->self, indices) * s[1]);
  });
  if (nll->mode == kNone && target.rank() > 0)
    return n.yield({losses, n.fill(0.0, n.resultSizes(1), n.resultDType(1))});
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, target.rank()));
  Tensor loss = sumOver(n, losses, dims), total = sumOver(n, weights, dims);
  if (nll->mode == kMean)
    loss = compute(n, {loss, total}, [](ArrayRef<Scalar> s) { return s[0] / s[1]; });
  return n.yield({loss, total});
}

/// `nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)`.
LogicalResult lowerNllBackward(NodeImporter &n) {
  FailureOr<Nll> nll = Nll::get(n, 1);
  FailureOr<Tensor> gradient = n.tensor(0, "grad_output"), total = n.tensor(6, "total_weight");
  if (failed(nll) || failed(gradient) || failed(total))
    return failure();
  int64_t rank = nll->self.rank();
  auto map = [&](ArrayRef<AffineExpr> results) { return AffineMap::get(rank, 0, results, n.b.getContext()); };
  AffineMap perLabel = keptMap(n, rank, nll->classDim);
  Operand operands[] = {{nll->target, perLabel},
                        {*gradient, gradient->rank() == 0 ? map({}) : perLabel},
                        {*total, map({})},
                        {nll->weight, map(n.b.getAffineDimExpr(nll->classDim))}};
  return n.yield(compute(n, operands, nll->self.sizes, nll->dtype, [&](ArrayRef<Scalar> s) {
    ImplicitLocOpBuilder &b = s[0].builder();
    Scalar slope = -s[1].to(nll->dtype);
    if (nll->weight.value)
      slope = slope * s[3].to(nll->dtype);
    if (nll->mode == kMean)
      slope = slope / s[2].to(nll->dtype);
    Scalar isLabel = s[0] == s[0].with(fromIndex(b, loopIndex(b, nll->classDim), nll->target.dtype));
    return select(isLabel & ~nll->isIgnored(s[0]), slope, 0.0);
  }));
}

//===-- Losses of x = self - target -------------------------------------------------------------------------------===//

using DifferenceFormula = Scalar (*)(Scalar x, double parameter);

Scalar square(Scalar x, double) { return x * x; }
Scalar squareSlope(Scalar x, double) { return x * 2.0; }

/// Half the square below `beta`, over `beta`, and a line beyond.
Scalar smoothL1(Scalar x, double beta) {
  Scalar z = abs(x);
  return select(z < beta, z * z * 0.5 / beta, z - 0.5 * beta);
}
Scalar smoothL1Slope(Scalar x, double beta) { return select(x <= -beta, -1.0, select(x >= beta, 1.0, x / beta)); }

/// Half the square up to `delta`, and a line beyond.
Scalar huber(Scalar x, double delta) {
  Scalar z = abs(x);
  return select(z <= delta, z * z * 0.5, (z - 0.5 * delta) * delta);
}
Scalar huberSlope(Scalar x, double delta) { return select(x <= -delta, -delta, select(x >= delta, delta, x)); }

/// Both tensors in the dtype to compute in, and arguments `reduction` and `beta` or `delta`, if there is one.
struct Difference {
  Tensor self, target;
  int64_t mode = kMean;
  double parameter = 1;
  SmallVector<int64_t> dims; // all

  static FailureOr<Difference> get(NodeImporter &n, unsigned first) {
    FailureOr<Tensor> self = n.tensor(first, "self"), target = n.tensor(first + 1, "target");
    FailureOr<int64_t> mode = n.integer(first + 2, "reduction", kMean);
    FailureOr<double> parameter = n.real(first + 3, n.target().contains("huber") ? "delta" : "beta", 1.0);
    if (failed(self) || failed(target) || failed(mode) || failed(parameter))
      return failure();
    DType result = n.resultDType();
    if (!isFloat(result) || self->sizes != target->sizes)
      return n.refuse(isFloat(result) ? "sizes that differ" : "a loss of integers");
    DType dtype = computeDType(result);
    return Difference{n.cast(*self, dtype), n.cast(*target, dtype), *mode, *parameter,
                      llvm::to_vector(llvm::seq<int64_t>(0, self->rank()))};
  }
};

/// `mse_loss(self, target, reduction)`, `smooth_l1_loss(…, beta)`, `huber_loss(…, delta)`.
template <DifferenceFormula value> LogicalResult lowerDifference(NodeImporter &n) {
  FailureOr<Difference> d = Difference::get(n, 0);
  if (failed(d))
    return failure();
  Tensor losses =
      compute(n, {d->self, d->target}, [&](ArrayRef<Scalar> s) { return value(s[0] - s[1], d->parameter); });
  return n.yield(d->mode == kMean  ? meanOver(n, losses, d->dims)
                 : d->mode == kSum ? sumOver(n, losses, d->dims)
                                   : losses);
}

/// `mse_loss_backward(grad_output, self, target, reduction)` and the others'.
template <DifferenceFormula slope> LogicalResult lowerDifferenceBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_output");
  FailureOr<Difference> d = Difference::get(n, 1);
  if (failed(gradient) || failed(d))
    return failure();
  if (gradient->rank() != 0 && gradient->sizes != d->self.sizes)
    return n.refuse("a gradient of other sizes");
  Tensor scaled = n.cast(*gradient, d->self.dtype);
  if (d->mode == kMean)
    scaled = divideByCount(n, scaled, countOver(d->self, d->dims));
  AffineMap identity = n.b.getMultiDimIdentityMap(d->self.rank());
  AffineMap once = AffineMap::get(d->self.rank(), 0, {}, n.b.getContext());
  Operand operands[] = {{d->self, identity}, {d->target, identity}, {scaled, scaled.rank() == 0 ? once : identity}};
  return n.yield(compute(n, operands, d->self.sizes, d->self.dtype,
                         [&](ArrayRef<Scalar> s) { return slope(s[0] - s[1], d->parameter) * s[2]; }));
}

} // namespace

void populateLoss(LoweringTable &table) {
  table.add({"aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default"}, lowerNllForward);
  table.add({"aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default"}, lowerNllBackward);
  table.add("aten.mse_loss.default", lowerDifference<square>);
  table.add("aten.mse_loss_backward.default", lowerDifferenceBackward<squareSlope>);
  table.add("aten.smooth_l1_loss.default", lowerDifference<smoothL1>);
  table.add("aten.smooth_l1_loss_backward.default", lowerDifferenceBackward<smoothL1Slope>);
  table.add("aten.huber_loss.default", lowerDifference<huber>);
  table.add("aten.huber_loss_backward.default", lowerDifferenceBackward<huberSlope>);
}

} // namespace accel
