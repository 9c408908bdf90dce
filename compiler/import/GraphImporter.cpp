#include "compiler/import/GraphImporter.h"
#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace accel {
namespace {

/// Ops that draw random numbers: never removed, merged or moved.
bool isRandom(llvm::StringRef target) {
  static constexpr llvm::StringLiteral words[] = {
      "rand",    "dropout",     "bernoulli",   "normal.", "normal_functional",
      "uniform", "multinomial", "exponential", "poisson", "rrelu"};
  return llvm::any_of(words, [&](llvm::StringRef word) { return target.contains(word); });
}

/// `aten.copy_.default` and its like write to an argument.
bool writesArgument(llvm::StringRef target) {
  llvm::StringRef op = target.rsplit('.').first;
  return op.ends_with("_") && !op.ends_with("__");
}

/// Ops whose result shares their first argument's memory.
bool isView(llvm::StringRef target) {
  static const llvm::StringSet<> ops = {
      "view",      "permute", "transpose", "t",       "expand",   "slice",          "select",          "squeeze",
      "unsqueeze", "alias",   "detach",    "split",   "diagonal", "unfold",         "as_strided",      "unbind",
      "chunk",     "narrow",  "getitem",   "movedim", "swapaxes", "_reshape_alias", "split_with_sizes"};
  if (target == "getitem")
    return true;
  return ops.contains(target.split('.').second.split('.').first);
}

} // namespace

std::string toJson(const FxExpr &expr) {
  if (expr.kind == FxExpr::Constant)
    return std::to_string(expr.value);
  if (expr.kind == FxExpr::Symbol)
    return "\"" + expr.symbol + "\"";
  static const char *names[] = {"", "", "+", "*", "-", "//", "%", "max", "min"};
  std::string text = std::string("[\"") + names[expr.kind] + "\"";
  for (const FxExpr &operand : expr.operands)
    text += ", " + toJson(operand);
  return text + "]";
}

AffineExpr GraphImporter::affine(const FxExpr &expr) {
  if (expr.kind == FxExpr::Constant)
    return getAffineConstantExpr(expr.value, ctx);
  std::string key = expr.kind == FxExpr::Symbol ? expr.symbol : toJson(expr);
  if (auto it = symbolNumbers.find(key); it != symbolNumbers.end())
    return getAffineSymbolExpr(it->second, ctx);
  auto opaque = [&](DictionaryAttr binding) {
    symbolNumbers[key] = symbolArgs.size();
    addIndexArgument(key, binding);
    return getAffineSymbolExpr(symbolNumbers[key], ctx);
  };
  if (auto it = inputExprs.find(toJson(expr)); it != inputExprs.end())
    return opaque(builder.getDictionaryAttr(builder.getNamedAttr("input", builder.getI64IntegerAttr(it->second))));
  if (expr.kind == FxExpr::Symbol)
    return nullptr;
  SmallVector<AffineExpr> operands;
  for (const FxExpr &operand : expr.operands) {
    operands.push_back(affine(operand));
    if (!operands.back())
      return nullptr;
  }
  AffineExpr result = operands[0];
  for (AffineExpr operand : ArrayRef(operands).drop_front()) {
    switch (expr.kind) {
    case FxExpr::Add:
      result = result + operand;
      break;
    case FxExpr::Mul:
      result = result * operand;
      break;
    case FxExpr::Sub:
      result = result - operand;
      break;
    case FxExpr::FloorDiv:
      result = result.floorDiv(operand);
      break;
    case FxExpr::Mod:
      result = result % operand;
      break;
    default:
      return opaque(builder.getDictionaryAttr(builder.getNamedAttr("expr", builder.getStringAttr(toJson(expr)))));
    }
  }
  return normalize(result);
}

SmallVector<AffineExpr, 4> GraphImporter::affine(ArrayRef<FxExpr> exprs) {
  SmallVector<AffineExpr, 4> result;
  for (const FxExpr &expr : exprs)
    result.push_back(affine(expr));
  return result;
}

