#include "passes/schedule/KernelLoops.h"

#include "TestModule.h"

using namespace mlir;

namespace accel {
namespace {

std::string layout(const std::string &sizes, const std::string &strides, const std::string &symbols = "") {
  std::string head = "affine_map<()" + (symbols.empty() ? "" : "[" + symbols + "]") + " -> (";
  return "{accel.layout = #accel.layout<" + head + sizes + ")>, " + head + strides + ")>>}";
}

class KernelLoopsTest : public TestModule {
protected:
  /// A kernel that copies a tensor of three dimensions from one layout to another.
  KernelOp copy(const std::string &type, const std::string &from, const std::string &to, const std::string &index = "",
                const std::string &size = "") {
    module = parse("accel.kernel @k(%x: " + type + " " + from + index + ") -> (" + type + " " + to + R"()
        attributes {parallel = 3 : i64, rows = 0 : i64} {
      %e = tensor.empty()" +
                   size + ") : " + type + R"(
      %r = linalg.copy {accel.loops = array<i64: 0, 1, 2>} ins(%x : )" +
                   type + ") outs(%e : " + type + ") -> " + type + R"(
      accel.yield %r : )" +
                   type + "}");
    return *module->getOps<KernelOp>().begin();
  }

  OwningOpRef<ModuleOp> module;
};

std::string describe(const KernelLoops &loops) {
  std::string result;
  for (const NestLoop &loop : loops.loops()) {
    result += (result.empty() ? "" : "; ") + std::string(loop.isRow ? "row " : "") + text(loop.size) + " of";
    for (int64_t kernelLoop : loop.kernelLoops)
      result += " " + std::to_string(kernelLoop);
  }
  return result;
}

TEST_F(KernelLoopsTest, ContiguousLoopsAreOne) {
  KernelLoops loops(copy("tensor<2x3x4xf32>", layout("2, 3, 4", "12, 4, 1"), layout("2, 3, 4", "12, 4, 1")));
  EXPECT_EQ(describe(loops), "24 of 0 1 2");
  EXPECT_EQ(loops.numParallel(), 1u);
  ASSERT_EQ(loops.accesses().size(), 2u);
  EXPECT_EQ(loops.accesses()[0].result, 0) << "stores come first";
  for (const Access &access : loops.accesses())
    EXPECT_EQ(text(access.strides), "1");
  for (int64_t loop : {0, 1, 2})
    EXPECT_EQ(loops.nestLoopOf(loop), 0);
  EXPECT_EQ(loops.nestLoopOf(-1), -1);
}

TEST_F(KernelLoopsTest, PermutedAlikeIsStillOne) {
  KernelLoops loops(copy("tensor<2x3x4xf32>", layout("2, 3, 4", "1, 8, 2"), layout("2, 3, 4", "1, 8, 2")));
  EXPECT_EQ(describe(loops), "24 of 1 2 0");
  EXPECT_EQ(text(loops.accesses()[0].strides), "1");
}

TEST_F(KernelLoopsTest, TheStoresOrderWins) {
  KernelLoops loops(copy("tensor<2x3x4xf32>", layout("2, 3, 4", "1, 2, 6"), layout("2, 3, 4", "12, 4, 1")));
  EXPECT_EQ(describe(loops), "2 of 0; 3 of 1; 4 of 2");
  EXPECT_EQ(text(loops.accesses()[0].strides), "12, 4, 1");
  EXPECT_EQ(text(loops.accesses()[1].strides), "1, 2, 6");
}

TEST_F(KernelLoopsTest, OnlyTheLoopsThatLineUpInAllTensorsJoin) {
  // The source has a gap after each row of 4, so the outer two loops join and the inner doesn't.
  KernelLoops loops(copy("tensor<2x3x4xf32>", layout("2, 3, 4", "24, 8, 1"), layout("2, 3, 4", "12, 4, 1")));
  EXPECT_EQ(describe(loops), "6 of 0 1; 4 of 2");
  EXPECT_EQ(text(loops.accesses()[1].strides), "8, 1");
}

TEST_F(KernelLoopsTest, BroadcastDimensionsStayApart) {
  KernelLoops loops(copy("tensor<2x3x4xf32>", layout("2, 3, 4", "0, 4, 1"), layout("2, 3, 4", "12, 4, 1")));
  EXPECT_EQ(describe(loops), "2 of 0; 12 of 1 2");
  EXPECT_EQ(text(loops.accesses()[1].strides), "0, 1");
}

TEST_F(KernelLoopsTest, SymbolicSizesJoin) {
  std::string l = layout("s0, 3, s1", "s1 * 3, s1, 1", "s0, s1");
  KernelLoops loops(copy("tensor<?x3x?xf32>", l, l, ", %n: index, %m: index", "%n, %m"));
  EXPECT_EQ(describe(loops), "(s0 * s1) * 3 of 0 1 2");
}

TEST_F(KernelLoopsTest, RowLoopsStayBehindParallelOnes) {
  module = parse("accel.kernel @k(%x: tensor<2x3x4xf32> " + layout("2, 3, 4", "12, 4, 1") + ") -> (tensor<3xf32> " +
                 layout("3", "1") + R"() attributes {parallel = 1 : i64, rows = 2 : i64} {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<3xf32>
      %i = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
      %r = linalg.reduce {arith.addf} ins(%x : tensor<2x3x4xf32>) outs(%i : tensor<3xf32>) dimensions = [0, 2]
          {accel.loops = array<i64: 1, 0, 2>}
      accel.yield %r : tensor<3xf32>
    })");
  KernelLoops loops(*module->getOps<KernelOp>().begin());
  EXPECT_EQ(describe(loops), "3 of 0; row 2 of 1; row 4 of 2");
  EXPECT_EQ(loops.numParallel(), 1u);
  EXPECT_EQ(text(loops.accesses()[0].strides), "1, 0, 0");
  EXPECT_EQ(text(loops.accesses()[1].strides), "4, 12, 1");
}

TEST_F(KernelLoopsTest, ALoopWhoseNumberIsAskedForStaysAlone) {
  module = parse("accel.kernel @k() -> (tensor<2x3x4xi64> " + layout("2, 3, 4", "12, 4, 1") + R"()
      attributes {parallel = 3 : i64, rows = 0 : i64} {
      %e = tensor.empty() : tensor<2x3x4xi64>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>],
                           iterator_types = ["parallel", "parallel", "parallel"]}
          outs(%e : tensor<2x3x4xi64>) attrs = {accel.loops = array<i64: 0, 1, 2>} {
      ^bb0(%o: i64):
        %k = linalg.index 2 : index
        %v = arith.index_cast %k : index to i64
        linalg.yield %v : i64
      } -> tensor<2x3x4xi64>
      accel.yield %r : tensor<2x3x4xi64>
    })");
  KernelLoops loops(*module->getOps<KernelOp>().begin());
  EXPECT_EQ(describe(loops), "6 of 0 1; 4 of 2");
}

TEST_F(KernelLoopsTest, OffsetsAndFlipsOfMapsAreInTheAccess) {
  module =
      parse("accel.kernel @k(%x: tensor<8xf32> " + layout("8", "3") + ") -> (tensor<4xf32> " + layout("4", "1") + R"()
      attributes {parallel = 1 : i64, rows = 0 : i64} {
      %e = tensor.empty() : tensor<4xf32>
      %v = accel.view %x by affine_map<(i) -> (-i + 7)> : tensor<8xf32> -> tensor<4xf32>
      %r = linalg.copy {accel.loops = array<i64: 0>} ins(%v : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      accel.yield %r : tensor<4xf32>
    })");
  KernelLoops loops(*module->getOps<KernelOp>().begin());
  EXPECT_EQ(describe(loops), "4 of 0");
  EXPECT_EQ(text(loops.accesses()[1].strides), "-3");
  EXPECT_EQ(text(loops.accesses()[1].offset), "21");
}

} // namespace
} // namespace accel
