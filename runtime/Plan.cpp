#include "runtime/Plan.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <optional>

namespace accel::runtime {
namespace {

using Json = nlohmann::json;

constexpr int64_t kPlanVersion = 1;
/// Above any number of inputs: which there are is known to who has both plans.
constexpr size_t kMaxInputs = 1 << 20;
constexpr int kMaxListDepth = 16;

/// A place in the document: the value there and the path to it, for messages.
class Field {
public:
  Field(const Json &json, std::string path) : json(json), path(std::move(path)) {}

  [[noreturn]] void fail(const std::string &reason) const {
    throw PlanError("plan: " + (path.empty() ? std::string("document") : path) + ": " + reason);
  }

  [[noreturn]] void failType(const char *expected) const {
    fail(std::string("expected ") + expected + ", found " + json.type_name());
  }

  bool has(const char *key) const { return json.is_object() && json.contains(key); }

  Field operator[](const char *key) const {
    if (!json.is_object())
      failType("an object");
    auto found = json.find(key);
    if (found == json.end())
      Field(json, pathOf(key)).fail("missing");
    return Field(*found, pathOf(key));
  }

  /// Calls `visit` with each element of a list; a list that isn't there has none.
  template <typename Visitor> void forEach(const char *key, const Visitor &visit) const {
    if (has(key))
      (*this)[key].forEach(visit);
  }

  template <typename Visitor> void forEach(const Visitor &visit) const {
    if (!json.is_array())
      failType("a list");
    for (size_t i = 0; i < json.size(); ++i)
      visit(Field(json[i], path + "[" + std::to_string(i) + "]"));
  }

  /// Calls `visit` with the name and value of each member.
  template <typename Visitor> void forEachMember(const Visitor &visit) const {
    if (!json.is_object())
      failType("an object");
    for (const auto &[key, member] : json.items())
      visit(key, Field(member, pathOf(key.c_str())));
  }

  std::string string() const {
    if (!json.is_string())
      failType("a string");
    return json.get<std::string>();
  }

  std::string stringOr(const char *key, const char *otherwise) const {
    return has(key) ? (*this)[key].string() : otherwise;
  }

  bool boolean() const {
    if (!json.is_boolean())
      failType("true or false");
    return json.get<bool>();
  }

  int64_t integer() const {
    if (!json.is_number_integer())
      failType("an integer");
    bool tooLarge = json.is_number_unsigned() && json.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max());
    if (tooLarge)
      fail("integer " + json.dump() + " does not fit 64 bits");
    return json.get<int64_t>();
  }

  /// An index into a table of `size` entries.
  int index(size_t size, const char *what) const {
    int64_t value = integer();
    if (value < 0 || static_cast<uint64_t>(value) >= size)
      fail("no " + std::string(what) + " " + std::to_string(value) + ", there are " + std::to_string(size));
    return static_cast<int>(value);
  }

  const Json &json;
  const std::string path;

private:
  std::string pathOf(const char *key) const { return path.empty() ? std::string(key) : path + "." + key; }
};

class PlanReader {
public:
  explicit PlanReader(const Json &document) : root(document, "") {}

  Plan read() {
    int64_t version = root["version"].integer();
    if (version != kPlanVersion)
      root["version"].fail("version " + std::to_string(version) + ", this runtime reads " +
                           std::to_string(kPlanVersion));
    plan.name = root.stringOr("name", "graph");
    readTarget(root["target"]);
    // Names first: inputs use them, and symbols refer to inputs.
    root.forEach("symbols", [&](Field field) { symbolNames.push_back(field["name"].string()); });
    root["inputs"].forEach([&](Field field) { plan.inputs.push_back(readInput(field)); });
    root.forEach("symbols", [&](Field field) { plan.symbols.push_back(readSymbol(field)); });
    root.forEach("values", [&](Field field) { plan.values.push_back(readValue(field)); });
    root.forEach("kernels", [&](Field field) { plan.kernels.push_back(readKernel(field)); });
    root.forEach("steps", [&](Field field) { plan.steps.push_back(readStep(field)); });
    root["outputs"].forEach([&](Field field) { plan.outputs.push_back(readOutput(field)); });
    root.forEach("main_inputs", [&](Field field) { plan.mainInputs.push_back(field.index(kMaxInputs, "input")); });
    checkResultsAreSet();
    return std::move(plan);
  }

private:
  void readTarget(Field field) {
    plan.target.name = field["name"].string();
    plan.target.cpu = field.stringOr("cpu", "");
    field.forEach("features", [&](Field feature) { plan.target.features.push_back(feature.string()); });
  }

