#include "passes/graph/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_SELECTLIBRARYPASS
#include "passes/graph/Passes.h.inc"

namespace {

/// The library's kernels have no accumulator to start from, so the destination must be zeros.
linalg::FillOp zeroFill(Value init) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  if (fill && (matchPattern(fill.getInputs()[0], m_Zero()) || matchPattern(fill.getInputs()[0], m_AnyZeroFloat())))
    return fill;
  return nullptr;
}

struct SelectLibrary : impl::SelectLibraryPassBase<SelectLibrary> {
  void runOnOperation() override {
    Builder b(&getContext());
    getOperation().walk([&](Operation *op) {
      if (!isa<linalg::MatmulOp, linalg::BatchMatmulOp>(op))
        return;
      linalg::FillOp fill = zeroFill(cast<linalg::LinalgOp>(op).getDpsInits()[0]);
      if (!fill)
        return;
      OpBuilder builder(op);
      Attribute operands[] = {OperandAttr::get(&getContext(), 0), OperandAttr::get(&getContext(), 1)};
      // The result lies in memory of ours, which the launcher passes as `out`.
      auto call = AtenCallOp::create(builder, op->getLoc(), op->getResultTypes(),
                                     b.getStringAttr(isa<linalg::MatmulOp>(op) ? "aten::mm" : "aten::bmm"),
                                     b.getStringAttr("out"), b.getStringAttr("library"),
                                     op->getOperands().take_front(2), b.getArrayAttr(operands), DictionaryAttr(),
                                     StringAttr(), ArrayAttr(), ArrayAttr(), ArrayAttr(), UnitAttr());
      // The sizes of a dynamic result are those of the destination it replaces.
      SmallVector<Value> sizes;
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
