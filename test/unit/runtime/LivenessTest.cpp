#include "runtime/Liveness.h"

#include <gtest/gtest.h>

using namespace accel::runtime;

namespace {

/// Three arena buffers (0, 1, 2), a view of 0 (3) and a result (4).
std::string planText(const std::string &steps, const std::string &outputs) {
  std::string shape = R"("dtype": "f32", "sizes": [4], "strides": [1])";
  return R"({"version": 1, "target": {"name": "cpu"}, "inputs": [], "values": [)"
         R"({"alloc": "arena", )" +
         shape + R"(}, {"alloc": "arena", )" + shape + R"(}, {"alloc": "arena", )" + shape + R"(}, {"view": 0, )" +
         shape + R"(}, {"result": true, )" + shape + R"(}], "kernels": [{"symbol": "k"}], "steps": [)" + steps +
         R"(], "outputs": [)" + outputs + "]}";
}

std::string launch(const std::string &args) {
  return R"({"op": "launch", "kernel": 0, "args": [)" + args + R"(], "units": 1})";
}

std::string makeResult(const std::string &value) {
  return R"({"op": "aten", "name": "aten::view", "args": [{"value": )" + value + R"(}], "results": [4]})";
}

TEST(LivenessTest, ViewsKeepTheirRootAlive) {
  Plan plan = parsePlan(planText(launch("0") + "," + launch("1") + "," + launch("3"), ""));
  Liveness live = computeLiveness(plan, {{}, {}, {}});
  EXPECT_EQ(live.root[3], 0);
  EXPECT_EQ(live.firstUse[0], 0);
  EXPECT_EQ(live.lastUse[0], 2);
  EXPECT_EQ(live.lastUse[1], 1);
  EXPECT_EQ(live.firstUse[2], Liveness::kNever);
}

TEST(LivenessTest, OutputsLiveToTheEnd) {
  Plan plan = parsePlan(planText(launch("0") + "," + launch("1"), R"({"value": 3})"));
  Liveness live = computeLiveness(plan, {{}, {}});
  EXPECT_EQ(live.lastUse[0], 2);
  EXPECT_EQ(live.lastUse[1], 1);
}

// A result that may be a view of an argument needs the argument's memory for as long as it lives.
TEST(LivenessTest, AliasingResultsKeepTheArgumentAlive) {
  std::string steps = launch("0") + "," + makeResult("3") + "," + launch("1") + "," + launch("4");
  Plan plan = parsePlan(planText(steps, ""));
  EXPECT_EQ(computeLiveness(plan, {{}, {3}, {}, {}}).lastUse[0], 3);
  EXPECT_EQ(computeLiveness(plan, {{}, {}, {}, {}}).lastUse[0], 1);
}

} // namespace
