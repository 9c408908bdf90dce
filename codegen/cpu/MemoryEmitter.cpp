#include "codegen/cpu/MemoryEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace accel {

//===-- IndexEmitter
//--------------------------------------------------------------------------------------------------===//

std::optional<int64_t> IndexEmitter::constantOf(Value v) {
  APInt value;
  if (v && matchPattern(v, m_ConstantInt(&value)))
    return value.getSExtValue();
  return std::nullopt;
}

Value IndexEmitter::constant(int64_t value) { return arith::ConstantIntOp::create(b, value, 64); }

Value IndexEmitter::add(Value a, Value c) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(c);
  if (x && y)
    return constant(*x + *y);
  if (x == 0)
    return c;
  return y == 0 ? a : arith::AddIOp::create(b, a, c).getResult();
}

Value IndexEmitter::mul(Value a, Value c) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(c);
  if (x && y)
    return constant(*x * *y);
  if (x == 0 || y == 0)
    return constant(0);
  if (x == 1)
    return c;
  return y == 1 ? a : arith::MulIOp::create(b, a, c).getResult();
}

Value IndexEmitter::expr(AffineExpr e, ValueRange symbols) {
  if (auto c = dyn_cast<AffineConstantExpr>(e))
    return constant(c.getValue());
  if (auto s = dyn_cast<AffineSymbolExpr>(e))
    return symbols[s.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(e);
  Value lhs = expr(binary.getLHS(), symbols), rhs = expr(binary.getRHS(), symbols);
  switch (e.getKind()) {
  case AffineExprKind::Add:
    return add(lhs, rhs);
  case AffineExprKind::Mul:
    return mul(lhs, rhs);
  case AffineExprKind::FloorDiv:
    return arith::FloorDivSIOp::create(b, lhs, rhs);
  case AffineExprKind::CeilDiv:
    return arith::CeilDivSIOp::create(b, lhs, rhs);
  default: {
    // The result has the sign of the divisor.
    Value quotient = arith::FloorDivSIOp::create(b, lhs, rhs);
    return arith::SubIOp::create(b, lhs, arith::MulIOp::create(b, quotient, rhs));
  }
  }
}

//===-- MemoryEmitter
//-------------------------------------------------------------------------------------------------===//

Type MemoryEmitter::valueType(Type element, int64_t lanes) {
  return lanes == 1 ? element : VectorType::get({lanes}, element);
}

/// Half precision goes by its bits: without instructions for the type LLVM takes its masked loads and stores apart, and
/// converts each element through f32.
static bool goesByBits(Type element) { return element.isBF16() || element.isF16(); }

Type MemoryEmitter::memoryType(Type element) const {
  if (element.isInteger(1))
    return b.getI8Type();
  return goesByBits(element) ? Type(b.getI16Type()) : element;
}

Value MemoryEmitter::splat(Value scalar, int64_t lanes) {
  if (lanes == 1 || isa<VectorType>(scalar.getType()))
    return scalar;
  Attribute constant;
  if (matchPattern(scalar, m_Constant(&constant)))
    return arith::ConstantOp::create(b, DenseElementsAttr::get(VectorType::get({lanes}, scalar.getType()), constant));
  return vector::BroadcastOp::create(b, VectorType::get({lanes}, scalar.getType()), scalar);
}

Value MemoryEmitter::iota(int64_t lanes) {
  SmallVector<int64_t> values(lanes);
  for (int64_t i = 0; i < lanes; ++i)
    values[i] = i;
  return arith::ConstantOp::create(b, b.getI64VectorAttr(values));
}

Value MemoryEmitter::maskBelow(Value n, int64_t lanes) {
  // Compared as i32, which takes half the registers; n is at most a few hundred here.
  SmallVector<int32_t> values(lanes);
  for (int64_t i = 0; i < lanes; ++i)
    values[i] = i;
  Value numbers = arith::ConstantOp::create(b, b.getI32VectorAttr(values));
  Value bound = splat(arith::TruncIOp::create(b, b.getI32Type(), n), lanes);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, numbers, bound);
}

