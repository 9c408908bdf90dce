#ifndef ACCEL_PASSES_FUSION_PASSES_H
#define ACCEL_PASSES_FUSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
}

namespace accel {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/fusion/Passes.h.inc"
} // namespace accel

#endif
