// Launches: inputs, sizes, errors, scratch, mutation.

#include "test/unit/runtime/TestBundle.h"

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

using namespace accel::runtime;
using namespace accel::runtime::test;

namespace {

/// out = (2 a + 1) + a over any size, through an arena buffer.
std::string symbolicPlan() {
  return R"("symbols": [{"name": "s0", "input": 0, "dim": 0}], "inputs": [)" + input("[\"s0\"]", "[1]") +
         R"(], "values": [{"input": 0}, )" + arena("[\"s0\"]", "[1]") + "," + output("[\"s0\"]", "[1]") +
         R"(], "kernels": [{"symbol": "double_plus_one"}, {"symbol": "add"}],
            "steps": [{"op": "launch", "kernel": 0, "args": [0, 1], "units": "s0", "grain": 16},
                      {"op": "launch", "kernel": 1, "args": [0, 1, 2], "units": "s0",
                       "grain": 16}],
            "outputs": [{"value": 2}, {"symbol": "s0"}, null, {"expr": ["*", "s0", 3]}])";
}

TEST(ExecutableTest, RunsWithDifferentSizes) {
  Executable executable(packPlan(symbolicPlan()));
  for (int64_t size : {5, 1000, 0, 5, 300000}) {
    at::Tensor a = at::randn({size});
    std::vector<c10::IValue> outputs = executable.run({a});
    ASSERT_EQ(outputs.size(), 4u);
    EXPECT_TRUE(at::allclose(outputs[0].toTensor(), 3 * a + 1, 1e-5, 1e-5));
    EXPECT_EQ(outputs[1].toInt(), size);
    EXPECT_TRUE(outputs[2].isNone());
    EXPECT_EQ(outputs[3].toInt(), 3 * size);
  }
  Executable::Stats stats = executable.stats();
  EXPECT_EQ(stats.calls, 5u);
  EXPECT_EQ(stats.counters.launches, 10u);
  EXPECT_EQ(stats.instances, 4u);
}

TEST(ExecutableTest, ForgetsOldSizes) {
  Executable executable(packPlan(symbolicPlan()));
  for (int round = 0; round < 2; ++round)
    for (int64_t size = 1; size <= 17; ++size)
      executable.run({at::ones({size})});
  EXPECT_EQ(executable.stats().instances, 34u);
  executable.run({at::ones({17})});
  EXPECT_EQ(executable.stats().instances, 34u);
}

TEST(ExecutableTest, HandsOutSections) {
  Executable executable(packPlan(symbolicPlan()));
  EXPECT_EQ(executable.name(), "test");
  EXPECT_EQ(executable.report(), "{\"kernels\": []}");
  EXPECT_NE(executable.planText().find("double_plus_one"), std::string::npos);
}

TEST(ExecutableTest, LargeOutputsComeFromThePoolAndOwnTheirMemory) {
  Executable executable(packPlan(symbolicPlan()));
  at::Tensor a = at::randn({1 << 20});
  at::Tensor first = executable.run({a})[0].toTensor();
  at::Tensor second = executable.run({a})[0].toTensor();
  EXPECT_NE(first.data_ptr(), second.data_ptr());
  EXPECT_TRUE(at::allclose(first, second));
  first.resize_({1 << 21}); // as any output of eager can be
  EXPECT_EQ(first.numel(), 1 << 21);
}

TEST(ExecutableTest, ChecksInputs) {
  Executable executable(packPlan(R"("inputs": [)" + input("[2, 3]", "[3, 1]") + R"(], "values": [{"input": 0}],
         "outputs": [{"value": 0}])"));
  EXPECT_THROW(executable.run({}), c10::Error);
  EXPECT_THROW(executable.run({c10::IValue(3)}), c10::TypeError);
  EXPECT_THROW(executable.run({at::Tensor()}), c10::TypeError);
  EXPECT_THROW(executable.run({at::zeros({2, 3}, at::kDouble)}), c10::Error);
  EXPECT_THROW(executable.run({at::zeros({3, 2})}), c10::Error);
  at::Tensor a = at::zeros({2, 3});
  EXPECT_TRUE(executable.run({a})[0].toTensor().is_same(a));

  Executable symbolic(packPlan(symbolicPlan()));
  EXPECT_THROW(symbolic.run({at::zeros({})}), c10::TypeError);
}

std::string rowSumPlan(bool mutated = false) {
  std::string in = mutated ? mutatedInput("[4, 3]", "[3, 1]") : input("[4, 3]", "[3, 1]");
  return R"("inputs": [)" + in + R"(], "values": [{"input": 0}, )" + output("[4]", "[1]") +
         R"(], "kernels": [{"symbol": "row_sum"}],
            "steps": [{"op": "launch", "kernel": 0, "args": [0, 1], "symbols": [3], "units": 4}],
            "outputs": [{"value": 1}])";
}

