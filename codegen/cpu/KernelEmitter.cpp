#include "codegen/cpu/KernelEmitter.h"

#include "codegen/cpu/AttentionEmitter.h"
#include "codegen/cpu/ContractionEmitter.h"
#include "codegen/cpu/RowStages.h"
#include "codegen/cpu/ValueEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/fusion/FusionGroups.h"
#include "passes/schedule/KernelLoops.h"

using namespace mlir;

namespace accel {
namespace {

/// Emits one kernel. The loop nest is: units of parallel work (all parallel loops, the vector loop in blocks when it is
/// one of them), then for each stage of reductions the row loops, the vector loop innermost.
class LoopEmitter : private ValueEmitter {
public:
  LoopEmitter(KernelOp kernel, OpBuilder &builder)
      : ValueEmitter(kernel, builder), stages(loops, config.getVectorLoop()) {
    vectorLoop = config.getVector() > 1 ? config.getVectorLoop() : -1;
    vectorIsRow = vectorLoop >= int64_t(loops.numParallel());
  }

  FailureOr<func::FuncOp> run(KernelLaunchInfo &info) {
    func::FuncOp function = beginFunction();
    findStreams();
    forRange(unitsBegin, unitsEnd, index.constant(1), {}, [&](Value unit, ValueRange) {
      emitUnit(unit);
      return SmallVector<Value>();
    });
    endFunction();
    info = launchInfo();
    return function;
  }

private:
  //===-- Loops
  //---------------------------------------------------------------------------------------------------------===//

  /// Runs the vector loop over [from, to): whole vectors, then one masked.
  SmallVector<Value> forLanes(Value from, Value to, bool wholeVectors, ValueRange carried,
                              llvm::function_ref<SmallVector<Value>(ValueRange)> emit) {
    int64_t width = config.getVector();
    auto withLanes = [&](Value first, Value mask, ValueRange values) {
      Lanes saved = lanes;
      lanes = {width, first, mask};
      positions[vectorLoop] = first;
      SmallVector<Value> results = emit(values);
      lanes = saved;
      return results;
    };
    std::optional<int64_t> start = IndexEmitter::constantOf(from), end = IndexEmitter::constantOf(to);
    Value mainEnd = to;
    if (!wholeVectors) {
      if (start && end) {
        mainEnd = index.constant(*start + (*end - *start) / width * width);
      } else {
        Value count = arith::SubIOp::create(b, to, from);
        Value rest = arith::AndIOp::create(b, count, index.constant(width - 1));
        mainEnd = arith::SubIOp::create(b, to, rest);
      }
    }
    SmallVector<Value> values(carried);
    std::optional<int64_t> constantEnd = IndexEmitter::constantOf(mainEnd);
    bool noMain = start && constantEnd && *constantEnd <= *start;
    if (start && constantEnd && *constantEnd == *start + width)
      values = withLanes(from, Value(), values);
    else if (!noMain)
      values = forRange(from, mainEnd, index.constant(width), values,
                        [&](Value first, ValueRange args) { return withLanes(first, Value(), args); });
    if (wholeVectors || (end && constantEnd && *end == *constantEnd))
      return values;
    Value rest = arith::SubIOp::create(b, to, mainEnd);
    if (end && constantEnd)
      return withLanes(mainEnd, memory.maskBelow(rest, width), values);
    Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, rest, index.constant(0));
    auto branch = scf::IfOp::create(b, ValueRange(values).getTypes(), any, !values.empty());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> results = withLanes(mainEnd, memory.maskBelow(rest, width), values);
    if (values.empty())
      return {};
    b.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(b, results);
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, values);
    return llvm::to_vector(ValueRange(branch.getResults()));
  }

  /// Parallel loops other than the vector loop.
  SmallVector<int64_t> outerLoops() {
    SmallVector<int64_t> order;
    for (int64_t l = 0; l < int64_t(loops.numParallel()); ++l)
      if (l != vectorLoop)
        order.push_back(l);
    return order;
  }

