/// Vector mathematics by calls into the C library's vector functions (libmvec).
#ifndef ACCEL_CODEGEN_CPU_VECTORMATH_H
#define ACCEL_CODEGEN_CPU_VECTORMATH_H

#include "llvm/ADT/StringRef.h"

namespace mlir {
class ModuleOp;
}

namespace accel {

/// Replaces `math` ops on vectors by calls of libmvec's functions (at most 4 ulp, by glibc's documentation), register
/// by register. `registerBits` is 128, 256 or 512. What libmvec lacks stays.
void callVectorMath(mlir::ModuleOp module, unsigned registerBits);

} // namespace accel

#endif
