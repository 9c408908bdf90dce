#include "passes/graph/ConstantInputs.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace accel {

ConstantInputs::ConstantInputs(Operation *function)
    : function(function), enabled(function->hasAttr(kConstantWeightsAttr)) {
  // What an op with effects writes to, through views, is no constant.
  function->walk([&](AtenCallOp call) {
    if (!call.getEffectsAttr())
      return;
    for (Value operand : call.getOperands()) {
      while (isa_and_nonnull<ViewOp, ReshapeOp>(operand.getDefiningOp()))
        operand = operand.getDefiningOp()->getOperand(0);
      known[operand] = Kind::Varies;
    }
  });
}

ConstantInputs::Kind ConstantInputs::kindOf(Value value) {
  if (!enabled)
    return Kind::Varies;
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  Kind kind = compute(value);
  return known[value] = kind;
}

ConstantInputs::Kind ConstantInputs::compute(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape())
    return Kind::Varies;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto interface = cast<FunctionOpInterface>(function);
    if (argument.getOwner() != &function->getRegion(0).front())
      return Kind::Varies;
    auto kind = interface.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kKindAttr);
    auto layout = interface.getArgAttrOfType<LayoutAttr>(argument.getArgNumber(), kLayoutAttr);
    bool isWeight = kind && (kind.getValue() == "parameter" || kind.getValue() == "buffer");
    bool isConstant =
        isWeight && layout && layout.getStrides().getValue().isConstant() && layout.getSizes().getValue().isConstant();
    return isConstant ? Kind::Constant : Kind::Varies;
  }
  Operation *op = value.getDefiningOp();
  if (isa<tensor::EmptyOp>(op))
    return Kind::Nothing;
  if (!isa<ViewOp, ReshapeOp, ConcatOp, linalg::LinalgOp, LaunchOp, FusionOp>(op))
    return Kind::Varies;
  Kind kind = Kind::Nothing;
  // What the op and its regions use from outside.
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      if (op->isAncestor(operand.getParentBlock()->getParentOp()))
        continue;
      Operation *def = operand.getDefiningOp();
      if (!isa<TensorType>(operand.getType())) {
        if (!def || !def->hasTrait<OpTrait::ConstantLike>())
          kind = Kind::Varies;
      } else {
        Kind other = kindOf(operand);
        kind = other == Kind::Varies || kind == Kind::Varies ? Kind::Varies : std::max(kind, other);
      }
    }
  });
  return kind;
}

} // namespace accel