  void emitUnit(Value unit) {
    // Which iteration of each parallel loop this unit is; the blocks of the vector loop change fastest, then the blocks
    // of rows.
    Value rest = unit, block, rows;
    SmallVector<int64_t> order = outerLoops();
    auto take = [&](Value count, bool last) {
      if (last)
        return rest;
      Value position = arith::RemUIOp::create(b, rest, count);
      rest = arith::DivUIOp::create(b, rest, count);
      return position;
    };
    if (vectorLoop >= 0 && !vectorIsRow)
      block = take(expr(blockCount()), order.empty());
    if (order.empty())
      return emitRow(block);
    rows = take(expr(rowCount(order.back())), order.size() == 1);
    for (size_t i = order.size() - 1; i-- > 0;)
      positions[order[i]] = take(sizes[order[i]], i == 0);
    if (config.getRows() == 1) {
      positions[order.back()] = rows;
      return emitRow(block);
    }
    Value from = arith::MulIOp::create(b, rows, index.constant(config.getRows()));
    Value to = arith::MinSIOp::create(b, arith::AddIOp::create(b, from, index.constant(config.getRows())),
                                      sizes[order.back()]);
    auto emitRows = [&](Value first, Value end, int64_t count) {
      forRange(first, end, index.constant(count), {}, [&](Value row, ValueRange) {
        together.clear();
        for (int64_t i = 0; i < count; ++i)
          together.push_back(index.add(row, index.constant(i)));
        positions[order.back()] = row;
        emitRow(block);
        return SmallVector<Value>();
      });
    };
    int64_t tile = canTile() ? config.getTile() : 1;
    std::optional<int64_t> size = IndexEmitter::constantOf(sizes[order.back()]);
    if (tile == 1 || (size && *size % tile == 0))
      return emitRows(from, to, tile);
    Value left = arith::RemUIOp::create(b, arith::SubIOp::create(b, to, from), index.constant(tile));
    Value whole = arith::SubIOp::create(b, to, left);
    emitRows(from, whole, tile);
    emitRows(whole, to, size ? *size % tile : 1);
  }

  /// Several rows at a time share what they read alike, the weights of a window for example, in registers. Not where
  /// the lanes are along the row, which have sums enough, nor where the row is run over several times.
  bool canTile() const { return !vectorIsRow && vectorLoop >= 0 && stages.count() == 1; }

  /// One iteration of the outer parallel loops, or those `together`: the block of the vector loop, if it is parallel.
  void emitRow(Value block) {
    if (!block)
      return emitPoint();
    Value from = arith::MulIOp::create(b, block, index.constant(config.getBlock()));
    Value to = arith::AddIOp::create(b, from, index.constant(config.getBlock()));
    std::optional<int64_t> size = IndexEmitter::constantOf(sizes[vectorLoop]);
    bool whole = size && *size % config.getBlock() == 0;
    if (size && *size <= config.getBlock())
      from = index.constant(0), to = index.constant(*size);
    else if (!whole)
      to = arith::MinSIOp::create(b, to, sizes[vectorLoop]);
    forLanes(from, to, size && *size % config.getVector() == 0, {}, [&](ValueRange) {
      emitPoint();
      return SmallVector<Value>();
    });
  }

  //===-- One iteration of the parallel loops
  //------------------------------------------------------------------------===//

  void emitPoint() {
    outers.assign(numTogether(), llvm::DenseMap<Value, Value>());
    for (unsigned stage = 0; stage < stages.count(); ++stage)
      emitStage(stage);
    forTogether([&] {
      for (unsigned k = 0; k < resultPointers.size(); ++k)
        if (!stages.isInner(yielded(k)))
          store(k);
    });
  }

  size_t numTogether() const { return std::max<size_t>(1, together.size()); }

  /// At each of the rows that are done together.
  void forTogether(llvm::function_ref<void()> emit) {
    for (current = 0; current < numTogether(); ++current) {
      if (current < together.size())
        positions[outerLoops().back()] = together[current];
      inner.clear();
      emit();
    }
    current = 0;
  }

  /// Runs over the row: the stage's reductions, and the stores of what is known by now.
  void emitStage(unsigned stage) {
    currentStage = stage;
    ArrayRef<Operation *> reductions = stages.reductions(stage);
    SmallVector<Value> accumulators;
    forTogether([&] {
      for (Operation *op : reductions)
        for (Value init : cast<linalg::LinalgOp>(op).getDpsInits())
          accumulators.push_back(memory.splat(initialValue(init), vectorLoop >= 0 ? config.getVector() : 1));
    });
    initial = accumulators;
    // What doesn't change along the row is computed before it: in front of this constant.
    hoistPoint = index.constant(0).getDefiningOp();
    SmallVector<Value> results = emitRows(loops.numParallel(), accumulators, [&](ValueRange values) {
      SmallVector<Value> next;
      forTogether([&] {
        llvm::append_range(next, accumulate(reductions, values.drop_front(next.size())));
        for (unsigned k = 0; k < resultPointers.size(); ++k)
          if (stages.isInner(yielded(k)) && stages.storeStage(yielded(k)) == stage)
            store(k);
      });
      if (stage == 1)
        prefetchNextRow();
      return next;
    });
    hoistPoint = nullptr;
    size_t first = 0;
    forTogether([&] {
      for (Operation *op : reductions) {
        SmallVector<Value> values(ArrayRef(results).slice(first, op->getNumResults()));
        first += op->getNumResults();
        if (vectorIsRow && vectorLoop >= 0)
          values = foldLanes(op, values);
        for (auto [result, value] : llvm::zip(op->getResults(), values))
          outers[current][result] = value;
      }
    });
  }