  SizeExpr readExpr(Field field) const {
    try {
      return SizeExpr::parse(field.json, symbolNames);
    } catch (const std::invalid_argument &error) {
      field.fail(error.what());
    }
  }

  SizeExpr readExprOr(Field field, const char *key, int64_t otherwise) const {
    return field.has(key) ? readExpr(field[key]) : SizeExpr(otherwise);
  }

  c10::ScalarType readDtype(Field field) const {
    std::string name = field.string();
    c10::ScalarType dtype = dtypeFromName(name);
    if (dtype == c10::ScalarType::Undefined)
      field.fail("no dtype `" + name + "`");
    return dtype;
  }

  TensorSpec readTensor(Field field) const {
    TensorSpec tensor;
    tensor.dtype = readDtype(field["dtype"]);
    field["sizes"].forEach([&](Field size) { tensor.sizes.push_back(readExpr(size)); });
    field["strides"].forEach([&](Field stride) { tensor.strides.push_back(readExpr(stride)); });
    if (tensor.sizes.size() != tensor.strides.size())
      field["strides"].fail(std::to_string(tensor.strides.size()) + " strides for " +
                            std::to_string(tensor.sizes.size()) + " sizes");
    return tensor;
  }

  InputSpec readInput(Field field) const {
    InputSpec input;
    std::string kind = field["kind"].string();
    input.name = field.stringOr("name", "");
    if (kind == "symbol")
      return input;
    if (kind != "tensor")
      field["kind"].fail("no kind `" + kind + "`, expected `tensor` or `symbol`");
    input.isTensor = true;
    input.tensor = readTensor(field);
    input.mutated = field.has("mutated") && field["mutated"].boolean();
    return input;
  }

  SymbolSpec readSymbol(Field field) const {
    SymbolSpec symbol{field["name"].string(), field["input"].index(plan.inputs.size(), "input"), -1};
    const InputSpec &input = plan.inputs[symbol.input];
    if (input.isTensor)
      symbol.dim = field["dim"].index(input.tensor.sizes.size(), "dimension");
    else if (field.has("dim"))
      field["dim"].fail("input " + std::to_string(symbol.input) + " is an integer");
    return symbol;
  }

  ValueSpec readValue(Field field) const {
    ValueSpec value;
    if (field.has("input")) {
      value.kind = ValueSpec::Kind::Input;
      value.source = field["input"].index(plan.inputs.size(), "input");
      if (!plan.inputs[value.source].isTensor)
        field["input"].fail("input " + std::to_string(value.source) + " is an integer");
      value.tensor = plan.inputs[value.source].tensor;
      return value;
    }
    value.tensor = readTensor(field);
    if (field.has("alloc")) {
      std::string where = field["alloc"].string();
      if (where != "arena" && where != "output")
        field["alloc"].fail("no kind `" + where + "`, expected `arena` or `output`");
      value.kind = where == "arena" ? ValueSpec::Kind::Arena : ValueSpec::Kind::Output;
    } else if (field.has("view")) {
      value.kind = ValueSpec::Kind::View;
      value.source = field["view"].index(plan.values.size(), "earlier value");
      value.offset = readExprOr(field, "offset", 0);
    } else if (!field.has("result") || !field["result"].boolean()) {
      field.fail("expected one of `input`, `alloc`, `view`, `result`");
    }
    return value;
  }

  KernelSpec readKernel(Field field) const {
    KernelSpec kernel;
    kernel.symbol = field["symbol"].string();
    kernel.label = field.stringOr("label", kernel.symbol.c_str());
    field.forEach("nodes", [&](Field node) { kernel.nodes.push_back(node.string()); });
    kernel.source = field.stringOr("source", "");
    kernel.scratch = readExprOr(field, "scratch", 0);
    return kernel;
  }

