#include "dialects/accel/SymbolicSizes.h"

#include "TestModule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include <random>

using namespace mlir;

namespace accel {
namespace {

class SymbolicSizesTest : public TestModule {};

int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> symbols) {
  if (auto value = dyn_cast<AffineConstantExpr>(expr))
    return value.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t a = evaluate(binary.getLHS(), symbols), b = evaluate(binary.getRHS(), symbols);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return a + b;
  case AffineExprKind::Mul:
    return a * b;
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(a, b);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(a, b);
  default:
    return llvm::mod(a, b);
  }
}

TEST_F(SymbolicSizesTest, EqualPolynomialsAreTheSameExpression) {
  AffineExpr a = symbol(0), b = symbol(1), c = symbol(2);
  EXPECT_EQ(normalize(a * b), normalize(b * a));
  EXPECT_EQ(normalize((a + b) * c), normalize(c * b + c * a));
  EXPECT_EQ(normalize((a + 1) * (a + 1)), normalize(a * a + a * 2 + 1));
  EXPECT_EQ(normalize(a * 768), normalize(constant(12) * a * 64));
  EXPECT_EQ(normalize(a + b - a), b);
  EXPECT_EQ(normalize(a * b - b * a), constant(0));
  EXPECT_NE(normalize(a * b), normalize(a * c));
}

TEST_F(SymbolicSizesTest, DivisionsAreFactorsOfTheirOwn) {
  AffineExpr a = symbol(0), b = symbol(1);
  EXPECT_EQ(normalize((a * b + a).floorDiv(2) * b), normalize(b * (a + b * a).floorDiv(2)));
  EXPECT_NE(normalize((a + 1).floorDiv(2)), normalize(a.floorDiv(2)));
}

/// A random polynomial as a list of terms, put together in a random order with random brackets.
AffineExpr assemble(SmallVector<AffineExpr> terms, std::mt19937 &random) {
  std::shuffle(terms.begin(), terms.end(), random);
  while (terms.size() > 1) {
    size_t i = random() % (terms.size() - 1);
    terms[i] = terms[i] + terms[i + 1];
    terms.erase(terms.begin() + i + 1);
  }
  return terms[0];
}

TEST_F(SymbolicSizesTest, OrderAndBracketsDoNotMatter) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    SmallVector<AffineExpr> terms;
    for (unsigned t = 0, count = 1 + random() % 5; t < count; ++t) {
      SmallVector<AffineExpr> factors = {constant(int64_t(random() % 7) - 3)};
      for (unsigned f = 0, degree = random() % 4; f < degree; ++f)
        factors.push_back(symbol(random() % 3));
      std::shuffle(factors.begin(), factors.end(), random);
      AffineExpr product = factors[0];
      for (AffineExpr factor : ArrayRef(factors).drop_front())
        product = product * factor;
      terms.push_back(product);
    }
    AffineExpr first = assemble(terms, random), second = assemble(terms, random);
    AffineExpr normal = normalize(first);
    ASSERT_EQ(normal, normalize(second)) << text(first) << " and " << text(second);
    ASSERT_EQ(normal, normalize(normal)) << text(normal);
    int64_t values[] = {int64_t(random() % 9), int64_t(random() % 9) - 4, int64_t(random() % 100)};
    ASSERT_EQ(evaluate(normal, values), evaluate(first, values)) << text(first) << " became " << text(normal);
  }
}

TEST_F(SymbolicSizesTest, StridesOfContiguousTensors) {
  EXPECT_EQ(text(contiguousStrides(constants({2, 3, 4}), &context)), "12, 4, 1");
  EXPECT_EQ(text(contiguousStrides(constants({2, 1, 4}), &context)), "4, 4, 1");
  EXPECT_EQ(text(contiguousStrides({}, &context)), "");
  // torch.empty(2, 0, 4).stride()
  EXPECT_EQ(text(contiguousStrides(constants({2, 0, 4}), &context)), "4, 4, 1");
  EXPECT_EQ(text(contiguousStrides({constant(2), symbol(0), symbol(1)}, &context)), "s0 * s1, s1, 1");
}

TEST_F(SymbolicSizesTest, SizesAreFoundThroughOps) {
  auto module = parse(R"(
    func.func @f(%n: index, %m: index,
        %x: tensor<?x4xf32> {accel.layout = #accel.layout<affine_map<()[s0, s1] -> (s0, 4)>, affine_map<()[s0, s1] -> (4, 1)>>}) {
      %c2 = arith.constant 2 : index
      %c0 = arith.constant 0 : index
      %twice = arith.muli %n, %c2 : index
      %sum = affine.apply affine_map<(d0)[s0] -> (d0 + s0 * 3)>(%twice)[%m]
      %size = tensor.dim %x, %c0 : tensor<?x4xf32>
      %unknown = arith.divui %n, %c2 : index
      %v = accel.view %x by affine_map<(i, j) -> (j, i)> sizes(%n) : tensor<?x4xf32> -> tensor<4x?xf32>
      %r = accel.reshape %v sizes(%sum) : tensor<4x?xf32> -> tensor<?xf32>
      %e = tensor.empty(%twice) : tensor<?xf32>
      %o = tensor.empty(%unknown) : tensor<?xf32>
      return
    })");
  auto func = *module->getOps<func::FuncOp>().begin();
  SymbolicSizes sizes(func);
  EXPECT_EQ(sizes.numSymbols(), 2u);
  SmallVector<Operation *> ops;
  for (Operation &op : func.getBody().front())
    ops.push_back(&op);
  EXPECT_EQ(text(sizes.exprOf(ops[2]->getResult(0))), "s0 * 2");
  EXPECT_EQ(text(sizes.exprOf(ops[3]->getResult(0))), "s0 * 2 + s1 * 3");
  EXPECT_EQ(sizes.exprOf(ops[4]->getResult(0)), symbol(0));
  EXPECT_EQ(sizes.exprOf(ops[5]->getResult(0)), AffineExpr());
  EXPECT_EQ(text(sizes.sizesOf(func.getArgument(2))), "s0, 4");
  EXPECT_EQ(text(sizes.sizesOf(ops[6]->getResult(0))), "4, s0");
  EXPECT_EQ(text(sizes.sizesOf(ops[7]->getResult(0))), "s0 * 2 + s1 * 3");
  EXPECT_EQ(text(sizes.sizesOf(ops[8]->getResult(0))), "s0 * 2");
  EXPECT_EQ(sizes.sizeOf(ops[9]->getResult(0), 0), AffineExpr());
}

} // namespace
} // namespace accel
