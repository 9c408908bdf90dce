#include "compiler/Phases.h"

#include "codegen/cpu/CompileCpu.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/fusion/Passes.h"
#include "passes/graph/Passes.h"
#include "passes/kernels/Passes.h"
#include "passes/schedule/Passes.h"

using namespace mlir;

namespace accel {

static constexpr PhaseInfo kPhases[] = {
    {Phase::Import, "import", "FX JSON becomes one function on tensors"},
    {Phase::Graph, "graph", "simplifies the function and chooses the contractions' kernels"},
    {Phase::Fusion, "fusion", "puts the tensor ops of each kernel into an accel.fusion"},
    {Phase::Kernels, "kernels", "makes fusions kernels, equal ones once, and the function a list of launches"},
    {Phase::Schedule, "schedule", "gives each kernel its target and tile configuration"},
    {Phase::Codegen, "codegen", "compiles the kernels to machine code"},
    {Phase::Executable, "executable", "writes code and plan into one bundle"},
};

llvm::ArrayRef<PhaseInfo> phases() { return kPhases; }

std::optional<Phase> parsePhase(StringRef name) {
  for (const PhaseInfo &info : kPhases)
    if (info.name == name)
      return info.phase;
  return std::nullopt;
}

StringRef phaseName(Phase phase) { return kPhases[static_cast<int>(phase)].name; }

void buildPhase(Phase phase, OpPassManager &passes, const TargetDescription &target, const GraphOptions &options) {
  switch (phase) {
  case Phase::Graph:
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    passes.addNestedPass<func::FuncOp>(createFormAttentionPass());
    passes.addNestedPass<func::FuncOp>(createChooseConvolutionsPass(
        ChooseConvolutionsPassOptions{target.features, options.contractions, options.constantWeights}));
    passes.addNestedPass<func::FuncOp>(createChooseContractionsPass(
        ChooseContractionsPassOptions{target.features, options.contractions, options.constantWeights}));
    passes.addNestedPass<func::FuncOp>(createSplitRowsPass());
    break;
  case Phase::Fusion:
    passes.addNestedPass<func::FuncOp>(createSplitReductionsPass());
    passes.addNestedPass<func::FuncOp>(createInsertCopiesPass());
    passes.addNestedPass<func::FuncOp>(createCloneCheapProducersPass());
    passes.addNestedPass<func::FuncOp>(createFormFusionsPass());
    passes.addNestedPass<func::FuncOp>(createVerifyFusionsPass());
    break;
  case Phase::Kernels:
    // No CSE behind it: two equal launches are two results that must not share memory.
    passes.addPass(createOutlineKernelsPass());
    passes.addPass(createHoistConstantsPass());
    break;
  case Phase::Schedule: {
    AssignTileConfigsPassOptions assign;
    assign.target = target.name, assign.cpu = target.cpu, assign.features = target.features;
    passes.addPass(createAssignTileConfigsPass(assign));
    passes.addPass(createVerifyTileConfigsPass());
    break;
  }
  case Phase::Import:
  case Phase::Codegen:
  case Phase::Executable:
    break;
  }
}

void registerPassesAndPhases() {
  registerAccelGraphPasses();
  registerAccelFusionPasses();
  registerAccelKernelsPasses();
  registerAccelSchedulePasses();
  registerCanonicalizerPass();
  registerCSEPass();
  for (const PhaseInfo &info : kPhases) {
    if (info.phase == Phase::Import || info.phase >= Phase::Codegen)
      continue;
    registerPassPipeline(
        ("accel-phase-" + info.name).str(), info.does,
        [phase = info.phase](OpPassManager &passes, StringRef, function_ref<LogicalResult(const Twine &)>) {
          buildPhase(phase, passes, {"cpu", hostCpuName(), hostCpuFeatures()}, {});
          return success();
        },
        [](function_ref<void(const mlir::detail::PassOptions &)>) {});
  }
}

} // namespace accel
