#include "compiler/import/FxJson.h"

#include "llvm/ADT/StringSet.h"
#include <nlohmann/json.hpp>

using namespace llvm;
using nlohmann::json;

namespace accel {
namespace {

struct DTypeName {
  DType dtype;
  const char *name;
};
constexpr DTypeName kDTypes[] = {
    {DType::F32, "f32"}, {DType::F64, "f64"}, {DType::F16, "f16"}, {DType::BF16, "bf16"}, {DType::I8, "i8"},
    {DType::I16, "i16"}, {DType::I32, "i32"}, {DType::I64, "i64"}, {DType::U8, "u8"},     {DType::Bool, "bool"},
};
constexpr const char *kOtherDTypes[] = {"u16", "u32", "u64", "c32", "c64", "c128", "f8e4m3fn", "f8e5m2"};

/// Thrown inside this file only: where in the document, and what is wrong.
struct Problem {
  std::string message;
};

[[noreturn]] void fail(const std::string &where, const std::string &what) {
  throw Problem{where.empty() ? what : where + ": " + what};
}

/// Reads one document; keeps the names seen so far.
class Reader {
public:
  FxGraph read(const json &doc) {
    if (!doc.is_object())
      fail("", "the document is not an object");
    const json &version = field(doc, "", "version");
    if (version != 1)
      fail("version", "this compiler reads version 1, got " + version.dump());
    FxGraph graph;
    graph.name = string(field(doc, "", "name"), "name");
    if (doc.contains("symbols"))
      for (size_t i = 0; i < array(doc["symbols"], "symbols").size(); ++i)
        graph.symbols.push_back(readSymbol(doc["symbols"][i], "symbols[" + std::to_string(i) + "]"));
    const json &nodes = array(field(doc, "", "nodes"), "nodes");
    for (size_t i = 0; i < nodes.size(); ++i) {
      graph.nodes.push_back(readNode(nodes[i], i));
      if (graph.nodes.back().op == FxNode::Output && i + 1 != nodes.size())
        fail("node `" + graph.nodes.back().name + "`", "nodes follow the output");
    }
    if (graph.nodes.empty() || graph.nodes.back().op != FxNode::Output)
      fail("nodes", "the last node is not the output");
    return graph;
  }

private:
  StringSet<> nodeNames, symbolNames;

  static const json &field(const json &object, const std::string &where, const char *name) {
    auto it = object.find(name);
    if (it == object.end())
      fail(where, std::string("there is no field `") + name + "`");
    return *it;
  }
  static const json &array(const json &value, const std::string &where) {
    if (!value.is_array())
      fail(where, "expected a list, got " + value.dump());
    return value;
  }
  static std::string string(const json &value, const std::string &where) {
    if (!value.is_string())
      fail(where, "expected a string, got " + value.dump());
    return value.get<std::string>();
  }

  FxSymbol readSymbol(const json &value, const std::string &where) {
    FxSymbol symbol;
    symbol.name = string(field(value, where, "name"), where + ".name");
    auto bound = [&](const char *name) -> std::optional<int64_t> {
      if (!value.contains(name) || value[name].is_null())
        return std::nullopt;
      if (!value[name].is_number_integer())
        fail(where + "." + name, "expected an integer, got " + value[name].dump());
      return value[name].get<int64_t>();
    };
    symbol.min = bound("min"), symbol.max = bound("max"), symbol.hint = bound("hint");
    if (!symbolNames.insert(symbol.name).second)
      fail(where, "symbol `" + symbol.name + "` is declared twice");
    return symbol;
  }

  FxExpr readExpr(const json &value, const std::string &where) {
    FxExpr expr;
    if (value.is_number_integer()) {
      expr.value = value.get<int64_t>();
      return expr;
    }
    if (value.is_string()) {
      expr.kind = FxExpr::Symbol;
      expr.symbol = value.get<std::string>();
      if (!symbolNames.contains(expr.symbol))
        fail(where, "symbol `" + expr.symbol + "` is not declared");
      return expr;
    }
    if (!value.is_array() || value.size() < 3 || !value[0].is_string())
      fail(where, "expected an expression, got " + value.dump());
    static const std::pair<const char *, FxExpr::Kind> ops[] = {
        {"+", FxExpr::Add}, {"*", FxExpr::Mul},   {"-", FxExpr::Sub},  {"//", FxExpr::FloorDiv},
        {"%", FxExpr::Mod}, {"max", FxExpr::Max}, {"min", FxExpr::Min}};
    std::string op = value[0].get<std::string>();
    auto it = llvm::find_if(ops, [&](auto &entry) { return op == entry.first; });
    if (it == std::end(ops))
      fail(where, "there is no operator `" + op + "`");
    expr.kind = it->second;
    bool binary = expr.kind == FxExpr::Sub || expr.kind == FxExpr::FloorDiv || expr.kind == FxExpr::Mod;
    if (binary && value.size() != 3)
      fail(where, "operator `" + op + "` takes 2 operands, got " + std::to_string(value.size() - 1));
    for (size_t i = 1; i < value.size(); ++i)
      expr.operands.push_back(readExpr(value[i], where));
    return expr;
  }

