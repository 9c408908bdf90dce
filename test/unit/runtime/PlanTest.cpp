#include "runtime/Plan.h"

#include "runtime/Program.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace accel::runtime;

namespace {

/// The example of docs/bundle.md.
const char *kExample = R"({
  "version": 1, "name": "graph_0",
  "target": {"name": "cpu", "cpu": "znver4", "features": ["avx2"]},
  "symbols": [{"name": "s0", "input": 0}, {"name": "s1", "input": 1, "dim": 1}],
  "inputs": [{"kind": "symbol"},
             {"kind": "tensor", "name": "arg1_1", "dtype": "f32", "sizes": ["s0", "s1"],
              "strides": ["s1", 1], "mutated": false}],
  "values": [
    {"input": 1},
    {"alloc": "arena",  "dtype": "f32", "sizes": ["s0", 768], "strides": [768, 1]},
    {"alloc": "output", "dtype": "f32", "sizes": ["s0", 768], "strides": [768, 1]},
    {"view": 1, "dtype": "f32", "sizes": [768, "s0"], "strides": [1, 768], "offset": 0},
    {"result": true, "dtype": "f32", "sizes": ["s0", 4], "strides": [4, 1]}
  ],
  "kernels": [{"symbol": "softmax", "label": "softmax: amax", "nodes": ["_softmax"],
               "source": "model.py:12", "scratch": ["*", "s0", 4]}],
  "steps": [
    {"op": "launch", "kernel": 0, "args": [0, 1], "symbols": ["s0"], "units": "s0", "grain": 16},
    {"op": "aten", "name": "aten::mm", "overload": "out", "args": [{"value": 1}, {"value": 3}],
     "kwargs": {"out": {"value": 2}}, "results": [null], "kind": "library", "node": "mm",
     "source": "model.py:14"}
  ],
  "outputs": [{"value": 2}, {"symbol": "s0"}, null]
})";

/// The error for the example after `patch` (JSON patch, RFC 6902).
std::string errorAfter(const char *patch) {
  nlohmann::json plan = nlohmann::json::parse(kExample).patch(nlohmann::json::parse(patch));
  try {
    parsePlan(plan.dump());
  } catch (const PlanError &error) {
    return error.what();
  }
  return "no error";
}

TEST(PlanTest, ReadsTheExample) {
  Plan plan = parsePlan(kExample);
  EXPECT_EQ(plan.name, "graph_0");
  EXPECT_EQ(plan.target.features, std::vector<std::string>{"avx2"});
  ASSERT_EQ(plan.symbols.size(), 2u);
  EXPECT_EQ(plan.symbols[0].dim, -1);
  EXPECT_EQ(plan.symbols[1].dim, 1);
  EXPECT_EQ(plan.values[0].tensor.sizes.size(), 2u);
  EXPECT_EQ(plan.values[3].kind, ValueSpec::Kind::View);
  const auto &aten = std::get<AtenStep>(plan.steps[1]);
  EXPECT_EQ(aten.results, std::vector<int>{-1});
  EXPECT_FALSE(aten.isFallback);
  int64_t symbols[] = {3, 768};
  EXPECT_EQ(plan.kernels[0].scratch.evaluate(symbols), 12);
  EXPECT_EQ(plan.outputs[1].kind, OutputSpec::Kind::Integer);
}

