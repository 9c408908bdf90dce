/// A contraction kernel's loops by role.
#ifndef ACCEL_PASSES_SCHEDULE_CONTRACTIONNEST_H
#define ACCEL_PASSES_SCHEDULE_CONTRACTIONNEST_H

#include "passes/fusion/Contractions.h"
#include "passes/schedule/KernelLoops.h"

namespace accel {

/// Numbers are those of nest loops. A tile of registers covers rows and columns; every other parallel loop is `outer`.
struct ContractionNest {
  mlir::Operation *op;
  llvm::SmallVector<int64_t> outer; // outermost first
  /// Loops of the rows. Of several the innermost alone, if it has rows enough for tiles of its own and A can be read
  /// where it lies; else all, outermost first, as one sequence of rows whose elements of A are copied. None: one row.
  llvm::SmallVector<int64_t> rows;
  int64_t n = -1;               // the columns'; -1: one column
  llvm::SmallVector<int64_t> k; // outermost first; empty: one product
  int64_t panel = 0;            // width of B's panels, 0: B is a plain tensor
  /// How A and B are walked, where a kernel argument is read directly.
  std::optional<Access> a, b;
};

/// Nothing if the kernel is no contraction.
std::optional<ContractionNest> contractionNest(const KernelLoops &loops);

} // namespace accel

#endif