Value MemoryEmitter::allLanes(int64_t lanes) {
  return arith::ConstantOp::create(b, DenseElementsAttr::get(VectorType::get({lanes}, b.getI1Type()), true));
}

Value MemoryEmitter::fromMemory(Value value, Type element) {
  if (goesByBits(element)) {
    auto vector = dyn_cast<VectorType>(value.getType());
    return arith::BitcastOp::create(b, vector ? Type(vector.clone(element)) : element, value);
  }
  if (!element.isInteger(1))
    return value;
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
}

Value MemoryEmitter::toMemory(Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  if (goesByBits(element)) {
    auto halves = dyn_cast<VectorType>(value.getType());
    return arith::BitcastOp::create(b, halves ? Type(halves.clone(b.getI16Type())) : Type(b.getI16Type()), value);
  }
  if (!element.isInteger(1))
    return value;
  auto vector = dyn_cast<VectorType>(value.getType());
  Type bytes = vector ? Type(vector.clone(b.getI8Type())) : Type(b.getI8Type());
  return arith::ExtUIOp::create(b, bytes, value);
}

Value MemoryEmitter::address(Value base, Value index, Type memory) {
  return LLVM::GEPOp::create(b, base.getType(), memory, base, ArrayRef<LLVM::GEPArg>{index});
}

static unsigned alignmentOf(Type element) { return std::max(1u, element.getIntOrFloatBitWidth() / 8); }

Value MemoryEmitter::loadScalar(Value base, Value index, Type element) {
  Type memory = memoryType(element);
  Value loaded = LLVM::LoadOp::create(b, memory, address(base, index, memory), alignmentOf(memory));
  return fromMemory(loaded, element);
}

void MemoryEmitter::storeScalar(Value value, Value base, Value index) {
  Value stored = toMemory(value);
  LLVM::StoreOp::create(b, stored, address(base, index, stored.getType()), alignmentOf(stored.getType()));
}

Value MemoryEmitter::laneIndices(Value index, Value stride, int64_t lanes) {
  Value steps = arith::MulIOp::create(b, iota(lanes), splat(stride, lanes));
  return arith::AddIOp::create(b, steps, splat(index, lanes));
}

/// The largest step between lanes for which reading all that lies between them is faster than a gather, which takes
/// about as long as two loads and shuffles for each lane's cache line.
static constexpr int64_t kMaxStep = 4;

Value MemoryEmitter::loadEvery(int64_t step, Value base, Value index, Type element, const Lanes &lanes) {
  Type memory = memoryType(element);
  int64_t n = lanes.count;
  auto type = VectorType::get({n}, memory);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type)), result;
  for (int64_t part = 0; part < step; ++part) {
    // The last part ends with the last lane, so that nothing behind it is read.
    int64_t offset = part + 1 < step ? part * n : step * (n - 1) + 1 - n;
    Value first = arith::AddIOp::create(b, index, arith::ConstantIntOp::create(b, offset, 64));
    Value pointer = address(base, first, memory), loaded;
    if (lanes.mask) {
      // Index n is a lane that is off.
      SmallVector<int64_t> laneOf(n, n);
      for (int64_t j = 0; j < n; ++j)
        if ((offset + j) % step == 0)
          laneOf[j] = (offset + j) / step;
      Value off = arith::ConstantOp::create(b, b.getZeroAttr(VectorType::get({n}, b.getI1Type())));
      Value mask = vector::ShuffleOp::create(b, lanes.mask, off, laneOf);
      loaded = LLVM::MaskedLoadOp::create(b, type, pointer, mask, zero, alignmentOf(memory));
    } else {
      loaded = LLVM::LoadOp::create(b, type, pointer, alignmentOf(memory));
    }
    SmallVector<int64_t> from(n);
    for (int64_t lane = 0; lane < n; ++lane) {
      int64_t j = lane * step - offset;
      from[lane] = j >= 0 && j < n ? n + j : lane;
    }
    result = vector::ShuffleOp::create(b, result ? result : loaded, loaded, from);
  }
  return fromMemory(result, element);
}

