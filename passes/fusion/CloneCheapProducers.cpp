#include "passes/fusion/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "passes/fusion/FusionGroups.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_CLONECHEAPPRODUCERSPASS
#include "passes/fusion/Passes.h.inc"

namespace {

struct CloneCheapProducers : impl::CloneCheapProducersPassBase<CloneCheapProducers> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    for (Operation &op : llvm::make_early_inc_range(getOperation().getBody().front())) {
      auto generic = dyn_cast<linalg::GenericOp>(op);
      if (!generic || !isFusable(&op) || !isCheap(&op) || generic.getNumDpsInputs() != 0)
        continue;
      // The first reader keeps the original.
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : op.getUses())
        uses.push_back(&use);
      for (OpOperand *use : ArrayRef(uses).drop_back()) {
        builder.setInsertionPoint(op.getNextNode());
        use->set(builder.clone(op)->getResult(0));
      }
    }
  }
};

} // namespace
} // namespace accel