TEST(ExecutableTest, RestridesInputs) {
  Executable executable(packPlan(rowSumPlan()));
  at::Tensor plain = at::randn({4, 3}), transposed = at::randn({3, 4}).t();
  at::Tensor sliced = at::randn({4, 6}).slice(1, 0, 6, 2);
  for (const at::Tensor &tensor : {plain, transposed, sliced})
    EXPECT_TRUE(at::allclose(executable.run({tensor})[0].toTensor(), tensor.sum(1)));
  EXPECT_EQ(executable.stats().counters.restrided, 2u);
}

TEST(ExecutableTest, ResolvesLazyNegation) {
  Executable executable(packPlan(rowSumPlan()));
  at::Tensor lazy = at::_neg_view(at::randn({4, 3}));
  ASSERT_TRUE(lazy.is_neg());
  EXPECT_TRUE(at::allclose(executable.run({lazy})[0].toTensor(), lazy.sum(1)));
}

TEST(ExecutableTest, RefusesToRestrideWhatItWritesTo) {
  Executable executable(packPlan(rowSumPlan(/*mutated=*/true)));
  EXPECT_THROW(executable.run({at::randn({3, 4}).t()}), c10::Error);
}

TEST(ExecutableTest, CountsWritesToInputs) {
  Executable executable(packPlan(R"("inputs": [)" + mutatedInput("[4]", "[1]") +
                                 R"(], "values": [{"input": 0}],
      "kernels": [{"symbol": "increment"}],
      "steps": [{"op": "launch", "kernel": 0, "args": [0], "units": 4}],
      "outputs": [{"value": 0}])"));
  at::Tensor a = at::zeros({4});
  int64_t version = a._version();
  at::Tensor out = executable.run({a})[0].toTensor();
  EXPECT_TRUE(out.is_same(a));
  EXPECT_EQ(a.sum().item<float>(), 4.0f);
  EXPECT_EQ(a._version(), version + 1);

  // As in eager: nothing is written where the write can't be tracked.
  at::Tensor untracked;
  {
    c10::InferenceMode mode;
    untracked = at::zeros({4});
  }
  EXPECT_THROW(executable.run({untracked}), c10::Error);
  EXPECT_EQ(untracked.sum().item<float>(), 0.0f);
}

TEST(ExecutableTest, IndexOutOfRangeRaisesWhatEagerRaises) {
  Executable executable(packPlan(R"("inputs": [)" + input("[5]", "[1]") +
                                 R"(, {"kind": "tensor", "dtype": "i64", "sizes": [3],
         "strides": [1]}], "values": [{"input": 0}, {"input": 1}, )" +
                                 output("[3]", "[1]") + R"(],
      "kernels": [{"symbol": "gather"}],
      "steps": [{"op": "launch", "kernel": 0, "args": [0, 1, 2], "symbols": [5], "units": 3}],
      "outputs": [{"value": 2}])"));
  at::Tensor table = at::arange(5, at::kFloat);
  at::Tensor good = at::tensor({4, 0, 2}, at::kLong), bad = at::tensor({4, 5, 2}, at::kLong);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(at::equal(executable.run({table, good})[0].toTensor(), table.index({good})));
    try {
      executable.run({table, bad});
      FAIL();
    } catch (const c10::IndexError &error) {
      EXPECT_STREQ(error.what_without_backtrace(), "index out of range in self");
    }
  }
}

