#include "codegen/cpu/OwnKernelEmitter.h"

#include "dialects/accel/SymbolicSizes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace accel {

func::FuncOp OwnKernelEmitter::emitFunction(llvm::function_ref<void(Value)> emitUnit) {
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  auto function = func::FuncOp::create(b, kernel.getSymName(), b.getFunctionType({ptr, ptr, i64, i64, ptr, ptr}, {}));
  b.setInsertionPointToEnd(function.addEntryBlock());
  error = function.getArgument(5);
  int32_t slot = 0;
  SmallVector<Value> symbols;
  auto pointer = [&] {
    Value address = LLVM::GEPOp::create(b, ptr, ptr, function.getArgument(0), ArrayRef<LLVM::GEPArg>{slot++});
    return LLVM::LoadOp::create(b, ptr, address, 8).getResult();
  };
  for (BlockArgument arg : kernel.getBody().getArguments()) {
    if (arg.getType().isIndex())
      symbols.push_back(memory.loadScalar(function.getArgument(1), index.constant(symbols.size()), i64));
    else
      arguments[arg] = {pointer(), getElementTypeOrSelf(arg.getType()), {}, {}, kernel.argLayout(arg.getArgNumber())};
  }
  result = {pointer(), getElementTypeOrSelf(kernel.getResultTypes()[0]), {}, {}, kernel.resultLayout(0)};
  auto complete = [&](MemoryTensor &tensor) {
    for (AffineExpr size : tensor.layout.getSizes().getValue().getResults())
      tensor.sizes.push_back(index.expr(size, symbols));
    for (AffineExpr stride : tensor.layout.getStrides().getValue().getResults())
      tensor.strides.push_back(index.expr(stride, symbols));
  };
  for (BlockArgument arg : kernel.getBody().getArguments())
    if (!arg.getType().isIndex())
      complete(arguments[arg]);
  complete(result);
  forRange(function.getArgument(2), function.getArgument(3), 1, {}, [&](Value unit, ValueRange) {
    emitUnit(unit);
    return SmallVector<Value>();
  });
  func::ReturnOp::create(b);
  return function;
}

SmallVector<Value> OwnKernelEmitter::forRange(Value from, Value to, int64_t step, ValueRange carried, LoopBody emit) {
  auto loop = scf::ForOp::create(b, from, to, index.constant(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> results = emit(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty()) {
    b.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(b, results);
  }
  return llvm::to_vector(ValueRange(loop.getResults()));
}

void OwnKernelEmitter::forAll(ArrayRef<int64_t> dims, ArrayRef<Value> sizes, MutableArrayRef<Value> positions,
                              llvm::function_ref<void()> emit) {
  if (dims.empty())
    return emit();
  forRange(index.constant(0), sizes[dims[0]], 1, {}, [&](Value i, ValueRange) {
    positions[dims[0]] = i;
    forAll(dims.drop_front(), sizes, positions, emit);
    return SmallVector<Value>();
  });
}

void OwnKernelEmitter::locate(Value unit, ArrayRef<int64_t> dims, ArrayRef<Value> sizes, int64_t blocked, int64_t block,
                              MutableArrayRef<Value> positions) {
  for (int64_t i = int64_t(dims.size()) - 1; i >= 0; --i) {
    int64_t d = dims[i];
    Value count = sizes[d];
    if (d == blocked)
      count = arith::DivUIOp::create(b, index.add(count, index.constant(block - 1)), index.constant(block));
    Value position = unit;
    if (i > 0) {
      position = arith::RemUIOp::create(b, unit, count);
      unit = arith::DivUIOp::create(b, unit, count);
    }
    positions[d] = d == blocked ? index.mul(position, index.constant(block)) : position;
  }
}

Lanes OwnKernelEmitter::lanesAt(Value first, Value size, int64_t width) {
  std::optional<int64_t> known = IndexEmitter::constantOf(size);
  if (width == 1 || (known && *known % width == 0))
    return {width, first, Value()};
  Value rest = arith::MinSIOp::create(b, arith::SubIOp::create(b, size, first), index.constant(width));
  return {width, first, memory.maskBelow(rest, width)};
}

Value OwnKernelEmitter::element(const MemoryTensor &tensor, ArrayRef<Value> positions) {
  Value sum = index.constant(0);
  for (auto [position, stride] : llvm::zip(positions, tensor.strides))
    sum = index.add(sum, index.mul(position, stride));
  return sum;
}

KernelLaunchInfo OwnKernelEmitter::launchInfo(AffineExpr units, AffineExpr perUnit) {
  // The divisor is one more than the size, which may be zero.
  AffineExpr grain =
      getAffineConstantExpr(kernel.getTileConfig()->getGrain(), b.getContext()).floorDiv(normalize(perUnit) + 1) + 1;
  return {normalize(units), grain, getAffineConstantExpr(0, b.getContext())};
}

} // namespace accel
