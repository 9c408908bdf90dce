/// Resizing by the nearest elements or by linear interpolation: gathers at positions that follow from the result's.
#include "compiler/import/Families.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/ScalarMath.h"
#include "compiler/import/Windows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;

namespace accel {
namespace {

/// One resized dimension. Positions are computed in `dtype`, as in eager.
struct ResizedAxis {
  int64_t dim;
  AffineExpr from, to;
  SizeScalar fromSize, toSize;
  std::optional<double> factor; // to / from as the user gave it
  DType dtype;

  bool isSame() const { return from == to; }

  /// The step in the tensor for one step in the result, where corners aren't aligned.
  Scalar scale(ImplicitLocOpBuilder &b) const {
    if (factor)
      return number(b, 1.0 / *factor);
    return Scalar(b, fromSize.as(b, dtype), dtype) / Scalar(b, toSize.as(b, dtype), dtype);
  }
  Scalar alignedScale(ImplicitLocOpBuilder &b) const {
    Scalar gaps = Scalar(b, toSize.as(b, dtype), dtype) - 1.0, source = Scalar(b, fromSize.as(b, dtype), dtype) - 1.0;
    return select(gaps > 0, source / maximum(gaps, 1.0), 0.0);
  }
  Scalar number(ImplicitLocOpBuilder &b, double value) const { return {b, scalarConstant(b, value, dtype), dtype}; }
  /// Where the result's element is, as i32.
  Scalar position(ImplicitLocOpBuilder &b) const {
    return {b, fromIndex(b, loopIndex(b, dim), DType::I32), DType::I32};
  }
  /// scale * (position + 0.5) - 0.5 rounded once, as by the fused instruction that eager's compiler makes of it.
  Scalar centredPosition(ImplicitLocOpBuilder &b) const {
    Scalar at = position(b).to(DType::F64) + 0.5;
    return (at * scale(b).to(DType::F64) - 0.5).to(dtype);
  }
  Scalar last(ImplicitLocOpBuilder &b) const { return Scalar(b, fromSize.as(b, DType::I32), DType::I32) - 1; }
};

/// Reads `output_size` as argument 1 and the factors from argument `index` on; `self` has the channels in dimension 1.
FailureOr<SmallVector<ResizedAxis>> resizedAxes(NodeImporter &n, const Tensor &self, unsigned index,
                                                bool channelsLast) {
  static constexpr StringRef names[] = {"scales_d", "scales_h", "scales_w"};
  SmallVector<AffineExpr> sizes = n.resultSizes();
  if (self.rank() < 3 || int64_t(sizes.size()) != self.rank())
    return n.refuse("resizing of a tensor without channels");
  SmallVector<ResizedAxis> axes;
  unsigned spatial = self.rank() - 2;
  // Eager's kernels for channels in front compute positions in the tensor's dtype.
  DType dtype = self.dtype == DType::F64 && !channelsLast ? DType::F64 : DType::F32;
  for (unsigned a = 0; a < spatial; ++a) {
    StringRef name = spatial == 1 ? StringRef("scales") : names[3 - spatial + a];
    std::optional<double> factor;
    if (n.arg(index + a, name)) {
      FailureOr<double> given = n.real(index + a, name);
      if (failed(given))
        return failure();
      if (*given > 0)
        factor = *given;
    }
    axes.push_back({int64_t(a) + 2, self.sizes[a + 2], sizes[a + 2], SizeScalar(n, self.sizes[a + 2]),
                    SizeScalar(n, sizes[a + 2]), factor, dtype});
  }
  return axes;
}

/// The element of `source` at the loops' positions, but for those of the axes.
Scalar elementAt(ImplicitLocOpBuilder &b, const Tensor &source, ArrayRef<Scalar> positions) {
  SmallVector<Value> at = {loopIndex(b, 0), loopIndex(b, 1)};
  for (Scalar position : positions)
    at.push_back(toIndex(b, position.value(), position.dtype()));
  return {b, tensor::ExtractOp::create(b, source.value, at), source.dtype};
}

//===-- Nearest ---------------------------------------------------------------------------------------------------===//

/// The position in the tensor that is nearest, by eager's rounding.
Scalar nearestPosition(ImplicitLocOpBuilder &b, const ResizedAxis &axis, bool isExact, bool channelsLast) {
  Scalar at = axis.position(b);
  if (axis.isSame())
    return at;
  Scalar real = at.to(axis.dtype);
  if (!isExact)
    real = real * axis.scale(b);
  else if (channelsLast)
    real = (real + 0.5) * axis.scale(b);
  else
    real = atLeast(axis.centredPosition(b), 0) + 0.5;
  return minimum(maximum(floor(real).to(DType::I32), 0), axis.last(b));
}

/// `upsample_nearest{1,2,3}d(self, output_size, scales…)` and `_upsample_nearest_exact…`.
template <bool IsExact> LogicalResult lowerNearest(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  bool channelsLast = isChannelsLast(n, 0, "self", self->rank() - 2);
  FailureOr<SmallVector<ResizedAxis>> axes = resizedAxes(n, *self, 2, channelsLast);
  if (failed(axes))
    return failure();
  return n.yield(n.pointwise({}, n.resultSizes(), self->dtype, [&](ImplicitLocOpBuilder &b, ValueRange) {
    SmallVector<Scalar> positions;
    for (const ResizedAxis &axis : *axes)
      positions.push_back(nearestPosition(b, axis, IsExact, channelsLast));
    return elementAt(b, *self, positions).value();
  }));
}

/// The whole number of elements that each element becomes along a dimension, if it does in f32 as in truth.
std::optional<int64_t> wholeFactor(AffineExpr from, AffineExpr to, double given, bool isExact) {
  auto size = dyn_cast<AffineConstantExpr>(from), count = dyn_cast<AffineConstantExpr>(to);
  if (!size || !count || size.getValue() == 0 || count.getValue() == 0 || count.getValue() % size.getValue() != 0)
    return std::nullopt;
  int64_t factor = count.getValue() / size.getValue();
  float scale = given > 0 ? float(1.0 / given) : float(size.getValue()) / float(count.getValue());
  for (int64_t i = 0; i < count.getValue(); ++i) {
    float position = (float(i) + (isExact ? 0.5f : 0.0f)) * scale;
    if (std::min<int64_t>(std::floor(position), size.getValue() - 1) != i / factor)
      return std::nullopt;
  }
  return factor;
}

/// `upsample_nearest{1,2,3}d_backward(grad_output, output_size, input_size, scales…)`: sums over the elements that each
/// element became.
template <bool IsExact> LogicalResult lowerNearestBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_output");
  if (failed(gradient))
    return failure();
  SmallVector<AffineExpr> sizes = n.resultSizes();
  if (gradient->rank() < 3 || int64_t(sizes.size()) != gradient->rank())
    return n.refuse("resizing of a tensor without channels");
  Windows w;
  w.x = *gradient;
  for (int64_t dim = 2; dim < gradient->rank(); ++dim) {
    const FxArg *given = n.arg(3 + dim - 2, "");
    double scale = given && given->kind == FxArg::Float ? given->real : 0.0;
    std::optional<int64_t> factor = wholeFactor(sizes[dim], gradient->sizes[dim], scale, IsExact);
    if (!factor)
      return n.refuse("the gradient of resizing by a factor that is not whole");
    w.axes.push_back({dim, *factor, *factor, 0, 1, gradient->sizes[dim], sizes[dim]});
  }
  return n.yield(sumOverWindows(n, w));
}

//===-- Linear ----------------------------------------------------------------------------------------------------===//

/// The two positions beside a real one, and their weights; one position without a weight where nothing is interpolated.
struct Neighbours {
  Scalar position[2];
  std::optional<Scalar> weight[2];
};

Neighbours neighbours(ImplicitLocOpBuilder &b, const ResizedAxis &axis, bool alignCorners, bool isActive) {
  Scalar at = axis.position(b);
  if (!isActive)
    return {{at, at}, {}};
  if (axis.isSame())
    return {{at, at}, {axis.number(b, 1.0), axis.number(b, 0.0)}};
  Scalar real = at.to(axis.dtype);
  real = alignCorners ? real * axis.alignedScale(b) : atLeast(axis.centredPosition(b), 0);
  Scalar low = minimum(maximum(floor(real).to(DType::I32), 0), axis.last(b));
  Scalar weight = clamp(real - low.to(axis.dtype), 0, 1);
  return {{low, minimum(low + 1, axis.last(b))}, {axis.number(b, 1.0) - weight, weight}};
}

/// Interpolates along the axes from number `positions.size()` on, the last one first.
Scalar interpolated(ImplicitLocOpBuilder &b, const Tensor &source, ArrayRef<Neighbours> axes,
                    SmallVectorImpl<Scalar> &positions) {
  if (positions.size() == axes.size())
    return elementAt(b, source, positions).to(computeDType(source.dtype));
  const Neighbours &axis = axes[positions.size()];
  std::optional<Scalar> sum;
  for (unsigned side : {0, 1}) {
    positions.push_back(axis.position[side]);
    Scalar value = interpolated(b, source, axes, positions);
    positions.pop_back();
    if (!axis.weight[0])
      return value;
    Scalar term = value * axis.weight[side]->to(value.dtype());
    sum = sum ? *sum + term : term;
  }
  return *sum;
}

/// Interpolates along the axes for which `isActive`, and leaves the others as they are.
Tensor interpolatedAlong(NodeImporter &n, const Tensor &x, ArrayRef<ResizedAxis> axes, bool alignCorners, DType dtype,
                         llvm::function_ref<bool(unsigned)> isActive) {
  SmallVector<AffineExpr> sizes(x.sizes.begin(), x.sizes.end());
  for (auto [a, axis] : llvm::enumerate(axes))
    if (isActive(a))
      sizes[axis.dim] = axis.to;
  return n.pointwise({}, sizes, dtype, [&](ImplicitLocOpBuilder &b, ValueRange) {
    SmallVector<Neighbours> sides;
    for (auto [a, axis] : llvm::enumerate(axes))
      sides.push_back(neighbours(b, axis, alignCorners, isActive(a)));
    SmallVector<Scalar> positions;
    return interpolated(b, x, sides, positions).to(dtype).value();
  });
}

/// `upsample_{linear1d, bilinear2d, trilinear3d}(self, output_size, align_corners, scales…)`.
LogicalResult lowerLinear(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  if (!isFloat(self->dtype))
    return n.refuse("interpolation of integers");
  FailureOr<SmallVector<ResizedAxis>> axes = resizedAxes(n, *self, 3, false);
  if (failed(axes))
    return failure();
  bool alignCorners = n.boolean(2, "align_corners", false);
  if (isChannelsLast(n, 0, "self", self->rank() - 2))
    return n.yield(interpolatedAlong(n, *self, *axes, alignCorners, self->dtype, [](unsigned) { return true; }));
  // One dimension after the other: only the last pass, along the vectors, is a gather, of two elements and not of all
  // that the result's element comes from.
  Tensor result = *self;
  for (unsigned a = 0; a < axes->size(); ++a) {
    DType dtype = a + 1 == axes->size() ? self->dtype : computeDType(self->dtype);
    result = interpolatedAlong(n, result, *axes, alignCorners, dtype, [&](unsigned other) { return other == a; });
  }
  return n.yield(result);
}

} // namespace

void populateUpsample(LoweringTable &table) {
  table.add({"aten.upsample_nearest1d.default", "aten.upsample_nearest2d.default", "aten.upsample_nearest3d.default"},
            lowerNearest<false>);
  table.add({"aten._upsample_nearest_exact1d.default", "aten._upsample_nearest_exact2d.default",
             "aten._upsample_nearest_exact3d.default"},
            lowerNearest<true>);
  table.add({"aten.upsample_linear1d.default", "aten.upsample_bilinear2d.default", "aten.upsample_trilinear3d.default"},
            lowerLinear);
  table.add({"aten.upsample_nearest1d_backward.default", "aten.upsample_nearest2d_backward.default",
             "aten.upsample_nearest3d_backward.default"},
            lowerNearestBackward<false>);
  table.add({"aten._upsample_nearest_exact1d_backward.default", "aten._upsample_nearest_exact2d_backward.default",
             "aten._upsample_nearest_exact3d_backward.default"},
            lowerNearestBackward<true>);
}

} // namespace accel
