#ifndef ACCEL_PASSES_KERNELS_PASSES_H
#define ACCEL_PASSES_KERNELS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
}

namespace accel {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/kernels/Passes.h.inc"
} // namespace accel

#endif