  Step readStep(Field field) const {
    std::string op = field["op"].string();
    if (op == "launch")
      return readLaunch(field);
    if (op == "aten")
      return readAten(field);
    field["op"].fail("no step `" + op + "`, expected `launch` or `aten`");
  }

  LaunchStep readLaunch(Field field) const {
    LaunchStep launch;
    launch.kernel = field["kernel"].index(plan.kernels.size(), "kernel");
    field["args"].forEach([&](Field arg) { launch.args.push_back(arg.index(plan.values.size(), "value")); });
    field.forEach("symbols", [&](Field symbol) { launch.symbols.push_back(readExpr(symbol)); });
    launch.units = readExpr(field["units"]);
    launch.grain = readExprOr(field, "grain", 1);
    return launch;
  }

  AtenStep readAten(Field field) const {
    AtenStep aten;
    aten.name = field["name"].string();
    aten.overload = field.stringOr("overload", "");
    field.forEach("args", [&](Field arg) { aten.args.push_back(readArgument(arg, 0)); });
    if (field.has("kwargs"))
      field["kwargs"].forEachMember(
          [&](const std::string &name, Field arg) { aten.kwargs.emplace_back(name, readArgument(arg, 0)); });
    field.forEach("results", [&](Field result) { aten.results.push_back(readResult(result)); });
    std::string kind = field.stringOr("kind", "fallback");
    if (kind != "library" && kind != "fallback")
      field["kind"].fail("no kind `" + kind + "`, expected `library` or `fallback`");
    aten.isFallback = kind == "fallback";
    aten.node = field.stringOr("node", "");
    aten.source = field.stringOr("source", "");
    return aten;
  }

  int readResult(Field field) const {
    if (field.json.is_null())
      return -1;
    int value = field.index(plan.values.size(), "value");
    if (plan.values[value].kind != ValueSpec::Kind::Result)
      field.fail("value " + std::to_string(value) + " is not a `result`");
    return value;
  }

  Argument readArgument(Field field, int depth) const {
    if (depth > kMaxListDepth)
      field.fail("lists are nested deeper than " + std::to_string(kMaxListDepth));
    const Json &json = field.json;
    if (json.is_null())
      return {Argument::Null{}};
    if (json.is_boolean())
      return {json.get<bool>()};
    if (json.is_number_integer())
      return {field.integer()};
    if (json.is_number_float())
      return {json.get<double>()};
    if (json.is_string())
      return {json.get<std::string>()};
    if (json.is_array())
      return readList(field, depth);
    if (json.size() != 1)
      field.fail("expected an object with one key, found " + std::to_string(json.size()));
    return readTagged(field, json.begin().key(), depth);
  }

  Argument readList(Field field, int depth) const {
    Argument::List list;
    field.forEach([&](Field element) { list.elements.push_back(readArgument(element, depth + 1)); });
    return {std::move(list)};
  }

  Argument readTagged(Field field, const std::string &tag, int depth) const {
    Field content = field[tag.c_str()];
    if (tag == "value")
      return {Argument::Value{content.index(plan.values.size(), "value")}};
    if (tag == "expr")
      return {readExpr(content)};
    if (tag == "list")
      return readList(content, depth);
    if (tag == "dtype")
      return {readDtype(content)};
    if (tag == "float")
      return readFloat(content);
    if (tag == "device")
      return readDevice(content);
    if (tag == "layout")
      return readLayout(content);
    if (tag == "memory_format")
      return readMemoryFormat(content);
    field.fail("no argument `" + tag + "`");
  }

  static Argument readFloat(Field field) {
    std::string name = field.string();
    if (name == "inf")
      return {std::numeric_limits<double>::infinity()};
    if (name == "-inf")
      return {-std::numeric_limits<double>::infinity()};
    if (name == "nan")
      return {std::numeric_limits<double>::quiet_NaN()};
    field.fail("no number `" + name + "`, expected `inf`, `-inf` or `nan`");
  }

  static Argument readDevice(Field field) {
    std::string name = field.string();
    try {
      return {c10::Device(name)};
    } catch (const c10::Error &) {
      field.fail("no device `" + name + "`");
    }
  }