  /// Asks for what the next row's first run will read, so that memory is busy during this row's other runs, too.
  void prefetchNextRow() {
    constexpr int64_t kLongest = 1 << 15; // elements: two rows fit into an L2 cache
    SmallVector<int64_t> order = outerLoops();
    if (!vectorIsRow || vectorLoop < 0 || order.empty())
      return;
    int64_t length = 1;
    for (const NestLoop &loop : loops.loops().drop_front(loops.numParallel())) {
      auto size = dyn_cast<AffineConstantExpr>(loop.size);
      length *= size ? size.getValue() : kLongest + 1;
      if (length > kLongest)
        return;
    }
    for (const Access &access : loops.accesses()) {
      auto next = dyn_cast_or_null<AffineConstantExpr>(access.strides[order.back()]);
      if (access.result >= 0 || access.isGather || !access.bounds.empty() || !next || next.getValue() == 0 ||
          access.strides[vectorLoop] != getAffineConstantExpr(1, b.getContext()))
        continue;
      Value base = pointers.lookup(access.tensor);
      memory.prefetchLines(base, index.add(elementIndex(access), index.constant(next.getValue())),
                           getElementTypeOrSelf(access.tensor.getType()), config.getVector(), /*isStore=*/false,
                           /*hint=*/2);
    }
  }

  using RowBody = llvm::function_ref<SmallVector<Value>(ValueRange)>;

  /// The row loops from `loop` on, the vector loop last.
  SmallVector<Value> emitRows(unsigned loop, ValueRange carried, RowBody emit) {
    if (loop < loops.loops().size() && int64_t(loop) != vectorLoop)
      return emitChunks(loop, 1, carried, [&](Value from, Value to, ValueRange values) {
        return forRange(from, to, index.constant(1), values, [&](Value i, ValueRange current) {
          positions[loop] = i;
          return emitRows(loop + 1, current, emit);
        });
      });
    if (loop < loops.loops().size())
      return emitRows(loop + 1, carried, emit);
    if (vectorLoop < 0 || !vectorIsRow)
      return emit(carried);
    return emitChunks(vectorLoop, config.getVector(), carried, [&](Value from, Value to, ValueRange values) {
      std::optional<int64_t> size = IndexEmitter::constantOf(sizes[vectorLoop]);
      return forLanes(from, to, size && *size % config.getVector() == 0, values, emit);
    });
  }