Value GraphImporter::indexValue(OpBuilder &b, Location loc, AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return arith::ConstantIndexOp::create(b, loc, constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbolArgs[symbol.getPosition()];
  return affine::AffineApplyOp::create(b, loc, AffineMap::get(0, symbolArgs.size(), expr), symbolArgs);
}

std::optional<int64_t> GraphImporter::bound(AffineExpr expr, bool largest) const {
  SmallVector<std::optional<int64_t>> least(symbolArgs.size()), most(symbolArgs.size());
  for (const FxSymbol &symbol : graph.symbols)
    if (auto it = symbolNumbers.find(symbol.name); it != symbolNumbers.end()) {
      least[it->second] = symbol.min;
      most[it->second] = symbol.max;
    }
  return getBoundForAffineExpr(expr, 0, symbolArgs.size(), least, most, largest);
}

LayoutAttr GraphImporter::layout(const FxTensor &tensor) {
  SmallVector<AffineExpr> sizes(affine(tensor.sizes)), strides(affine(tensor.strides));
  return LayoutAttr::get(ctx, AffineMapAttr::get(AffineMap::get(0, symbolArgs.size(), sizes, ctx)),
                         AffineMapAttr::get(AffineMap::get(0, symbolArgs.size(), strides, ctx)));
}

Type GraphImporter::elementType(const FxTensor &tensor) {
  if (tensor.dtype != DType::Other)
    return scalarType(ctx, tensor.dtype);
  return llvm::StringSwitch<Type>(tensor.dtypeName)
      .Case("u16", builder.getI16Type())
      .Case("u32", builder.getI32Type())
      .Case("u64", builder.getI64Type())
      .Case("c32", ComplexType::get(builder.getF16Type()))
      .Case("c64", ComplexType::get(builder.getF32Type()))
      .Case("c128", ComplexType::get(builder.getF64Type()))
      .Default(builder.getI8Type());
}

ArrayRef<Tensor> GraphImporter::tensorsOf(llvm::StringRef node) const {
  auto it = values.find(node.str());
  return it == values.end() ? ArrayRef<Tensor>() : ArrayRef<Tensor>(it->second);
}

const FxTensor *GraphImporter::metadataOf(llvm::StringRef node) const {
  auto it = nodes.find(node.str());
  if (it == nodes.end() || it->second->results.empty() || it->second->results[0].kind != FxResult::Tensor)
    return nullptr;
  return &it->second->results[0].tensor;
}

Location GraphImporter::location(const FxNode &node) {
  Location loc = node.file.empty() ? Location(UnknownLoc::get(ctx)) : FileLineColLoc::get(ctx, node.file, node.line, 0);
  if (!node.target.empty())
    loc = NameLoc::get(builder.getStringAttr(node.target), loc);
  return NameLoc::get(builder.getStringAttr(node.name), loc);
}

Value GraphImporter::addIndexArgument(llvm::StringRef name, DictionaryAttr binding, std::optional<int64_t> hint) {
  unsigned position = func.getNumArguments();
  SmallVector<NamedAttribute> attrs = {builder.getNamedAttr("accel.binding", binding),
                                       builder.getNamedAttr(kNameAttr, builder.getStringAttr(name))};
  if (hint)
    attrs.push_back(builder.getNamedAttr(kHintAttr, builder.getI64IntegerAttr(*hint)));
  (void)func.insertArgument(position, builder.getIndexType(), builder.getDictionaryAttr(attrs), func.getLoc());
  symbolArgs.push_back(func.getArgument(position));
  return symbolArgs.back();
}

/// Symbols come from integer inputs where there is one, else from a tensor's size.
void GraphImporter::makeSymbols() {
  auto binding = [&](int64_t input, std::optional<int64_t> dim) {
    SmallVector<NamedAttribute> attrs = {builder.getNamedAttr("input", builder.getI64IntegerAttr(input))};
    if (dim)
      attrs.push_back(builder.getNamedAttr("dim", builder.getI64IntegerAttr(*dim)));
    return builder.getDictionaryAttr(attrs);
  };
  std::map<std::string, DictionaryAttr> bindings;
  int64_t input = 0;
  for (const FxNode &node : graph.nodes) {
    if (node.op != FxNode::Input)
      continue;
    const FxResult &result = node.results[0];
    if (result.kind == FxResult::Symbol && result.symbol.kind == FxExpr::Symbol)
      bindings[result.symbol.symbol] = binding(input, std::nullopt);
    else if (result.kind == FxResult::Symbol)
      inputExprs.emplace(toJson(result.symbol), input);
    else if (result.kind == FxResult::Tensor)
      for (auto [d, size] : llvm::enumerate(result.tensor.sizes))
        if (size.kind == FxExpr::Symbol)
          bindings.try_emplace(size.symbol, binding(input, d));
    ++input;
  }
  for (const FxSymbol &symbol : graph.symbols)
    if (auto it = bindings.find(symbol.name); it != bindings.end()) {
      symbolNumbers[symbol.name] = symbolArgs.size();
      addIndexArgument(symbol.name, it->second, symbol.hint);
    }
}

std::string GraphImporter::unboundSymbol(const FxExpr &expr) const {
  if (expr.kind == FxExpr::Constant || inputExprs.count(toJson(expr)))
    return "";
  if (expr.kind == FxExpr::Symbol)
    return symbolNumbers.count(expr.symbol) ? "" : expr.symbol;
  for (const FxExpr &operand : expr.operands)
    if (std::string symbol = unboundSymbol(operand); !symbol.empty())
      return symbol;
  return "";
}

llvm::Error GraphImporter::checkSymbols(const FxNode &node) const {
  std::string problem;
  auto check = [&](const FxExpr &expr, const std::string &where) {
    if (std::string symbol = unboundSymbol(expr); !symbol.empty() && problem.empty())
      problem = where + ": symbol `" + symbol + "` is bound by no input";
  };
  for (const FxResult &result : node.results) {
    for (auto [d, size] : llvm::enumerate(result.tensor.sizes))
      check(size, "out.sizes[" + std::to_string(d) + "]");
    for (auto [d, stride] : llvm::enumerate(result.tensor.strides))
      check(stride, "out.strides[" + std::to_string(d) + "]");
  }
  std::function<void(const FxArg &, const std::string &)> checkArg = [&](const FxArg &arg, const std::string &where) {
    if (arg.kind == FxArg::Symbol)
      check(arg.symbol, where);
    for (auto [i, item] : llvm::enumerate(arg.list))
      checkArg(item, where + "[" + std::to_string(i) + "]");
  };
  for (auto [i, arg] : llvm::enumerate(node.args))
    checkArg(arg, "args[" + std::to_string(i) + "]");
  for (const auto &[name, arg] : node.kwargs)
    checkArg(arg, "kwargs." + name);
  if (problem.empty())
    return llvm::Error::success();
  return llvm::createStringError("FX JSON: node `" + node.name + "`: " + problem);
}

void GraphImporter::makeInputs() {
  int64_t input = 0;
  for (const FxNode &node : graph.nodes) {
    if (node.op != FxNode::Input)
      continue;
    const FxResult &result = node.results[0];
    if (result.kind == FxResult::Tensor) {
      Tensor tensor;
      tensor.dtype = result.tensor.dtype;
      tensor.sizes = affine(result.tensor.sizes);
      SmallVector<int64_t> shape;
      for (AffineExpr size : tensor.sizes) {
        auto constant = dyn_cast_or_null<AffineConstantExpr>(size);
        shape.push_back(constant ? constant.getValue() : ShapedType::kDynamic);
      }
      SmallVector<NamedAttribute> attrs = {
          builder.getNamedAttr("accel.input", builder.getI64IntegerAttr(input)),
          builder.getNamedAttr(kNameAttr, builder.getStringAttr(node.name)),
          builder.getNamedAttr(kKindAttr, builder.getStringAttr(node.kind)),
          builder.getNamedAttr(kDtypeAttr, builder.getStringAttr(result.tensor.dtypeName))};
      unsigned position = func.getNumArguments();
      (void)func.insertArgument(position, RankedTensorType::get(shape, elementType(result.tensor)),
                                builder.getDictionaryAttr(attrs), location(node));
      tensor.value = func.getArgument(position);
      values[node.name] = {tensor};
    } else {
      values[node.name] = {};
    }
    ++input;
  }
  func->setAttr("accel.num_inputs", builder.getI64IntegerAttr(input));
}

llvm::Error GraphImporter::importGetitem(const FxNode &node) {
  if (node.args.size() != 2 || node.args[0].kind != FxArg::Ref || node.args[1].kind != FxArg::Int)
    return llvm::createStringError("FX JSON: node `" + node.name + "`: args: getitem takes a node and a number");
  ArrayRef<Tensor> tuple = tensorsOf(node.args[0].text);
  int64_t index = node.args[1].integer;
  if (index < 0 || index >= int64_t(tuple.size()))
    return llvm::createStringError("FX JSON: node `" + node.name + "`: args[1]: node `" + node.args[0].text + "` has " +
                                   std::to_string(tuple.size()) + " results, not " + std::to_string(index + 1));
  values[node.name] = {tuple[index]};
  return llvm::Error::success();
}

llvm::Error GraphImporter::importCall(const FxNode &node) {
  if (node.target == "getitem")
    return importGetitem(node);
  Location loc = location(node);
  ImplicitLocOpBuilder b(loc, builder);
  std::string reason = "no lowering";
  bool known = llvm::all_of(node.results, [](const FxResult &r) {
    return r.kind != FxResult::Tensor || (r.tensor.dtype != DType::Other && r.tensor.device == "cpu");
  });
  if (!known)
    reason = "dtype or device has no lowering";
  if (Lowering lowering = known ? loweringTable().find(node.target) : nullptr) {
    NodeImporter importer(*this, node, b);
    if (succeeded(lowering(importer))) {
      ++statistics.native;
      values[node.name] = SmallVector<Tensor, 1>(importer.results);
      return llvm::Error::success();
    }
    reason = importer.reason.empty() ? "arguments have no lowering" : importer.reason;
  }
  return importFallback(node, reason, loc);
}

Attribute GraphImporter::argAttribute(const FxArg &arg, SmallVectorImpl<Value> &operands,
                                      SmallVectorImpl<StringRef> &dtypes) {
  auto tagged = [&](StringRef key) -> Attribute {
    return builder.getDictionaryAttr(builder.getNamedAttr(key, builder.getStringAttr(arg.text)));
  };
  switch (arg.kind) {
  case FxArg::None:
    return builder.getUnitAttr();
  case FxArg::Int:
    return builder.getI64IntegerAttr(arg.integer);
  case FxArg::Float:
    return builder.getF64FloatAttr(arg.real);
  case FxArg::Bool:
    return builder.getBoolAttr(arg.integer);
  case FxArg::String:
    return builder.getStringAttr(arg.text);
  case FxArg::DType:
    return tagged("dtype");
  case FxArg::Device:
    return tagged("device");
  case FxArg::Layout:
    return tagged("layout");
  case FxArg::MemoryFormat:
    return tagged("memory_format");
  case FxArg::List: {
    SmallVector<Attribute> items;
    for (const FxArg &item : arg.list)
      items.push_back(argAttribute(item, operands, dtypes));
    return builder.getArrayAttr(items);
  }
  case FxArg::Symbol: {
    operands.push_back(indexValue(builder, builder.getUnknownLoc(), affine(arg.symbol)));
    dtypes.push_back("index");
    return OperandAttr::get(ctx, operands.size() - 1);
  }
  case FxArg::Ref: {
    ArrayRef<Tensor> tensors = tensorsOf(arg.text);
    if (tensors.empty() || !tensors[0].value)
      return builder.getUnitAttr();
    operands.push_back(tensors[0].value);
    const FxResult &result = nodes.at(arg.text)->results[0];
    dtypes.push_back(result.kind == FxResult::Tensor ? StringRef(result.tensor.dtypeName)
                                                     : dtypeName(tensors[0].dtype));
    return OperandAttr::get(ctx, operands.size() - 1);
  }
  }
  return {};
}

llvm::Error GraphImporter::importFallback(const FxNode &node, StringRef reason, Location loc) {
  std::string source = node.file.empty() ? "" : node.file + ":" + std::to_string(node.line);
  if (!fallback)
    return llvm::createStringError("unsupported op: node `" + node.name + "`: " + node.target + ": " + reason.str() +
                                   (source.empty() ? "" : " (" + source + ")"));
  statistics.fallbacks.push_back({node.name, node.target, reason.str(), source});
  values[node.name] = makeAtenCall(node, "fallback", reason, loc);
  return llvm::Error::success();
}

SmallVector<Tensor, 1> GraphImporter::makeAtenCall(const FxNode &node, StringRef kind, StringRef reason, Location loc) {
  SmallVector<Value> operands;
  SmallVector<StringRef> dtypes, resultDtypes;
  SmallVector<Attribute> args, layouts;
  SmallVector<NamedAttribute> kwargs;
  for (const FxArg &arg : node.args)
    args.push_back(argAttribute(arg, operands, dtypes));
  for (const auto &[name, arg] : node.kwargs)
    kwargs.push_back(builder.getNamedAttr(name, argAttribute(arg, operands, dtypes)));
  SmallVector<Type> types;
  SmallVector<int64_t> positions;
  for (auto [k, result] : llvm::enumerate(node.results)) {
    if (result.kind != FxResult::Tensor)
      continue;
    SmallVector<int64_t> shape;
    for (const FxExpr &size : result.tensor.sizes) {
      auto constant = dyn_cast<AffineConstantExpr>(affine(size));
      shape.push_back(constant ? constant.getValue() : ShapedType::kDynamic);
    }
    types.push_back(RankedTensorType::get(shape, elementType(result.tensor)));
    positions.push_back(k);
    resultDtypes.push_back(result.tensor.dtypeName);
    layouts.push_back(layout(result.tensor));
  }
  auto [prefix, overload] = StringRef(node.target).rsplit('.');
  auto [space, op] = prefix.split('.');
  auto call = AtenCallOp::create(
      builder, loc, types, builder.getStringAttr(space + "::" + op), builder.getStringAttr(overload),
      builder.getStringAttr(kind), operands, builder.getArrayAttr(args),
      kwargs.empty() ? DictionaryAttr() : builder.getDictionaryAttr(kwargs), builder.getStringAttr(reason),
      builder.getStrArrayAttr(dtypes), builder.getStrArrayAttr(resultDtypes), builder.getArrayAttr(layouts),
      isRandom(node.target) || writesArgument(node.target) ? builder.getUnitAttr() : UnitAttr());
  if (positions.size() != node.results.size())
    call->setAttr("accel.positions", builder.getDenseI64ArrayAttr(positions));
  SmallVector<Tensor, 1> results(node.results.size());
  for (auto [i, k] : llvm::enumerate(positions))
    results[k] = {call.getResult(i), node.results[k].tensor.dtype, affine(node.results[k].tensor.sizes)};
  return results;
}

/// The node whose memory the tensor lies in: what it is a view of, however often.
StringRef GraphImporter::memoryOwner(StringRef name) const {
  const FxNode *node = nodes.at(name.str());
  while (node->op == FxNode::Call && isView(node->target) && !node->args.empty() && node->args[0].kind == FxArg::Ref) {
    const FxNode *source = nodes.at(node->args[0].text);
    // The results of other ops than `split` and its like have memory of their own.
    if (node->target == "getitem" && !(source->op == FxNode::Call && isView(source->target)))
      break;
    node = source;
  }
  return node->name;
}

llvm::Error GraphImporter::importOutput(const FxNode &node) {
  SmallVector<Value> results;
  SmallVector<Type> types;
  SmallVector<Attribute> attrs;
  SmallVector<int64_t> none;
  Location loc = location(node);
  // The output node holds one list, or the values themselves.
  ArrayRef<FxArg> outputs = node.args;
  if (outputs.size() == 1 && outputs[0].kind == FxArg::List)
    outputs = outputs[0].list;
  for (auto [i, arg] : llvm::enumerate(outputs)) {
    NamedAttrList resultAttrs;
    if (arg.kind == FxArg::Ref && !tensorsOf(arg.text).empty() && tensorsOf(arg.text)[0].value) {
      results.push_back(tensorsOf(arg.text)[0].value);
      const FxTensor &meta = nodes.at(arg.text)->results[0].tensor;
      resultAttrs.set(kDtypeAttr, builder.getStringAttr(meta.dtypeName));
      resultAttrs.set(kLayoutAttr, layout(meta));
      resultAttrs.set(kNameAttr, builder.getStringAttr(arg.text));
      resultAttrs.set(kOwnerAttr, builder.getStringAttr(memoryOwner(arg.text)));
    } else if (arg.kind == FxArg::Symbol || arg.kind == FxArg::Int) {
      AffineExpr expr = arg.kind == FxArg::Int ? getAffineConstantExpr(arg.integer, ctx) : affine(arg.symbol);
      results.push_back(indexValue(builder, loc, expr));
    } else if (arg.kind == FxArg::None || arg.kind == FxArg::Ref) {
      none.push_back(i);
      continue;
    } else {
      return llvm::createStringError("FX JSON: node `output`: result " + std::to_string(i) +
                                     " is neither a tensor nor an integer");
    }
    types.push_back(results.back().getType());
    attrs.push_back(resultAttrs.getDictionary(ctx));
  }
  func::ReturnOp::create(builder, loc, results);
  func.setType(FunctionType::get(ctx, func.getArgumentTypes(), types));
  func.setAllResultAttrs(attrs);
  if (!none.empty())
    func->setAttr("accel.none_outputs", builder.getDenseI64ArrayAttr(none));
  return llvm::Error::success();
}

llvm::Expected<OwningOpRef<ModuleOp>> GraphImporter::run() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc(), graph.name);
  builder.setInsertionPointToEnd(module->getBody());
  func = func::FuncOp::create(builder, builder.getUnknownLoc(), "main", builder.getFunctionType({}, {}));
  builder.setInsertionPointToEnd(func.addEntryBlock());
  for (const FxNode &node : graph.nodes)
    nodes[node.name] = &node;
  makeSymbols();
  for (const FxNode &node : graph.nodes)
    if (llvm::Error error = checkSymbols(node))
      return std::move(error);
  makeInputs();
  for (const FxNode &node : graph.nodes) {
    if (node.op == FxNode::Call)
      if (llvm::Error error = importCall(node))
        return std::move(error);
    if (node.op == FxNode::Output)
      if (llvm::Error error = importOutput(node))
        return std::move(error);
  }
  // Only now are all symbols known, which the layouts' maps count.
  for (const FxNode &node : graph.nodes)
    if (node.op == FxNode::Input && node.results[0].kind == FxResult::Tensor) {
      auto arg = cast<BlockArgument>(values[node.name][0].value);
      func.setArgAttr(arg.getArgNumber(), kLayoutAttr, layout(node.results[0].tensor));
    }
  return module;
}

llvm::Expected<OwningOpRef<ModuleOp>> importFxGraph(const FxGraph &graph, MLIRContext *context, bool fallback,
                                                    ImportStatistics &statistics) {
  return GraphImporter(graph, context, fallback, statistics).run();
}

} // namespace accel
