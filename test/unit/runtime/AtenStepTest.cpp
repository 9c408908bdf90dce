// Steps that call PyTorch's operators.

#include "test/unit/runtime/TestBundle.h"

#include <gtest/gtest.h>

#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>

#include <set>

using namespace accel::runtime;
using namespace accel::runtime::test;

namespace {

/// relu(a @ b) with the product in the arena: mm.out writes to it, relu reads it.
std::string matmulPlan() {
  return R"("inputs": [)" + input("[3, 4]", "[4, 1]") + "," + input("[4, 5]", "[5, 1]") +
         R"(], "values": [{"input": 0}, {"input": 1}, )" + arena("[3, 5]", "[5, 1]") + "," +
         result("[3, 5]", "[5, 1]") + R"(], "steps": [)" +
         aten("aten::mm", "out", R"([{"value": 0}, {"value": 1}])", R"({"out": {"value": 2}})", "[null]") + "," +
         aten("aten::relu", "", R"([{"value": 2}])", "{}", "[3]") + R"(], "outputs": [{"value": 3}])";
}

TEST(AtenStepTest, WritesIntoTheArena) {
  Executable executable(packPlan(matmulPlan()));
  for (int i = 0; i < 3; ++i) {
    at::Tensor a = at::randn({3, 4}), b = at::randn({4, 5});
    EXPECT_TRUE(at::allclose(runTensors(executable, {a, b})[0], at::relu(at::mm(a, b))));
  }
  EXPECT_EQ(executable.stats().counters.atenCalls, 6u);
  EXPECT_EQ(executable.stats().counters.fallbacks, 6u);
  EXPECT_EQ(executable.stats().instances, 1u);
}

// addmm.out and bmm.out take the direct way when all operands are values.
TEST(AtenStepTest, CallsProductsDirectly) {
  Executable executable(
      packPlan(R"("inputs": [)" + input("[2, 3, 4]", "[12, 4, 1]") + "," + input("[2, 4, 3]", "[12, 3, 1]") + "," +
               input("[3]", "[1]") + R"(], "values": [{"input": 0}, {"input": 1}, {"input": 2}, )" +
               arena("[2, 3, 3]", "[9, 3, 1]") + "," + view(3, "9", "[3, 3]", "[3, 1]") + "," +
               output("[3, 3]", "[3, 1]") + R"(], "steps": [)" +
               aten("aten::bmm", "out", R"([{"value": 0}, {"value": 1}])", R"({"out": {"value": 3}})", "[null]") + "," +
               aten("aten::addmm", "out", R"([{"value": 2}, {"value": 4}, {"value": 4}])",
                    R"({"beta": 0.5, "alpha": 2, "out": {"value": 5}})", "[]") +
               R"(], "outputs": [{"value": 5}])"));
  for (int i = 0; i < 2; ++i) {
    at::Tensor a = at::randn({2, 3, 4}), b = at::randn({2, 4, 3}), c = at::randn({3});
    at::Tensor square = at::bmm(a, b)[1];
    EXPECT_TRUE(at::allclose(runTensors(executable, {a, b, c})[0], at::addmm(c, square, square, 0.5, 2), 1e-4, 1e-5));
  }
}

TEST(AtenStepTest, IgnoresGradients) {
  Executable executable(packPlan(matmulPlan()));
  at::Tensor a = at::randn({3, 4}).requires_grad_(), b = at::randn({4, 5});
  at::Tensor out = runTensors(executable, {a, b})[0];
  EXPECT_FALSE(out.requires_grad());
  EXPECT_FALSE(out.is_inference());
}

TEST(AtenStepTest, InferenceModeMixes) {
  Executable executable(packPlan(matmulPlan()));
  at::Tensor a = at::randn({3, 4}), b = at::randn({4, 5});
  {
    c10::InferenceMode mode;
    EXPECT_TRUE(runTensors(executable, {a, b})[0].is_inference());
  }
  EXPECT_FALSE(runTensors(executable, {a, b})[0].is_inference());
  EXPECT_EQ(executable.stats().instances, 1u);
}

TEST(AtenStepTest, TakesViewsOfInputsAndArena) {
  // out = a^T @ (a's last row as a column, copied into the arena by mm with a view)
  Executable executable(
      packPlan(R"("inputs": [)" + input("[3, 4]", "[4, 1]") + R"(], "values": [{"input": 0}, )" +
               view(0, "0", "[4, 3]", "[1, 4]") + "," + arena("[4, 4]", "[4, 1]") + "," +
               view(2, "4", "[2, 4]", "[4, 1]") + "," + output("[2, 4]", "[4, 1]") + R"(], "steps": [)" +
               aten("aten::mm", "out", R"([{"value": 1}, {"value": 0}])", R"({"out": {"value": 2}})", "[null]") + "," +
               aten("aten::mul", "out", R"([{"value": 3}, 2])", R"({"out": {"value": 4}})", "[null]") +
               R"(], "outputs": [{"value": 4}])"));
  at::Tensor a = at::randn({3, 4});
  at::Tensor expected = at::mm(a.t(), a).slice(0, 1, 3) * 2;
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(at::allclose(runTensors(executable, {a})[0], expected));
}

TEST(AtenStepTest, ConvertsListsAndOptionals) {
  // cat([a, b], 0) -> sum over dims [0] keepdim -> index by [None, i]
  std::string index = R"({"kind": "tensor", "dtype": "i64", "sizes": [2], "strides": [1]})";
  Executable executable(packPlan(
      R"("inputs": [)" + input("[2, 4]", "[4, 1]") + "," + input("[3, 4]", "[4, 1]") + "," + index +
      R"(], "values": [{"input": 0}, {"input": 1}, {"input": 2}, )" + result("[5, 4]", "[4, 1]") + "," +
      result("[1, 4]", "[4, 1]") + "," + result("[1, 2]", "[2, 1]") + R"(], "steps": [)" +
      aten("aten::cat", "", R"([{"list": [{"value": 0}, {"value": 1}]}, 0])", "{}", "[3]") + "," +
      aten("aten::sum", "dim_IntList", R"([{"value": 3}, [0], true])", R"({"dtype": {"dtype": "f32"}})", "[4]") + "," +
      aten("aten::index", "Tensor", R"([{"value": 4}, [null, {"value": 2}]])", "{}", "[5]") +
      R"(], "outputs": [{"value": 5}])"));
  at::Tensor a = at::randn({2, 4}), b = at::randn({3, 4}), i = at::tensor({3, 1}, at::kLong);
  at::Tensor expected = at::cat({a, b}).sum({0}, true).index({at::indexing::Slice(), i});
  EXPECT_TRUE(at::allclose(runTensors(executable, {a, b, i})[0], expected));
}

TEST(AtenStepTest, SetsSeveralResults) {
  Executable executable(packPlan(R"("inputs": [)" + input("[4, 6]", "[6, 1]") + R"(], "values": [{"input": 0}, )" +
                                 result("[4]", "[1]") +
                                 R"(, {"result": true, "dtype": "i64", "sizes": [4], "strides": [1]}, )" +
                                 result("[4, 4]", "[6, 1]") + "," + result("[4, 2]", "[6, 1]") + R"(], "steps": [)" +
                                 aten("aten::max", "dim", R"([{"value": 0}, 1])", "{}", "[1, 2]") + "," +
                                 aten("aten::split", "Tensor", R"([{"value": 0}, 4, 1])", "{}", "[3, 4]") +
                                 R"(], "outputs": [{"value": 1}, {"value": 2}, {"value": 4}])"));
  at::Tensor a = at::randn({4, 6});
  std::vector<at::Tensor> outputs = runTensors(executable, {a});
  auto [values, indices] = at::max(a, 1);
  EXPECT_TRUE(at::equal(outputs[0], values));
  EXPECT_TRUE(at::equal(outputs[1], indices));
  EXPECT_TRUE(at::equal(outputs[2], a.slice(1, 4, 6)));
  EXPECT_TRUE(outputs[2].is_alias_of(a));
}

TEST(AtenStepTest, EvaluatesExpressionsInArguments) {
  Executable executable(
      packPlan(R"("symbols": [{"name": "s0", "input": 0, "dim": 0}], "inputs": [)" + input("[\"s0\", 6]", "[6, 1]") +
               R"(], "values": [{"input": 0}, )" + result("[[\"*\", \"s0\", 2], 3]", "[3, 1]") + R"(], "steps": [)" +
               aten("aten::view", "", R"([{"value": 0}, [{"expr": ["*", "s0", 2]}, 3]])", "{}", "[1]") +
               R"(], "outputs": [{"value": 1}])"));
  for (int64_t size : {2, 5, 7}) {
    at::Tensor a = at::randn({size, 6});
    at::Tensor out = runTensors(executable, {a})[0];
    EXPECT_TRUE(at::equal(out, a.view({size * 2, 3})));
    EXPECT_TRUE(out.is_alias_of(a));
  }
}

TEST(AtenStepTest, ConvertsScalars) {
  // Numbers where tensors are expected take no part in type promotion.
  Executable executable(
      packPlan(R"("inputs": [)" + input("[3]", "[1]") + R"(], "values": [{"input": 0}, )" + result("[3]", "[1]") + "," +
               result("[3]", "[1]") + R"(], "steps": [)" +
               aten("aten::add", "Tensor", R"([{"value": 0}, 2])", R"({"alpha": 0.5})", "[1]") + "," +
               aten("aten::clamp", "", R"([{"value": 1}, {"float": "-inf"}])", R"({"max": 1.5})", "[2]") +
               R"(], "outputs": [{"value": 2}])"));
  at::Tensor a = at::randn({3});
  EXPECT_TRUE(at::allclose(runTensors(executable, {a})[0], (a + 1).clamp_max(1.5)));
}

TEST(AtenStepTest, CreatesTensors) {
  Executable executable(packPlan(R"("inputs": [], "values": [)" + result("[2, 3]", "[3, 1]") + R"(], "steps": [)" +
                                 aten("aten::full", "", "[[2, 3], 7]",
                                      R"({"dtype": {"dtype": "f32"}, "device": {"device": "cpu"},
               "layout": {"layout": "strided"}, "pin_memory": false})",
                                      "[0]") +
                                 R"(], "outputs": [{"value": 0}])"));
  EXPECT_TRUE(at::equal(runTensors(executable, {})[0], at::full({2, 3}, 7.0f)));
}