TEST(PlanTest, ErrorsNameTheField) {
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/version", "value": 2}])"),
            "plan: version: version 2, this runtime reads 1");
  EXPECT_EQ(errorAfter(R"([{"op": "remove", "path": "/outputs"}])"), "plan: outputs: missing");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/values/1/sizes/0", "value": "s9"}])"),
            "plan: values[1].sizes[0]: no symbol `s9`");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/values/1/dtype", "value": "f99"}])"),
            "plan: values[1].dtype: no dtype `f99`");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/values/1/strides", "value": [1]}])"),
            "plan: values[1].strides: 1 strides for 2 sizes");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/values/3/view", "value": 3}])"),
            "plan: values[3].view: no earlier value 3, there are 3");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/values/0/input", "value": 0}])"),
            "plan: values[0].input: input 0 is an integer");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/symbols/1/dim", "value": 2}])"),
            "plan: symbols[1].dim: no dimension 2, there are 2");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/steps/0/kernel", "value": -1}])"),
            "plan: steps[0].kernel: no kernel -1, there are 1");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/steps/0/args/1", "value": "x"}])"),
            "plan: steps[0].args[1]: expected an integer, found string");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/steps/1/args/0/value", "value": 9}])"),
            "plan: steps[1].args[0].value: no value 9, there are 5");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/steps/1/results/0", "value": 2}])"),
            "plan: steps[1].results[0]: value 2 is not a `result`");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/outputs/0", "value": {"value": 4}}])"),
            "plan: outputs[0]: no step before sets value 4");
  EXPECT_EQ(errorAfter(R"([{"op": "replace", "path": "/outputs/0", "value": {"what": 4}}])"),
            "plan: outputs[0]: expected null or one of `value`, `symbol`, `expr`");
}

// Each member of the example is replaced by values of other types: an error or a valid plan, never
// anything else.
TEST(PlanTest, SurvivesWrongTypesEverywhere) {
  nlohmann::json example = nlohmann::json::parse(kExample);
  nlohmann::json flat = example.flatten();
  for (const auto &[pointer, member] : flat.items())
    for (const char *other : {"null", "true", "-1", "1e300", "\"x\"", "[]", "{}", "[[[]]]", "9223372036854775808"}) {
      nlohmann::json changed = example;
      changed[nlohmann::json::json_pointer(pointer)] = nlohmann::json::parse(other);
      try {
        parsePlan(changed.dump());
      } catch (const PlanError &error) {
        EXPECT_EQ(std::string(error.what()).rfind("plan: ", 0), 0u);
      }
    }
}

TEST(PlanTest, RefusesWhatIsNoJson) {
  EXPECT_THROW(parsePlan(""), PlanError);
  EXPECT_THROW(parsePlan("{"), PlanError);
  EXPECT_THROW(parsePlan("[]"), PlanError);
}

TEST(PlanTest, KnowsEveryDtype) {
  for (const char *name : {"f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "bool", "u16", "u32", "u64",
                           "c32", "c64", "c128", "f8e4m3fn", "f8e5m2"})
    EXPECT_NE(dtypeFromName(name), c10::ScalarType::Undefined) << name;
  EXPECT_EQ(dtypeFromName("f64"), c10::kDouble);
}

std::string programError(const std::string &members) {
  try {
    Program program(R"({"version": 1, "inputs": [], "outputs": [], )" + members + "}", "");
  } catch (const BundleError &error) {
    return error.what();
  }
  return "no error";
}

TEST(PlanTest, RefusesForeignMachines) {
  EXPECT_EQ(programError(R"("target": {"name": "hip"})"), "plan: target.name: no target `hip` in this runtime");
  EXPECT_EQ(programError(R"("target": {"name": "cpu", "cpu": "znver9",
                                       "features": ["sse2", "avx4096", "fma9"]})"),
            "code was compiled for znver9, this processor lacks: avx4096, fma9");
}

TEST(PlanTest, RefusesUnknownOperatorsAndArguments) {
  std::string target = R"("target": {"name": "cpu"}, )";
  EXPECT_EQ(programError(target + R"("steps": [{"op": "aten", "name": "aten::no_such_op",
                                               "node": "n", "source": "m.py:3"}])"),
            "plan: steps[0] (node `n`, m.py:3): PyTorch has no operator `aten::no_such_op`");
  EXPECT_NE(programError(target + R"("steps": [{"op": "aten", "name": "aten::relu"}])")
                .find("argument `self` of `aten::relu`: missing, and has no default"),
            std::string::npos);
  EXPECT_NE(programError(target + R"("steps": [{"op": "aten", "name": "aten::relu", "args": [1],
                                               "kwargs": {"what": 1}}])")
                .find("has no argument `what`"),
            std::string::npos);
  EXPECT_NE(programError(target + R"("kernels": [{"symbol": "k"}])").find("no code section"), std::string::npos);
}

} // namespace
