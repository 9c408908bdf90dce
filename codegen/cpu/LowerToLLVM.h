#ifndef ACCEL_CODEGEN_CPU_LOWERTOLLVM_H
#define ACCEL_CODEGEN_CPU_LOWERTOLLVM_H

#include "mlir/Support/LLVM.h"

namespace mlir {
class ModuleOp;
}

namespace accel {
/// Kernels of scf, arith, math, vector and llvm ops -> the LLVM dialect. `fma`: the target fuses multiply-adds.
mlir::LogicalResult lowerToLLVM(mlir::ModuleOp module, unsigned registerBits, bool fma);
} // namespace accel

#endif
