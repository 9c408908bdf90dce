/// Which tensor ops share a kernel, and why others don't.
///
/// A group is a set of ops over one loop nest: `parallel` loops, inside which `row` loops are run over by every
/// reduction of the group. Each op's dimensions are loops of the group, or -1 where the dimension's size is 1. Softmax,
/// for example, is one group of four ops: loop 0 is the row, loop 1 (a row loop) the column.
#ifndef ACCEL_PASSES_FUSION_FUSIONGROUPS_H
#define ACCEL_PASSES_FUSION_FUSIONGROUPS_H

#include "dialects/accel/SymbolicSizes.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Operation.h"
#include "passes/graph/ConstantInputs.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <memory>
#include <string>

namespace accel {

/// The answer of a question that can be refused. Empty reason: yes.
struct FusionVerdict {
  std::string reason;
  explicit operator bool() const { return reason.empty(); }
  static FusionVerdict yes() { return {}; }
  static FusionVerdict no(const llvm::Twine &why) { return {why.str()}; }
};

/// A pointwise op or a reduction on tensors: what fusion moves around.
bool isFusable(mlir::Operation *op);
/// Whether evaluating the op once more costs about as much as reading its result: no transcendental, division or
/// reduction.
bool isCheap(mlir::Operation *op);
/// Dimensions that a linalg op reduces over.
llvm::SmallVector<unsigned> reductionDims(mlir::Operation *op);

/// A read of a value through views: the map takes the reader's dimensions to the value's indices.
struct Read {
  mlir::Value value;
  mlir::AffineMap map; // null where a view has symbols
  bool padded = false; // positions outside of the value are zeros
};
/// What operand `index` of a linalg op reads once the views in between are looked through.
Read readOf(mlir::Operation *op, unsigned index);

struct FusionGroup {
  llvm::SetVector<mlir::Operation *> ops;
  llvm::SmallVector<mlir::AffineExpr> sizes;
  llvm::SmallVector<bool> isRow;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int>> loops;
};

struct Refusal {
  mlir::Operation *producer, *consumer;
  std::string reason;
};

/// Groups the ops of one block.
class FusionGroups {
public:
  FusionGroups(mlir::Operation *function);

  /// Fuses along producers and consumers, then ops that read the same tensor.
  void run();
  FusionGroup *groupOf(mlir::Operation *op) const { return groups.lookup(op); }
  /// Groups in an order in which they can run, mixed with the other ops of the block.
  struct Step {
    mlir::Operation *op = nullptr; // either an op that is not fused
    FusionGroup *group = nullptr;  // or a group
  };
  llvm::SmallVector<Step> schedule() const;
  llvm::ArrayRef<Refusal> refusals() const { return refused; }

  /// Whether the two groups can be one; `merged` is that group.
  FusionVerdict canFuse(FusionGroup &producer, FusionGroup &consumer, FusionGroup &merged);

private:
  FusionVerdict checkMerged(const FusionGroup &group);
  /// Whether the group is computed once for all calls.
  ConstantInputs::Kind constness(const FusionGroup &group);
  bool wouldCycle(FusionGroup &producer, FusionGroup &consumer);
  /// Calls `visit` with every op of the block that `op` needs to have run, those that its regions name included.
  void forEachDependency(mlir::Operation *op, llvm::function_ref<void(mlir::Operation *)> visit) const;
  void merge(FusionGroup &into, FusionGroup &from, FusionGroup merged);
  bool fuseProducers();
  bool fuseSiblings();

  mlir::Block *block;
  SymbolicSizes sizes;
  ConstantInputs constants;
  llvm::SmallVector<std::unique_ptr<FusionGroup>> owned;
  llvm::DenseMap<mlir::Operation *, FusionGroup *> groups;
  llvm::DenseMap<mlir::Operation *, unsigned> order;
  /// Ops with effects keep their order: each one's predecessor.
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> previousEffect;
  llvm::SmallVector<Refusal> refused;
};

} // namespace accel

#endif
