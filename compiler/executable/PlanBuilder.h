#ifndef ACCEL_COMPILER_EXECUTABLE_PLANBUILDER_H
#define ACCEL_COMPILER_EXECUTABLE_PLANBUILDER_H

#include "codegen/cpu/CompileCpu.h"
#include "compiler/Phases.h"

namespace accel {
/// Whether plans can be made of the module's functions: an error that names what it lacks. What the importer made has
/// it all; edited text may not.
llvm::Error checkHostFunctions(mlir::ModuleOp module);
/// JSON texts; `constants` is empty where nothing depends on weights alone.
struct Plans {
  std::string main, constants;
};
/// The plans (docs/bundle.md) of a module whose kernels are compiled.
Plans buildPlans(mlir::ModuleOp module, const CpuCode &code, const TargetDescription &target);
} // namespace accel

#endif