  /// Runs a row loop. One that adds up many numbers does so in chunks of kChunk additions whose sums are added up in
  /// turn, which keeps the rounding error near that of adding pairwise.
  SmallVector<Value> emitChunks(unsigned loop, int64_t width, ValueRange carried,
                                llvm::function_ref<SmallVector<Value>(Value, Value, ValueRange)> emit) {
    constexpr int64_t kChunk = 256;
    std::optional<int64_t> size = IndexEmitter::constantOf(sizes[loop]);
    bool rounds = llvm::any_of(stages.reductions(currentStage), [](Operation *op) {
      return op
          ->walk([](Operation *inner) {
            return isa<arith::AddFOp, arith::MulFOp>(inner) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
    });
    if (!rounds || (size && *size <= 2 * kChunk * width))
      return emit(index.constant(0), sizes[loop], carried);
    Value chunk = index.constant(kChunk * width);
    return forRange(index.constant(0), sizes[loop], chunk, carried, [&](Value from, ValueRange totals) {
      Value to = arith::MinSIOp::create(b, arith::AddIOp::create(b, from, chunk), sizes[loop]);
      SmallVector<Value> sums = emit(from, to, initial), results;
      while (results.size() < sums.size())
        for (Operation *op : stages.reductions(currentStage)) {
          size_t first = results.size();
          SmallVector<Value> args(ArrayRef(sums).slice(first, op->getNumResults()));
          llvm::append_range(args, totals.slice(first, op->getNumResults()));
          llvm::append_range(results, body.emit(op, args));
        }
      return results;
    });
  }

  SmallVector<Value> accumulate(ArrayRef<Operation *> reductions, ValueRange accumulators) {
    SmallVector<Value> next;
    size_t first = 0;
    for (Operation *op : reductions) {
      SmallVector<Value> args;
      for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands())
        args.push_back(memory.splat(operandValue(op, input->getOperandNumber()), lanes.count));
      ValueRange current = accumulators.slice(first, op->getNumResults());
      first += op->getNumResults();
      llvm::append_range(args, current);
      for (auto [value, old] : llvm::zip(body.emit(op, args), current)) {
        Value combined = memory.splat(value, lanes.count);
        // Lanes behind the end of the row keep what they have.
        if (vectorIsRow && lanes.mask)
          combined = arith::SelectOp::create(b, lanes.mask, combined, old);
        next.push_back(combined);
      }
    }
    return next;
  }

  /// Combines the lanes of partial results by halves.
  SmallVector<Value> foldLanes(Operation *op, SmallVector<Value> values) {
    for (int64_t width = config.getVector(); width > 1; width /= 2) {
      SmallVector<Value> args;
      for (int64_t half : {int64_t(1), int64_t(0)})
        for (Value value : values)
          args.push_back(width == 2 ? vector::ExtractOp::create(b, value, half).getResult()
                                    : vector::ExtractStridedSliceOp::create(b, value, half * width / 2, width / 2, 1));
      values = body.emit(op, args);
    }
    return values;
  }

  //===-- Values
  //----------------------------------------------------------------------------------------------------------===//

  Value valueOf(Value tensor) override {
    bool isInner = stages.isInner(tensor);
    auto &scope = isInner ? inner : outers[current];
    if (auto it = scope.find(tensor); it != scope.end())
      return it->second;
    OpBuilder::InsertionGuard guard(b);
    if (!isInner && hoistPoint)
      b.setInsertionPoint(hoistPoint);
    const RowCache *cache = stages.cacheOf(tensor);
    Value result;
    if (cache && cache->firstStage < currentStage) {
      result = memory.loadLanes(cachePointer(*cache), rowIndex(), index.constant(1),
                                getElementTypeOrSelf(tensor.getType()), lanes);
    } else {
      result = evaluate(cast<OpResult>(tensor));
      if (cache)
        memory.storeLanes(result, cachePointer(*cache), rowIndex(), index.constant(1), lanes);
    }
    scope[tensor] = result;
    return result;
  }

  //===-- Scratch memory, and what the runtime has to know
  //------------------------------------------------------------===//

  Value cachePointer(const RowCache &cache) {
    return LLVM::GEPOp::create(b, scratch.getType(), b.getI8Type(), scratch,
                               ArrayRef<LLVM::GEPArg>{expr(cache.byteOffset)});
  }

  /// Number of the element in the row, counted in the order of the row loops with the vector loop last.
  Value rowIndex() {
    Value result = index.constant(0);
    for (unsigned l = loops.numParallel(); l < loops.loops().size(); ++l)
      if (int64_t(l) != vectorLoop)
        result = index.add(index.mul(result, sizes[l]), positions[l]);
    if (vectorLoop >= 0)
      result = index.add(index.mul(result, sizes[vectorLoop]), positions[vectorLoop]);
    return result;
  }

  AffineExpr blockCount() {
    return normalize((loops.loops()[vectorLoop].size + (config.getBlock() - 1)).floorDiv(config.getBlock()));
  }

  AffineExpr rowCount(int64_t loop) {
    return normalize((loops.loops()[loop].size + (config.getRows() - 1)).floorDiv(config.getRows()));
  }

  KernelLaunchInfo launchInfo() {
    AffineExpr one = getAffineConstantExpr(1, b.getContext());
    AffineExpr units = one, perUnit = one;
    SmallVector<int64_t> order = outerLoops();
    for (auto [l, loop] : llvm::enumerate(loops.loops())) {
      bool parallel = l < loops.numParallel();
      if (parallel && int64_t(l) == vectorLoop) {
        units = units * blockCount();
        auto size = dyn_cast<AffineConstantExpr>(loop.size);
        perUnit = perUnit * (size ? std::min(size.getValue(), config.getBlock()) : config.getBlock());
      } else if (!order.empty() && int64_t(l) == order.back()) {
        units = units * rowCount(l);
        perUnit = perUnit * config.getRows();
      } else {
        (parallel ? units : perUnit) = (parallel ? units : perUnit) * loop.size;
      }
    }
    perUnit = normalize(perUnit);
    // One more than the quotient, so that it is never zero; the divisor is one more than the size, which may be.
    AffineExpr grain = getAffineConstantExpr(config.getGrain(), b.getContext()).floorDiv(perUnit + 1) + 1;
    return {normalize(units), grain, stages.scratchBytes()};
  }

  RowStages stages;
  bool vectorIsRow = false;
  unsigned currentStage = 0;
  SmallVector<Value> together; ///< positions of the rows that are done at once; empty for one that `positions` has
  size_t current = 0;          ///< number of the one that is emitted now
  SmallVector<llvm::DenseMap<Value, Value>> outers; ///< for each of these, what is known for the whole row
  llvm::DenseMap<Value, Value> inner;
  SmallVector<Value> initial; // what the current stage's accumulators start from
};

} // namespace

FailureOr<func::FuncOp> emitKernel(KernelOp kernel, OpBuilder &builder, KernelLaunchInfo &info) {
  if (attentionOf(kernel))
    return emitAttention(kernel, builder, info);
  if (isContractionKernel(kernel))
    return emitContraction(kernel, builder, info);
  return LoopEmitter(kernel, builder).run(info);
}

} // namespace accel
