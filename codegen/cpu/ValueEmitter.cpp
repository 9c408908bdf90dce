#include "codegen/cpu/ValueEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/fusion/FusionGroups.h"
#include "passes/schedule/Registers.h"

using namespace mlir;

namespace accel {

ValueEmitter::ValueEmitter(KernelOp kernel, OpBuilder &builder)
    : kernel(kernel), loops(kernel), config(*kernel.getTileConfig()), b(kernel.getLoc(), builder), index(b), memory(b),
      body(b, memory, loops, *this) {
  positions.resize(loops.loops().size());
}

func::FuncOp ValueEmitter::beginFunction() {
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  auto function = func::FuncOp::create(b, kernel.getSymName(), b.getFunctionType({ptr, ptr, i64, i64, ptr, ptr}, {}));
  b.setInsertionPointToEnd(function.addEntryBlock());
  unitsBegin = function.getArgument(2), unitsEnd = function.getArgument(3);
  scratch = function.getArgument(4), error = function.getArgument(5);
  unsigned numArgs = kernel.getFunctionType().getNumInputs(), slot = 0, symbol = 0;
  auto pointer = [&] {
    Value address = LLVM::GEPOp::create(b, ptr, ptr, function.getArgument(0), ArrayRef<LLVM::GEPArg>{int32_t(slot++)});
    return LLVM::LoadOp::create(b, ptr, address, 8).getResult();
  };
  for (unsigned i = 0; i < numArgs; ++i) {
    BlockArgument arg = kernel.getBody().getArgument(i);
    if (arg.getType().isIndex())
      symbols.push_back(memory.loadScalar(function.getArgument(1), index.constant(symbol++), b.getI64Type()));
    else
      pointers[arg] = pointer();
  }
  for (unsigned k = 0; k < kernel.getFunctionType().getNumResults(); ++k)
    resultPointers.push_back(pointer());
  for (const NestLoop &loop : loops.loops())
    sizes.push_back(expr(loop.size));
  return function;
}

SmallVector<Value> ValueEmitter::forRange(Value from, Value to, Value step, ValueRange carried, LoopBody emit) {
  auto loop = scf::ForOp::create(b, from, to, step, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> results = emit(loop.getInductionVar(), loop.getRegionIterArgs());
  b.setInsertionPointToEnd(loop.getBody());
  if (carried.empty()) {
    if (loop.getBody()->empty() || !loop.getBody()->back().hasTrait<OpTrait::IsTerminator>())
      scf::YieldOp::create(b);
  } else {
    scf::YieldOp::create(b, results);
  }
  return llvm::to_vector(ValueRange(loop.getResults()));
}

Value ValueEmitter::initialValue(Value init) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  return body.captured(fill.getInputs()[0]);
}

Value ValueEmitter::operandValue(Operation *op, unsigned number) {
  Read read = readOf(op, number);
  if (isa<BlockArgument>(read.value))
    return load(loops.accessOf(op, number));
  return valueOf(read.value);
}

Value ValueEmitter::evaluate(OpResult result) {
  Operation *op = result.getDefiningOp();
  SmallVector<Value> args;
  for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands())
    args.push_back(operandValue(op, input->getOperandNumber()));
  // A reduction over dimensions of size 1 combines its one element with the initial value.
  if (isa<linalg::ReduceOp>(op))
    for (Value init : cast<linalg::LinalgOp>(op).getDpsInits())
      args.push_back(initialValue(init));
  return body.emit(op, args)[result.getResultNumber()];
}

Value ValueEmitter::multiplyAdd(Value a, Value c, Value sum) {
  if (!isa<FloatType>(getElementTypeOrSelf(sum.getType())))
    return arith::AddIOp::create(b, sum, arith::MulIOp::create(b, a, c));
  if (hasFma(kernel.getTarget()->getFeatures()))
    return math::FmaOp::create(b, a, c, sum);
  return arith::AddFOp::create(b, sum, arith::MulFOp::create(b, a, c));
}

Value ValueEmitter::elementIndex(const Access &access) {
  Value sum = expr(access.offset);
  for (auto [l, stride] : llvm::enumerate(access.strides))
    if (stride != getAffineConstantExpr(0, b.getContext()))
      sum = index.add(sum, index.mul(positions[l], expr(stride)));
  return sum;
}

Value ValueEmitter::load(const Access &access) {
  bool alongRow = false, alongLanes = false;
  for (auto [l, stride] : llvm::enumerate(access.strides))
    if (stride != getAffineConstantExpr(0, b.getContext())) {
      alongRow |= l >= loops.numParallel();
      alongLanes |= int64_t(l) == vectorLoop;
    }
  OpBuilder::InsertionGuard guard(b);
  if (!alongRow && hoistPoint)
    b.setInsertionPoint(hoistPoint);
  Type element = getElementTypeOrSelf(access.tensor.getType());
  Value base = pointers.lookup(access.tensor);
  if (!access.bounds.empty())
    return loadPadded(access, alongLanes, base, element);
  if (!alongLanes || lanes.count == 1)
    return memory.loadScalar(base, elementIndex(access), element);
  return memory.loadLanes(base, elementIndex(access), expr(access.strides[vectorLoop]), element, lanes);
}

