#include "passes/schedule/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/schedule/KernelLoops.h"
#include "passes/schedule/TileConfigs.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_ASSIGNTILECONFIGSPASS
#define GEN_PASS_DEF_VERIFYTILECONFIGSPASS
#include "passes/schedule/Passes.h.inc"

namespace {

struct AssignTileConfigs : impl::AssignTileConfigsPassBase<AssignTileConfigs> {
  using AssignTileConfigsPassBase::AssignTileConfigsPassBase;

  void runOnOperation() override {
    auto targetAttr = TargetAttr::get(&getContext(), target, cpu, features);
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      if (!kernel.getTarget())
        kernel.setTargetAttr(targetAttr);
      if (!kernel.getTileConfig())
        kernel.setTileConfigAttr(chooseTileConfig(kernel));
    }
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
      bool isAttention = attentionOf(kernel) != nullptr;
      int64_t unit = isAttention ? config->getVector() : config->getTile();
      if (config->getRows() % unit) {
        kernel.emitError() << "kernel '" << kernel.getSymName() << "' has " << config->getRows()
                           << " rows, which is not a multiple of " << (isAttention ? "vector " : "tile ") << unit;
        return signalPassFailure();
      }
      int64_t count = kernel.ownOp() ? 0 : KernelLoops(kernel).loops().size();
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
