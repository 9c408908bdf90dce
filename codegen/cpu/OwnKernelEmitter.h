/// What the emitters of ops that make a kernel of their own share: the kernel's function, its arguments, its loops.
#ifndef ACCEL_CODEGEN_CPU_OWNKERNELEMITTER_H
#define ACCEL_CODEGEN_CPU_OWNKERNELEMITTER_H

#include "codegen/cpu/KernelEmitter.h"
#include "codegen/cpu/MemoryEmitter.h"

namespace accel {

/// Append the kernel's function to the builder's module.
mlir::FailureOr<mlir::func::FuncOp> emitScan(KernelOp kernel, mlir::OpBuilder &builder, KernelLaunchInfo &info);
mlir::FailureOr<mlir::func::FuncOp> emitScatter(KernelOp kernel, mlir::OpBuilder &builder, KernelLaunchInfo &info);

/// A tensor in memory: its address, and sizes and strides as i64 values.
struct MemoryTensor {
  mlir::Value base;
  mlir::Type element;
  llvm::SmallVector<mlir::Value> sizes, strides;
  LayoutAttr layout;
};

class OwnKernelEmitter {
public:
  OwnKernelEmitter(KernelOp kernel, mlir::OpBuilder &builder)
      : kernel(kernel), b(kernel.getLoc(), builder), index(b), memory(b) {}

protected:
  /// Makes the function and calls `emitUnit` for the number of each unit of work in a loop.
  mlir::func::FuncOp emitFunction(llvm::function_ref<void(mlir::Value unit)> emitUnit);
  MemoryTensor tensorOf(mlir::Value argument) const { return arguments.lookup(argument); }
  const MemoryTensor &resultTensor() const { return result; }

  /// A loop over [0, to), `step` apart, with the values it carries.
  using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value position, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value> forRange(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange carried,
                                          LoopBody emit);
  /// Loops over the given dimensions, outermost first; sets their positions.
  void forAll(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<mlir::Value> sizes,
              llvm::MutableArrayRef<mlir::Value> positions, llvm::function_ref<void()> emit);
  /// Takes the number of a unit apart: the last dimension changes fastest, `block` elements of dimension `blocked` at
  /// once.
  void locate(mlir::Value unit, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<mlir::Value> sizes, int64_t blocked,
              int64_t block, llvm::MutableArrayRef<mlir::Value> positions);
  /// The lanes of a block that starts at `first` of a dimension of the given size.
  Lanes lanesAt(mlir::Value first, mlir::Value size, int64_t width);
  mlir::Value element(const MemoryTensor &tensor, llvm::ArrayRef<mlir::Value> positions);
  /// What the runtime has to know: so many units of so many elements each.
  KernelLaunchInfo launchInfo(mlir::AffineExpr units, mlir::AffineExpr perUnit);
  mlir::AffineExpr sizeOf(const MemoryTensor &tensor, int64_t dim) const {
    return tensor.layout.getSizes().getValue().getResult(dim);
  }
  bool isContiguous(const MemoryTensor &tensor, int64_t dim) const {
    return tensor.layout.getStrides().getValue().getResult(dim) == mlir::getAffineConstantExpr(1, b.getContext());
  }

  KernelOp kernel;
  mlir::ImplicitLocOpBuilder b;
  IndexEmitter index;
  MemoryEmitter memory;
  mlir::Value error;

private:
  llvm::DenseMap<mlir::Value, MemoryTensor> arguments;
  MemoryTensor result;
};

} // namespace accel

#endif
