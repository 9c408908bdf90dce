/// A kernel's loop nest as the code generators see it: which loops there are, how each tensor is walked, and in which
/// order.
#ifndef ACCEL_PASSES_SCHEDULE_KERNELLOOPS_H
#define ACCEL_PASSES_SCHEDULE_KERNELLOOPS_H

#include "dialects/accel/AccelDialect.h"
#include "dialects/accel/SymbolicSizes.h"
#include <optional>

namespace accel {

/// A loop of the nest: one of the kernel's loops, or several that memory order lets run as one. Sizes are over the
/// kernel's symbols.
struct NestLoop {
  llvm::SmallVector<int64_t> kernelLoops; // outermost first
  mlir::AffineExpr size;
  bool isRow = false;

  /// The size, at least 1; nothing where it is symbolic.
  std::optional<int64_t> constantSize() const {
    auto constant = llvm::dyn_cast<mlir::AffineConstantExpr>(size);
    return constant ? std::optional(std::max<int64_t>(constant.getValue(), 1)) : std::nullopt;
  }
};

/// An index of a padded read: it is in range if 0 <= sum(index of loop l * steps[l]) + start < size.
struct Bound {
  llvm::SmallVector<mlir::AffineExpr> steps; // by nest loop
  mlir::AffineExpr start, size;
};

/// One tensor read or written by strides: element address = base + sum(index of loop l * strides[l]) + offset.
struct Access {
  mlir::Value tensor;    // the kernel's argument, or the value yielded
  int64_t result = -1;   // number of the result when it is a store
  bool isGather = false; // read by tensor.extract; strides hold where the position follows the loop, else null
  llvm::SmallVector<mlir::AffineExpr> strides; // by nest loop, in elements
  mlir::AffineExpr offset;
  llvm::SmallVector<Bound, 0> bounds; // all must hold, or the element is zero
};

/// The loop nest of one kernel, sorted and collapsed, with all its accesses.
class KernelLoops {
public:
  explicit KernelLoops(KernelOp kernel);

  /// Parallel loops first, then row loops; each kind from the largest stride to the smallest.
  llvm::ArrayRef<NestLoop> loops() const { return nest; }
  unsigned numParallel() const { return parallel; }
  /// The nest loop that holds the kernel's loop; -1 for -1.
  int nestLoopOf(int64_t kernelLoop) const { return kernelLoop < 0 ? -1 : nestOf[kernelLoop]; }
  llvm::ArrayRef<Access> accesses() const { return list; }
  /// The access of operand `index` of a linalg op that reads a kernel argument.
  Access accessOf(mlir::Operation *op, unsigned index) const;
  /// The access that stores result `k`.
  Access storeOf(unsigned k) const;
  SymbolicSizes &sizes() const { return symbolic; }
  KernelOp kernel() const { return op; }

private:
  Access access(mlir::Value tensor, LayoutAttr layout, mlir::AffineMap map, llvm::ArrayRef<int64_t> dimLoops) const;
  void sortAndCollapse();
  void setIdentityNest();

  mutable KernelOp op; // MLIR's accessors are not const
  mutable SymbolicSizes symbolic;
  llvm::SmallVector<NestLoop> nest;
  llvm::SmallVector<int> nestOf;
  llvm::SmallVector<Access> list;
  unsigned parallel = 0;
};

/// The kernel's accel.attention, which has no loop nest to be scheduled; null in all other kernels.
AttentionOp attentionOf(KernelOp kernel);
/// Loops that a linalg op's dimensions run over, by its `accel.loops`.
llvm::ArrayRef<int64_t> loopsOf(mlir::Operation *op);
/// Loops of the dimensions of a linalg op's results.
llvm::SmallVector<int64_t> resultLoopsOf(mlir::Operation *op);

} // namespace accel

#endif
