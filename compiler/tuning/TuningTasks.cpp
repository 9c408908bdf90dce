#include "compiler/tuning/TuningTasks.h"

#include "dialects/accel/AccelDialect.h"
#include "dialects/accel/SymbolicSizes.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/kernels/Layouts.h"
#include "passes/schedule/TileConfigs.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/ScopedPrinter.h"
#include <nlohmann/json.hpp>

using namespace mlir;

namespace accel {
namespace {

/// The expression where its symbols have these values; nothing if that is no number, as with a division by zero.
std::optional<int64_t> evaluate(AffineExpr expr, ArrayRef<int64_t> symbols) {
  SmallVector<AffineExpr> constants;
  for (int64_t value : symbols)
    constants.push_back(getAffineConstantExpr(value, expr.getContext()));
  auto number = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(expr.replaceSymbols(constants), 0, 0));
  return number ? std::optional(number.getValue()) : std::nullopt;
}

std::vector<int64_t> evaluate(AffineMap map, ArrayRef<int64_t> symbols) {
  std::vector<int64_t> result;
  for (AffineExpr expr : map.getResults())
    result.push_back(evaluate(expr, symbols).value());
  return result;
}

/// The integers that `index` arguments had while tracing.
class Hints {
public:
  explicit Hints(func::FuncOp main) : sizes(main) {
    for (BlockArgument argument : main.getArguments())
      if (argument.getType().isIndex()) {
        auto hint = main.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kHintAttr);
        values.push_back(hint ? hint.getInt() : 1);
        isKnown.push_back(hint != nullptr);
      }
  }

  std::optional<int64_t> valueOf(Value index) {
    AffineExpr expr = sizes.exprOf(index);
    if (!expr)
      return std::nullopt;
    bool all = true;
    expr.walk([&](AffineExpr e) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
        all &= isKnown[symbol.getPosition()];
    });
    return all ? evaluate(expr, values) : std::nullopt;
  }

private:
  SymbolicSizes sizes;
  SmallVector<int64_t> values;
  SmallVector<bool> isKnown;
};

/// Makes the task of one kernel from the first launch of it.
class TaskBuilder {
public:
  TaskBuilder(KernelOp kernel, LaunchOp launch, Layouts &layouts, Hints &hints)
      : kernel(kernel), launch(launch), layouts(layouts), hints(hints) {}

  std::optional<TuningTask> build(unsigned maxCandidates) {
    TuningTask task;
    task.kernel = kernel.getSymName().str();
    TileConfigAttr chosen = *kernel.getTileConfig();
    task.configs.push_back(llvm::to_string(chosen));
    for (TileConfigAttr config : candidateTileConfigs(kernel, chosen, maxCandidates))
      task.configs.push_back(llvm::to_string(config));
    if (task.configs.size() == 1 || !addInputs(task))
      return std::nullopt;
    task.module = moduleText();
    return task;
  }

private:
  bool addInputs(TuningTask &task) {
    SmallVector<int64_t> symbols;
    for (Value operand : launch.getOperands())
      if (operand.getType().isIndex()) {
        std::optional<int64_t> value = hints.valueOf(operand);
        if (!value)
          return false;
        symbols.push_back(*value);
      }
    const int64_t *symbol = symbols.begin();
    for (auto [number, operand] : llvm::enumerate(launch.getOperands())) {
      TuningInput input;
      if (!operand.getType().isIndex()) {
        LayoutAttr layout = kernel.argLayout(number);
        input.dtype = naturalDtype(getElementTypeOrSelf(operand.getType()));
        input.sizes = evaluate(layout.getSizes().getValue(), symbols);
        input.strides = evaluate(layout.getStrides().getValue(), symbols);
        std::optional<Placement> placement = layouts.placementOf(operand);
        input.isCold = placement && isa<BlockArgument>(placement->root);
        // A flipped tensor's first element isn't where its memory begins.
        if (llvm::any_of(input.strides, [](int64_t stride) { return stride < 0; }))
          return false;
      } else {
        input.value = *symbol++;
      }
      task.inputs.push_back(std::move(input));
    }
    return true;
  }