TEST(ExecutableTest, GivesScratchToEachThread) {
  Executable executable(packPlan(R"("inputs": [)" + input("[64]", "[1]") + R"(], "values": [{"input": 0}, )" +
                                 output("[64]", "[1]") +
                                 R"(], "kernels": [{"symbol": "through_scratch", "scratch": 40000}],
      "steps": [{"op": "launch", "kernel": 0, "args": [0, 1], "symbols": [10000], "units": 64}],
      "outputs": [{"value": 1}])"));
  at::Tensor a = at::arange(64, at::kFloat);
  EXPECT_TRUE(at::allclose(executable.run({a})[0].toTensor(), a * 10000));
}

// The ranges of a launch partition its units, and each but the last is at least `grain` long.
TEST(ExecutableTest, PartitionsUnits) {
  Executable executable(packPlan(
      R"("inputs": [{"kind": "tensor", "mutated": true, "dtype": "i64", "sizes": [2000],
                     "strides": [1]}],
         "values": [{"input": 0}], "kernels": [{"symbol": "record_range"}],
         "steps": [{"op": "launch", "kernel": 0, "args": [0], "units": 1000, "grain": 300}],
         "outputs": [])"));
  int threads = at::get_num_threads();
  at::set_num_threads(3);
  at::Tensor ranges = at::full({1000, 2}, -1, at::kLong);
  executable.run({ranges.view({2000})});
  at::set_num_threads(threads);
  int64_t next = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    if (ranges[i][0].item<int64_t>() < 0)
      continue;
    EXPECT_EQ(ranges[i][0].item<int64_t>(), next);
    int64_t end = ranges[i][1].item<int64_t>();
    EXPECT_TRUE(end - next >= 300 || end == 1000);
    EXPECT_LT(end - next, 1000); // it did run in parallel
    next = end;
  }
  EXPECT_EQ(next, 1000);
}

TEST(ExecutableTest, KernelsFindTheMathematicsLibrary) {
  Executable executable(packPlan(R"("inputs": [)" + input("[8]", "[1]") + R"(], "values": [{"input": 0}, )" +
                                 output("[8]", "[1]") + R"(], "kernels": [{"symbol": "exponential"}],
      "steps": [{"op": "launch", "kernel": 0, "args": [0, 1], "units": 8}],
      "outputs": [{"value": 1}])"));
  at::Tensor a = at::randn({8});
  EXPECT_TRUE(at::allclose(executable.run({a})[0].toTensor(), a.exp()));
}

TEST(ExecutableTest, RefusesViewsOutOfBounds) {
  auto run = [](const std::string &values) {
    Executable executable(packPlan(R"("inputs": [)" + input("[8]", "[1]") + R"(], "values": [{"input": 0}, )" + values +
                                   R"(], "kernels": [{"symbol": "do_nothing"}],
        "steps": [{"op": "launch", "kernel": 0, "args": [2], "units": 1}], "outputs": [])"));
    executable.run({at::zeros({8})});
  };
  EXPECT_NO_THROW(run(arena("[8]", "[1]") + "," + view(1, "4", "[4]", "[1]")));
  EXPECT_THROW(run(arena("[8]", "[1]") + "," + view(1, "5", "[4]", "[1]")), PlanError);
  EXPECT_THROW(run(arena("[8]", "[1]") + "," + view(1, "-1", "[4]", "[1]")), PlanError);
  EXPECT_THROW(run(arena("[8]", "[1]") + "," + view(0, "5", "[4]", "[1]")), c10::Error);
}

TEST(ExecutableTest, IntegerInputsBindSymbols) {
  Executable executable(packPlan(R"("symbols": [{"name": "s0", "input": 0}], "inputs": [{"kind": "symbol"}, )" +
                                 input("[\"s0\"]", "[1]") + R"(], "values": [{"input": 1}],
      "outputs": [{"expr": ["+", "s0", 1]}, {"value": 0}])"));
  EXPECT_EQ(executable.run({c10::IValue(4), at::zeros({4})})[0].toInt(), 5);
  EXPECT_THROW(executable.run({c10::IValue(4), at::zeros({5})}), c10::Error);
  EXPECT_THROW(executable.run({at::zeros({4}), at::zeros({4})}), c10::TypeError);
}

} // namespace
