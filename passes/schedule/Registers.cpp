#include "passes/schedule/Registers.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace accel {

bool hasFeature(StringRef features, StringRef name) {
  SmallVector<StringRef> list;
  features.split(list, ',');
  return llvm::is_contained(list, name);
}

int64_t nativeVectorBits(StringRef features) {
  return hasFeature(features, "+avx512f") ? 512 : hasFeature(features, "+avx2") ? 256 : 128;
}

bool hasFma(StringRef features) { return hasFeature(features, "+fma"); }

int64_t panelWidth(StringRef features, unsigned bits, std::optional<int64_t> rows, std::optional<int64_t> columns) {
  int64_t lanes = nativeVectorBits(features) / bits;
  int64_t registers = !rows || *rows > 4 ? 2 : *rows > 1 ? 4 : 8;
  while (registers > 1 && columns && *columns <= lanes * registers / 2)
    registers /= 2;
  return lanes * registers;
}

bool isInlineMath(Operation *op, StringRef features) {
  return isa<math::ExpOp, math::TanhOp, math::ErfOp>(op) && getElementTypeOrSelf(op->getResult(0).getType()).isF32() &&
         hasFma(features);
}

bool inlinesMathematics(KernelOp kernel) {
  StringRef features = kernel.getTarget()->getFeatures();
  return kernel
      ->walk(
          [&](Operation *op) { return isInlineMath(op, features) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

bool callsMathematics(KernelOp kernel) {
  StringRef features = kernel.getTarget()->getFeatures();
  return kernel
      ->walk([&](Operation *op) {
        bool call = isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
                    !isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp,
                         math::CopySignOp, math::SqrtOp>(op) &&
                    !isInlineMath(op, features);
        return call ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace accel
