#include "passes/fusion/FusionGroups.h"

#include "TestModule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace accel {
namespace {

class FusionGroupsTest : public TestModule {
protected:
  /// A function on vectors of 8; `body` is its ops.
  func::FuncOp function(const std::string &arguments, const std::string &body) {
    module = parse(R"(
      #v = {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      #w = {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      func.func @f()" +
                   arguments + ") -> tensor<8xf32> {\n %e = tensor.empty() : tensor<8xf32>\n" + body + "}");
    return *module->getOps<func::FuncOp>().begin();
  }

  static std::string unary(const std::string &result, const std::string &operand, const std::string &op = "math.exp") {
    return result + " = linalg.generic #v ins(" + operand +
           " : tensor<8xf32>) outs(%e : tensor<8xf32>) {\n ^bb0(%v: f32, %o: f32):\n %r = " + op +
           " %v : f32\n linalg.yield %r : f32\n } -> tensor<8xf32>\n";
  }
  static std::string sum(const std::string &result, const std::string &a, const std::string &b) {
    return result + " = linalg.generic #w ins(" + a + ", " + b +
           " : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {\n ^bb0(%v: f32, %u: f32, %o: f32):\n"
           " %r = arith.addf %v, %u : f32\n linalg.yield %r : f32\n } -> tensor<8xf32>\n";
  }

  OwningOpRef<ModuleOp> module;
};

/// The groups of a function's ops, in the order in which they run.
SmallVector<FusionGroup *> groupsOf(FusionGroups &groups) {
  SmallVector<FusionGroup *> result;
  for (const FusionGroups::Step &step : groups.schedule())
    if (step.group)
      result.push_back(step.group);
  return result;
}

TEST_F(FusionGroupsTest, AVerdictHasAReasonOrIsAYes) {
  EXPECT_TRUE(bool(FusionVerdict::yes()));
  FusionVerdict no = FusionVerdict::no("sizes differ: " + llvm::Twine(3));
  EXPECT_FALSE(bool(no));
  EXPECT_EQ(no.reason, "sizes differ: 3");
}

TEST_F(FusionGroupsTest, KernelsHaveAtMost96Ops) {
  std::string body;
  for (int i = 0; i < 200; ++i)
    body += unary("%a" + std::to_string(i), i ? "%a" + std::to_string(i - 1) : "%x");
  func::FuncOp func = function("%x: tensor<8xf32>", body + "return %a199 : tensor<8xf32>\n");
  FusionGroups groups(func);
  groups.run();
  size_t ops = 0;
  for (FusionGroup *group : groupsOf(groups)) {
    EXPECT_LE(group->ops.size(), 96u);
    ops += group->ops.size();
  }
  EXPECT_EQ(ops, 200u) << "each op is in one group";
  EXPECT_EQ(groupsOf(groups).size(), 3u);
  ASSERT_FALSE(groups.refusals().empty());
  EXPECT_EQ(groups.refusals()[0].reason, "the kernel would have more than 96 ops");
}

TEST_F(FusionGroupsTest, KernelsReadAndWriteAtMost40Tensors) {
  std::string arguments, body;
  for (int i = 0; i < 60; ++i) {
    arguments += (i ? ", %x" : "%x") + std::to_string(i) + ": tensor<8xf32>";
    if (i)
      body += sum("%a" + std::to_string(i), i > 1 ? "%a" + std::to_string(i - 1) : "%x0", "%x" + std::to_string(i));
  }
  func::FuncOp func = function(arguments, body + "return %a59 : tensor<8xf32>\n");
  FusionGroups groups(func);
  groups.run();
  EXPECT_EQ(groupsOf(groups).size(), 2u);
  ASSERT_FALSE(groups.refusals().empty());
  EXPECT_EQ(groups.refusals()[0].reason, "the kernel would read and write more than 40 tensors");
}

TEST_F(FusionGroupsTest, AReadGoesThroughViewsToTheValue) {
  func::FuncOp func = function("%x: tensor<4x16xf32>, %n: index", R"(
    %t = accel.view %x by affine_map<(i, j) -> (j, i)> : tensor<4x16xf32> -> tensor<16x4xf32>
    %s = accel.view %t by affine_map<(i) -> (i + 2, 3)> : tensor<16x4xf32> -> tensor<8xf32>
    %d = accel.view %t[%n] by affine_map<(i)[s0] -> (i + s0, 0)> : tensor<16x4xf32> -> tensor<8xf32>
  )" + sum("%a", "%s", "%d") + "return %a : tensor<8xf32>\n");
  Operation *op = func.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
  Read fixed = readOf(op, 0);
  EXPECT_EQ(fixed.value, func.getArgument(0));
  EXPECT_EQ(text(fixed.map.getResults()), "3, d0 + 2");
  Read moving = readOf(op, 1);
  EXPECT_EQ(moving.value, func.getArgument(0));
  EXPECT_FALSE(moving.map) << "where it reads only shows at run time";
}

TEST_F(FusionGroupsTest, CheapIsWhatCostsNoMoreThanALoad) {
  auto isCheapOp = [&](const std::string &op) {
    func::FuncOp func = function("%x: tensor<8xf32>", unary("%a", "%x", op) + "return %a : tensor<8xf32>\n");
    return isCheap(func.getBody().front().getTerminator()->getOperand(0).getDefiningOp());
  };
  for (const char *op : {"arith.negf", "math.absf", "math.floor"})
    EXPECT_TRUE(isCheapOp(op)) << op;
  for (const char *op : {"math.exp", "math.sqrt", "math.tanh"})
    EXPECT_FALSE(isCheapOp(op)) << op;
}

} // namespace
} // namespace accel
