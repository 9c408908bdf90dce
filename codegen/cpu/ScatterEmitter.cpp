#include "codegen/cpu/OwnKernelEmitter.h"

#include "dialects/accel/SymbolicSizes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace accel {
namespace {

/// Emits a scatter. Units of work share the result by its dimensions that no index moves, so that none writes where
/// another does and the order of updates is always the same: each fills its part of the result, then goes through all
/// updates. Lanes are along such a dimension if there is a contiguous one.
class ScatterEmitter : private OwnKernelEmitter {
public:
  ScatterEmitter(KernelOp kernel, OpBuilder &builder)
      : OwnKernelEmitter(kernel, builder), op(cast<ScatterOp>(kernel.ownOp())) {}

  func::FuncOp run(KernelLaunchInfo &info) {
    func::FuncOp function = emitFunction([&](Value unit) {
      if (!updates.base)
        prepare();
      positions.assign(result.sizes.size(), Value());
      locate(unit, carried, result.sizes, side, width, positions);
      lanes = side >= 0 ? lanesAt(positions[side], result.sizes[side], width) : Lanes();
      forAll(moved, result.sizes, positions, [&] { fill(); });
      SmallVector<Value> at(updates.sizes.size());
      for (int64_t d : carried)
        at[dimOf(d)] = positions[d];
      forAll(walked, updates.sizes, at, [&] { update(at); });
    });
    MLIRContext *ctx = b.getContext();
    AffineExpr units = getAffineConstantExpr(1, ctx), filled = units, walk = units;
    for (int64_t d : carried)
      units = units * (d == side ? (sizeOf(result, d) + (width - 1)).floorDiv(width) : sizeOf(result, d));
    for (int64_t d : moved)
      filled = filled * sizeOf(result, d);
    for (int64_t d : walked)
      walk = walk * sizeOf(updates, d);
    info = launchInfo(units, (filled + walk) * width);
    return function;
  }

private:
  AffineExpr target(int64_t d) { return op.getMap().getResult(d); }
  int64_t dimOf(int64_t d) { return cast<AffineDimExpr>(target(d)).getPosition(); }

  void prepare() {
    updates = tensorOf(op.getUpdates());
    if (op.getInto())
      into = tensorOf(op.getInto());
    for (Value value : op.getIndices())
      indices.push_back(tensorOf(value));
    result = resultTensor();
    llvm::SmallDenseSet<int64_t> taken;
    for (int64_t d = 0; d < int64_t(result.sizes.size()); ++d) {
      if (!isa<AffineDimExpr>(target(d))) {
        moved.push_back(d);
        continue;
      }
      carried.push_back(d);
      taken.insert(dimOf(d));
      if (isContiguous(result, d))
        side = d;
    }
    for (int64_t d = 0; d < int64_t(updates.sizes.size()); ++d)
      if (!taken.contains(d))
        walked.push_back(d);
    if (side < 0)
      return;
    constexpr int64_t kRegisters = 4;
    width = kernel.getTileConfig()->getVector() * kRegisters;
    if (auto size = dyn_cast<AffineConstantExpr>(sizeOf(result, side)))
      width = std::min<int64_t>(width, llvm::PowerOf2Ceil(std::max<int64_t>(size.getValue(), 1)));
    if (width == 1)
      side = -1;
  }

  Value stride(const MemoryTensor &tensor, int64_t dim) { return side >= 0 ? tensor.strides[dim] : index.constant(0); }

  void fill() {
    Value value;
    if (into.base)
      value = loadAlong(into, side, positions);
    else
      value = memory.splat(arith::ConstantOp::create(b, b.getZeroAttr(result.element)), lanes.count);
    memory.storeLanes(value, result.base, element(result, positions), stride(result, side), lanes);
  }

  /// Lanes along dimension `dim`; one value where there is none, or none moves along it.
  Value loadAlong(const MemoryTensor &tensor, int64_t dim, ArrayRef<Value> at) {
    if (side < 0 || dim < 0 || IndexEmitter::constantOf(tensor.strides[dim]) == 0)
      return memory.loadScalar(tensor.base, element(tensor, at), tensor.element);
    return memory.loadLanes(tensor.base, element(tensor, at), tensor.strides[dim], tensor.element, lanes);
  }

