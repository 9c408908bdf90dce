#include "compiler/import/Windows.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace accel {
namespace {

/// Elements of the largest window that is unrolled. Measured with AVX-512: up to 4 x 4 a reduction is never faster, and
/// with a stride 2.5 times slower; at 5 x 5 it is a fifth faster.
constexpr int64_t kMaxUnrolled = 16;

/// One integer for each axis; one stands for all.
FailureOr<SmallVector<int64_t>> perAxis(NodeImporter &n, unsigned index, StringRef keyword, unsigned count,
                                        ArrayRef<int64_t> fallback) {
  FailureOr<SmallVector<int64_t>> values = n.integers(index, keyword);
  if (failed(values))
    return failure();
  if (values->empty())
    values->assign(fallback.begin(), fallback.end());
  if (values->size() == 1)
    values->resize(count, values->front());
  if (values->size() != count)
    return n.refuse("argument '" + keyword + "' has not one number for each dimension of a window");
  return values;
}

std::optional<int64_t> constantOf(AffineExpr expr) {
  auto constant = dyn_cast<AffineConstantExpr>(expr);
  return constant ? std::optional<int64_t>(constant.getValue()) : std::nullopt;
}

/// Elements to add behind a dimension so that the last window has all of its own. May be more than needed where the
/// size is symbolic.
int64_t padBehind(const WindowAxis &axis, bool ceilMode) {
  std::optional<int64_t> size = constantOf(axis.size), count = constantOf(axis.count);
  if (size && count)
    return std::max<int64_t>(0, (*count - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1 - *size - axis.pad);
  return axis.pad + (ceilMode ? axis.stride - 1 : 0);
}

/// The order of the dimensions in memory.
SmallVector<int64_t> memoryOrder(const Windows &w) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, w.x.rank()));
  if (w.channelsLast)
    std::rotate(order.begin() + w.axes.front().dim - 1, order.begin() + w.axes.front().dim, order.end());
  return order;
}

/// The tensor with a border, its dimensions in the order that they have in memory: a producer can write it in place.
Tensor withBorder(NodeImporter &n, const Windows &w, ArrayRef<int64_t> order, TypedAttr border) {
  Tensor result = llvm::is_sorted(order) ? w.x : n.permute(w.x, order);
  for (const WindowAxis &axis : llvm::reverse(w.axes)) {
    int64_t dim = llvm::find(order, axis.dim) - order.begin(), behind = padBehind(axis, w.ceilMode);
    auto filled = [&](int64_t amount) {
      SmallVector<AffineExpr> sizes(result.sizes.begin(), result.sizes.end());
      sizes[dim] = n.constant(amount);
      return n.pointwise({}, sizes, result.dtype, [&](ImplicitLocOpBuilder &b, ValueRange) {
        return arith::ConstantOp::create(b, border).getResult();
      });
    };
    SmallVector<Tensor> parts;
    if (axis.pad > 0)
      parts.push_back(filled(axis.pad));
    parts.push_back(result);
    if (behind > 0)
      parts.push_back(filled(behind));
    if (parts.size() > 1)
      result = n.concat(parts, dim);
  }
  return result;
}

/// A view of the bordered tensor. `within(axis)` is the position in the window along an axis.
Tensor windowPart(NodeImporter &n, const Windows &w, const Tensor &bordered, ArrayRef<int64_t> order,
                  ArrayRef<AffineExpr> sizes, llvm::function_ref<AffineExpr(unsigned)> within) {
  SmallVector<AffineExpr> indices;
  for (int64_t d : order) {
    AffineExpr index = n.b.getAffineDimExpr(d);
    for (auto [a, axis] : llvm::enumerate(w.axes))
      if (axis.dim == d)
        index = index * axis.stride + within(a) * axis.dilation;
    indices.push_back(index);
  }
  return n.view(bordered, sizes, indices);
}

} // namespace

SmallVector<AffineExpr> Windows::sizes() const {
  SmallVector<AffineExpr> result(x.sizes.begin(), x.sizes.end());
  for (const WindowAxis &axis : axes)
    result[axis.dim] = axis.count;
  return result;
}

int64_t Windows::numTaps() const {
  int64_t taps = 1;
  for (const WindowAxis &axis : axes)
    taps *= axis.kernel;
  return taps;
}

bool Windows::isPadded() const {
  return llvm::any_of(axes, [&](const WindowAxis &axis) { return axis.pad > 0 || padBehind(axis, ceilMode) > 0; });
}

bool Windows::overruns(const WindowAxis &axis) const { return padBehind(axis, ceilMode) > axis.pad; }

SmallVector<int64_t> Windows::withinDims() const {
  return llvm::to_vector(llvm::seq<int64_t>(x.rank(), x.rank() + axes.size()));
}

