#ifndef ACCEL_COMPILER_EXECUTABLE_PLANBUILDER_H
#define ACCEL_COMPILER_EXECUTABLE_PLANBUILDER_H

#include "codegen/cpu/CompileCpu.h"
#include "compiler/Phases.h"

namespace accel {
/// The plan (docs/bundle.md) of a module whose kernels are compiled, as JSON text.
std::string buildPlan(mlir::ModuleOp module, const CpuCode &code, const TargetDescription &target);
} // namespace accel

#endif
