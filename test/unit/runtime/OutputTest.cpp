// What leaves a graph: which memory it owns and whom it aliases.

#include "test/unit/runtime/TestBundle.h"

#include <gtest/gtest.h>

using namespace accel::runtime;
using namespace accel::runtime::test;

namespace {

TEST(OutputTest, AnInputIsItself) {
  Executable executable(packPlan(R"("inputs": [)" + input("[2, 3]", "[3, 1]") +
                                 R"(], "values": [{"input": 0}, {"input": 0}],
      "outputs": [{"value": 0}, {"value": 1}])"));
  at::Tensor a = at::randn({2, 3});
  std::vector<at::Tensor> outputs = runTensors(executable, {a});
  EXPECT_TRUE(outputs[0].is_same(a));
  EXPECT_TRUE(outputs[1].is_same(a));

  // Even where steps would have used a copy of it.
  at::Tensor transposed = at::randn({3, 2}).t();
  EXPECT_TRUE(runTensors(executable, {transposed})[0].is_same(transposed));
}

TEST(OutputTest, AViewOfAnInputSharesItsMemoryAndVersion) {
  Executable executable(packPlan(R"("inputs": [)" + input("[2, 3]", "[3, 1]") + R"(], "values": [{"input": 0}, )" +
                                 view(0, "3", "[3]", "[1]") + R"(],
      "outputs": [{"value": 1}])"));
  at::Tensor base = at::randn({4, 3}), a = base.slice(0, 1, 3);
  at::Tensor out = runTensors(executable, {a})[0];
  EXPECT_EQ(out.data_ptr(), a[1].data_ptr());
  EXPECT_EQ(out.storage_offset(), 6);
  EXPECT_TRUE(out.is_alias_of(a));
  int64_t version = a._version();
  out.add_(1);
  EXPECT_GT(a._version(), version);
}

TEST(OutputTest, TheSameValueTwiceIsTheSameTensor) {
  Executable executable(packPlan(R"("inputs": [)" + input("[4]", "[1]") + R"(], "values": [{"input": 0}, )" +
                                 output("[4]", "[1]") + "," + arena("[4]", "[1]") + "," + view(1, "2", "[2]", "[1]") +
                                 R"(], "kernels": [{"symbol": "double_plus_one"}],
      "steps": [{"op": "launch", "kernel": 0, "args": [0, 1], "units": 4},
                {"op": "launch", "kernel": 0, "args": [0, 2], "units": 4}],
      "outputs": [{"value": 1}, {"value": 1}, {"value": 2}, {"value": 2}, {"value": 3}])"));
  at::Tensor a = at::randn({4});
  std::vector<at::Tensor> outputs = runTensors(executable, {a});
  EXPECT_TRUE(outputs[0].is_same(outputs[1]));
  EXPECT_TRUE(outputs[2].is_same(outputs[3]));
  EXPECT_TRUE(at::allclose(outputs[2], 2 * a + 1));
  EXPECT_TRUE(outputs[4].is_alias_of(outputs[0]));
  EXPECT_TRUE(at::equal(outputs[4], outputs[0].slice(0, 2, 4)));
}

// A value that was planned into the arena and leaves the graph all the same is copied out, with the
// strides listed.
TEST(OutputTest, ArenaMemoryNeverLeaves) {
  Executable executable(packPlan(R"("inputs": [)" + input("[2, 3]", "[3, 1]") + R"(], "values": [{"input": 0}, )" +
                                 arena("[2, 3]", "[3, 1]") + "," + view(1, "0", "[3, 2]", "[1, 3]") +
                                 R"(], "kernels": [{"symbol": "double_plus_one"}],
      "steps": [{"op": "launch", "kernel": 0, "args": [0, 1], "units": 6}],
      "outputs": [{"value": 2}])"));
  at::Tensor a = at::randn({2, 3});
  at::Tensor first = runTensors(executable, {a})[0];
  runTensors(executable, {a * 7});
  EXPECT_TRUE(at::allclose(first, (2 * a + 1).t()));
  EXPECT_EQ(first.strides(), (std::vector<int64_t>{1, 3}));
}

TEST(OutputTest, AllocationsThatNoStepTouchesAreThere) {
  Executable executable(
      packPlan(R"("inputs": [], "values": [)" + output("[0, 3]", "[3, 1]") + R"(], "outputs": [{"value": 0}])"));
  EXPECT_EQ(runTensors(executable, {})[0].sizes(), (std::vector<int64_t>{0, 3}));
}

TEST(OutputTest, KeepsStridesOfOneElementDimensions) {
  Executable executable(packPlan(R"("inputs": [)" + input("[4]", "[1]") + R"(], "values": [{"input": 0}, )" +
                                 output("[1, 4]", "[17, 1]") + R"(], "kernels": [{"symbol": "double_plus_one"}],
      "steps": [{"op": "launch", "kernel": 0, "args": [0, 1], "units": 4}],
      "outputs": [{"value": 1}])"));
  EXPECT_EQ(runTensors(executable, {at::zeros({4})})[0].strides(), (std::vector<int64_t>{17, 1}));
}

} // namespace
