/// Pooling: the largest element or the mean of each window.
/// A small window is unrolled: one pointwise op over as many views as the window has elements, so that vectors run
/// along the result's rows. A large one is a reduction over one view of all windows.
#include "compiler/import/Families.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/ScalarMath.h"
#include "compiler/import/Windows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <limits>

using namespace mlir;

namespace accel {
namespace {

//===-- Largest ---------------------------------------------------------------------------------------------------===//

/// The larger of the two, the first if they are equal; a NaN wins.
Scalar larger(Scalar x, Scalar best) {
  Scalar result = select(x > best, x, best);
  return isFloat(x.dtype()) ? select(isNaN(x), x, result) : result;
}

/// Positions in a plane of the tensor.
class PlanePositions {
public:
  PlanePositions(NodeImporter &n, const Windows &w) : w(w) {
    AffineExpr count = n.constant(1);
    for (const WindowAxis &axis : llvm::reverse(w.axes)) {
      steps.insert(steps.begin(), SizeScalar(n, count));
      count = normalize(count * axis.size);
    }
    auto constant = dyn_cast<AffineConstantExpr>(count);
    // Border and all, in half the registers.
    isShort = constant && constant.getValue() < std::numeric_limits<int32_t>::max() / 4;
  }

  DType dtype() const { return isShort ? DType::I32 : DType::I64; }
  Scalar step(ImplicitLocOpBuilder &b, unsigned a) const { return {b, steps[a].as(b, dtype()), dtype()}; }
  Scalar constant(ImplicitLocOpBuilder &b, int64_t value) const {
    return {b, integerConstant(b, value, dtype()), dtype()};
  }
  /// Of the window's first element, and of each other beside that.
  Scalar start(ImplicitLocOpBuilder &b) const {
    return sum(b, [&](unsigned a) { return windowStart(b, w.axes[a], dtype()); });
  }
  Scalar tap(ImplicitLocOpBuilder &b, int64_t number) const {
    SmallVector<int64_t> within(w.axes.size());
    for (size_t a = w.axes.size(); a-- > 0; number /= w.axes[a].kernel)
      within[a] = number % w.axes[a].kernel * w.axes[a].dilation;
    return sum(b, [&](unsigned a) { return constant(b, within[a]); });
  }
  /// Of the first element that is not in the border, beside the window's first.
  Scalar firstInside(ImplicitLocOpBuilder &b) const {
    return sum(b, [&](unsigned a) {
      const WindowAxis &axis = w.axes[a];
      if (axis.pad == 0)
        return constant(b, 0);
      Scalar skipped = maximum(-windowStart(b, axis, dtype()), 0);
      return axis.dilation == 1
                 ? skipped
                 : floorDivide(skipped + double(axis.dilation - 1), axis.dilation) * double(axis.dilation);
    });
  }

private:
  Scalar sum(ImplicitLocOpBuilder &b, llvm::function_ref<Scalar(unsigned)> along) const {
    Scalar result = along(w.axes.size() - 1);
    for (size_t a = w.axes.size() - 1; a-- > 0;)
      result = along(a) * step(b, a) + result;
    return result;
  }

