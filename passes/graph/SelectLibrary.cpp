#include "passes/graph/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_SELECTLIBRARYPASS
#include "passes/graph/Passes.h.inc"

namespace {

struct SelectLibrary : impl::SelectLibraryPassBase<SelectLibrary> {
  void runOnOperation() override {
    Builder b(&getContext());
    getOperation().walk([&](Operation *op) {
      if (!isa<linalg::MatmulOp, linalg::BatchMatmulOp>(op))
        return;
      OpBuilder builder(op);
      Attribute operands[] = {OperandAttr::get(&getContext(), 0), OperandAttr::get(&getContext(), 1)};
      auto init = cast<linalg::LinalgOp>(op).getDpsInits()[0];
      // The result lies in memory of ours, which the launcher passes as `out`.
      auto call = AtenCallOp::create(builder, op->getLoc(), op->getResultTypes(),
                                     b.getStringAttr(isa<linalg::MatmulOp>(op) ? "aten::mm" : "aten::bmm"),
                                     b.getStringAttr("out"), b.getStringAttr("library"), op->getOperands().take_front(2),
                                     b.getArrayAttr(operands), DictionaryAttr(), StringAttr(), ArrayAttr(), ArrayAttr(),
                                     ArrayAttr(), UnitAttr());
      // The sizes of a dynamic result are those of the destination it replaces.
      SmallVector<Value> sizes;
      if (auto fill = init.getDefiningOp<linalg::FillOp>())
        if (Operation *empty = fill.getOutputs()[0].getDefiningOp())
          sizes.append(empty->operand_begin(), empty->operand_end());
      call.getOperandsMutable().append(sizes);
      op->replaceAllUsesWith(call);
      op->erase();
    });
  }
};

} // namespace
} // namespace accel
