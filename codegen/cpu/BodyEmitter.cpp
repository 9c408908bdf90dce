#include "codegen/cpu/BodyEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace accel {
namespace {

int64_t lanesOf(Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  return type ? type.getNumElements() : 1;
}

} // namespace

Value BodyEmitter::captured(Value value) {
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant))) {
    if (value.getType().isIndex())
      return arith::ConstantIntOp::create(b, cast<IntegerAttr>(constant).getInt(), 64);
    return arith::ConstantOp::create(b, cast<TypedAttr>(constant));
  }
  return context.symbolValue(loops.sizes().exprOf(value));
}

SmallVector<Value> BodyEmitter::emit(Operation *linalgOp, ArrayRef<Value> args) {
  Block &block = linalgOp->getRegion(0).front();
  llvm::DenseMap<Value, Value> map;
  for (auto [argument, value] : llvm::zip(block.getArguments(), args))
    map[argument] = value;
  for (Operation &op : block.without_terminator())
    map[op.getResult(0)] = emitOp(linalgOp, &op, map);
  SmallVector<Value> results;
  for (Value yielded : block.getTerminator()->getOperands()) {
    auto it = map.find(yielded);
    results.push_back(it != map.end() ? it->second : captured(yielded));
  }
  return results;
}

Value BodyEmitter::loopIndex(Operation *linalgOp, int64_t dim) {
  int loop = loops.nestLoopOf(loopsOf(linalgOp)[dim]);
  Value first = context.position(loop);
  const Lanes &lanes = context.currentLanes();
  if (loop < 0 || loop != context.vectorLoopNumber() || lanes.count == 1)
    return first;
  return arith::AddIOp::create(b, memory.splat(first, lanes.count), memory.iota(lanes.count));
}

Value BodyEmitter::castIndex(Value value, Type to, bool isUnsigned) {
  Type element = to.isIndex() ? Type(b.getI64Type()) : to;
  unsigned from = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth(), bits = element.getIntOrFloatBitWidth();
  if (from == bits)
    return value;
  Type type = MemoryEmitter::valueType(element, lanesOf(value));
  if (from > bits)
    return arith::TruncIOp::create(b, type, value);
  return isUnsigned ? arith::ExtUIOp::create(b, type, value).getResult()
                    : arith::ExtSIOp::create(b, type, value).getResult();
}

Value BodyEmitter::emitOp(Operation *linalgOp, Operation *op, llvm::DenseMap<Value, Value> &map) {
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return loopIndex(linalgOp, index.getDim());
  if (isa<arith::ConstantOp>(op))
    return captured(op->getResult(0));
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (isa<RankedTensorType>(operand.getType()))
      continue; // what tensor.extract reads
    auto it = map.find(operand);
    operands.push_back(it != map.end() ? it->second : captured(operand));
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return emitExtract(linalgOp, extract, operands);
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
    return castIndex(operands[0], op->getResult(0).getType(), isa<arith::IndexCastUIOp>(op));
  int64_t lanes = 1;
  for (Value operand : operands)
    lanes = std::max(lanes, lanesOf(operand));
  for (Value &operand : operands)
    operand = memory.splat(operand, lanes);
  Type element = op->getResult(0).getType();
  if (element.isIndex())
    element = b.getI64Type();
  OperationState state(b.getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(MemoryEmitter::valueType(element, lanes));
  state.addAttributes(op->getAttrs());
  return b.create(state)->getResult(0);
}

Value BodyEmitter::emitExtract(Operation *linalgOp, tensor::ExtractOp op, ArrayRef<Value> indices) {
  auto source = cast<BlockArgument>(op.getTensor());
  LayoutAttr layout = loops.kernel().argLayout(source.getArgNumber());
  Type element = getElementTypeOrSelf(source.getType());
  const Lanes &lanes = context.currentLanes();
  int64_t count = 1;
  for (Value index : indices)
    count = std::max(count, lanesOf(index));

  // Lanes that follow the vector loop with stride 1, all else being equal, are one load.
  bool contiguous = count > 1;
  auto loopOf = [&](unsigned d) -> int64_t {
    auto loopOp = op.getIndices()[d].getDefiningOp<linalg::IndexOp>();
    return loopOp ? loops.nestLoopOf(loopsOf(linalgOp)[loopOp.getDim()]) : -1;
  };
  auto strideOf = [&](unsigned d) { return layout.getStrides().getValue().getResult(d); };
  for (auto [d, index] : llvm::enumerate(indices))
    if (lanesOf(index) > 1)
      contiguous &= loopOf(d) >= 0 && loopOf(d) == context.vectorLoopNumber() &&
                    strideOf(d) == getAffineConstantExpr(1, b.getContext());

  Value outside, position = arith::ConstantIntOp::create(b, 0, 64);
  for (auto [d, index] : llvm::enumerate(indices)) {
    AffineExpr size = layout.getSizes().getValue().getResult(d);
    bool inRange = loopOf(d) >= 0 && loops.loops()[loopOf(d)].size == size;
    if (!inRange) {
      Value bad = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, index,
                                        memory.splat(context.symbolValue(size), lanesOf(index)));
      if (outside) {
        int64_t width = std::max(lanesOf(outside), lanesOf(bad));
        bad = arith::OrIOp::create(b, memory.splat(outside, width), memory.splat(bad, width));
      }
      outside = bad;
    }
    Value first = contiguous && lanesOf(index) > 1 ? context.position(loopOf(d)) : index;
    int64_t width = std::max(lanesOf(position), lanesOf(first));
    Value step = arith::MulIOp::create(b, first, memory.splat(context.symbolValue(strideOf(d)), lanesOf(first)));
    position = arith::AddIOp::create(b, memory.splat(position, width), memory.splat(step, width));
  }

  Value base = context.pointerOf(source);
  auto load = [&](Value mask) -> Value {
    if (count == 1)
      return memory.loadScalar(base, position, element);
    Lanes selected{count, lanes.first, mask};
    if (contiguous)
      return memory.loadLanes(base, position, arith::ConstantIntOp::create(b, 1, 64), element, selected);
    return memory.gather(base, memory.splat(position, count), element, mask, count);
  };
  if (!outside)
    return load(lanes.mask);
  auto report = [&] {
    Value code = arith::ConstantIntOp::create(b, 1, 64);
    LLVM::StoreOp::create(b, code, context.errorPointer(), 8);
  };
  if (lanesOf(outside) == 1) {
    // Out of range for all lanes or none: report, and read nothing.
    Type type = MemoryEmitter::valueType(element, count);
    auto branch = scf::IfOp::create(b, TypeRange(type), outside, true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    report();
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    scf::YieldOp::create(b, zero);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, load(lanes.mask));
    return branch.getResult(0);
  }
  if (lanes.mask)
    outside = arith::AndIOp::create(b, outside, lanes.mask);
  Value any = vector::ReductionOp::create(b, vector::CombiningKind::OR, outside);
  auto branch = scf::IfOp::create(b, any, false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    report();
  }
  Value all = arith::ConstantOp::create(b, DenseElementsAttr::get(VectorType::get({count}, b.getI1Type()), true));
  Value inside = arith::XOrIOp::create(b, outside, all);
  if (lanes.mask)
    inside = arith::AndIOp::create(b, inside, lanes.mask);
  return load(inside);
}

} // namespace accel
