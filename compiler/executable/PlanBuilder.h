#ifndef ACCEL_COMPILER_EXECUTABLE_PLANBUILDER_H
#define ACCEL_COMPILER_EXECUTABLE_PLANBUILDER_H

#include "codegen/cpu/CompileCpu.h"
#include "compiler/Phases.h"

namespace accel {
/// Whether a plan can be made of the module's function: an error that names what it lacks. What the importer made has
/// it all; edited text may not.
llvm::Error checkHostFunction(mlir::ModuleOp module);
/// The plan (docs/bundle.md) of a module whose kernels are compiled, as JSON text.
std::string buildPlan(mlir::ModuleOp module, const CpuCode &code, const TargetDescription &target);
} // namespace accel

#endif
