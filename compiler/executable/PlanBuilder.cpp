#include "compiler/executable/PlanBuilder.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/kernels/Layouts.h"
#include <nlohmann/json.hpp>

using namespace mlir;
using nlohmann::json;

namespace accel {
namespace {

std::string sourceOf(Location loc) {
  std::string source;
  loc->walk([&](Location inner) {
    if (auto file = dyn_cast<FileLineColLoc>(inner)) {
      source = (file.getFilename().getValue() + ":" + Twine(file.getLine())).str();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return source;
}

std::string nodeOf(Location loc) {
  auto name = dyn_cast<NameLoc>(loc);
  return name ? name.getName().str() : "";
}

/// Whether the call writes its result into memory that it is given, rather than into a new tensor.
bool writesOut(AtenCallOp call) { return call.getOverload() == "out"; }

class PlanBuilder {
public:
  PlanBuilder(ModuleOp module, func::FuncOp func, const CpuCode &code, const TargetDescription &target)
      : module(module), code(code), target(target), func(func), layouts(func) {}

  json build() {
    plan = {{"version", 1}, {"name", module.getName().value_or("graph").str()}};
    plan["target"] = {{"name", target.name}, {"cpu", target.cpu}, {"features", json::array()}};
    SmallVector<StringRef> features;
    StringRef(target.features).split(features, ',');
    if (!code.object.empty())
      for (StringRef feature : features)
        if (feature.consume_front("+"))
          plan["target"]["features"].push_back(feature.str());
    addSymbols();
    addInputs();
    if (auto inputs = func->getAttrOfType<DenseI64ArrayAttr>("accel.inputs"))
      plan["main_inputs"] = inputs.asArrayRef().vec();
    plan["values"] = json::array();
    plan["steps"] = json::array();
    addKernels();
    findOutputs();
    for (Operation &op : func.getBody().front()) {
      if (auto launch = dyn_cast<LaunchOp>(op))
        addLaunch(launch);
      else if (auto call = dyn_cast<AtenCallOp>(op))
        addCall(call);
      else if (isa<func::ReturnOp>(op))
        addOutputs(&op);
    }
    for (auto [k, scratch] : llvm::enumerate(scratchSizes))
      if (!scratch.empty())
        plan["kernels"][k]["scratch"] = scratch.size() == 1 ? scratch[0] : joined("max", scratch);
    return plan;
  }

private:
  static json joined(const char *op, ArrayRef<json> operands) {
    json result = json::array({op});
    for (const json &operand : operands)
      result.push_back(operand);
    return result;
  }

  //===-- Expressions
  //----------------------------------------------------------------------------------------------------===//

  json expr(AffineExpr e, ArrayRef<json> symbols) {
    if (auto constant = dyn_cast<AffineConstantExpr>(e))
      return constant.getValue();
    if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
      return symbols[symbol.getPosition()];
    auto binary = cast<AffineBinaryOpExpr>(e);
    json a = expr(binary.getLHS(), symbols), b = expr(binary.getRHS(), symbols);
    switch (e.getKind()) {
    case AffineExprKind::Add:
      return json::array({"+", a, b});
    case AffineExprKind::Mul:
      return json::array({"*", a, b});
    case AffineExprKind::FloorDiv:
      return json::array({"//", a, b});
    case AffineExprKind::CeilDiv:
      return json::array({"//", json::array({"+", a, json::array({"-", b, 1})}), b});
    default:
      return json::array({"%", a, b});
    }
  }
  json expr(AffineExpr e) { return expr(e, symbolJson); }
  json exprs(ArrayRef<AffineExpr> list) {
    json result = json::array();
    for (AffineExpr e : list)
      result.push_back(expr(e));
    return result;
  }
  json indexValue(Value value) { return expr(layouts.symbolicSizes().exprOf(value)); }

  void addSymbols() {
    plan["symbols"] = json::array();
    for (BlockArgument arg : func.getArguments()) {
      if (!arg.getType().isIndex())
        continue;
      auto binding = func.getArgAttrOfType<DictionaryAttr>(arg.getArgNumber(), "accel.binding");
      if (auto text = binding.getAs<StringAttr>("expr")) {
        symbolJson.push_back(json::parse(text.getValue().str()));
        continue;
      }
      int64_t input = binding.getAs<IntegerAttr>("input").getInt();
      auto dim = binding.getAs<IntegerAttr>("dim");
      auto given = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kNameAttr);
      // A saved expression such as s0*4 is a symbol of its own.
      std::string name = given.getValue().starts_with("[") ? "input" + std::to_string(input) : given.str();
      json symbol = {{"name", name}, {"input", input}};
      if (dim)
        symbol["dim"] = dim.getInt();
      plan["symbols"].push_back(symbol);
      symbolJson.push_back(name);
    }
  }

  void addInputs() {
    int64_t count = func->getAttrOfType<IntegerAttr>("accel.num_inputs").getInt();
    plan["inputs"] = json::array();
    for (int64_t i = 0; i < count; ++i)
      plan["inputs"].push_back({{"kind", "symbol"}});
    llvm::SmallDenseSet<Value> mutated;
    for (auto call : func.getOps<AtenCallOp>())
      if (call.getEffectsAttr() && call.getName().ends_with("_") && !call.getOperands().empty())
        if (auto placement = layouts.placementOf(call.getOperands()[0]))
          mutated.insert(placement->root);
    for (BlockArgument arg : func.getArguments()) {
      auto input = func.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), "accel.input");
      if (!input)
        continue;
      std::optional<Placement> placement = layouts.placementOf(arg);
      plan["inputs"][input.getInt()] = {
          {"kind", "tensor"},
          {"name", func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kNameAttr).str()},
          {"dtype", func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kDtypeAttr).str()},
          {"sizes", exprs(placement->sizes)},
          {"strides", exprs(placement->strides)},
          {"mutated", mutated.contains(arg)}};
    }
  }