  const Windows &w;
  SmallVector<SizeScalar> steps;
  bool isShort = false;
};

Tensor unrolledMaximum(NodeImporter &n, const Windows &w, ArrayRef<Tensor> taps) {
  return computeOver(n, taps, w.x.dtype, [](ArrayRef<Scalar> s) {
    Scalar best = s[0];
    for (Scalar x : s.drop_front())
      best = larger(x, best);
    return best;
  });
}

/// Where the largest elements come from, by eager's scan: the first of equal ones, and the last NaN.
Tensor unrolledPositions(NodeImporter &n, const Windows &w, const Tensor &largest, ArrayRef<Tensor> taps) {
  SmallVector<Tensor> operands = {largest};
  llvm::append_range(operands, taps);
  PlanePositions positions(n, w);
  bool hasBorder = w.isPadded();
  return computeOver(n, operands, DType::I64, [&](ArrayRef<Scalar> s) {
    ImplicitLocOpBuilder &b = s[0].builder();
    ArrayRef<Scalar> elements = s.drop_front();
    Scalar first = positions.firstInside(b), found = first, lastNaN = first;
    for (size_t i = elements.size(); i-- > 0;)
      found = select(elements[i] == s[0], positions.tap(b, i), found);
    if (hasBorder) {
      // Elements equal to the border's value don't count before the first that is no border.
      Scalar lowest = s[0].with(arith::ConstantOp::create(b, lowestValue(b, s[0].dtype())));
      found = select(s[0] == lowest, first, found);
    }
    if (isFloat(s[0].dtype())) {
      for (auto [i, element] : llvm::enumerate(elements))
        lastNaN = select(isNaN(element), positions.tap(b, i), lastNaN);
      found = select(isNaN(s[0]), lastNaN, found);
    }
    return found + positions.start(b);
  });
}

/// Both by a reduction. Elements of the border have a position behind all others.
std::pair<Tensor, Tensor> reducedMaximum(NodeImporter &n, const Windows &w) {
  Tensor all = windowView(n, w, lowestValue(n.b, w.x.dtype));
  all = n.cast(all, computeDType(all.dtype));
  DType dtype = all.dtype;
  Tensor largest = reduceOver(n, all, w.withinDims(), lowestValue(n.b, dtype), larger);
  if (n.numResults() < 2)
    return {largest, Tensor()};
  SmallVector<SizeScalar> sizes;
  for (const WindowAxis &axis : w.axes)
    sizes.emplace_back(n, axis.size);
  Tensor positions = n.pointwise({}, all.sizes, DType::I64, [&](ImplicitLocOpBuilder &b, ValueRange) {
    std::optional<Scalar> position, inside;
    for (auto [a, axis] : llvm::enumerate(w.axes)) {
      Scalar within(b, fromIndex(b, loopIndex(b, w.x.rank() + a), DType::I64), DType::I64);
      Scalar at = windowStart(b, axis, DType::I64) + within * double(axis.dilation);
      Scalar size = at.with(sizes[a].as(b, DType::I64));
      position = position ? *position * size + at : at;
      Scalar isInside = (at >= 0) & (at < size);
      inside = inside ? *inside & isInside : isInside;
    }
    Scalar behind = position->with(arith::ConstantOp::create(b, highestValue(b, DType::I64)));
    return select(*inside, *position, behind).value();
  });
  auto combine = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    Scalar x(b, args[0], dtype), at(b, args[1], DType::I64), best(b, args[2], dtype), bestAt(b, args[3], DType::I64);
    Scalar taken = (x > best) | ((x == best) & (at < bestAt));
    if (isFloat(dtype)) {
      // Of several NaNs the last counts.
      Scalar isLater = isNaN(best) & (at <= bestAt);
      taken = taken | (isNaN(x) & ~isLater);
    }
    return {select(taken, x, best).value(), select(taken, at, bestAt).value()};
  };
  SmallVector<TypedAttr> init = {lowestValue(n.b, dtype), highestValue(n.b, DType::I64)};
  SmallVector<Tensor> results = n.reduce({all, positions}, w.withinDims(), init, combine);
  return {largest, results[1]};
}

/// `max_pool{2,3}d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)`.
template <unsigned Spatial> LogicalResult lowerMaxPool(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  FailureOr<Windows> w = windowsOf(n, *self, n.resultSizes(), 1, Spatial, true);
  if (failed(w))
    return failure();
  w->channelsLast = isChannelsLast(n, 0, "self", Spatial);
  Tensor largest, positions;
  if (w->isUnrolled()) {
    SmallVector<Tensor> taps = tapsOf(n, *w, lowestValue(n.b, w->x.dtype));
    largest = unrolledMaximum(n, *w, taps);
    positions = unrolledPositions(n, *w, largest, taps);
  } else {
    std::tie(largest, positions) = reducedMaximum(n, *w);
  }
  return n.yield({largest, positions});
}

//===-- Means -----------------------------------------------------------------------------------------------------===//

/// What sums over windows are divided by.
class WindowCounts {
public:
  WindowCounts(NodeImporter &n, const Windows &w, bool countsBorder, std::optional<int64_t> given)
      : w(w), countsBorder(countsBorder) {
    bool varies = llvm::any_of(w.axes, [&](const WindowAxis &axis) {
      return w.overruns(axis) || (!countsBorder && (axis.pad > 0 || w.isPadded()));
    });
    if (given || !varies)
      constant = given ? *given : w.numTaps();
    for (const WindowAxis &axis : w.axes)
      ends.emplace_back(n, countsBorder ? normalize(axis.size + axis.pad) : axis.size);
  }

