#include "codegen/cpu/VectorMath.h"

#include "TestModule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace accel {
namespace {

class VectorMathTest : public TestModule {
protected:
  /// Calls `op` on one vector type, and returns the names of the functions called.
  std::vector<std::string> callsOf(const std::string &op, const std::string &type, unsigned registerBits) {
    module = parse("func.func @f(%x: " + type + ") -> " + type + " { %y = " + op + " : " + type +
                   " return %y : " + type + " }");
    callVectorMath(*module, registerBits);
    EXPECT_TRUE(succeeded(verify(*module))) << op << " on " << type;
    std::vector<std::string> calls;
    module->walk([&](func::CallOp call) { calls.push_back(call.getCallee().str()); });
    return calls;
  }

  /// Which element of the argument each lane of each call gets, and which lane of which call each element of the result
  /// is.
  SmallVector<SmallVector<int64_t>> shuffles() {
    SmallVector<SmallVector<int64_t>> masks;
    module->walk([&](vector::ShuffleOp shuffle) { masks.emplace_back(shuffle.getMask()); });
    return masks;
  }

  OwningOpRef<ModuleOp> module;
};

using Names = std::vector<std::string>;

TEST_F(VectorMathTest, ARegisterIsOneCall) {
  EXPECT_EQ(callsOf("math.exp %x", "vector<8xf32>", 256), Names({"_ZGVdN8v_expf"}));
  EXPECT_TRUE(shuffles().empty());
  EXPECT_EQ(callsOf("math.exp %x", "vector<16xf32>", 512), Names({"_ZGVeN16v_expf"}));
  EXPECT_EQ(callsOf("math.exp %x", "vector<4xf32>", 128), Names({"_ZGVbN4v_expf"}));
  EXPECT_EQ(callsOf("math.exp %x", "vector<8xf64>", 512), Names({"_ZGVeN8v_exp"}));
}

TEST_F(VectorMathTest, FunctionsOfTwoArguments) {
  EXPECT_EQ(callsOf("math.powf %x, %x", "vector<4xf64>", 256), Names({"_ZGVdN4vv_pow"}));
  EXPECT_EQ(callsOf("math.atan2 %x, %x", "vector<8xf32>", 256), Names({"_ZGVdN8vv_atan2f"}));
}

TEST_F(VectorMathTest, ShortVectorsRepeatTheirLastElement) {
  EXPECT_EQ(callsOf("math.exp %x", "vector<4xf32>", 256), Names({"_ZGVdN8v_expf"}));
  auto masks = shuffles();
  ASSERT_EQ(masks.size(), 2u);
  EXPECT_EQ(masks[0], (SmallVector<int64_t>{0, 1, 2, 3, 3, 3, 3, 3}));
  EXPECT_EQ(masks[1], (SmallVector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(callsOf("math.exp %x", "vector<1xf32>", 256).size(), 1u);
}

TEST_F(VectorMathTest, LongVectorsAreSplitAndJoinedInOrder) {
  EXPECT_EQ(callsOf("math.exp %x", "vector<16xf32>", 128), Names(4, "_ZGVbN4v_expf"));
  auto masks = shuffles();
  ASSERT_EQ(masks.size(), 4u + 3u);
  for (int64_t part = 0; part < 4; ++part)
    for (int64_t lane = 0; lane < 4; ++lane)
      EXPECT_EQ(masks[part][lane], 4 * part + lane);
  for (size_t join = 4; join < 7; ++join)
    for (auto [lane, source] : llvm::enumerate(masks[join]))
      EXPECT_EQ(source, int64_t(lane)) << "whole registers side by side";
}

TEST_F(VectorMathTest, AnOddEndIsCutOff) {
  EXPECT_EQ(callsOf("math.exp %x", "vector<12xf32>", 256), Names(2, "_ZGVdN8v_expf"));
}

TEST_F(VectorMathTest, WhatTheLibraryLacksStays) {
  EXPECT_EQ(callsOf("math.sqrt %x", "vector<8xf32>", 256), Names());
  EXPECT_EQ(callsOf("math.exp %x", "vector<8xf16>", 256), Names());
  EXPECT_EQ(callsOf("math.exp %x", "f32", 256), Names());
}

TEST_F(VectorMathTest, OneDeclarationForAllCalls) {
  module = parse(R"(func.func @f(%x: vector<8xf32>) -> vector<8xf32> {
    %y = math.exp %x : vector<8xf32>
    %z = math.exp %y : vector<8xf32>
    return %z : vector<8xf32>
  })");
  callVectorMath(*module, 256);
  EXPECT_EQ(llvm::range_size(module->getOps<func::FuncOp>()), 2);
  EXPECT_TRUE(succeeded(verify(*module)));
}

} // namespace
} // namespace accel