// The arena's layout knows from the schema that the result shares the buffer's memory.
TEST(AtenStepTest, ResultsThatAliasTheArena) {
  std::string fill = aten("aten::fill_", "Scalar", R"([{"value": 3}, 9])", "{}", "[null]");
  Executable executable(packPlan(
      R"("inputs": [)" + input("[4, 4]", "[4, 1]") + R"(], "values": [{"input": 0}, )" + arena("[4, 4]", "[4, 1]") +
      "," + result("[16]", "[1]") + "," + arena("[4, 4]", "[4, 1]") + "," + output("[16]", "[1]") + R"(], "steps": [)" +
      aten("aten::mul", "out", R"([{"value": 0}, 2])", R"({"out": {"value": 1}})", "[null]") + "," +
      aten("aten::view", "", R"([{"value": 1}, [16]])", "{}", "[2]") + "," + fill + "," +
      aten("aten::mul", "out", R"([{"value": 2}, 2])", R"({"out": {"value": 4}})", "[null]") +
      R"(], "outputs": [{"value": 4}, {"value": 2}])"));
  at::Tensor a = at::randn({4, 4});
  std::vector<at::Tensor> outputs = runTensors(executable, {a});
  EXPECT_TRUE(at::allclose(outputs[0], 4 * a.view({16})));
  // What leaves the graph doesn't lie in the arena.
  at::Tensor kept = outputs[1].clone();
  runTensors(executable, {a * 3});
  EXPECT_TRUE(at::equal(outputs[1], kept));
  EXPECT_TRUE(at::allclose(kept, 2 * a.view({16})));
}