bool Windows::isUnrolled() const {
  bool isWhole = llvm::all_of(axes, [](const WindowAxis &axis) { return constantOf(axis.count) == 1; });
  return !isWhole && numTaps() <= kMaxUnrolled;
}

bool isChannelsLast(NodeImporter &n, unsigned index, StringRef keyword, unsigned spatial) {
  FailureOr<NodeImporter::EagerLayout> layout = n.eagerLayout(index, keyword);
  if (failed(layout)) {
    n.reason.clear();
    return false;
  }
  FailureOr<Tensor> tensor = n.tensor(index, keyword);
  int64_t channels = int64_t(layout->strides.size()) - spatial - 1;
  if (failed(tensor) || channels < 0)
    return false;
  return !tensor->isUnit(channels) && layout->strides[channels] == n.constant(1);
}

FailureOr<Windows> windowsOf(NodeImporter &n, const Tensor &tensor, ArrayRef<AffineExpr> counts, unsigned index,
                             unsigned spatial, bool hasDilation) {
  auto kernel = perAxis(n, index, "kernel_size", spatial, {});
  if (failed(kernel))
    return failure();
  auto stride = perAxis(n, index + 1, "stride", spatial, *kernel);
  auto padding = perAxis(n, index + 2, "padding", spatial, {0});
  auto dilation = hasDilation ? perAxis(n, index + 3, "dilation", spatial, {1})
                              : FailureOr<SmallVector<int64_t>>(SmallVector<int64_t>(spatial, 1));
  if (failed(stride) || failed(padding) || failed(dilation))
    return failure();
  if (tensor.rank() <= int64_t(spatial) || counts.size() < spatial)
    return n.refuse("pooling of a tensor without channels");
  Windows w;
  w.x = tensor;
  w.ceilMode = n.boolean(index + (hasDilation ? 4 : 3), "ceil_mode", false);
  for (unsigned a = 0; a < spatial; ++a) {
    int64_t dim = tensor.rank() - spatial + a;
    w.axes.push_back({dim, (*kernel)[a], (*stride)[a], (*padding)[a], (*dilation)[a], tensor.sizes[dim],
                      counts[counts.size() - spatial + a]});
  }
  return w;
}

SmallVector<Tensor> tapsOf(NodeImporter &n, const Windows &w, TypedAttr border) {
  SmallVector<int64_t> order = memoryOrder(w);
  Tensor bordered = withBorder(n, w, order, border);
  SmallVector<Tensor> taps;
  for (int64_t tap = 0; tap < w.numTaps(); ++tap) {
    int64_t rest = tap;
    SmallVector<AffineExpr> within(w.axes.size());
    for (size_t a = w.axes.size(); a-- > 0; rest /= w.axes[a].kernel)
      within[a] = n.constant(rest % w.axes[a].kernel);
    taps.push_back(windowPart(n, w, bordered, order, w.sizes(), [&](unsigned a) { return within[a]; }));
  }
  return taps;
}

Tensor windowView(NodeImporter &n, const Windows &w, TypedAttr border) {
  SmallVector<int64_t> order = memoryOrder(w);
  Tensor bordered = withBorder(n, w, order, border);
  SmallVector<AffineExpr> sizes = w.sizes();
  unsigned rank = sizes.size();
  for (const WindowAxis &axis : w.axes)
    sizes.push_back(n.constant(axis.kernel));
  return windowPart(n, w, bordered, order, sizes, [&](unsigned a) { return n.b.getAffineDimExpr(rank + a); });
}

Tensor computeOver(NodeImporter &n, ArrayRef<Tensor> operands, DType dtype, Formula formula) {
  return n.pointwise(operands, operands[0].sizes, dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    SmallVector<Scalar> scalars;
    for (auto [operand, arg] : llvm::zip(operands, args))
      scalars.push_back(Scalar(b, arg, operand.dtype).to(computeDType(operand.dtype)));
    return formula(scalars).to(dtype).value();
  });
}

Tensor sumOverWindows(NodeImporter &n, const Windows &w) {
  TypedAttr zero = scalarAttribute(n.b, 0.0, w.x.dtype);
  DType dtype = computeDType(w.x.dtype);
  if (!w.isUnrolled())
    return sumOver(n, n.cast(windowView(n, w, zero), dtype), w.withinDims());
  return computeOver(n, tapsOf(n, w, zero), dtype, [](ArrayRef<Scalar> s) {
    Scalar sum = s[0];
    for (Scalar x : s.drop_front())
      sum = sum + x;
    return sum;
  });
}

Scalar windowStart(ImplicitLocOpBuilder &b, const WindowAxis &axis, DType dtype) {
  Scalar number(b, fromIndex(b, loopIndex(b, axis.dim), dtype), dtype);
  Scalar start = axis.stride == 1 ? number : number * double(axis.stride);
  return axis.pad ? start - double(axis.pad) : start;
}

} // namespace accel