  //===-- Values
  //-----------------------------------------------------------------------------------------------------------===//

  void findOutputs() {
    Operation *ret = func.getBody().front().getTerminator();
    for (OpOperand &operand : ret->getOpOperands())
      if (isa<RankedTensorType>(operand.get().getType())) {
        Value root = layouts.placementOf(operand.get())->root;
        outputDtype.try_emplace(root,
                                func.getResultAttrOfType<StringAttr>(operand.getOperandNumber(), kDtypeAttr).str());
      }
  }

  std::string dtypeOf(Value root) {
    if (auto arg = dyn_cast<BlockArgument>(root))
      return func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kDtypeAttr).str();
    if (auto call = root.getDefiningOp<AtenCallOp>(); call && call.getResultDtypesAttr())
      return cast<StringAttr>(call.getResultDtypesAttr()[cast<OpResult>(root).getResultNumber()]).str();
    if (auto it = outputDtype.find(root); it != outputDtype.end())
      return it->second;
    return naturalDtype(getElementTypeOrSelf(root.getType()));
  }

  int64_t append(json value) {
    plan["values"].push_back(std::move(value));
    return plan["values"].size() - 1;
  }

  int64_t valueOf(Value tensor) {
    if (auto it = values.find(tensor); it != values.end())
      return it->second;
    std::optional<Placement> placement = layouts.placementOf(tensor);
    json value;
    if (placement->root != tensor) {
      int64_t base = valueOf(placement->root);
      value = {{"view", base}, {"offset", expr(placement->offset)}};
    } else if (auto arg = dyn_cast<BlockArgument>(tensor)) {
      value = {{"input", func.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), "accel.input").getInt()}};
      return values[tensor] = append(value);
    } else if (auto call = tensor.getDefiningOp<AtenCallOp>(); call && !writesOut(call)) {
      value = {{"result", true}};
    } else {
      value = {{"alloc", outputDtype.contains(tensor) ? "output" : "arena"}};
    }
    value["dtype"] = dtypeOf(placement->root);
    value["sizes"] = exprs(placement->sizes);
    value["strides"] = exprs(placement->strides);
    return values[tensor] = append(value);
  }

  /// What a kernel reads. It needs no more than the first element's address, and a view in a plan can't have the
  /// negative strides of a flipped tensor, so that one is given as its first element alone.
  int64_t launchArgument(Value tensor) {
    std::optional<Placement> placement = layouts.placementOf(tensor);
    if (llvm::none_of(placement->strides, [](AffineExpr stride) { return representative(stride) < 0; }))
      return valueOf(tensor);
    AffineExpr count = getAffineConstantExpr(1, func.getContext());
    for (AffineExpr size : placement->sizes)
      count = count * size;
    int64_t base = valueOf(placement->root);
    return append({{"view", base},
                   {"dtype", dtypeOf(placement->root)},
                   {"sizes", json::array({json::array({"min", 1, expr(normalize(count))})})},
                   {"strides", {1}},
                   {"offset", json::array({"max", 0, expr(placement->offset)})}});
  }

  /// The tensor as one of the given dtype, which has the same width.
  int64_t valueAs(Value tensor, StringRef dtype) {
    std::optional<Placement> placement = layouts.placementOf(tensor);
    if (dtypeOf(placement->root) == dtype)
      return valueOf(tensor);
    int64_t base = valueOf(placement->root);
    return append({{"view", base},
                   {"dtype", dtype.str()},
                   {"sizes", exprs(placement->sizes)},
                   {"strides", exprs(placement->strides)},
                   {"offset", expr(placement->offset)}});
  }

  //===-- Steps
  //------------------------------------------------------------------------------------------------------------===//

  void addKernels() {
    plan["kernels"] = json::array();
    for (auto kernel : module.getOps<KernelOp>()) {
      kernelNumbers[kernel.getSymName()] = plan["kernels"].size();
      json nodes = json::array(), source;
      for (Attribute origin : kernel->getAttrOfType<ArrayAttr>("accel.origins")) {
        auto parts = cast<ArrayAttr>(origin);
        nodes.push_back(cast<StringAttr>(parts[0]).str());
        if (source.is_null() && !cast<StringAttr>(parts[2]).empty())
          source = cast<StringAttr>(parts[2]).str();
      }
      plan["kernels"].push_back({{"symbol", kernel.getSymName().str()},
                                 {"label", kernel.getSymName().rsplit('_').first.str()},
                                 {"nodes", nodes},
                                 {"source", source.is_null() ? json("") : source},
                                 {"scratch", 0}});
    }
    scratchSizes.resize(plan["kernels"].size());
  }

  void addLaunch(LaunchOp launch) {
    int64_t number = kernelNumbers.lookup(launch.getKernel());
    const KernelLaunchInfo &info = code.launchInfo.find(launch.getKernel())->second;
    json args = json::array(), indices = json::array();
    SmallVector<json> symbols;
    for (Value operand : launch.getOperands()) {
      if (operand.getType().isIndex()) {
        symbols.push_back(indexValue(operand));
        indices.push_back(symbols.back());
      } else {
        args.push_back(launchArgument(operand));
      }
    }
    for (Value result : launch.getResults())
      args.push_back(valueOf(result));
    plan["steps"].push_back({{"op", "launch"},
                             {"kernel", number},
                             {"args", args},
                             {"symbols", indices},
                             {"units", expr(info.units, symbols)},
                             {"grain", expr(info.grain, symbols)}});
    json scratch = expr(info.scratch, symbols);
    if (scratch != 0 && !llvm::is_contained(scratchSizes[number], scratch))
      scratchSizes[number].push_back(scratch);
  }

  json argument(Attribute attr, AtenCallOp call) {
    if (auto operand = dyn_cast<OperandAttr>(attr)) {
      Value value = call.getOperands()[operand.getIndex()];
      if (value.getType().isIndex())
        return {{"expr", indexValue(value)}};
      if (auto dtypes = call.getDtypesAttr())
        return {{"value", valueAs(value, cast<StringAttr>(dtypes[operand.getIndex()]).getValue())}};
      return {{"value", valueOf(value)}};
    }
    if (isa<UnitAttr>(attr))
      return nullptr;
    if (auto boolean = dyn_cast<BoolAttr>(attr))
      return boolean.getValue();
    if (auto integer = dyn_cast<IntegerAttr>(attr))
      return integer.getInt();
    if (auto real = dyn_cast<FloatAttr>(attr)) {
      double value = real.getValueAsDouble();
      if (std::isfinite(value))
        return value;
      return {{"float", std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"}};
    }
    if (auto text = dyn_cast<StringAttr>(attr))
      return text.str();
    if (auto list = dyn_cast<ArrayAttr>(attr)) {
      json items = json::array();
      for (Attribute item : list)
        items.push_back(argument(item, call));
      return {{"list", items}};
    }
    auto tagged = cast<DictionaryAttr>(attr);
    return {{tagged.begin()->getName().str(), cast<StringAttr>(tagged.begin()->getValue()).str()}};
  }

  void addCall(AtenCallOp call) {
    json args = json::array(), kwargs = json::object(), results = json::array();
    for (Attribute attr : call.getArgs())
      args.push_back(argument(attr, call));
    if (auto dictionary = call.getKwargsAttr())
      for (NamedAttribute entry : dictionary)
        kwargs[entry.getName().str()] = argument(entry.getValue(), call);
    if (writesOut(call)) {
      kwargs["out"] = {{"value", valueOf(call.getResult(0))}};
    } else {
      auto positions = call->getAttrOfType<DenseI64ArrayAttr>("accel.positions");
      for (auto [i, result] : llvm::enumerate(call.getResults())) {
        size_t position = positions ? positions[i] : i;
        while (results.size() < position)
          results.push_back(nullptr);
        if (result.use_empty())
          results.push_back(nullptr);
        else
          results.push_back(valueOf(result));
      }
    }
    plan["steps"].push_back({{"op", "aten"},
                             {"name", call.getName().str()},
                             {"overload", call.getOverload() == "default" ? "" : call.getOverload().str()},
                             {"args", args},
                             {"kwargs", kwargs},
                             {"results", results},
                             {"kind", call.getKind().str()},
                             {"node", nodeOf(call.getLoc())},
                             {"source", sourceOf(call.getLoc())}});
  }

  void addOutputs(Operation *ret) {
    json outputs = json::array();
    auto none = func->getAttrOfType<DenseI64ArrayAttr>("accel.none_outputs");
    auto addNone = [&] {
      while (none && llvm::is_contained(none.asArrayRef(), int64_t(outputs.size())))
        outputs.push_back(nullptr);
    };
    for (OpOperand &operand : ret->getOpOperands()) {
      addNone();
      if (operand.get().getType().isIndex())
        outputs.push_back({{"expr", indexValue(operand.get())}});
      else
        outputs.push_back(
            {{"value",
              valueAs(operand.get(),
                      func.getResultAttrOfType<StringAttr>(operand.getOperandNumber(), kDtypeAttr).getValue())}});
    }
    addNone();
    plan["outputs"] = outputs;
  }

  ModuleOp module;
  const CpuCode &code;
  const TargetDescription &target;
  func::FuncOp func;
  Layouts layouts;
  json plan;
  SmallVector<json> symbolJson;
  llvm::DenseMap<Value, int64_t> values;
  llvm::DenseMap<Value, std::string> outputDtype;
  llvm::StringMap<int64_t> kernelNumbers;
  std::vector<SmallVector<json, 1>> scratchSizes;
};

} // namespace

