/// What a schedule asks of the target's vector registers and of a kernel's arithmetic.
#ifndef ACCEL_PASSES_SCHEDULE_REGISTERS_H
#define ACCEL_PASSES_SCHEDULE_REGISTERS_H

#include "dialects/accel/AccelDialect.h"
#include <optional>

namespace accel {

/// Whether LLVM's feature string has this name, with its sign: "+fma".
bool hasFeature(llvm::StringRef features, llvm::StringRef name);
/// Bits of the widest vector register with integer and float arithmetic, by LLVM's feature string.
int64_t nativeVectorBits(llvm::StringRef features);
/// Whether the target multiplies and adds in one instruction.
bool hasFma(llvm::StringRef features);
/// Columns of a contraction's register tile, for elements of `bits` bits: few rows leave room for more columns, which
/// keep as many sums going as hide the latency of adding. Absent sizes are symbolic.
int64_t panelWidth(llvm::StringRef features, unsigned bits, std::optional<int64_t> rows,
                   std::optional<int64_t> columns);
/// Whether code generation has instructions for this `math` op of f32 instead of a call, by LLVM's feature string.
bool isInlineMath(mlir::Operation *op, llvm::StringRef features);
/// Whether the kernel has such ops.
bool inlinesMathematics(KernelOp kernel);
/// Whether the kernel calls functions of VectorMath, which take every register.
bool callsMathematics(KernelOp kernel);

} // namespace accel

#endif