  /// The number for the window whose number along axis `a` is `number(a)`, in i32.
  Scalar of(ImplicitLocOpBuilder &b, llvm::function_ref<Scalar(unsigned)> number, DType dtype) const {
    if (constant)
      return Scalar(b, scalarConstant(b, double(*constant), dtype), dtype);
    std::optional<Scalar> count;
    for (auto [a, axis] : llvm::enumerate(w.axes)) {
      Scalar first = number(a) * double(axis.stride) - double(axis.pad);
      Scalar last = minimum(first + double(axis.kernel), first.with(ends[a].as(b, DType::I32)));
      Scalar along = last - (countsBorder ? first : maximum(first, 0));
      count = count ? *count * along : along;
    }
    return count->to(dtype);
  }
  Scalar here(ImplicitLocOpBuilder &b, DType dtype) const {
    return of(
        b, [&](unsigned a) { return Scalar(b, fromIndex(b, loopIndex(b, w.axes[a].dim), DType::I32), DType::I32); },
        dtype);
  }

private:
  const Windows &w;
  bool countsBorder;
  std::optional<int64_t> constant;
  SmallVector<SizeScalar> ends;
};

Tensor meanOverWindows(NodeImporter &n, const Windows &w, const WindowCounts &counts) {
  return computeOver(n, sumOverWindows(n, w), w.x.dtype,
                     [&](ArrayRef<Scalar> s) { return s[0] / counts.here(s[0].builder(), s[0].dtype()); });
}

FailureOr<WindowCounts> averageCounts(NodeImporter &n, const Windows &w, unsigned index) {
  std::optional<int64_t> given;
  if (n.arg(index + 1, "divisor_override")) {
    FailureOr<int64_t> divisor = n.integer(index + 1, "divisor_override");
    if (failed(divisor))
      return failure();
    given = *divisor;
  }
  return WindowCounts(n, w, n.boolean(index, "count_include_pad", true), given);
}

/// `avg_pool{2,3}d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)`.
template <unsigned Spatial> LogicalResult lowerAvgPool(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  if (!isFloat(self->dtype))
    return n.refuse("the mean of integers");
  FailureOr<Windows> w = windowsOf(n, *self, n.resultSizes(), 1, Spatial, false);
  if (failed(w))
    return failure();
  w->channelsLast = isChannelsLast(n, 0, "self", Spatial);
  FailureOr<WindowCounts> counts = averageCounts(n, *w, 5);
  return failed(counts) ? failure() : n.yield(meanOverWindows(n, *w, *counts));
}

/// Windows that divide the tensor's dimensions evenly, if they do.
std::optional<Windows> evenWindows(const Tensor &tensor, ArrayRef<AffineExpr> counts, unsigned spatial) {
  Windows w;
  w.x = tensor;
  for (int64_t dim = tensor.rank() - spatial; dim < tensor.rank(); ++dim) {
    std::optional<int64_t> size = tensor.size(dim);
    auto count = dyn_cast<AffineConstantExpr>(counts[dim]);
    if (!size || !count || count.getValue() == 0 || *size % count.getValue() != 0 || *size == 0)
      return std::nullopt;
    int64_t kernel = *size / count.getValue();
    w.axes.push_back({dim, kernel, kernel, 0, 1, tensor.sizes[dim], count});
  }
  return w;
}

/// Means over windows of which number `o` goes from floor(o * size / count) to ceil((o + 1) * size / count). The
/// elements are gathered into windows as large as the largest.
FailureOr<Tensor> meanOverUnevenWindows(NodeImporter &n, const Tensor &x, ArrayRef<AffineExpr> counts,
                                        unsigned spatial) {
  int64_t rank = x.rank(), outer = rank - spatial;
  SmallVector<AffineExpr> sizes(counts);
  SmallVector<SizeScalar> extents, numbers;
  for (int64_t dim = outer; dim < rank; ++dim) {
    if (n.lowerBound(x.sizes[dim]).value_or(0) < 1 || n.lowerBound(counts[dim]).value_or(0) < 1)
      return n.refuse("adaptive pooling of a dimension that may be empty");
    extents.emplace_back(n, x.sizes[dim]);
    numbers.emplace_back(n, counts[dim]);
    // A window that starts within an element and ends within another has one more than it is long.
    sizes.push_back(normalize((x.sizes[dim] + counts[dim] - 1).floorDiv(counts[dim]) + 1));
  }
  DType dtype = computeDType(x.dtype);
  auto bounds = [&](ImplicitLocOpBuilder &b, unsigned a) {
    auto scalar = [&](Value v) { return Scalar(b, v, DType::I64); };
    Value one = integerConstant(b, 1, DType::I64), o = fromIndex(b, loopIndex(b, outer + a), DType::I64);
    Value size = extents[a].as(b, DType::I64), count = numbers[a].as(b, DType::I64);
    Value first = arith::DivUIOp::create(b, arith::MulIOp::create(b, o, size), count);
    Value next = arith::MulIOp::create(b, arith::AddIOp::create(b, o, one), size);
    Value rounded = arith::AddIOp::create(b, next, arith::SubIOp::create(b, count, one));
    return std::pair(scalar(first), scalar(arith::DivUIOp::create(b, rounded, count)));
  };
  Tensor all = n.pointwise({}, sizes, dtype, [&](ImplicitLocOpBuilder &b, ValueRange) {
    SmallVector<Value> at;
    for (int64_t d = 0; d < outer; ++d)
      at.push_back(loopIndex(b, d));
    std::optional<Scalar> inside;
    for (unsigned a = 0; a < spatial; ++a) {
      auto [first, end] = bounds(b, a);
      Scalar position = first + first.with(fromIndex(b, loopIndex(b, rank + a), DType::I64));
      Scalar isInside = position < end;
      inside = inside ? *inside & isInside : isInside;
      at.push_back(toIndex(b, minimum(position, end - 1).value(), DType::I64));
    }
    Scalar element(b, tensor::ExtractOp::create(b, x.value, at), x.dtype);
    return select(*inside, element.to(dtype), 0.0).value();
  });
  SmallVector<int64_t> within = llvm::to_vector(llvm::seq<int64_t>(rank, rank + spatial));
  return computeOver(n, sumOver(n, all, within), x.dtype, [&](ArrayRef<Scalar> s) {
    Scalar result = s[0];
    for (unsigned a = 0; a < spatial; ++a) {
      auto [first, end] = bounds(s[0].builder(), a);
      result = result / (end - first).to(dtype);
    }
    return result;
  });
}

/// `_adaptive_avg_pool{2,3}d(self, output_size)`.
template <unsigned Spatial> LogicalResult lowerAdaptiveAvgPool(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  SmallVector<AffineExpr> sizes = n.resultSizes();
  if (self->rank() <= int64_t(Spatial) || sizes.size() != self->sizes.size() || !isFloat(self->dtype))
    return n.refuse("adaptive pooling of integers, or of a tensor without channels");
  if (std::optional<Windows> w = evenWindows(*self, sizes, Spatial)) {
    w->channelsLast = isChannelsLast(n, 0, "self", Spatial);
    return n.yield(meanOverWindows(n, *w, WindowCounts(n, *w, true, {})));
  }
  FailureOr<Tensor> means = meanOverUnevenWindows(n, *self, sizes, Spatial);
  return failed(means) ? failure() : n.yield(*means);
}

//===-- Gradients -------------------------------------------------------------------------------------------------===//

/// The sum, over the windows that an element is in, of `term(numbers, inside)`: the numbers of the window along the
/// axes, clamped to those that there are, and whether the element is in that window. Windows come in ascending order,
/// as eager adds them.
Tensor sumOverOwnWindows(NodeImporter &n, const Windows &w, DType dtype,
                         llvm::function_ref<Scalar(ImplicitLocOpBuilder &, ArrayRef<Scalar>, Scalar)> term) {
  SmallVector<SizeScalar> counts;
  for (const WindowAxis &axis : w.axes)
    counts.emplace_back(n, axis.count);
  DType compute = computeDType(dtype);
  return n.pointwise({}, w.x.sizes, dtype, [&](ImplicitLocOpBuilder &b, ValueRange) {
    SmallVector<SmallVector<Scalar>> numbers, insides;
    for (auto [a, axis] : llvm::enumerate(w.axes)) {
      Scalar at(b, fromIndex(b, loopIndex(b, axis.dim), DType::I64), DType::I64);
      at = at + double(axis.pad);
      Scalar last = axis.stride == 1 ? at : floorDivide(at, axis.stride), end = at.with(counts[a].as(b, DType::I64));
      numbers.emplace_back();
      insides.emplace_back();
      for (int64_t before = (axis.kernel - 1) / axis.stride; before >= 0; --before) {
        Scalar number = last - double(before);
        Scalar inside = (number >= 0) & (number < end) & (at - number * double(axis.stride) < double(axis.kernel));
        insides.back().push_back(inside);
        numbers.back().push_back(maximum(minimum(number, end - 1), 0));
      }
    }
    std::optional<Scalar> sum;
    SmallVector<unsigned> chosen(w.axes.size());
    while (true) {
      SmallVector<Scalar> number;
      std::optional<Scalar> inside;
      for (auto [a, c] : llvm::enumerate(chosen)) {
        number.push_back(numbers[a][c]);
        inside = inside ? *inside & insides[a][c] : insides[a][c];
      }
      Scalar next = term(b, number, *inside);
      sum = sum ? *sum + next : next;
      int64_t a = int64_t(chosen.size()) - 1;
      while (a >= 0 && ++chosen[a] == numbers[a].size())
        chosen[a--] = 0;
      if (a < 0)
        break;
    }
    return sum->to(compute).to(dtype).value();
  });
}

/// The element of a tensor shaped like the pooling's result for window `numbers`.
Scalar ofWindow(ImplicitLocOpBuilder &b, const Windows &w, const Tensor &tensor, ArrayRef<Scalar> numbers) {
  SmallVector<Value> at;
  for (int64_t d = 0; d < w.axes.front().dim; ++d)
    at.push_back(loopIndex(b, d));
  for (Scalar number : numbers)
    at.push_back(toIndex(b, number.value(), DType::I64));
  return Scalar(b, tensor::ExtractOp::create(b, tensor.value, at), tensor.dtype).to(computeDType(tensor.dtype));
}

/// Windows that an element may be in for its gradient to be unrolled.
constexpr int64_t kMaxOverlap = 32;

/// Refuses what would be unrolled too far, or has no element to read.
LogicalResult checkGradient(NodeImporter &n, const Windows &w) {
  int64_t windows = 1;
  for (const WindowAxis &axis : w.axes) {
    windows *= (axis.kernel - 1) / axis.stride + 1;
    if (axis.dilation != 1)
      return n.refuse("the gradient of windows with gaps");
    if (n.lowerBound(axis.count).value_or(0) < 1)
      return n.refuse("the gradient of pooling that may have no result");
  }
  return windows <= kMaxOverlap ? success() : n.refuse("the gradient of windows that overlap many others");
}

/// `max_pool{2,3}d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode,
/// indices)`.
template <unsigned Spatial> LogicalResult lowerMaxPoolBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_output"), self = n.tensor(1, "self"), indices = n.tensor(7, "indices");
  if (failed(gradient) || failed(self) || failed(indices))
    return failure();
  FailureOr<Windows> w = windowsOf(n, *self, gradient->sizes, 2, Spatial, true);
  if (failed(w) || failed(checkGradient(n, *w)))
    return failure();
  SmallVector<SizeScalar> sizes;
  for (const WindowAxis &axis : w->axes)
    sizes.emplace_back(n, axis.size);
  return n.yield(
      sumOverOwnWindows(n, *w, self->dtype, [&](ImplicitLocOpBuilder &b, ArrayRef<Scalar> numbers, Scalar inside) {
        std::optional<Scalar> position;
        for (auto [a, axis] : llvm::enumerate(w->axes)) {
          Scalar at(b, fromIndex(b, loopIndex(b, axis.dim), DType::I64), DType::I64);
          position = position ? *position * at.with(sizes[a].as(b, DType::I64)) + at : at;
        }
        Scalar isSource = inside & (ofWindow(b, *w, *indices, numbers) == *position);
        return select(isSource, ofWindow(b, *w, *gradient, numbers), 0.0);
      }));
}

