#include "passes/fusion/Contractions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace accel {
namespace {

/// The body is acc + a * b.
bool isMultiplyAdd(linalg::GenericOp op) {
  Block &body = op.getRegion().front();
  if (body.getOperations().size() != 3)
    return false;
  Operation &multiply = body.front(), &add = *multiply.getNextNode();
  bool numbers = (isa<arith::MulFOp>(multiply) && isa<arith::AddFOp>(add)) ||
                 (isa<arith::MulIOp>(multiply) && isa<arith::AddIOp>(add));
  return numbers && multiply.getOperand(0) == body.getArgument(0) && multiply.getOperand(1) == body.getArgument(1) &&
         add.getOperand(0) == body.getArgument(2) && add.getOperand(1) == multiply.getResult(0) &&
         body.getTerminator()->getOperand(0) == add.getResult(0);
}

llvm::SmallBitVector usedDims(AffineMap map) {
  llvm::SmallBitVector used(map.getNumDims());
  for (unsigned d = 0; d < map.getNumDims(); ++d)
    used[d] = map.isFunctionOfDim(d);
  return used;
}

/// The panels' width if the map is (n floordiv w, …, n mod w).
int64_t panelWidth(AffineMap map) {
  if (map.getNumResults() < 2)
    return 0;
  auto outer = dyn_cast<AffineBinaryOpExpr>(map.getResults().front());
  auto inner = dyn_cast<AffineBinaryOpExpr>(map.getResults().back());
  if (!outer || !inner || outer.getKind() != AffineExprKind::FloorDiv || inner.getKind() != AffineExprKind::Mod)
    return 0;
  auto width = dyn_cast<AffineConstantExpr>(outer.getRHS());
  bool matches = width && outer.getRHS() == inner.getRHS() && outer.getLHS() == inner.getLHS() &&
                 isa<AffineDimExpr>(outer.getLHS());
  return matches ? width.getValue() : 0;
}

} // namespace

std::optional<Contraction> matchContraction(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumDpsInputs() != 2 || generic.getNumDpsInits() != 1 ||
      generic.getNumReductionLoops() == 0 || !isMultiplyAdd(generic))
    return std::nullopt;
  AffineMap a = generic.getIndexingMapsArray()[0], b = generic.getIndexingMapsArray()[1],
            c = generic.getIndexingMapsArray()[2];
  if (!c.isProjectedPermutation())
    return std::nullopt;
  Contraction result{op, {}, {}, {}, {}, panelWidth(b)};
  llvm::SmallBitVector inA = usedDims(a), inB = usedDims(b), inC = usedDims(c);
  for (unsigned d = 0; d < c.getNumDims(); ++d) {
    if (!inC[d] && inA[d] && inB[d])
      result.k.push_back(d);
    else if (inC[d] && inA[d] == inB[d])
      result.batch.push_back(d); // or a dimension that neither operand has
    else if (inC[d] && inA[d])
      result.m.push_back(d);
    else if (inC[d] && inB[d])
      result.n.push_back(d);
    else
      return std::nullopt;
  }
  if (result.panel && result.n.size() != 1)
    return std::nullopt;
  return result;
}

Operation *findContraction(Block &block) {
  for (Operation &op : block)
    if (matchContraction(&op))
      return &op;
  return nullptr;
}

} // namespace accel