  std::vector<FxExpr> readExprs(const json &value, const std::string &where) {
    std::vector<FxExpr> exprs;
    for (size_t i = 0; i < array(value, where).size(); ++i)
      exprs.push_back(readExpr(value[i], where + "[" + std::to_string(i) + "]"));
    return exprs;
  }

  FxResult readResult(const json &value, const std::string &where) {
    FxResult result;
    if (value.is_null())
      return result;
    if (!value.is_object())
      fail(where, "expected a tensor's metadata, got " + value.dump());
    if (value.contains("sym")) {
      result.kind = FxResult::Symbol;
      result.symbol = readExpr(value["sym"], where + ".sym");
      return result;
    }
    result.kind = FxResult::Tensor;
    FxTensor &tensor = result.tensor;
    tensor.dtypeName = string(field(value, where, "dtype"), where + ".dtype");
    std::optional<DType> dtype = parseDType(tensor.dtypeName);
    if (!dtype)
      fail(where + ".dtype", "there is no dtype `" + tensor.dtypeName + "`");
    tensor.dtype = *dtype;
    tensor.sizes = readExprs(field(value, where, "sizes"), where + ".sizes");
    tensor.strides = readExprs(field(value, where, "strides"), where + ".strides");
    if (tensor.sizes.size() != tensor.strides.size())
      fail(where,
           std::to_string(tensor.sizes.size()) + " sizes but " + std::to_string(tensor.strides.size()) + " strides");
    if (value.contains("offset"))
      tensor.offset = readExpr(value["offset"], where + ".offset");
    tensor.device = value.contains("device") ? string(value["device"], where + ".device") : "cpu";
    return result;
  }

  FxArg readArg(const json &value, const std::string &where) {
    FxArg arg;
    if (value.is_null())
      return arg;
    if (value.is_boolean()) {
      arg.kind = FxArg::Bool, arg.integer = value.get<bool>();
    } else if (value.is_number_integer()) {
      arg.kind = FxArg::Int, arg.integer = value.get<int64_t>(), arg.real = arg.integer;
    } else if (value.is_number()) {
      arg.kind = FxArg::Float, arg.real = value.get<double>();
    } else if (value.is_string()) {
      arg.kind = FxArg::String, arg.text = value.get<std::string>();
    } else if (value.is_array()) {
      arg.kind = FxArg::List;
      for (size_t i = 0; i < value.size(); ++i)
        arg.list.push_back(readArg(value[i], where + "[" + std::to_string(i) + "]"));
    } else {
      readTaggedArg(value, where, arg);
    }
    return arg;
  }

  void readTaggedArg(const json &value, const std::string &where, FxArg &arg) {
    if (value.size() != 1)
      fail(where, "expected an object with one key, got " + value.dump());
    const std::string key = value.begin().key();
    const json &content = value.begin().value();
    if (key == "sym") {
      arg.kind = FxArg::Symbol, arg.symbol = readExpr(content, where);
      if (std::optional<int64_t> constant = arg.symbol.constant())
        arg.kind = FxArg::Int, arg.integer = *constant, arg.real = *constant;
      return;
    }
    static const std::pair<const char *, FxArg::Kind> kinds[] = {
        {"ref", FxArg::Ref},       {"dtype", FxArg::DType}, {"device", FxArg::Device},
        {"layout", FxArg::Layout}, {"float", FxArg::Float}, {"memory_format", FxArg::MemoryFormat}};
    auto it = llvm::find_if(kinds, [&](auto &entry) { return key == entry.first; });
    if (it == std::end(kinds))
      fail(where, "there is no kind of argument `" + key + "`");
    arg.kind = it->second;
    arg.text = string(content, where + "." + key);
    if (arg.kind == FxArg::Ref && !nodeNames.contains(arg.text))
      fail(where, "no node `" + arg.text + "` before it");
    if (arg.kind == FxArg::DType && !parseDType(arg.text))
      fail(where, "there is no dtype `" + arg.text + "`");
    if (arg.kind == FxArg::Float) {
      if (arg.text != "inf" && arg.text != "-inf" && arg.text != "nan")
        fail(where, "expected inf, -inf or nan, got `" + arg.text + "`");
      arg.real = arg.text == "nan" ? NAN : arg.text == "inf" ? INFINITY : -INFINITY;
    }
  }