  static Argument readLayout(Field field) {
    std::string name = field.string();
    if (name != "strided")
      field.fail("no layout `" + name + "`, expected `strided`");
    return {Argument::Layout{c10::Layout::Strided}};
  }

  static Argument readMemoryFormat(Field field) {
    std::string name = field.string();
    if (name == "contiguous_format" || name == "contiguous")
      return {c10::MemoryFormat::Contiguous};
    if (name == "preserve_format" || name == "preserve")
      return {c10::MemoryFormat::Preserve};
    if (name == "channels_last")
      return {c10::MemoryFormat::ChannelsLast};
    if (name == "channels_last_3d")
      return {c10::MemoryFormat::ChannelsLast3d};
    field.fail("no memory format `" + name + "`");
  }

  OutputSpec readOutput(Field field) const {
    OutputSpec output;
    if (field.json.is_null())
      return output;
    if (field.has("value")) {
      output.kind = OutputSpec::Kind::Value;
      output.value = field["value"].index(plan.values.size(), "value");
      return output;
    }
    output.kind = OutputSpec::Kind::Integer;
    if (field.has("symbol"))
      output.integer = readExpr(field["symbol"]);
    else if (field.has("expr"))
      output.integer = readExpr(field["expr"]);
    else
      field.fail("expected null or one of `value`, `symbol`, `expr`");
    return output;
  }

  /// A result is set once, and by a step before the first that uses it.
  void checkResultsAreSet() const {
    std::vector<bool> isSet(plan.values.size(), false);
    auto check = [&](int value, const std::string &path) {
      int base = value;
      while (plan.values[base].kind == ValueSpec::Kind::View)
        base = plan.values[base].source;
      if (plan.values[base].kind == ValueSpec::Kind::Result && !isSet[base])
        Field(root.json, path).fail("no step before sets value " + std::to_string(base));
    };
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      std::string path = "steps[" + std::to_string(i) + "]";
      visitOperands(plan.steps[i], [&](int value) { check(value, path); });
      const auto *aten = std::get_if<AtenStep>(&plan.steps[i]);
      if (!aten)
        continue;
      for (int result : aten->results) {
        if (result >= 0 && isSet[result])
          Field(root.json, path + ".results").fail("value " + std::to_string(result) + " is set twice");
        if (result >= 0)
          isSet[result] = true;
      }
    }
    for (size_t i = 0; i < plan.outputs.size(); ++i)
      if (plan.outputs[i].kind == OutputSpec::Kind::Value)
        check(plan.outputs[i].value, "outputs[" + std::to_string(i) + "]");
  }

  Field root;
  Plan plan;
  std::vector<std::string> symbolNames;
};

} // namespace

c10::ScalarType dtypeFromName(std::string_view name) {
  static constexpr std::pair<std::string_view, c10::ScalarType> kNames[] = {{"f32", c10::kFloat},
                                                                            {"f64", c10::kDouble},
                                                                            {"f16", c10::kHalf},
                                                                            {"bf16", c10::kBFloat16},
                                                                            {"i8", c10::kChar},
                                                                            {"i16", c10::kShort},
                                                                            {"i32", c10::kInt},
                                                                            {"i64", c10::kLong},
                                                                            {"u8", c10::kByte},
                                                                            {"bool", c10::kBool},
                                                                            {"u16", c10::kUInt16},
                                                                            {"u32", c10::kUInt32},
                                                                            {"u64", c10::kUInt64},
                                                                            {"c32", c10::kComplexHalf},
                                                                            {"c64", c10::kComplexFloat},
                                                                            {"c128", c10::kComplexDouble},
                                                                            {"f8e4m3fn", c10::kFloat8_e4m3fn},
                                                                            {"f8e5m2", c10::kFloat8_e5m2}};
  for (const auto &[known, dtype] : kNames)
    if (known == name)
      return dtype;
  return c10::ScalarType::Undefined;
}

Plan parsePlan(std::string_view json) {
  Json document = Json::parse(json, nullptr, /*allow_exceptions=*/false,
                              /*ignore_comments=*/true);
  if (document.is_discarded())
    throw PlanError("plan: document: not JSON");
  return PlanReader(document).read();
}

} // namespace accel::runtime
