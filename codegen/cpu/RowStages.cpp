#include "codegen/cpu/RowStages.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/fusion/FusionGroups.h"

using namespace mlir;

namespace accel {
namespace {

/// Storing and loading a value costs about as much as this many cheap instructions.
constexpr unsigned kCacheCost = 8;

/// Cost of evaluating an op once, in cheap instructions per lane.
unsigned costOf(Operation *op) {
  unsigned cost = 0;
  op->walk([&](Operation *inner) {
    bool oneInstruction =
        isa<math::AbsFOp, math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp, math::CopySignOp>(inner);
    if (inner == op || inner->hasTrait<OpTrait::IsTerminator>())
      return;
    if (isa<math::SqrtOp, arith::DivFOp, arith::RemFOp>(inner))
      cost += 6;
    else if (isa<tensor::ExtractOp>(inner) || (isa<math::MathDialect>(inner->getDialect()) && !oneInstruction))
      cost += 12;
    else
      cost += 1;
  });
  return cost;
}

} // namespace

RowStages::RowStages(KernelLoops &loops, int64_t vectorLoop)
    : loops(loops), bytes(getAffineConstantExpr(0, loops.kernel().getContext())) {
  findLevels();
  if (vectorLoop < 0 || vectorLoop >= int64_t(loops.numParallel()))
    chooseCaches();
}

bool RowStages::isReduction(Operation *op) const {
  if (!isa<linalg::ReduceOp>(op))
    return false;
  ArrayRef<int64_t> opLoops = loopsOf(op);
  return llvm::any_of(reductionDims(op), [&](unsigned d) { return opLoops[d] >= 0; });
}

bool RowStages::isInner(Value tensor) const {
  return llvm::any_of(resultLoopsOf(tensor.getDefiningOp()), [&](int64_t loop) {
    int nest = loops.nestLoopOf(loop);
    return nest >= int(loops.numParallel());
  });
}

const RowCache *RowStages::cacheOf(Value tensor) const {
  auto it = caches.find(tensor);
  return it == caches.end() ? nullptr : &it->second;
}

void RowStages::findLevels() {
  auto stageFor = [&](unsigned n) {
    if (stages.size() <= n)
      stages.resize(n + 1);
  };
  for (Operation &op : loops.kernel().getBody().front()) {
    if (!op.hasAttr(kLoopsAttr))
      continue;
    unsigned most = 0;
    for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands())
      most = std::max(most, level.lookup(readOf(&op, input->getOperandNumber()).value));
    if (isReduction(&op)) {
      stageFor(most);
      stages[most].push_back(&op);
      ++most;
    }
    for (Value result : op.getResults())
      level[result] = most;
  }
  for (Value value : loops.kernel().getBody().front().getTerminator()->getOperands())
    if (isInner(value))
      stageFor(level.lookup(value));
}

void RowStages::chooseCaches() {
  MLIRContext *ctx = loops.kernel().getContext();
  AffineExpr elements = getAffineConstantExpr(1, ctx);
  unsigned numRows = 0;
  for (const NestLoop &loop : loops.loops())
    if (loop.isRow)
      elements = elements * loop.size, ++numRows;
  llvm::DenseMap<Value, unsigned> firstStage, cost;
  auto isComplete = [&](Value tensor) {
    llvm::SmallDenseSet<int> rows;
    for (int64_t loop : resultLoopsOf(tensor.getDefiningOp()))
      if (int nest = loops.nestLoopOf(loop); nest >= int(loops.numParallel()))
        rows.insert(nest);
    return rows.size() == numRows;
  };
  // Visits what a stage computes, and caches what an earlier stage computed at a cost.
  std::function<unsigned(Value, unsigned)> visit = [&](Value tensor, unsigned stage) -> unsigned {
    Operation *op = tensor.getDefiningOp();
    if (!op || !isInner(tensor))
      return 1; // a load, or a value that is there
    if (caches.count(tensor))
      return 1;
    auto [it, first] = firstStage.try_emplace(tensor, stage);
    if (!first && it->second < stage && isComplete(tensor) && cost.lookup(tensor) >= kCacheCost) {
      unsigned width = std::max(8u, getElementTypeOrSelf(tensor.getType()).getIntOrFloatBitWidth()) / 8;
      caches[tensor] = {it->second, bytes};
      bytes = normalize(bytes + (elements * width + 63).floorDiv(64) * 64);
      return 1;
    }
    if (!first && it->second == stage)
      return cost.lookup(tensor);
    unsigned sum = costOf(op);
    for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands())
      sum += visit(readOf(op, input->getOperandNumber()).value, stage);
    cost[tensor] = sum;
    return sum;
  };
  for (unsigned stage = 0; stage < stages.size(); ++stage) {
    for (Operation *op : stages[stage])
      for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands())
        visit(readOf(op, input->getOperandNumber()).value, stage);
    for (Value value : loops.kernel().getBody().front().getTerminator()->getOperands())
      if (isInner(value) && storeStage(value) == stage)
        visit(value, stage);
  }
}

} // namespace accel
