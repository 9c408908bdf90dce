/// Contraction kernels: tiles of the result kept in registers while the products are added up.
///
/// A unit of parallel work is `rows` rows by one panel of `vector` columns. Within it, tiles of `tile` rows run over
/// all of k: for each k, `vector` elements of B are loaded once and multiplied by one element of A per row. Rows of A
/// and panels of B that don't lie in memory as that wants them are copied to scratch memory first, which also evaluates
/// the ops fused into the operands: A once for all panels that a thread works on, B once for all tiles of the unit. The
/// ops that follow run on each tile while it is in the L1 cache.
#ifndef ACCEL_CODEGEN_CPU_CONTRACTIONEMITTER_H
#define ACCEL_CODEGEN_CPU_CONTRACTIONEMITTER_H

#include "codegen/cpu/KernelEmitter.h"

namespace accel {

/// Whether the kernel is a contraction kernel.
bool isContractionKernel(KernelOp kernel);
/// emitKernel for these.
mlir::FailureOr<mlir::func::FuncOp> emitContraction(KernelOp kernel, mlir::OpBuilder &builder, KernelLaunchInfo &info);

} // namespace accel

#endif