Value ValueEmitter::loadPadded(const Access &access, bool alongLanes, Value base, Type element) {
  AffineExpr zero = getAffineConstantExpr(0, b.getContext());
  int64_t count = alongLanes ? lanes.count : 1;
  Value inside;
  for (const Bound &bound : access.bounds) {
    Value position = expr(bound.start), limit = expr(bound.size);
    for (auto [l, step] : llvm::enumerate(bound.steps))
      if (step != zero)
        position = index.add(position, index.mul(positions[l], expr(step)));
    if (vectorLoop >= 0 && count > 1 && bound.steps[vectorLoop] != zero) {
      Value steps = arith::MulIOp::create(b, memory.iota(count), memory.splat(expr(bound.steps[vectorLoop]), count));
      position = arith::AddIOp::create(b, memory.splat(position, count), steps);
      limit = memory.splat(limit, count);
    }
    // A negative position is a large one without a sign.
    Value holds = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, position, limit);
    if (inside && isa<VectorType>(inside.getType()) != isa<VectorType>(holds.getType()))
      inside = memory.splat(inside, count), holds = memory.splat(holds, count);
    inside = inside ? arith::AndIOp::create(b, inside, holds).getResult() : holds;
  }
  if (count == 1) {
    auto branch = scf::IfOp::create(b, TypeRange(element), inside, true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, memory.loadScalar(base, elementIndex(access), element));
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, arith::ConstantOp::create(b, b.getZeroAttr(element)).getResult());
    return branch.getResult(0);
  }
  // A load that reads no lane costs hundreds of cycles where its address isn't mapped: it gets one that is.
  Value start = elementIndex(access);
  if (!isa<VectorType>(inside.getType()))
    start = arith::SelectOp::create(b, inside, start, index.constant(0));
  Value mask = memory.splat(inside, count);
  if (lanes.mask)
    mask = arith::AndIOp::create(b, mask, lanes.mask);
  return memory.loadLanes(base, start, expr(access.strides[vectorLoop]), element, {lanes.count, lanes.first, mask});
}

void ValueEmitter::store(unsigned k) {
  Access access = loops.storeOf(k);
  Value value = valueOf(access.tensor);
  bool alongLanes = vectorLoop >= 0 && access.strides[vectorLoop] != getAffineConstantExpr(0, b.getContext());
  if (alongLanes && lanes.count > 1)
    memory.storeLanes(value, resultPointers[k], elementIndex(access), expr(access.strides[vectorLoop]), lanes,
                      k < streams.size() ? streams[k] : Stream());
  else
    memory.storeScalar(value, resultPointers[k], elementIndex(access));
}

/// Null if the result is small enough to be found in a cache later, or not written in whole registers.
Stream ValueEmitter::streamOf(unsigned k) {
  // About what most processors' last cache has for one program.
  constexpr int64_t kStreamedBytes = 32 << 20;
  Access access = loops.storeOf(k);
  auto type = cast<RankedTensorType>(kernel.getResultTypes()[k]);
  int64_t bytes = std::max<unsigned>(8, type.getElementTypeBitWidth()) / 8;
  int64_t alignment = nativeVectorBits(kernel.getTarget()->getFeatures()) / 8, aligned = alignment / bytes;
  if (!type.hasStaticShape() || type.getNumElements() * bytes < kStreamedBytes || vectorLoop < 0 ||
      access.strides[vectorLoop] != getAffineConstantExpr(1, b.getContext()) || config.getVector() % aligned ||
      !access.offset.isMultipleOf(aligned))
    return {};
  for (auto [loop, stride] : llvm::enumerate(access.strides))
    if (int64_t(loop) != vectorLoop && !stride.isMultipleOf(aligned))
      return {};
  // Tensors are aligned, but a part of a concatenation may start anywhere.
  Value address = LLVM::PtrToIntOp::create(b, b.getI64Type(), resultPointers[k]);
  Value rest = arith::AndIOp::create(b, address, index.constant(alignment - 1));
  return {arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rest, index.constant(0)), unsigned(alignment)};
}

void ValueEmitter::findStreams() {
  for (unsigned k = 0; k < resultPointers.size(); ++k)
    streams.push_back(streamOf(k));
}

void ValueEmitter::endFunction() {
  if (llvm::any_of(streams, [](const Stream &stream) { return bool(stream.isAligned); }))
    LLVM::CallIntrinsicOp::create(b, b.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
  func::ReturnOp::create(b);
}

} // namespace accel