// dropout(p, train=false) returns its argument, and its schema doesn't say so.
TEST(AtenStepTest, ResultsThatAliasTheArenaWithoutSayingSo) {
  Executable executable(
      packPlan(R"("inputs": [)" + input("[4]", "[1]") + R"(], "values": [{"input": 0}, )" + arena("[4]", "[1]") + "," +
               result("[4]", "[1]") + "," + arena("[4]", "[1]") + "," + output("[4]", "[1]") + R"(], "steps": [)" +
               aten("aten::mul", "out", R"([{"value": 0}, 2])", R"({"out": {"value": 1}})", "[null]") + "," +
               aten("aten::dropout", "", R"([{"value": 1}, 0.5, false])", "{}", "[2]") + "," +
               aten("aten::fill_", "Scalar", R"([{"value": 3}, 9])", "{}", "[null]") + "," +
               aten("aten::mul", "out", R"([{"value": 2}, 2])", R"({"out": {"value": 4}})", "[null]") +
               R"(], "outputs": [{"value": 4}])"));
  at::Tensor a = at::randn({4});
  EXPECT_TRUE(at::allclose(runTensors(executable, {a})[0], 4 * a));
}

TEST(AtenStepTest, RestridesResults) {
  Executable executable(packPlan(
      R"("inputs": [)" + input("[3, 4]", "[4, 1]") + R"(], "values": [{"input": 0}, )" + result("[4, 3]", "[3, 1]") +
      R"(], "steps": [)" + aten("aten::t", "", R"([{"value": 0}])", "{}", "[1]") + R"(], "outputs": [{"value": 1}])"));
  at::Tensor a = at::randn({3, 4});
  at::Tensor out = runTensors(executable, {a})[0];
  EXPECT_TRUE(at::equal(out, a.t()));
  EXPECT_TRUE(out.is_contiguous());
  EXPECT_EQ(executable.stats().counters.restrided, 1u);
}

