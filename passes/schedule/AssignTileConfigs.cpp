#include "passes/schedule/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/fusion/FusionGroups.h"
#include "passes/schedule/KernelLoops.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_ASSIGNTILECONFIGSPASS
#define GEN_PASS_DEF_VERIFYTILECONFIGSPASS
#include "passes/schedule/Passes.h.inc"

namespace {

/// Elements of a pointwise loop that one unit of parallel work takes: 16 KiB of f32, half of a usual L1 cache.
constexpr int64_t kBlock = 4096;
/// Elements that a unit should have at least: finding out where it starts costs as much as some tens of them.
constexpr int64_t kUnit = 1024;
/// Tile of a transposition: rows by elements of the vector loop. A cache line of 16 f32 is read whole while it is in
/// the L1 cache: 256 lines are 16 KiB.
constexpr int64_t kTransposeRows = 16, kTransposeBlock = 256;
/// Elements worth waking a thread for: about 10 µs of memory traffic at 10 GB/s.
constexpr int64_t kGrain = 16384;

/// f32 lanes of the target's widest vector register.
int64_t nativeLanes(StringRef features) {
  SmallVector<StringRef> list;
  features.split(list, ',');
  if (llvm::is_contained(list, "+avx512f"))
    return 16;
  return llvm::is_contained(list, "+avx") ? 8 : 4;
}

bool isConstant(AffineExpr expr, int64_t value) {
  auto constant = dyn_cast_or_null<AffineConstantExpr>(expr);
  return constant && constant.getValue() == value;
}

/// How well a loop suits vector lanes: contiguous accesses count for it, strided ones against it, stores twice.
int64_t contiguity(const KernelLoops &loops, unsigned loop) {
  int64_t score = 0;
  for (const Access &access : loops.accesses()) {
    AffineExpr stride = access.strides[loop];
    int64_t weight = access.result >= 0 ? 2 : 1;
    if (isConstant(stride, 0))
      continue;
    if (stride)
      score += isConstant(stride, 1) ? weight : -weight;
  }
  return score;
}

bool callsMathematics(KernelOp kernel) {
  return kernel
      ->walk([](Operation *op) {
        bool call = isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
                    !isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp,
                         math::CopySignOp, math::SqrtOp>(op);
        return call ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

struct AssignTileConfigs : impl::AssignTileConfigsPassBase<AssignTileConfigs> {
  using AssignTileConfigsPassBase::AssignTileConfigsPassBase;

  void runOnOperation() override {
    auto targetAttr = TargetAttr::get(&getContext(), target, cpu, features);
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      if (!kernel.getTarget())
        kernel.setTargetAttr(targetAttr);
      if (!kernel.getTileConfig())
        kernel.setTileConfigAttr(choose(kernel));
    }
  }

  TileConfigAttr choose(KernelOp kernel) {
    KernelLoops loops(kernel);
    int64_t best = -1, bestScore = 0;
    for (unsigned l = 0; l < loops.loops().size(); ++l) {
      int64_t score = contiguity(loops, l);
      // Later loops are the inner ones; of equals the innermost wins.
      if (best < 0 || score >= bestScore)
        best = l, bestScore = score;
    }
    if (best < 0)
      return TileConfigAttr::get(&getContext(), -1, 1, 1, 1, kGrain);
    const NestLoop &loop = loops.loops()[best];
    bool reduces = loops.numParallel() < loops.loops().size();
    // Four registers a value hide the latency of a reduction; calls spill every register, so there one is best.
    int64_t registers = callsMathematics(kernel) ? 1 : reduces ? 4 : 2;
    int64_t vector = nativeLanes(features) * registers;
    if (auto size = dyn_cast<AffineConstantExpr>(loop.size))
      vector = std::min<int64_t>(vector, llvm::PowerOf2Ceil(std::max<int64_t>(size.getValue(), 1)));
    int64_t block = loop.isRow ? vector : reduces ? vector : std::max(kBlock, vector);
    int64_t rows = chooseRows(loops, best);
    if (!reduces && transposes(loops, best)) {
      block = std::max(kTransposeBlock, vector);
      rows = std::max(kTransposeRows, rows);
    }
    return TileConfigAttr::get(&getContext(), best, vector, block, rows, kGrain);
  }

  /// Whether a tensor is contiguous along the innermost loop beside the vector loop instead of along that.
  static bool transposes(const KernelLoops &loops, int64_t vectorLoop) {
    int64_t other = -1;
    for (int64_t l = 0; l < int64_t(loops.numParallel()); ++l)
      if (l != vectorLoop)
        other = l;
    return other >= 0 && llvm::any_of(loops.accesses(), [&](const Access &access) {
             AffineExpr along = access.strides[vectorLoop];
             return along && !isConstant(along, 0) && !isConstant(along, 1) && isConstant(access.strides[other], 1);
           });
  }

  /// As many iterations of the innermost other parallel loop as make a unit of work large enough.
  static int64_t chooseRows(const KernelLoops &loops, int64_t vectorLoop) {
    int64_t inner = 1;
    for (auto [l, loop] : llvm::enumerate(loops.loops())) {
      if (!loop.isRow && int64_t(l) != vectorLoop)
        continue;
      auto size = dyn_cast<AffineConstantExpr>(loop.size);
      if (!size)
        return 1; // a dynamic row counts as a long one
      inner *= std::max<int64_t>(size.getValue(), 1);
    }
    return std::max<int64_t>(1, kUnit / inner);
  }
};

struct VerifyTileConfigs : impl::VerifyTileConfigsPassBase<VerifyTileConfigs> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      std::optional<TileConfigAttr> config = kernel.getTileConfig();
      if (!config || !kernel.getTarget()) {
        kernel.emitError() << "kernel '" << kernel.getSymName() << "' has no " << (config ? "target" : "tile_config");
        return signalPassFailure();
      }
      int64_t count = KernelLoops(kernel).loops().size();
      if (config->getVectorLoop() >= count) {
        kernel.emitError() << "kernel '" << kernel.getSymName() << "' has " << count << " loops, its vector_loop is "
                           << config->getVectorLoop();
        return signalPassFailure();
      }
    }
  }
};

} // namespace
} // namespace accel