  FxNode readNode(const json &value, size_t index) {
    std::string where = "nodes[" + std::to_string(index) + "]";
    if (!value.is_object())
      fail(where, "expected an object, got " + value.dump());
    FxNode node;
    node.name = string(field(value, where, "name"), where + ".name");
    where = "node `" + node.name + "`";
    std::string op = string(field(value, where, "op"), where + ": op");
    if (op == "input")
      node.op = FxNode::Input;
    else if (op == "output")
      node.op = FxNode::Output;
    else if (op != "call")
      fail(where, "op is `" + op + "`, expected input, call or output");
    if (node.op == FxNode::Input) {
      node.kind = value.contains("kind") ? string(value["kind"], where + ": kind") : "input";
      static constexpr StringLiteral kinds[] = {"parameter", "buffer", "constant", "input"};
      if (!llvm::is_contained(kinds, node.kind))
        fail(where + ": kind", "expected parameter, buffer, constant or input, got `" + node.kind + "`");
    }
    if (node.op == FxNode::Call)
      node.target = string(field(value, where, "target"), where + ": target");
    if (node.op != FxNode::Input) {
      const json &args = array(field(value, where, "args"), where + ": args");
      for (size_t i = 0; i < args.size(); ++i)
        node.args.push_back(readArg(args[i], where + ": args[" + std::to_string(i) + "]"));
    }
    if (value.contains("kwargs")) {
      if (!value["kwargs"].is_object())
        fail(where + ": kwargs", "expected an object, got " + value["kwargs"].dump());
      for (auto &[key, item] : value["kwargs"].items())
        node.kwargs.emplace_back(key, readArg(item, where + ": kwargs." + key));
    }
    if (node.op != FxNode::Output) {
      const json &out = field(value, where, "out");
      if (out.is_array())
        for (size_t i = 0; i < out.size(); ++i)
          node.results.push_back(readResult(out[i], where + ": out[" + std::to_string(i) + "]"));
      else
        node.results.push_back(readResult(out, where + ": out"));
      if (node.op == FxNode::Input && out.is_array())
        fail(where + ": out", "an input is one value, got a list");
    }
    if (value.contains("loc") && value["loc"].is_object()) {
      const json &loc = value["loc"];
      node.file = string(field(loc, where + ": loc", "file"), where + ": loc.file");
      const json &line = field(loc, where + ": loc", "line");
      if (!line.is_number_integer())
        fail(where + ": loc.line", "expected an integer, got " + line.dump());
      node.line = line.get<int64_t>();
    }
    if (!nodeNames.insert(node.name).second)
      fail(where, "there are two nodes of this name");
    return node;
  }
};

} // namespace

bool isFloat(DType dtype) { return dtype == DType::F32 || dtype == DType::F64 || isLowPrecision(dtype); }
bool isIntegral(DType dtype) { return !isFloat(dtype) && dtype != DType::Other; }

std::optional<DType> parseDType(StringRef name) {
  for (const DTypeName &entry : kDTypes)
    if (name == entry.name)
      return entry.dtype;
  if (llvm::is_contained(kOtherDTypes, name))
    return DType::Other;
  return std::nullopt;
}

StringRef dtypeName(DType dtype) {
  for (const DTypeName &entry : kDTypes)
    if (dtype == entry.dtype)
      return entry.name;
  return "other";
}

Expected<FxGraph> parseFxJson(StringRef text) {
  json doc = json::parse(text.begin(), text.end(), nullptr, false, true);
  if (doc.is_discarded()) {
    std::string message;
    try {
      (void)json::parse(text.begin(), text.end(), nullptr, true, true);
    } catch (const json::parse_error &error) {
      message = error.what();
    }
    return createStringError("FX JSON: not JSON: " + message);
  }
  try {
    return Reader().read(doc);
  } catch (const Problem &problem) {
    return createStringError("FX JSON: " + problem.message);
  } catch (const json::exception &error) {
    return createStringError(std::string("FX JSON: ") + error.what());
  }
}

} // namespace accel