Value MemoryEmitter::loadLanes(Value base, Value index, Value stride, Type element, const Lanes &lanes) {
  if (lanes.count == 1)
    return loadScalar(base, index, element);
  std::optional<int64_t> step = IndexEmitter::constantOf(stride);
  if (step && *step > 1 && *step <= kMaxStep)
    return loadEvery(*step, base, index, element, lanes);
  if (step != 1)
    return gather(base, laneIndices(index, stride, lanes.count), element, lanes.mask, lanes.count);
  Type memory = memoryType(element);
  auto type = VectorType::get({lanes.count}, memory);
  Value pointer = address(base, index, memory);
  if (!lanes.mask)
    return fromMemory(LLVM::LoadOp::create(b, type, pointer, alignmentOf(memory)), element);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return fromMemory(LLVM::MaskedLoadOp::create(b, type, pointer, lanes.mask, zero, alignmentOf(memory)), element);
}

void MemoryEmitter::storeLanes(Value value, Value base, Value index, Value stride, const Lanes &lanes,
                               const Stream &stream) {
  if (lanes.count == 1)
    return storeScalar(value, base, index);
  Value stored = toMemory(splat(value, lanes.count));
  Type memory = getElementTypeOrSelf(stored.getType());
  if (IndexEmitter::constantOf(stride) == 1) {
    Value pointer = address(base, index, memory);
    if (lanes.mask)
      LLVM::MaskedStoreOp::create(b, stored, pointer, lanes.mask, alignmentOf(memory));
    else if (stream.isAligned)
      scf::IfOp::create(
          b, stream.isAligned,
          [&](OpBuilder &then, Location loc) {
            LLVM::StoreOp::create(then, loc, stored, pointer, stream.alignment, /*isVolatile=*/false,
                                  /*isNonTemporal=*/true);
            scf::YieldOp::create(then, loc);
          },
          [&](OpBuilder &otherwise, Location loc) {
            LLVM::StoreOp::create(otherwise, loc, stored, pointer, alignmentOf(memory));
            scf::YieldOp::create(otherwise, loc);
          });
    else
      LLVM::StoreOp::create(b, stored, pointer, alignmentOf(memory));
    return;
  }
  scatter(value, base, laneIndices(index, stride, lanes.count), lanes.mask, lanes.count);
}

void MemoryEmitter::prefetchLines(Value base, Value index, Type element, int64_t count, bool isStore, unsigned hint) {
  constexpr int64_t kLine = 64;
  Type memory = memoryType(element);
  IndexEmitter positions(b);
  for (int64_t first = 0; first < count; first += kLine / alignmentOf(memory)) {
    Value line = address(base, positions.add(index, positions.constant(first)), memory);
    LLVM::Prefetch::create(b, line, /*rw=*/isStore, hint, /*cache=*/1);
  }
}

void MemoryEmitter::scatter(Value value, Value base, Value indices, Value mask, int64_t lanes) {
  Value stored = toMemory(splat(value, lanes));
  Type memory = getElementTypeOrSelf(stored.getType());
  auto pointers = VectorType::get({lanes}, base.getType());
  Value addresses = LLVM::GEPOp::create(b, pointers, memory, base, ArrayRef<LLVM::GEPArg>{indices});
  LLVM::masked_scatter::create(b, TypeRange(), stored, addresses, mask ? mask : allLanes(lanes),
                               b.getI32IntegerAttr(alignmentOf(memory)));
}

Value MemoryEmitter::gather(Value base, Value indices, Type element, Value mask, int64_t lanes) {
  Type memory = memoryType(element);
  auto type = VectorType::get({lanes}, memory);
  auto pointers = VectorType::get({lanes}, base.getType());
  Value addresses = LLVM::GEPOp::create(b, pointers, memory, base, ArrayRef<LLVM::GEPArg>{indices});
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  Value loaded = LLVM::masked_gather::create(b, type, addresses, mask ? mask : allLanes(lanes), ValueRange{zero},
                                             b.getI32IntegerAttr(alignmentOf(memory)));
  return fromMemory(loaded, element);
}

} // namespace accel
