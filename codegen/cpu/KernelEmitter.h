/// A scheduled kernel -> one function of scalar and vector code on raw pointers.
///
/// The function has the C signature of docs/bundle.md. It is built from `scf`, `arith`, `math`, `vector` and `llvm`
/// ops, all index arithmetic in i64.
#ifndef ACCEL_CODEGEN_CPU_KERNELEMITTER_H
#define ACCEL_CODEGEN_CPU_KERNELEMITTER_H

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"

namespace accel {

/// What the runtime has to know to launch a kernel; expressions over the kernel's symbols.
struct KernelLaunchInfo {
  mlir::AffineExpr units;   // the function's [begin, end) is a part of [0, units)
  mlir::AffineExpr grain;   // least units worth a thread
  mlir::AffineExpr scratch; // bytes of scratch memory per thread
};

/// Appends the function to the builder's module. Fails with a diagnostic on the kernel.
mlir::FailureOr<mlir::func::FuncOp> emitKernel(KernelOp kernel, mlir::OpBuilder &builder, KernelLaunchInfo &info);

} // namespace accel

#endif
