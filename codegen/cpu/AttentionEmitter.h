/// Attention kernels: softmax(query keyᵀ · scale + mask) value without the scores in memory.
///
/// A unit of parallel work is a block of query rows of one head. The kernel runs over the keys in steps and keeps, for
/// each row, the maximum of the scores so far, the sum of their exponentials and the sum of the values weighted with
/// them; what the maximum grows by, the sums are scaled down by (Milakov and Gimelshein, "Online normalizer calculation
/// for softmax", 2018).
///
/// Query rows lie along the vector lanes. The scores of a step are tiles of key · queryᵀ, with keys as rows: elements
/// of keys and values are then factors that all lanes share, read where they lie, and maximum and sum need no
/// exchange between lanes. Only queries and results are transposed, once. A few query rows instead run with the lanes
/// along the head's elements.
#ifndef ACCEL_CODEGEN_CPU_ATTENTIONEMITTER_H
#define ACCEL_CODEGEN_CPU_ATTENTIONEMITTER_H

#include "codegen/cpu/KernelEmitter.h"

namespace accel {

/// emitKernel for a kernel that holds an accel.attention.
mlir::FailureOr<mlir::func::FuncOp> emitAttention(KernelOp kernel, mlir::OpBuilder &builder, KernelLaunchInfo &info);

} // namespace accel

#endif
