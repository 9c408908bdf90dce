// One executable, called from everywhere.

#include "test/unit/runtime/TestBundle.h"

#include <gtest/gtest.h>

#include <torch/library.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

using namespace accel::runtime;
using namespace accel::runtime::test;

namespace {

/// relu((2 a + 1) @ b), all intermediates in the arena.
std::string plan() {
  return R"("symbols": [{"name": "s0", "input": 0, "dim": 0}], "inputs": [)" + input("[\"s0\", 8]", "[8, 1]") + "," +
         input("[8, 8]", "[8, 1]") + R"(], "values": [{"input": 0}, {"input": 1}, )" + arena("[\"s0\", 8]", "[8, 1]") +
         "," + arena("[\"s0\", 8]", "[8, 1]") + "," + result("[\"s0\", 8]", "[8, 1]") +
         R"(], "kernels": [{"symbol": "double_plus_one"}],
            "steps": [{"op": "launch", "kernel": 0, "args": [0, 2], "units": ["*", "s0", 8],
                       "grain": 64}, )" +
         aten("aten::mm", "out", R"([{"value": 2}, {"value": 1}])", R"({"out": {"value": 3}})", "[null]") + "," +
         aten("aten::relu", "", R"([{"value": 3}])", "{}", "[4]") + R"(], "outputs": [{"value": 4}])";
}

at::Tensor expected(const at::Tensor &a, const at::Tensor &b) { return at::relu(at::mm(2 * a + 1, b)); }

TEST(ConcurrencyTest, FourThreads) {
  Executable executable(packPlan(plan()));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        at::Tensor a = at::randn({1 + (i + t) % 5 * 40, 8}), b = at::randn({8, 8});
        wrong += !at::allclose(runTensors(executable, {a, b})[0], expected(a, b), 1e-4, 1e-5);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(executable.stats().calls, 800u);
}

Executable *reentrant = nullptr;
int depth = 0;

at::Tensor callAgain(const at::Tensor &a) {
  if (depth == 3)
    return a + 1;
  ++depth;
  at::Tensor inner = runTensors(*reentrant, {a})[0];
  --depth;
  return inner + 1;
}

/// What it keeps of the arena must stay readable.
at::Tensor keptForever;
at::Tensor keep(const at::Tensor &a) {
  keptForever = a;
  return a + 1;
}

TORCH_LIBRARY(accel_runtime_test, library) {
  library.def("call_again(Tensor a) -> Tensor");
  library.impl("call_again", c10::DispatchKey::CPU, TORCH_FN(callAgain));
  library.def("keep(Tensor a) -> Tensor");
  library.impl("keep", c10::DispatchKey::CPU, TORCH_FN(keep));
}

std::string customPlan(const std::string &op) {
  return R"("inputs": [)" + input("[4]", "[1]") + R"(], "values": [{"input": 0}, )" + arena("[4]", "[1]") + "," +
         result("[4]", "[1]") + "," + result("[4]", "[1]") + R"(], "steps": [)" +
         aten("aten::mul", "out", R"([{"value": 0}, 2])", R"({"out": {"value": 1}})", "[null]") + "," +
         aten("accel_runtime_test::" + op, "", R"([{"value": 1}])", "{}", "[2]") + "," +
         aten("aten::add", "Tensor", R"([{"value": 1}, {"value": 2}])", "{}", "[3]") +
         R"(], "outputs": [{"value": 3}])";
}

TEST(ConcurrencyTest, CallsItself) {
  Executable executable(packPlan(customPlan("call_again")));
  reentrant = &executable;
  at::Tensor a = at::ones({4});
  // f(x) = 2x + g(2x); g(y) = f(y) + 1, and at depth 3: y + 1
  auto model = [](auto self, float x, int level) -> float {
    float y = 2 * x;
    return y + (level == 3 ? y + 1 : self(self, y, level + 1) + 1);
  };
  EXPECT_EQ(runTensors(executable, {a})[0][0].item<float>(), model(model, 1, 0));
  EXPECT_EQ(runTensors(executable, {a})[0][0].item<float>(), model(model, 1, 0));
  EXPECT_EQ(executable.stats().instances, 4u);
}

TEST(ConcurrencyTest, AnOperatorMayKeepATensorOfTheArena) {
  Executable executable(packPlan(customPlan("keep")));
  runTensors(executable, {at::ones({4})});
  at::Tensor kept = keptForever;
  runTensors(executable, {at::ones({4}) * 5});
  EXPECT_TRUE(at::equal(kept, at::full({4}, 2.0f)));
  EXPECT_TRUE(at::equal(keptForever, at::full({4}, 10.0f)));
  keptForever.reset();
}

// The parent has used its threads; the child, which doesn't have them, must not wait for them.
// (PyTorch's own operators do wait, with GCC's OpenMP, so there is none in this plan.)
TEST(ConcurrencyTest, LaunchesInAForkedChild) {
  Executable executable(packPlan(R"("inputs": [)" + input("[400000]", "[1]") + R"(], "values": [{"input": 0}, )" +
                                 arena("[400000]", "[1]") + "," + output("[400000]", "[1]") +
                                 R"(], "kernels": [{"symbol": "double_plus_one"}],
      "steps": [{"op": "launch", "kernel": 0, "args": [0, 1], "units": 400000, "grain": 1000},
                {"op": "launch", "kernel": 0, "args": [1, 2], "units": 400000, "grain": 1000}],
      "outputs": [{"value": 2}])"));
  at::Tensor a = at::randn({400000});
  at::Tensor before = runTensors(executable, {a})[0];
  pid_t child = fork();
  if (child == 0) {
    alarm(30);
    at::Tensor after = runTensors(executable, {a})[0];
    bool same = std::memcmp(after.data_ptr(), before.data_ptr(), after.nbytes()) == 0;
    _exit(same ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace
