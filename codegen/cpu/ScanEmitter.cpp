#include "codegen/cpu/OwnKernelEmitter.h"

#include "dialects/accel/SymbolicSizes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;

namespace accel {
namespace {

/// Emits a scan. A unit is one row: along it in registers where it is contiguous. Else the lanes are rows side by side.
class ScanEmitter : private OwnKernelEmitter {
public:
  ScanEmitter(KernelOp kernel, OpBuilder &builder)
      : OwnKernelEmitter(kernel, builder), op(cast<ScanOp>(kernel.ownOp())), dim(op.getDim()) {}

  func::FuncOp run(KernelLaunchInfo &info) {
    func::FuncOp function = emitFunction([&](Value unit) {
      if (!source.base)
        prepare();
      SmallVector<Value> positions(result.sizes.size(), index.constant(0));
      locate(unit, others, result.sizes, side, width, positions);
      if (side >= 0)
        scanLanes(positions);
      else
        scanRow(positions);
    });
    AffineExpr units = getAffineConstantExpr(1, b.getContext()), perUnit = sizeOf(result, dim);
    for (int64_t d : others)
      units = units * (d == side ? (sizeOf(result, d) + (width - 1)).floorDiv(width) : sizeOf(result, d));
    info = launchInfo(units, side >= 0 ? perUnit * width : perUnit);
    return function;
  }

private:
  void prepare() {
    source = tensorOf(op.getSource());
    result = resultTensor();
    accumulator = accumulatorType(result.element);
    width = std::max<int64_t>(1, kernel.getTileConfig()->getVector() * 32 / accumulator.getIntOrFloatBitWidth());
    for (int64_t d = 0; d < int64_t(result.sizes.size()); ++d) {
      if (d == dim)
        continue;
      others.push_back(d);
      if (!isContiguous(result, dim) && isContiguous(result, d))
        side = d;
    }
    // Four registers side by side hide the latency of the additions.
    if (side >= 0)
      width *= 4;
  }

  /// The dtype that PyTorch accumulates in.
  Type accumulatorType(Type element) {
    if (element.isF32())
      return b.getF64Type();
    return isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32 ? Type(b.getF32Type()) : element;
  }

  Value widen(Value value) {
    Type type = MemoryEmitter::valueType(accumulator, lanesOf(value));
    return type == value.getType() ? value : arith::ExtFOp::create(b, type, value).getResult();
  }
  Value narrow(Value value) {
    Type type = MemoryEmitter::valueType(result.element, lanesOf(value));
    return type == value.getType() ? value : arith::TruncFOp::create(b, type, value).getResult();
  }
  static int64_t lanesOf(Value value) {
    auto type = dyn_cast<VectorType>(value.getType());
    return type ? type.getNumElements() : 1;
  }

  Value combine(Value x, Value y) {
    bool isFloat = isa<FloatType>(accumulator);
    if (op.getCombine() == "add")
      return isFloat ? arith::AddFOp::create(b, x, y).getResult() : arith::AddIOp::create(b, x, y).getResult();
    if (op.getCombine() == "mul")
      return isFloat ? arith::MulFOp::create(b, x, y).getResult() : arith::MulIOp::create(b, x, y).getResult();
    // log(exp(x) + exp(y)) by the larger; of two equal infinities it is that infinity.
    Value larger = arith::MaximumFOp::create(b, x, y), smaller = arith::MinimumFOp::create(b, x, y);
    Value difference = arith::SubFOp::create(b, smaller, larger);
    Value sum = arith::AddFOp::create(
        b, larger, math::Log1pOp::create(b, math::ExpOp::create(b, difference).getResult()).getResult());
    Value infinity = constant(std::numeric_limits<double>::infinity(), lanesOf(x));
    Value magnitude = math::AbsFOp::create(b, larger);
    Value isInfinite = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, magnitude, infinity);
    return arith::SelectOp::create(b, isInfinite, larger, sum);
  }

  Value constant(double value, int64_t lanes) {
    TypedAttr attr = isa<FloatType>(accumulator) ? TypedAttr(b.getFloatAttr(accumulator, value))
                                                 : TypedAttr(b.getIntegerAttr(accumulator, int64_t(value)));
    return memory.splat(arith::ConstantOp::create(b, attr), lanes);
  }
  Value identity(int64_t lanes) {
    StringRef kind = op.getCombine();
    return constant(kind == "add" ? 0.0 : kind == "mul" ? 1.0 : -std::numeric_limits<double>::infinity(), lanes);
  }

  void scanRow(ArrayRef<Value> positions) {
    Value from = element(source, positions), to = element(result, positions), size = result.sizes[dim];
    Value whole = arith::SubIOp::create(b, size, arith::RemUIOp::create(b, size, index.constant(width)));
    auto at = [&](Value start, const MemoryTensor &tensor, Value i) {
      return index.add(start, index.mul(i, tensor.strides[dim]));
    };
    auto step = [&](Value i, ValueRange carried, int64_t lanes) {
      Lanes all{lanes, i, Value()};
      Value values =
          widen(memory.loadLanes(source.base, at(from, source, i), source.strides[dim], source.element, all));
      // Each lane takes in the one 1, 2, 4, … before it.
      for (int64_t distance = 1; distance < lanes; distance *= 2) {
        SmallVector<int64_t> mask;
        for (int64_t l = 0; l < lanes; ++l)
          mask.push_back(l < distance ? l : lanes + l - distance);
        values = combine(vector::ShuffleOp::create(b, identity(lanes), values, mask), values);
      }
      Value last = lanes == 1 ? values : vector::ExtractOp::create(b, values, lanes - 1).getResult();
      values = combine(memory.splat(carried[0], lanes), values);
      memory.storeLanes(narrow(values), result.base, at(to, result, i), result.strides[dim], all);
      return SmallVector<Value>{combine(carried[0], last)};
    };
    SmallVector<Value> carried = {identity(1)};
    if (width > 1)
      carried = forRange(index.constant(0), whole, width, carried,
                         [&](Value i, ValueRange values) { return step(i, values, width); });
    else
      whole = index.constant(0);
    forRange(whole, size, 1, carried, [&](Value i, ValueRange values) { return step(i, values, 1); });
  }

  void scanLanes(MutableArrayRef<Value> positions) {
    Lanes lanes = lanesAt(positions[side], result.sizes[side], width);
    forRange(index.constant(0), result.sizes[dim], 1, identity(width), [&](Value i, ValueRange carried) {
      positions[dim] = i;
      Value values =
          memory.loadLanes(source.base, element(source, positions), source.strides[side], source.element, lanes);
      Value sum = combine(carried[0], widen(values));
      memory.storeLanes(narrow(sum), result.base, element(result, positions), result.strides[side], lanes);
      return SmallVector<Value>{sum};
    });
  }

  ScanOp op;
  int64_t dim, side = -1, width = 1; // `side`: the dimension of the lanes where they aren't along the scan
  MemoryTensor source, result;
  Type accumulator;
  SmallVector<int64_t> others;
};

} // namespace

FailureOr<func::FuncOp> emitScan(KernelOp kernel, OpBuilder &builder, KernelLaunchInfo &info) {
  return ScanEmitter(kernel, builder).run(info);
}

} // namespace accel
