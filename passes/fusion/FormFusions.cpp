#include "passes/fusion/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "passes/fusion/FusionGroups.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_FORMFUSIONSPASS
#include "passes/fusion/Passes.h.inc"

namespace {

/// Moves a group's ops into an accel.fusion at the end of the block.
class FusionBuilder {
public:
  FusionBuilder(FusionGroup &group, Block *block) : group(group), block(block), builder(block, block->end()) {}

  void build() {
    SmallVector<Operation *> members(group.ops.begin(), group.ops.end());
    llvm::sort(members, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    SmallVector<Location> locs;
    for (Operation *op : members)
      locs.push_back(op->getLoc());
    SmallVector<Value> leaving;
    for (Operation *op : members)
      for (Value result : op->getResults())
        if (isReadOutside(result))
          leaving.push_back(result);

    int64_t rows = llvm::count(group.isRow, true), parallel = group.isRow.size() - rows;
    auto fusion = FusionOp::create(builder, builder.getFusedLoc(locs), TypeRange(ValueRange(leaving)), parallel, rows);
    Block *body = builder.createBlock(&fusion.getBody());
    SmallVector<int64_t> newNumber = numberLoops();
    for (Operation *op : members) {
      builder.setInsertionPointToEnd(body);
      for (OpOperand &operand : op->getOpOperands())
        bringInside(operand);
      op->moveBefore(body, body->end());
      bringConstantsInside(op);
      SmallVector<int64_t> loops;
      for (int loop : group.loops[op])
        loops.push_back(loop < 0 ? -1 : newNumber[loop]);
      op->setAttr(kLoopsAttr, builder.getDenseI64ArrayAttr(loops));
    }
    builder.setInsertionPointToEnd(body);
    YieldOp::create(builder, fusion.getLoc(), leaving);
    for (auto [inner, outer] : llvm::zip(leaving, fusion.getResults()))
      inner.replaceUsesWithIf(outer, [&](OpOperand &use) { return !fusion->isAncestor(use.getOwner()); });
  }

private:
  /// Parallel loops first, row loops last, each in the group's order.
  SmallVector<int64_t> numberLoops() {
    SmallVector<int64_t> number(group.isRow.size());
    int64_t next = 0;
    for (bool row : {false, true})
      for (auto [i, isRow] : llvm::enumerate(group.isRow))
        if (isRow == row)
          number[i] = next++;
    return number;
  }

  /// Whether an op outside of the group reads the value, directly or through views.
  bool isReadOutside(Value value) {
    for (Operation *user : value.getUsers()) {
      if (isa<ViewOp>(user) ? isReadOutside(user->getResult(0))
                            : !group.ops.contains(block->findAncestorOpInBlock(*user)))
        return true;
    }
    return false;
  }

  bool isFromGroup(Value value) {
    Operation *def = value.getDefiningOp();
    if (auto view = dyn_cast_or_null<ViewOp>(def))
      return isFromGroup(view.getSource());
    return def && group.ops.contains(def);
  }

  /// Destinations, and views of values that the group computes, are cloned into the fusion.
  void bringInside(OpOperand &operand) {
    Operation *def = operand.get().getDefiningOp();
    if (!def || group.ops.contains(def))
      return;
    auto view = dyn_cast<ViewOp>(def);
    bool isView = view && (view.getPadded() || isFromGroup(operand.get()));
    if (!isView && !isa<tensor::EmptyOp, linalg::FillOp>(def) && !matchPattern(def, m_Constant()))
      return;
    // A tensor.empty that is read, not written, stays outside.
    Operation *clone = builder.clone(*def);
    builder.setInsertionPoint(clone);
    for (OpOperand &inner : clone->getOpOperands())
      bringInside(inner);
    builder.setInsertionPointAfter(clone);
    operand.set(clone->getResult(cast<OpResult>(operand.get()).getResultNumber()));
  }

  void bringConstantsInside(Operation *op) {
    OpBuilder::InsertionGuard guard(builder);
    op->walk([&](Operation *inner) {
      if (inner == op)
        return;
      for (OpOperand &operand : inner->getOpOperands()) {
        Operation *def = operand.get().getDefiningOp();
        if (def && def->getBlock() == block && matchPattern(def, m_Constant())) {
          builder.setInsertionPoint(op);
          operand.set(builder.clone(*def)->getResult(0));
        }
      }
    });
  }

  FusionGroup &group;
  Block *block;
  OpBuilder builder;
};

/// Puts an op that makes a kernel of its own into a fusion, at the end of the block.
void wrap(Operation *op, Block *block) {
  OpBuilder builder(block, block->end());
  SmallVector<Value> used;
  llvm::copy_if(op->getResults(), std::back_inserter(used), [](Value result) { return !result.use_empty(); });
  auto fusion = FusionOp::create(builder, op->getLoc(), TypeRange(ValueRange(used)), 0, 0);
  Block *body = builder.createBlock(&fusion.getBody());
  for (auto [inner, outer] : llvm::zip(used, fusion.getResults()))
    inner.replaceAllUsesWith(outer);
  op->moveBefore(body, body->end());
  YieldOp::create(builder, op->getLoc(), used);
}

StringRef nodeName(Operation *op) {
  auto name = dyn_cast<NameLoc>(op->getLoc());
  return name ? name.getName().getValue() : StringRef("?");
}

struct FormFusions : impl::FormFusionsPassBase<FormFusions> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    Block *block = &func.getBody().front();
    FusionGroups groups(func);
    groups.run();
    SmallVector<Attribute> refusals;
    Builder b(&getContext());
    for (const Refusal &refusal : groups.refusals()) {
      if (groups.groupOf(refusal.producer) == groups.groupOf(refusal.consumer))
        continue;
      remark::missed(refusal.consumer->getLoc(), remark::RemarkOpts::name("NotFused").category("accel-fusion"))
          << (Twine("not fused with ") + nodeName(refusal.producer) + ": " + refusal.reason).str();
      refusals.push_back(b.getStrArrayAttr({nodeName(refusal.producer), nodeName(refusal.consumer), refusal.reason}));
    }
    if (!refusals.empty())
      func->setAttr("accel.refusals", b.getArrayAttr(refusals));
    for (const FusionGroups::Step &step : groups.schedule()) {
      if (step.op && step.op->hasTrait<OwnKernel>())
        wrap(step.op, block);
      else if (step.op)
        step.op->moveBefore(block, block->end());
      else
        FusionBuilder(*step.group, block).build();
    }
    // Destinations and views that now have their clones in fusions. (CSE would take values out of the fusions again.)
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace
} // namespace accel
