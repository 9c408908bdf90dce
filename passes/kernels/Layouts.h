/// Where each tensor of a host function lies in memory.
///
/// Memory belongs to roots: function arguments, results of kernels and of ATen calls, and concatenations. Views,
/// reshapes and the parts of a concatenation share their root's.
#ifndef ACCEL_PASSES_KERNELS_LAYOUTS_H
#define ACCEL_PASSES_KERNELS_LAYOUTS_H

#include "dialects/accel/SymbolicSizes.h"
#include <optional>

namespace accel {

/// A strided tensor: element i lies `offset + sum(i[d] * strides[d])` elements behind the first element of `root`.
struct Placement {
  mlir::Value root;
  llvm::SmallVector<mlir::AffineExpr> sizes, strides;
  mlir::AffineExpr offset;
};

class Layouts {
public:
  explicit Layouts(mlir::Operation *function) : sizes(function) {}

  /// Null where the tensor is a reshape that the source's strides don't allow, or has a size that is no expression.
  std::optional<Placement> placementOf(mlir::Value tensor);
  /// `now` takes the place of `old` in the function.
  void rename(mlir::Value old, mlir::Value now);
  SymbolicSizes &symbolicSizes() { return sizes; }

private:
  std::optional<Placement> compute(mlir::Value tensor);
  std::optional<Placement> fresh(mlir::Value tensor);

  SymbolicSizes sizes;
  llvm::DenseMap<mlir::Value, std::optional<Placement>> known;
};

/// Strides of a row-major reshape of a strided tensor; nothing if it takes a copy.
std::optional<llvm::SmallVector<mlir::AffineExpr>> reshapeStrides(llvm::ArrayRef<mlir::AffineExpr> sizes,
                                                                  llvm::ArrayRef<mlir::AffineExpr> strides,
                                                                  llvm::ArrayRef<mlir::AffineExpr> newSizes,
                                                                  mlir::MLIRContext *context);

/// The concatenation that a value is written into in place: its only user, once. Null if there is none.
mlir::Operation *concatOfPart(mlir::Value value);

/// The expression's value where symbol k is a large number of its own: tells the order of sizes where they are
/// symbolic.
int64_t representative(mlir::AffineExpr expr);

} // namespace accel

#endif