static llvm::Error checkFunction(func::FuncOp func) {
  std::string where = "function @" + func.getSymName().str() + ": ";
  auto missing = [&](const Twine &what, StringRef name) {
    return llvm::createStringError(where + what + " has no '" + name + "'");
  };
  if (func.isExternal())
    return llvm::createStringError(where + "it has no body");
  if (!func->hasAttrOfType<IntegerAttr>("accel.num_inputs"))
    return llvm::createStringError(where + "it has no 'accel.num_inputs'");
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    SmallVector<StringRef> names = {kNameAttr, "accel.binding"};
    if (isa<RankedTensorType>(type))
      names = {kNameAttr, "accel.input", kDtypeAttr, kLayoutAttr};
    for (StringRef name : names)
      if (!func.getArgAttr(i, name))
        return missing("argument " + Twine(i), name);
  }
  for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
    for (StringRef name : {StringRef(kDtypeAttr), StringRef(kLayoutAttr)})
      if (isa<RankedTensorType>(type) && !func.getResultAttr(i, name))
        return missing("result " + Twine(i), name);
  return llvm::Error::success();
}

llvm::Error checkHostFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
  bool named = functions.size() == 1 || (functions.size() == 2 && functions[1].getSymName() == kConstantsFunction);
  if (!named)
    return llvm::createStringError("expected one func.func, or one and @" + kConstantsFunction.str() + ", got " +
                                   std::to_string(functions.size()));
  for (func::FuncOp func : functions)
    if (llvm::Error error = checkFunction(func))
      return error;
  for (auto kernel : module.getOps<KernelOp>())
    if (!kernel->hasAttrOfType<ArrayAttr>("accel.origins"))
      return llvm::createStringError("kernel @" + kernel.getSymName() + " has no 'accel.origins'");
  return llvm::Error::success();
}

Plans buildPlans(ModuleOp module, const CpuCode &code, const TargetDescription &target) {
  Plans plans;
  for (auto func : module.getOps<func::FuncOp>()) {
    std::string &plan = func.getSymName() == kConstantsFunction ? plans.constants : plans.main;
    plan = PlanBuilder(module, func, code, target).build().dump();
  }
  return plans;
}

} // namespace accel
