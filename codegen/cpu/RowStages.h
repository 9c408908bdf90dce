/// In how many runs over the row a kernel computes what.
///
/// A reduction needs a run of its own after those that it depends on: softmax takes three, for the maximum, for the sum
/// of exponentials, and for the quotients. What is costly and needed in more than one run is kept in scratch memory.
#ifndef ACCEL_CODEGEN_CPU_ROWSTAGES_H
#define ACCEL_CODEGEN_CPU_ROWSTAGES_H

#include "passes/schedule/KernelLoops.h"
#include "llvm/ADT/MapVector.h"

namespace accel {

/// A value kept from the stage that computes it first.
struct RowCache {
  unsigned firstStage;
  mlir::AffineExpr byteOffset;
};

class RowStages {
public:
  RowStages(KernelLoops &loops, int64_t vectorLoop);

  unsigned count() const { return stages.size(); }
  llvm::ArrayRef<mlir::Operation *> reductions(unsigned stage) const { return stages[stage]; }
  /// Whether the value changes along the row.
  bool isInner(mlir::Value tensor) const;
  /// The first stage in which an inner value can be computed.
  unsigned storeStage(mlir::Value tensor) const { return level.lookup(tensor); }
  const RowCache *cacheOf(mlir::Value tensor) const;
  mlir::AffineExpr scratchBytes() const { return bytes; }

private:
  void findLevels();
  void chooseCaches();
  bool isReduction(mlir::Operation *op) const;

  KernelLoops &loops;
  llvm::DenseMap<mlir::Value, unsigned> level; // number of stages that have to be over before the value is known
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *>> stages;
  llvm::MapVector<mlir::Value, RowCache> caches;
  mlir::AffineExpr bytes;
};

} // namespace accel

#endif