  /// Value `k` of the indices for the update at `at`, as i64: one, or one for each lane.
  Value indexValue(unsigned k, ArrayRef<Value> at) {
    AffineMap map = cast<AffineMapAttr>(op.getIndexMaps()[k]).getValue();
    SmallVector<Value> where;
    int64_t along = -1;
    for (auto [r, expr] : llvm::enumerate(map.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      where.push_back(dim ? at[dim.getPosition()] : index.constant(cast<AffineConstantExpr>(expr).getValue()));
      if (dim && side >= 0 && dim.getPosition() == dimOf(side))
        along = r;
    }
    Value value = loadAlong(indices[k], along, where);
    if (indices[k].element.isInteger(64))
      return value;
    auto type = dyn_cast<VectorType>(value.getType());
    return arith::ExtSIOp::create(b, MemoryEmitter::valueType(b.getI64Type(), type ? type.getNumElements() : 1), value);
  }

  static int64_t lanesOf(Value value) {
    auto type = dyn_cast<VectorType>(value.getType());
    return type ? type.getNumElements() : 1;
  }

  Value either(Value x, Value y) {
    if (!x || !y)
      return x ? x : y;
    int64_t count = std::max(lanesOf(x), lanesOf(y));
    return arith::OrIOp::create(b, memory.splat(x, count), memory.splat(y, count));
  }

  void update(ArrayRef<Value> at) {
    Value outside, skipped, place = index.constant(0);
    for (int64_t d = 0; d < int64_t(result.sizes.size()); ++d) {
      auto symbol = dyn_cast<AffineSymbolExpr>(target(d));
      Value position = symbol ? indexValue(symbol.getPosition(), at) : at[dimOf(d)];
      int64_t count = lanesOf(position);
      if (symbol) {
        Value size = memory.splat(result.sizes[d], count), zero = memory.splat(index.constant(0), count);
        Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, position, zero);
        if (op.getWraps())
          position = arith::SelectOp::create(b, isNegative, arith::AddIOp::create(b, position, size), position);
        Value isOutside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, position, size);
        if (op.getSkips()) {
          skipped = either(skipped, isNegative);
          isOutside = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, position, size);
        }
        outside = either(outside, isOutside);
      }
      Value step = count == 1 ? index.mul(position, result.strides[d])
                              : arith::MulIOp::create(b, position, memory.splat(result.strides[d], count)).getResult();
      int64_t both = std::max(count, lanesOf(place));
      place = both == 1 ? index.add(place, step)
                        : arith::AddIOp::create(b, memory.splat(place, both), memory.splat(step, both)).getResult();
    }
    if (lanesOf(place) > 1)
      place = memory.laneIndices(place, stride(result, side), lanes.count);
    if (!outside)
      return write(at, place, lanes);
    report(outside);
    Value left = either(outside, skipped);
    if (lanesOf(left) == 1) {
      Value inside = arith::XOrIOp::create(b, left, arith::ConstantIntOp::create(b, 1, 1));
      auto branch = scf::IfOp::create(b, inside, false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      return write(at, place, lanes);
    }
    Lanes inside = lanes;
    Value all = arith::ConstantOp::create(b, DenseElementsAttr::get(cast<VectorType>(left.getType()), true));
    inside.mask = arith::XOrIOp::create(b, left, all);
    if (lanes.mask)
      inside.mask = arith::AndIOp::create(b, inside.mask, lanes.mask);
    write(at, place, inside);
  }

  void report(Value outside) {
    if (lanesOf(outside) > 1) {
      if (lanes.mask)
        outside = arith::AndIOp::create(b, outside, lanes.mask);
      outside = vector::ReductionOp::create(b, vector::CombiningKind::OR, outside);
    }
    auto branch = scf::IfOp::create(b, outside, false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    LLVM::StoreOp::create(b, index.constant(1), error, 8);
  }

  /// Writes the update to element `place` of the result: one number, from which the lanes go on, or one for each lane.
  void write(ArrayRef<Value> at, Value place, const Lanes &inside) {
    Lanes saved = lanes;
    lanes = inside;
    Value value = memory.splat(loadAlong(updates, side >= 0 ? dimOf(side) : -1, at), lanes.count);
    bool isOnePlace = lanesOf(place) == 1;
    if (op.getCombine() == "add") {
      Value old = isOnePlace ? memory.loadLanes(result.base, place, stride(result, side), result.element, lanes)
                             : memory.gather(result.base, place, result.element, lanes.mask, lanes.count);
      value = add(old, value);
    }
    if (isOnePlace)
      memory.storeLanes(value, result.base, place, stride(result, side), lanes);
    else
      memory.scatter(value, result.base, place, lanes.mask, lanes.count);
    lanes = saved;
  }

  /// In the dtype itself, low precision rounded after each addition, as in PyTorch.
  Value add(Value x, Value y) {
    Type type = x.getType();
    if (result.element.isInteger(1))
      return arith::OrIOp::create(b, x, y);
    if (!isa<FloatType>(result.element))
      return arith::AddIOp::create(b, x, y);
    if (result.element.getIntOrFloatBitWidth() >= 32)
      return arith::AddFOp::create(b, x, y);
    Type wide = MemoryEmitter::valueType(b.getF32Type(), lanesOf(x));
    Value sum = arith::AddFOp::create(b, arith::ExtFOp::create(b, wide, x), arith::ExtFOp::create(b, wide, y));
    return arith::TruncFOp::create(b, type, sum);
  }

  ScatterOp op;
  MemoryTensor updates, into, result;
  SmallVector<MemoryTensor> indices;
  SmallVector<int64_t> carried, moved, walked; // dimensions of the result, but `walked`: of the updates
  int64_t side = -1, width = 1;
  SmallVector<Value> positions;
  Lanes lanes;
};

} // namespace

FailureOr<func::FuncOp> emitScatter(KernelOp kernel, OpBuilder &builder, KernelLaunchInfo &info) {
  return ScatterEmitter(kernel, builder).run(info);
}

} // namespace accel
