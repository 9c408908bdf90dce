/// The scalar bodies of linalg ops as code for one lane or many.
#ifndef ACCEL_CODEGEN_CPU_BODYEMITTER_H
#define ACCEL_CODEGEN_CPU_BODYEMITTER_H

#include "codegen/cpu/MemoryEmitter.h"
#include "passes/schedule/KernelLoops.h"

namespace mlir::tensor {
class ExtractOp;
}

namespace accel {

/// Where the code that is being emitted stands in the loop nest.
class BodyContext {
public:
  virtual ~BodyContext() = default;
  virtual const Lanes &currentLanes() const = 0;
  virtual int64_t vectorLoopNumber() const = 0;
  /// The i64 index of a nest loop's current iteration (of lane 0 in the vector loop); 0 for loop -1.
  virtual mlir::Value position(int64_t loop) = 0;
  virtual mlir::Value symbolValue(mlir::AffineExpr expr) = 0;
  virtual mlir::Value pointerOf(mlir::Value argument) = 0;
  virtual mlir::Value errorPointer() = 0;
  virtual mlir::Value operandValue(mlir::Operation *op, unsigned number) = 0;
};

class BodyEmitter {
public:
  BodyEmitter(mlir::ImplicitLocOpBuilder &b, MemoryEmitter &memory, KernelLoops &loops, BodyContext &context)
      : b(b), memory(memory), loops(loops), context(context) {}

  /// What the op's region yields for the given arguments (inputs, then accumulators of a reduction). Arguments are
  /// scalars or vectors of one length; so are the results.
  llvm::SmallVector<mlir::Value> emit(mlir::Operation *linalgOp, llvm::ArrayRef<mlir::Value> args);
  /// A value from outside of the body: a constant or an index.
  mlir::Value captured(mlir::Value value);

private:
  mlir::Value emitOp(mlir::Operation *linalgOp, mlir::Operation *op, llvm::DenseMap<mlir::Value, mlir::Value> &map);
  mlir::Value emitExtract(mlir::Operation *linalgOp, mlir::tensor::ExtractOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value loopIndex(mlir::Operation *linalgOp, int64_t dim);
  mlir::Value castIndex(mlir::Value value, mlir::Type to, bool isUnsigned);

  mlir::ImplicitLocOpBuilder &b;
  MemoryEmitter &memory;
  KernelLoops &loops;
  BodyContext &context;
};

} // namespace accel

#endif
