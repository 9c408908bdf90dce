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

/// Adds a phase's passes; none for those that are no pass pipelines (import, codegen, executable).
void buildPhase(Phase phase, mlir::OpPassManager &passes, const TargetDescription &target);
/// Makes all passes and the pipelines `accel-phase-<name>` known to command-line tools.
void registerPassesAndPhases();

} // namespace accel

#endif
