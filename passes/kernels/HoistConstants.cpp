#include "passes/kernels/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/graph/ConstantInputs.h"
#include "passes/kernels/Layouts.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_HOISTCONSTANTSPASS
#include "passes/kernels/Passes.h.inc"

namespace {

bool isAlias(Operation *op) { return isa_and_nonnull<ViewOp, ReshapeOp>(op); }

/// Calls `visit` with the ops that read the value, directly or through views.
void forEachReader(Value value, llvm::function_ref<void(Operation *)> visit) {
  for (Operation *user : value.getUsers()) {
    if (isAlias(user))
      forEachReader(user->getResult(0), visit);
    else
      visit(user);
  }
}

class Hoister {
public:
  explicit Hoister(func::FuncOp main) : main(main), constants(main), layouts(main) {}

  void run() {
    choose();
    if (hoisted.empty())
      return;
    findCrossing();
    makeFunction();
    takeAsInputs();
    for (Operation *op : llvm::reverse(hoisted.getArrayRef()))
      op->erase();
  }

private:
  /// Launches and concatenations that depend on weights alone and aren't handed to the user, who may write to them.
  void choose() {
    for (Operation &op : main.getBody().front()) {
      if (!isa<LaunchOp, ConcatOp>(op))
        continue;
      bool leaves = false, constant = true;
      for (Value result : op.getResults()) {
        constant &= constants.kindOf(result) != ConstantInputs::Kind::Varies;
        forEachReader(result, [&](Operation *reader) { leaves |= isa<func::ReturnOp>(reader); });
      }
      if (constant && !leaves && operandsAreThere(&op))
        hoisted.insert(&op);
    }
    // What is made of nothing goes along with what is made of weights, and stays otherwise; nor can a part be written
    // to the memory of a concatenation that stays.
    bool changed = true;
    while (changed) {
      changed = false;
      SmallVector<Operation *> current(hoisted.getArrayRef());
      for (Operation *op : llvm::reverse(current)) {
        bool isConstant = llvm::any_of(op->getResults(), [&](Value result) { return constants.isConstant(result); });
        bool stays = !operandsAreThere(op);
        for (Value result : op->getResults())
          forEachReader(result, [&](Operation *reader) {
            if (!hoisted.contains(reader))
              stays |= !isConstant || isa<ConcatOp>(reader);
          });
        if (stays)
          changed |= hoisted.remove(op);
      }
    }
  }

  bool operandsAreThere(Operation *op) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      while (isAlias(operand.getDefiningOp()))
        operand = operand.getDefiningOp()->getOperand(0);
      return isa<BlockArgument>(operand) || hoisted.contains(operand.getDefiningOp());
    });
  }

  void findCrossing() {
    for (Operation *op : hoisted)
      for (Value result : op->getResults()) {
        bool crosses = false;
        forEachReader(result, [&](Operation *reader) { crosses |= !hoisted.contains(reader); });
        if (crosses)
          crossing.push_back(result);
      }
  }

  /// The weights and views that an op needs, cloned into the new function.
  void bring(Value value, OpBuilder &b, IRMapping &mapping, func::FuncOp function) {
    if (mapping.contains(value))
      return;
    if (Operation *def = value.getDefiningOp()) {
      for (Value operand : def->getOperands())
        bring(operand, b, mapping, function);
      b.clone(*def, mapping);
      return;
    }
    auto argument = cast<BlockArgument>(value);
    unsigned number = function.getNumArguments();
    SmallVector<NamedAttribute> attrs(mlir::cast<FunctionOpInterface>(*main).getArgAttrs(argument.getArgNumber()));
    inputs.push_back(main.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "accel.input").getInt());
    llvm::erase_if(attrs, [](NamedAttribute attr) { return attr.getName() == "accel.input"; });
    attrs.push_back(b.getNamedAttr("accel.input", b.getI64IntegerAttr(number)));
    (void)function.insertArgument(number, value.getType(), b.getDictionaryAttr(attrs), value.getLoc());
    mapping.map(value, function.getArgument(number));
  }

  LayoutAttr layoutOf(Value value) {
    Placement placement = *layouts.placementOf(value);
    auto map = [&](ArrayRef<AffineExpr> exprs) {
      return AffineMapAttr::get(AffineMap::get(0, 0, exprs, main.getContext()));
    };
    return LayoutAttr::get(main.getContext(), map(placement.sizes), map(placement.strides));
  }

  void makeFunction() {
    OpBuilder b(main->getContext());
    b.setInsertionPointAfter(main);
    SmallVector<Type> types(ValueRange(crossing).getTypes());
    auto function = func::FuncOp::create(b, main.getLoc(), kConstantsFunction, b.getFunctionType({}, types));
    b.setInsertionPointToEnd(function.addEntryBlock());
    IRMapping mapping;
    for (Operation *op : hoisted) {
      for (Value operand : op->getOperands())
        bring(operand, b, mapping, function);
      b.clone(*op, mapping);
    }
    SmallVector<Value> results;
    for (auto [k, value] : llvm::enumerate(crossing)) {
      results.push_back(mapping.lookup(value));
      function.setResultAttr(k, kLayoutAttr, layoutOf(value));
      function.setResultAttr(k, kDtypeAttr, b.getStringAttr(naturalDtype(getElementTypeOrSelf(value.getType()))));
    }
    func::ReturnOp::create(b, main.getLoc(), results);
    function->setAttr("accel.num_inputs", b.getI64IntegerAttr(inputs.size()));
    // Which of the main function's inputs these are.
    function->setAttr("accel.inputs", b.getDenseI64ArrayAttr(inputs));
  }

  void takeAsInputs() {
    Builder b(main->getContext());
    int64_t count = main->getAttrOfType<IntegerAttr>("accel.num_inputs").getInt();
    for (auto [k, value] : llvm::enumerate(crossing)) {
      unsigned number = main.getNumArguments();
      NamedAttribute attrs[] = {
          b.getNamedAttr("accel.input", b.getI64IntegerAttr(count + k)),
          b.getNamedAttr(kNameAttr, b.getStringAttr("constant" + std::to_string(k))),
          b.getNamedAttr(kDtypeAttr, b.getStringAttr(naturalDtype(getElementTypeOrSelf(value.getType())))),
          b.getNamedAttr(kLayoutAttr, layoutOf(value))};
      (void)main.insertArgument(number, value.getType(), b.getDictionaryAttr(attrs), value.getLoc());
      Value argument = main.getArgument(number);
      value.replaceUsesWithIf(argument, [&](OpOperand &use) { return !hoisted.contains(use.getOwner()); });
    }
    main->setAttr("accel.num_inputs", b.getI64IntegerAttr(count + crossing.size()));
    // Views of the weights that only the launches read.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(main.getBody().front())))
      if (isAlias(&op) && llvm::all_of(op.getUsers(), [&](Operation *user) { return hoisted.contains(user); }))
        deadViews.push_back(&op);
    for (Operation *op : hoisted)
      op->dropAllReferences();
    for (Operation *op : deadViews)
      if (op->use_empty())
        op->erase();
  }

  func::FuncOp main;
  ConstantInputs constants;
  Layouts layouts;
  llvm::SetVector<Operation *> hoisted;
  SmallVector<Operation *> deadViews;
  SmallVector<Value> crossing;
  SmallVector<int64_t> inputs;
};

struct HoistConstants : impl::HoistConstantsPassBase<HoistConstants> {
  void runOnOperation() override {
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (function->hasAttr(kConstantWeightsAttr))
        Hoister(function).run();
  }
};

} // namespace
} // namespace accel
