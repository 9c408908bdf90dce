/// Slices and selections, which the views and the ops that write through views share.
#ifndef ACCEL_COMPILER_IMPORT_VIEWMATH_H
#define ACCEL_COMPILER_IMPORT_VIEWMATH_H

#include "compiler/import/Importer.h"

namespace accel {

/// Wraps a dimension argument.
mlir::FailureOr<int64_t> dimArg(NodeImporter &n, unsigned index, llvm::StringRef keyword, int64_t rank,
                                std::optional<int64_t> fallback = {});
/// The first position of a slice of a dimension of `size`, clamped as in PyTorch. Arguments `start` and `end` are the
/// `index`-th and the one after; `length` is the slice's own size. Refuses where only run time tells whether a position
/// counts from the end.
mlir::FailureOr<mlir::AffineExpr> sliceStart(NodeImporter &n, unsigned index, mlir::AffineExpr size,
                                             mlir::AffineExpr length, int64_t step);
/// The position that an `index` argument selects in a dimension of `size`.
mlir::FailureOr<mlir::AffineExpr> selectedPosition(NodeImporter &n, unsigned index, mlir::AffineExpr size);

/// `length` positions of a dimension from `start` on, `step` apart; the source itself where that is all of it.
Tensor sliced(NodeImporter &n, const Tensor &source, int64_t dim, mlir::AffineExpr start, mlir::AffineExpr length,
              int64_t step = 1);
/// One position of a dimension, which leaves the result.
Tensor selected(NodeImporter &n, const Tensor &source, int64_t dim, mlir::AffineExpr position);
/// The source under other sizes: itself, a view where dimensions are only split, or come and go with size 1, else a
/// reshape.
Tensor viewed(NodeImporter &n, const Tensor &source, llvm::ArrayRef<mlir::AffineExpr> sizes);
/// The source broadcast to `sizes`, aligned at the last dimension.
Tensor expanded(NodeImporter &n, const Tensor &source, llvm::ArrayRef<mlir::AffineExpr> sizes);

} // namespace accel

#endif