TEST(AtenStepTest, ResolvesLazyResults) {
  Executable executable(packPlan(R"("inputs": [)" + input("[4]", "[1]") + R"(], "values": [{"input": 0}, )" +
                                 result("[4]", "[1]") + "," + view(1, "2", "[2]", "[1]") + R"(], "steps": [)" +
                                 aten("aten::_neg_view", "", R"([{"value": 0}])", "{}", "[1]") +
                                 R"(], "outputs": [{"value": 2}])"));
  at::Tensor a = at::randn({4});
  EXPECT_TRUE(at::equal(runTensors(executable, {a})[0], -a.slice(0, 2, 4)));
}

TEST(AtenStepTest, RefusesResultsOfAnotherShape) {
  Executable executable(packPlan(
      R"("inputs": [)" + input("[3, 4]", "[4, 1]") + R"(], "values": [{"input": 0}, )" + result("[3, 4]", "[4, 1]") +
      R"(], "steps": [)" + aten("aten::t", "", R"([{"value": 0}])", "{}", "[1]") + R"(], "outputs": [{"value": 1}])"));
  EXPECT_THROW(executable.run({at::randn({3, 4})}), c10::Error);
}

std::string copyPlan(bool mutated) {
  std::string first = mutated ? mutatedInput("[4]", "[1]") : input("[4]", "[1]");
  return R"("inputs": [)" + first + "," + input("[4]", "[1]") +
         R"(], "values": [{"input": 0}, {"input": 1}], "steps": [)" +
         aten("aten::copy_", "", R"([{"value": 0}, {"value": 1}])", "{}", "[null]") + R"(], "outputs": [])";
}

TEST(AtenStepTest, WritesToInputsBumpTheirVersion) {
  Executable executable(packPlan(copyPlan(true)));
  at::Tensor a = at::zeros({4}), b = at::randn({4});
  int64_t version = a._version();
  executable.run({a, b});
  EXPECT_TRUE(at::equal(a, b));
  EXPECT_EQ(a._version(), version + 1);
}

TEST(AtenStepTest, RefusesWritesToInputsThatAreNotMutated) {
  EXPECT_THROW(Executable(packPlan(copyPlan(false))), PlanError);
}

TEST(AtenStepTest, ErrorsOfOperatorsPassThrough) {
  Executable executable(packPlan(R"("inputs": [)" + input("[3]", "[1]") + R"(], "values": [{"input": 0}, )" +
                                 result("[3]", "[1]") + R"(], "steps": [)" +
                                 aten("aten::select", "int", R"([{"value": 0}, 0, 7])", "{}", "[1]") +
                                 R"(], "outputs": [{"value": 1}])"));
  for (int i = 0; i < 2; ++i)
    EXPECT_THROW(executable.run({at::zeros({3})}), c10::IndexError);
}

TEST(AtenStepTest, ReleasesInputsAfterTheirLastUse) {
  Executable executable(packPlan(matmulPlan()));
  at::Tensor a = at::randn({3, 4}), b = at::randn({4, 5});
  c10::SmallVector<c10::IValue, 4> inputs = {a, b}, outputs;
  executable.run(inputs, outputs);
  EXPECT_EQ(a.use_count(), 1u);
  EXPECT_EQ(b.use_count(), 1u);
}

TEST(AtenStepTest, ProfilesShowStepsByName) {
  static std::vector<std::string> seen;
  seen.clear();
  Executable executable(packPlan(R"("inputs": [)" + input("[4]", "[1]") + R"(], "values": [{"input": 0}, )" +
                                 output("[4]", "[1]") + "," + result("[4]", "[1]") + R"(],
      "kernels": [{"symbol": "double_plus_one", "label": "double", "nodes": ["mul", "add"],
                   "source": "model.py:3"}],
      "steps": [{"op": "launch", "kernel": 0, "args": [0, 1], "units": 4}, )" +
                                 aten("aten::relu", "", R"([{"value": 1}])", "{}", "[2]") + R"(],
      "outputs": [{"value": 2}])"));
  auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction &function) -> std::unique_ptr<at::ObserverContext> {
        seen.emplace_back(function.name());
        return nullptr;
      }));
  executable.run({at::zeros({4})});
  at::removeCallback(handle);
  std::set<std::string> names(seen.begin(), seen.end());
  EXPECT_TRUE(names.count("accel::run test"));
  EXPECT_TRUE(names.count("accel::double [mul add @ model.py:3]"));
  EXPECT_TRUE(names.count("accel::fallback aten::relu [n @ model.py:1]"));
  EXPECT_TRUE(names.count("aten::relu"));
}

} // namespace