LogicalResult yieldMeanGradient(NodeImporter &n, const Windows &w, const Tensor &gradient, const WindowCounts &counts) {
  return n.yield(
      sumOverOwnWindows(n, w, w.x.dtype, [&](ImplicitLocOpBuilder &b, ArrayRef<Scalar> numbers, Scalar inside) {
        Scalar g = ofWindow(b, w, gradient, numbers);
        Scalar count = counts.of(b, [&](unsigned a) { return numbers[a].to(DType::I32); }, g.dtype());
        return select(inside, g / count, 0.0);
      }));
}

/// `avg_pool{2,3}d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
/// divisor_override)`.
template <unsigned Spatial> LogicalResult lowerAvgPoolBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_output"), self = n.tensor(1, "self");
  if (failed(gradient) || failed(self))
    return failure();
  FailureOr<Windows> w = windowsOf(n, *self, gradient->sizes, 2, Spatial, false);
  if (failed(w) || failed(checkGradient(n, *w)))
    return failure();
  FailureOr<WindowCounts> counts = averageCounts(n, *w, 6);
  return failed(counts) ? failure() : yieldMeanGradient(n, *w, *gradient, *counts);
}

/// `_adaptive_avg_pool{2,3}d_backward(grad_output, self)`.
template <unsigned Spatial> LogicalResult lowerAdaptiveAvgPoolBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_output"), self = n.tensor(1, "self");
  if (failed(gradient) || failed(self))
    return failure();
  if (self->rank() <= int64_t(Spatial) || gradient->rank() != self->rank())
    return n.refuse("adaptive pooling of a tensor without channels");
  std::optional<Windows> w = evenWindows(*self, gradient->sizes, Spatial);
  if (!w)
    return n.refuse("the gradient of adaptive pooling whose windows differ in size");
  return yieldMeanGradient(n, *w, *gradient, WindowCounts(n, *w, true, {}));
}

} // namespace

void populatePooling(LoweringTable &table) {
  table.add("aten.max_pool2d_with_indices.default", lowerMaxPool<2>);
  table.add("aten.max_pool3d_with_indices.default", lowerMaxPool<3>);
  table.add("aten.avg_pool2d.default", lowerAvgPool<2>);
  table.add("aten.avg_pool3d.default", lowerAvgPool<3>);
  table.add("aten._adaptive_avg_pool2d.default", lowerAdaptiveAvgPool<2>);
  table.add("aten._adaptive_avg_pool3d.default", lowerAdaptiveAvgPool<3>);
  table.add("aten.max_pool2d_with_indices_backward.default", lowerMaxPoolBackward<2>);
  table.add("aten.max_pool3d_with_indices_backward.default", lowerMaxPoolBackward<3>);
  table.add("aten.avg_pool2d_backward.default", lowerAvgPoolBackward<2>);
  table.add("aten.avg_pool3d_backward.default", lowerAvgPoolBackward<3>);
  table.add("aten._adaptive_avg_pool2d_backward.default", lowerAdaptiveAvgPoolBackward<2>);
  table.add("aten._adaptive_avg_pool3d_backward.default", lowerAdaptiveAvgPoolBackward<3>);
}

} // namespace accel
