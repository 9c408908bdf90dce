#include "passes/fusion/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/fusion/FusionGroups.h"
#include "passes/kernels/Layouts.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_INSERTCOPIESPASS
#include "passes/fusion/Passes.h.inc"

namespace {

/// `value` in memory of its own.
Value copyOf(OpBuilder &builder, Location loc, Value value, SymbolicSizes &sizes) {
  SmallVector<OpFoldResult> shape;
  for (AffineExpr size : sizes.sizesOf(value))
    shape.push_back(sizes.materialize(builder, loc, size));
  Value empty = tensor::EmptyOp::create(builder, loc, shape, getElementTypeOrSelf(value.getType()));
  return linalg::CopyOp::create(builder, loc, ValueRange{value}, ValueRange{empty}).getResult(0);
}

/// A part that the kernel computing it can write where the concatenation wants it, or that is put together there.
bool isWrittenInPlace(Value part) {
  Operation *def = part.getDefiningOp();
  return def && (isFusable(def) || isa<ConcatOp>(def)) && part.hasOneUse();
}

bool hasNegativeStride(const Placement &placement) {
  return llvm::any_of(placement.strides, [](AffineExpr stride) { return representative(stride) < 0; });
}

/// Arguments that the function writes to, with the first op that does.
llvm::DenseMap<Value, Operation *> mutatedArguments(func::FuncOp func, Layouts &layouts) {
  llvm::DenseMap<Value, Operation *> first;
  for (auto call : func.getOps<AtenCallOp>())
    if (call.getEffectsAttr() && call.getName().ends_with("_") && !call.getOperands().empty())
      if (auto placement = layouts.placementOf(call.getOperands()[0]))
        first.try_emplace(placement->root, call);
  return first;
}

struct InsertCopies : impl::InsertCopiesPassBase<InsertCopies> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    OpBuilder builder(func);
    Layouts before(func);
    llvm::DenseMap<Value, Operation *> mutated = mutatedArguments(func, before);
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
      builder.setInsertionPoint(&op);
      Layouts layouts(func);
      // A value that lies in an argument has to be read before the function writes there.
      auto writtenBefore = [&](OpOperand &operand) -> Operation * {
        std::optional<Placement> placement = layouts.placementOf(operand.get());
        Operation *writer = placement ? mutated.lookup(placement->root) : nullptr;
        return writer && writer->isBeforeInBlock(&op) ? writer : nullptr;
      };
      auto replace = [&](OpOperand &operand) {
        if (Operation *writer = writtenBefore(operand)) {
          builder.setInsertionPoint(writer);
          if (Operation *def = operand.get().getDefiningOp(); def && !def->isBeforeInBlock(writer))
            builder.setInsertionPointAfter(def);
        }
        // Named after what it copies, so that profiles and explain can tell.
        Operation *def = operand.get().getDefiningOp();
        operand.set(copyOf(builder, def ? def->getLoc() : op.getLoc(), operand.get(), layouts.symbolicSizes()));
      };
      if (auto reshape = dyn_cast<ReshapeOp>(op)) {
        if (!layouts.placementOf(reshape.getResult()))
          replace(reshape.getSourceMutable());
      } else if (auto concat = dyn_cast<ConcatOp>(op)) {
        for (OpOperand &part : concat.getPartsMutable())
          if (!isWrittenInPlace(part.get()))
            replace(part);
      } else if (auto call = dyn_cast<AtenCallOp>(op)) {
        bool writes = call.getEffectsAttr() && call.getName().ends_with("_");
        for (OpOperand &operand : call.getOperandsMutable()) {
          if (!isa<RankedTensorType>(operand.get().getType()))
            continue;
          auto placement = layouts.placementOf(operand.get());
          bool isSource = writes && operand.getOperandNumber() > 0;
          if ((placement && hasNegativeStride(*placement)) || (isSource && writtenBefore(operand)))
            replace(operand);
        }
      } else if (isa<func::ReturnOp>(op)) {
        llvm::SmallDenseMap<Value, Attribute> ownerOfRoot;
        for (BlockArgument argument : func.getArguments())
          ownerOfRoot[argument] = func.getArgAttr(argument.getArgNumber(), kNameAttr);
        llvm::SmallDenseMap<Attribute, Value> copyOfNode;
        for (OpOperand &operand : op.getOpOperands()) {
          auto layout = func.getResultAttrOfType<LayoutAttr>(operand.getOperandNumber(), kLayoutAttr);
          if (!layout)
            continue;
          auto placement = layouts.placementOf(operand.get());
          bool same = placement.has_value();
          // Memory is shared with an argument, or with another result, only where it is in eager.
          if (same) {
            Attribute owner = func.getResultAttr(operand.getOperandNumber(), kOwnerAttr);
            auto [it, first] = ownerOfRoot.try_emplace(placement->root, owner);
            same = first || it->second == owner;
          }
          for (unsigned d = 0; same && d < placement->sizes.size(); ++d) {
            auto size = dyn_cast<AffineConstantExpr>(placement->sizes[d]);
            same =
                (size && size.getValue() <= 1) || placement->strides[d] == layout.getStrides().getValue().getResult(d);
          }
          if (same)
            continue;
          // The same node returned twice is one tensor.
          Value &copy = copyOfNode[func.getResultAttr(operand.getOperandNumber(), kNameAttr)];
          if (copy)
            operand.set(copy);
          else
            replace(operand);
          copy = operand.get();
        }
      }
    }
  }
};

} // namespace
} // namespace accel