  std::string moduleText() {
    OpBuilder b(kernel->getContext());
    Location loc = b.getUnknownLoc();
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    b.setInsertionPointToEnd(module->getBody());
    auto copy = cast<KernelOp>(b.clone(*kernel));
    copy.setSymName(kTunedKernel);
    copy.removeTileConfigAttr();
    copy->setAttr("accel.origins", b.getArrayAttr({}));
    auto main =
        func::FuncOp::create(b, loc, "main", b.getFunctionType(launch.getOperandTypes(), launch.getResultTypes()));
    for (auto [i, type] : llvm::enumerate(launch.getOperandTypes())) {
      main.setArgAttr(i, kNameAttr, b.getStringAttr("input" + std::to_string(i)));
      if (type.isIndex()) {
        main.setArgAttr(i, "accel.binding", b.getDictionaryAttr(b.getNamedAttr("input", b.getI64IntegerAttr(i))));
        continue;
      }
      main.setArgAttr(i, "accel.input", b.getI64IntegerAttr(i));
      main.setArgAttr(i, kKindAttr, b.getStringAttr("input"));
      main.setArgAttr(i, kDtypeAttr, b.getStringAttr(naturalDtype(getElementTypeOrSelf(type))));
      main.setArgAttr(i, kLayoutAttr, kernel.argLayout(i));
    }
    for (auto [i, type] : llvm::enumerate(launch.getResultTypes())) {
      main.setResultAttr(i, kDtypeAttr, b.getStringAttr(naturalDtype(getElementTypeOrSelf(type))));
      main.setResultAttr(i, kLayoutAttr, kernel.resultLayout(i));
    }
    main->setAttr("accel.num_inputs", b.getI64IntegerAttr(launch.getNumOperands()));
    b.setInsertionPointToEnd(main.addEntryBlock());
    auto call = LaunchOp::create(b, loc, launch.getResultTypes(), kTunedKernel, main.getArguments());
    func::ReturnOp::create(b, loc, call.getResults());
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    return text;
  }

  KernelOp kernel;
  LaunchOp launch;
  Layouts &layouts;
  Hints &hints;
};

} // namespace

std::vector<TuningTask> tuningTasks(ModuleOp module, unsigned maxCandidates) {
  std::vector<TuningTask> tasks;
  auto functions = module.getOps<func::FuncOp>();
  auto main = llvm::find_if(functions, [](func::FuncOp f) { return f.getSymName() != kConstantsFunction; });
  if (main == functions.end())
    return tasks;
  Layouts layouts(*main);
  Hints hints(*main);
  llvm::MapVector<StringRef, SmallVector<LaunchOp>> launches;
  for (auto launch : (*main).getOps<LaunchOp>())
    launches[launch.getKernel()].push_back(launch);
  for (auto &[name, list] : launches) {
    auto kernel = module.lookupSymbol<KernelOp>(name);
    if (auto task = TaskBuilder(kernel, list.front(), layouts, hints).build(maxCandidates)) {
      task->launches = list.size();
      tasks.push_back(std::move(*task));
    }
  }
  return tasks;
}

std::string tuningTasksJson(const std::vector<TuningTask> &tasks) {
  auto list = nlohmann::json::array();
  for (const TuningTask &task : tasks) {
    auto inputs = nlohmann::json::array();
    for (const TuningInput &input : task.inputs) {
      if (input.dtype.empty())
        inputs.push_back(input.value);
      else
        inputs.push_back(
            {{"dtype", input.dtype}, {"sizes", input.sizes}, {"strides", input.strides}, {"cold", input.isCold}});
    }
    list.push_back({{"kernel", task.kernel},
                    {"module", task.module},
                    {"inputs", inputs},
                    {"launches", task.launches},
                    {"configs", task.configs}});
  }
  return list.dump();
}

LogicalResult applyTileConfigs(ModuleOp module, ArrayRef<std::pair<std::string, std::string>> configs) {
  for (auto &[name, text] : configs) {
    auto kernel = module.lookupSymbol<KernelOp>(name);
    if (!kernel)
      continue;
    auto config = dyn_cast_or_null<TileConfigAttr>(parseAttribute(text, module.getContext()));
    if (!config)
      return kernel.emitError() << "the schedule of kernel '" << name << "' is no #accel.tile_config: " << text;
    kernel.setTileConfigAttr(config);
  }
  return success();
}

} // namespace accel
