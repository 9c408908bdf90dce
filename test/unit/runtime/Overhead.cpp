// Prints what a call costs beyond its kernels, in nanoseconds.

#include "test/unit/runtime/TestBundle.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>

using namespace accel::runtime;
using namespace accel::runtime::test;

namespace {

/// Nanoseconds of one call: the fastest of ten rounds.
template <typename Function> double measure(const Function &function) {
  constexpr int kCalls = 20000, kRounds = 10;
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i)
      function();
    std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / kCalls);
  }
  return best;
}

std::string launches(int count) {
  std::string plan = R"("inputs": [)" + input("[1]", "[1]") + R"(], "values": [{"input": 0}, )" + output("[1]", "[1]") +
                     R"(], "kernels": [{"symbol": "do_nothing"}],
                     "outputs": [{"value": 1}], "steps": [)";
  for (int i = 0; i < count; ++i)
    plan += std::string(i ? "," : "") + R"({"op": "launch", "kernel": 0, "args": [0, 1], "units": 1})";
  return plan + "]";
}

std::string products(int count) {
  std::string plan = R"("inputs": [)" + input("[2, 2]", "[2, 1]") + R"(], "values": [{"input": 0}, )" +
                     arena("[2, 2]", "[2, 1]") + R"(], "outputs": [], "steps": [)";
  for (int i = 0; i < count; ++i)
    plan += std::string(i ? "," : "") +
            aten("aten::mm", "out", R"([{"value": 0}, {"value": 0}])", R"({"out": {"value": 1}})", "[null]");
  return plan + "]";
}

double measurePlan(const std::string &plan, const at::Tensor &tensor) {
  Executable executable(packPlan(plan));
  c10::SmallVector<c10::IValue, 4> inputs, outputs;
  return measure([&] {
    inputs.clear();
    inputs.emplace_back(tensor);
    executable.run(inputs, outputs);
  });
}

} // namespace

int main() {
  at::set_num_threads(1);
  at::Tensor one = at::ones({1}), square = at::ones({2, 2}), out = at::empty({2, 2});
  double allocation = measure([&] { at::Tensor t(at::detail::empty_strided_cpu({1}, {1}, at::kFloat)); });
  double first = measurePlan(launches(1), one), ninth = measurePlan(launches(9), one);
  std::printf("empty_strided            %7.0f ns\n", allocation);
  std::printf("call with one launch     %7.0f ns, %.0f without the output's allocation\n", first, first - allocation);
  std::printf("each further launch      %7.0f ns\n", (ninth - first) / 8);

  at::NoGradGuard guard;
  double eager = measure([&] { at::mm_out(out, square, square); });
  double mm = measurePlan(products(1), square), mm9 = measurePlan(products(9), square);
  std::printf("eager mm.out of 2x2      %7.0f ns\n", eager);
  std::printf("call with one mm.out     %7.0f ns\n", mm);
  std::printf("each further mm.out      %7.0f ns\n", (mm9 - mm) / 8);
}
