/// Values of a kernel's ops at one position of its loop nest: what all classes of CPU kernels share.
#ifndef ACCEL_CODEGEN_CPU_VALUEEMITTER_H
#define ACCEL_CODEGEN_CPU_VALUEEMITTER_H

#include "codegen/cpu/BodyEmitter.h"
#include "codegen/cpu/KernelEmitter.h"
#include "codegen/cpu/MemoryEmitter.h"
#include "passes/schedule/KernelLoops.h"

namespace accel {

/// Holds the kernel's arguments and the current position, and emits loads, the ops' bodies and stores there.
class ValueEmitter : protected BodyContext {
protected:
  ValueEmitter(KernelOp kernel, mlir::OpBuilder &builder);

  /// Starts the kernel's function: arguments, symbols and loop sizes are read, the builder stands behind them.
  mlir::func::FuncOp beginFunction();

  /// Returns, when what was streamed to memory can be seen by others.
  void endFunction();

  using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value position, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value> forRange(mlir::Value from, mlir::Value to, mlir::Value step, mlir::ValueRange carried,
                                          LoopBody emit);

  mlir::Value expr(mlir::AffineExpr e) { return index.expr(e, symbols); }
  mlir::Value yielded(unsigned k) { return kernel.getBody().front().getTerminator()->getOperand(k); }
  /// What a linalg.fill writes.
  mlir::Value initialValue(mlir::Value init);
  /// The value of a tensor of the kernel's at the current position.
  virtual mlir::Value valueOf(mlir::Value tensor) = 0;
  /// The op's result `number`, from its operands' values at the current position.
  mlir::Value evaluate(mlir::OpResult result);
  /// a * c + sum, in one instruction where the target has it.
  mlir::Value multiplyAdd(mlir::Value a, mlir::Value c, mlir::Value sum);
  mlir::Value elementIndex(const Access &access);
  mlir::Value load(const Access &access);
  mlir::Value loadPadded(const Access &access, bool alongLanes, mlir::Value base, mlir::Type element);
  void store(unsigned k);
  /// From here on stores of large results pass the caches by: they would not be found there later, and a line that is
  /// written whole need not be read first. For kernels that write each row from end to end.
  void findStreams();
  Stream streamOf(unsigned k);

  // What bodies ask for.
  const Lanes &currentLanes() const override { return lanes; }
  int64_t vectorLoopNumber() const override { return vectorLoop; }
  mlir::Value position(int64_t loop) override { return loop < 0 ? index.constant(0) : positions[loop]; }
  mlir::Value symbolValue(mlir::AffineExpr e) override { return expr(e); }
  mlir::Value pointerOf(mlir::Value argument) override { return pointers.lookup(argument); }
  mlir::Value errorPointer() override { return error; }
  mlir::Value operandValue(mlir::Operation *op, unsigned number) override;

  KernelOp kernel;
  KernelLoops loops;
  TileConfigAttr config;
  mlir::ImplicitLocOpBuilder b;
  IndexEmitter index;
  MemoryEmitter memory;
  BodyEmitter body;
  int64_t vectorLoop = -1; ///< the nest loop that the lanes run along
  Lanes lanes;
  mlir::Operation *hoistPoint = nullptr; ///< in front of it goes what doesn't change along the row
  mlir::Value scratch, error, unitsBegin, unitsEnd;
  llvm::DenseMap<mlir::Value, mlir::Value> pointers;
  llvm::SmallVector<Stream> streams; ///< by result, if any are sought
  llvm::SmallVector<mlir::Value> symbols, sizes, positions, resultPointers;
};

} // namespace accel

#endif
