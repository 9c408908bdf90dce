/// The phases of a compile, in order. The same words name `--compile-to=`, the numbered dumps and the test folders.
#ifndef ACCEL_COMPILER_PHASES_H
#define ACCEL_COMPILER_PHASES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace mlir {
class OpPassManager;
}

namespace accel {

enum class Phase { Import, Graph, Fusion, Kernels, Schedule, Codegen, Executable };

struct PhaseInfo {
  Phase phase;
  llvm::StringLiteral name;
  llvm::StringLiteral does;
};

/// All phases with a sentence each.
llvm::ArrayRef<PhaseInfo> phases();
std::optional<Phase> parsePhase(llvm::StringRef name);
llvm::StringRef phaseName(Phase phase);

/// The host target that a kernel's code is for.
struct TargetDescription {
  std::string name, cpu, features;
};

/// What the user may decide about a graph beside the target.
struct GraphOptions {
  /// Which contractions get kernels of ours: `auto` (a cost model decides), `own` or `library`.
  std::string contractions = "auto";
  /// Parameters and buffers are constants: what depends on them alone is computed once.
  bool constantWeights = false;
};

/// Adds a phase's passes; none for those that are no pass pipelines (import, codegen, executable).
void buildPhase(Phase phase, mlir::OpPassManager &passes, const TargetDescription &target, const GraphOptions &options);
/// Makes all passes and the pipelines `accel-phase-<name>` known to command-line tools.
void registerPassesAndPhases();

} // namespace accel

#endif
