#include "compiler/import/FxJson.h"

#include <gtest/gtest.h>
#include <limits>

namespace accel {
namespace {

const std::string kInput =
    R"({"op": "input", "name": "x", "kind": "input", "out": {"dtype": "f32", "sizes": ["s0", 8], "strides": [8, 1]}})";
const std::string kSymbols = R"([{"name": "s0", "min": 2, "max": null, "hint": 4}])";
const std::string kTensor = R"({"dtype": "f32", "sizes": [8], "strides": [1]})";

std::string document(const std::string &nodes, const std::string &symbols = kSymbols) {
  return R"({"version": 1, "name": "g", "symbols": )" + symbols + R"(, "nodes": [)" + nodes +
         R"(, {"op": "output", "name": "output", "args": [{"ref": "x"}]}]})";
}

/// A document whose second node is a call with the given fields.
std::string call(const std::string &fields) {
  return document(kInput + R"(, {"op": "call", "name": "y", "target": "aten.add.Tensor", )" + fields + "}");
}

std::string errorOf(const std::string &text) {
  llvm::Expected<FxGraph> graph = parseFxJson(text);
  return graph ? "no error" : llvm::toString(graph.takeError());
}

FxNode callOf(const std::string &fields) {
  llvm::Expected<FxGraph> graph = parseFxJson(call(fields));
  if (!graph) {
    ADD_FAILURE() << llvm::toString(graph.takeError());
    return {};
  }
  return graph->nodes[1];
}

struct Case {
  std::string name, text, message;
};

class WrongDocument : public testing::TestWithParam<Case> {};

TEST_P(WrongDocument, NamesNodeAndField) { EXPECT_EQ(errorOf(GetParam().text), "FX JSON: " + GetParam().message); }

const Case kCases[] = {
    {"array", "[]", "the document is not an object"},
    {"version_text", R"({"version": "1"})", R"(version: this compiler reads version 1, got "1")"},
    {"no_name", R"({"version": 1})", "there is no field `name`"},
    {"name_number", R"({"version": 1, "name": 3})", "name: expected a string, got 3"},
    {"no_nodes", R"({"version": 1, "name": "g"})", "there is no field `nodes`"},
    {"nodes_object", R"({"version": 1, "name": "g", "nodes": {}})", "nodes: expected a list, got {}"},
    {"empty", R"({"version": 1, "name": "g", "nodes": []})", "nodes: the last node is not the output"},
    {"node_number", document("3"), "nodes[0]: expected an object, got 3"},
    {"node_without_name", document(R"({"op": "input"})"), "nodes[0]: there is no field `name`"},
    {"node_without_op", document(R"({"name": "x"})"), "node `x`: there is no field `op`"},

    {"symbols_object", document(kInput, "{}"), "symbols: expected a list, got {}"},
    {"symbol_without_name", document(kInput, "[{}]"), "symbols[0]: there is no field `name`"},
    {"symbol_minimum", document(kInput, R"([{"name": "s0", "min": "2"}])"),
     R"(symbols[0].min: expected an integer, got "2")"},
    {"symbol_twice", document(kInput, R"([{"name": "s0"}, {"name": "s0"}])"),
     "symbols[1]: symbol `s0` is declared twice"},

    {"input_list", document(R"({"op": "input", "name": "x", "out": [)" + kTensor + "]}"),
     "node `x`: out: an input is one value, got a list"},
    {"out_number", call(R"("args": [], "out": 3)"), "node `y`: out: expected a tensor's metadata, got 3"},
    {"second_out", call(R"("args": [], "out": [null, {"sizes": []}])"), "node `y`: out[1]: there is no field `dtype`"},
    {"no_strides", call(R"("args": [], "out": {"dtype": "f32", "sizes": []})"),
     "node `y`: out: there is no field `strides`"},
    {"sizes_number", call(R"("args": [], "out": {"dtype": "f32", "sizes": 3, "strides": []})"),
     "node `y`: out.sizes: expected a list, got 3"},
    {"device", call(R"("args": [], "out": {"dtype": "f32", "sizes": [], "strides": [], "device": 0})"),
     "node `y`: out.device: expected a string, got 0"},
    {"out_symbol", call(R"("args": [], "out": {"sym": "s1"})"), "node `y`: out.sym: symbol `s1` is not declared"},

    {"no_args", call(R"("out": null)"), "node `y`: there is no field `args`"},
    {"args_object", call(R"("args": {}, "out": null)"), "node `y`: args: expected a list, got {}"},
    {"two_keys", call(R"("args": [{"ref": "x", "sym": 1}], "out": null)"),
     R"(node `y`: args[0]: expected an object with one key, got {"ref":"x","sym":1})"},
    {"no_key", call(R"("args": [{}], "out": null)"), "node `y`: args[0]: expected an object with one key, got {}"},
    {"unknown_key", call(R"("args": [{"tensor": "x"}], "out": null)"),
     "node `y`: args[0]: there is no kind of argument `tensor`"},
    {"key_of_number", call(R"("args": [{"ref": 3}], "out": null)"), "node `y`: args[0].ref: expected a string, got 3"},
    {"float", call(R"("args": [{"float": "1e5"}], "out": null)"),
     "node `y`: args[0]: expected inf, -inf or nan, got `1e5`"},
    {"operator_of_one", call(R"("args": [{"sym": ["+", 1]}], "out": null)"),
     R"(node `y`: args[0]: expected an expression, got ["+",1])"},
    {"inner_symbol", call(R"("args": [{"sym": ["+", 1, ["*", "s9", 2]]}], "out": null)"),
     "node `y`: args[0]: symbol `s9` is not declared"},
    {"keyword", call(R"("args": [], "kwargs": {"alpha": {"ref": "z"}}, "out": null)"),
     "node `y`: kwargs.alpha: no node `z` before it"},
    {"keywords_list", call(R"("args": [], "kwargs": [1], "out": null)"),
     "node `y`: kwargs: expected an object, got [1]"},
    {"itself", call(R"("args": [{"ref": "y"}], "out": null)"), "node `y`: args[0]: no node `y` before it"},

    {"line_text", call(R"("args": [], "out": null, "loc": {"file": "m.py", "line": "3"})"),
     R"(node `y`: loc.line: expected an integer, got "3")"},
    {"no_line", call(R"("args": [], "out": null, "loc": {"file": "m.py"})"), "node `y`: loc: there is no field `line`"},
};

INSTANTIATE_TEST_SUITE_P(FxJson, WrongDocument, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &info) { return info.param.name; });

TEST(FxJson, NotJson) {
  EXPECT_TRUE(llvm::StringRef(errorOf("{\"version\": 1,,}")).starts_with("FX JSON: not JSON: ")) << errorOf("{,}");
  EXPECT_TRUE(llvm::StringRef(errorOf("")).starts_with("FX JSON: not JSON: "));
}

TEST(FxJson, CommentsAreSkipped) { EXPECT_EQ(errorOf("// RUN: nothing\n/* and */ " + document(kInput)), "no error"); }

TEST(FxJson, ArgumentsOfEachKind) {
  FxNode node = callOf(
      R"("args": [null, 1, 1.0, true, "tanh", [{"ref": "x"}, -2], {"ref": "x"}, {"sym": ["*", "s0", 2]}, {"sym": 7},
      {"float": "-inf"}, {"float": "nan"}, {"dtype": "bf16"}, {"device": "cpu"}, {"layout": "strided"},
      {"memory_format": "channels_last"}], "kwargs": {"b": 1, "a": 2.5}, "out": null)");
  FxArg::Kind kinds[] = {FxArg::None,  FxArg::Int,   FxArg::Float,  FxArg::Bool,   FxArg::String,
                         FxArg::List,  FxArg::Ref,   FxArg::Symbol, FxArg::Int,    FxArg::Float,
                         FxArg::Float, FxArg::DType, FxArg::Device, FxArg::Layout, FxArg::MemoryFormat};
  ASSERT_EQ(node.args.size(), std::size(kinds));
  for (size_t i = 0; i < std::size(kinds); ++i)
    EXPECT_EQ(node.args[i].kind, kinds[i]) << "argument " << i;
  EXPECT_EQ(node.args[1].real, 1.0) << "an integer can be read as a real number";
  EXPECT_EQ(node.args[5].list[1].integer, -2);
  EXPECT_EQ(node.args[7].symbol.kind, FxExpr::Mul);
  EXPECT_EQ(node.args[8].integer, 7) << "a constant expression is an integer";
  EXPECT_EQ(node.args[9].real, -std::numeric_limits<double>::infinity());
  EXPECT_NE(node.args[10].real, node.args[10].real);
  EXPECT_EQ(node.args[11].text, "bf16");
  ASSERT_EQ(node.kwargs.size(), 2u);
}

TEST(FxJson, ResultsOfEachKind) {
  FxNode node =
      callOf(R"("args": [], "out": [null, {"sym": "s0"}, {"dtype": "c64", "sizes": [["//", "s0", 2]], "strides": [1]}],
      "loc": {"file": "model.py", "line": 12})");
  ASSERT_EQ(node.results.size(), 3u);
  EXPECT_EQ(node.results[0].kind, FxResult::None);
  EXPECT_EQ(node.results[1].kind, FxResult::Symbol);
  EXPECT_EQ(node.results[2].kind, FxResult::Tensor);
  EXPECT_EQ(node.results[2].tensor.dtype, DType::Other);
  EXPECT_EQ(node.results[2].tensor.dtypeName, "c64");
  EXPECT_EQ(node.results[2].tensor.device, "cpu");
  EXPECT_EQ(node.results[2].tensor.sizes[0].kind, FxExpr::FloorDiv);
  EXPECT_EQ(node.file, "model.py");
  EXPECT_EQ(node.line, 12);
}

} // namespace
} // namespace accel
