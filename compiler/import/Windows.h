/// Pooling windows: which elements of a tensor one element of the result comes from.
///
/// A small window is unrolled: one pointwise op over as many views as the window has elements, so that vectors run
/// along the result's rows. A large one is a reduction over one view of all windows.
#ifndef ACCEL_COMPILER_IMPORT_WINDOWS_H
#define ACCEL_COMPILER_IMPORT_WINDOWS_H

#include "compiler/import/ReductionMath.h"

namespace accel {

/// Windows along one dimension: window `o` has the elements `o * stride - pad + k * dilation` for k below `kernel`, as
/// far as the dimension has them.
struct WindowAxis {
  int64_t dim, kernel, stride, pad, dilation;
  mlir::AffineExpr size, count; // of the tensor, and how many windows there are
};

/// Windows along the last dimensions of a tensor.
struct Windows {
  Tensor x;
  llvm::SmallVector<WindowAxis> axes;
  bool ceilMode = false, channelsLast = false;

  /// The result's sizes.
  llvm::SmallVector<mlir::AffineExpr> sizes() const;
  int64_t numTaps() const;
  bool isPadded() const;
  /// Whether a window may reach beyond the padding behind the dimension.
  bool overruns(const WindowAxis &axis) const;
  /// The dimensions of `windowView` that are within a window.
  llvm::SmallVector<int64_t> withinDims() const;
  bool isUnrolled() const;
};

/// Reads `kernel_size` as argument `index`, and then `stride`, `padding` and, if `hasDilation`, `dilation` and
/// `ceil_mode`. `tensor` has the windows along its last `spatial` dimensions, `counts` are their numbers.
mlir::FailureOr<Windows> windowsOf(NodeImporter &n, const Tensor &tensor, llvm::ArrayRef<mlir::AffineExpr> counts,
                                   unsigned index, unsigned spatial, bool hasDilation);
/// Whether eager has the tensor argument with the channels innermost. `spatial` dimensions are behind the channels.
bool isChannelsLast(NodeImporter &n, unsigned index, llvm::StringRef keyword, unsigned spatial);

/// For each element of a window, in row-major order, the view of that element of all windows. What lies outside the
/// tensor is `border`.
llvm::SmallVector<Tensor> tapsOf(NodeImporter &n, const Windows &windows, mlir::TypedAttr border);
/// All windows as one view: the result's dimensions, then those within a window.
Tensor windowView(NodeImporter &n, const Windows &windows, mlir::TypedAttr border);
/// Sums over windows, in the dtype that eager computes in. Borders count as zeros.
Tensor sumOverWindows(NodeImporter &n, const Windows &windows);
/// A pointwise op over tensors of the same sizes, each converted to the dtype that eager computes in, with a result of
/// `dtype`.
Tensor computeOver(NodeImporter &n, llvm::ArrayRef<Tensor> operands, DType dtype, Formula formula);
/// Position of a window's first element along an axis, which is negative in the padding.
Scalar windowStart(mlir::ImplicitLocOpBuilder &b, const WindowAxis &axis, DType dtype);

} // namespace accel

#endif
