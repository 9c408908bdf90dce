#include "codegen/cpu/ContractionEmitter.h"

#include "codegen/cpu/ValueEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/fusion/FusionGroups.h"
#include "passes/schedule/ContractionNest.h"
#include "passes/schedule/Registers.h"

using namespace mlir;

namespace accel {
namespace {

/// Ops of an epilogue up to which each row's is emitted in line, straight from registers.
constexpr unsigned kInlineOps = 8;
/// Tiles in a unit up to which a panel of B is read where it lies rather than copied.
constexpr int64_t kDirectTiles = 2;

class ContractionEmitter : private ValueEmitter {
public:
  ContractionEmitter(KernelOp kernel, OpBuilder &builder)
      : ValueEmitter(kernel, builder), nest(*contractionNest(loops)), sums(nest.op->getResult(0)),
        element(getElementTypeOrSelf(sums.getType())), width(config.getVector()), tileRows(config.getTile()) {
    copiesA = mustCopyA();
    copiesB = mustCopyB();
    collectEpilogue();
    placeScratch();
  }

  FailureOr<func::FuncOp> run(KernelLaunchInfo &info) {
    func::FuncOp function = beginFunction();
    blockCount = expr(countOf(allRows(), config.getRows()));
    panelCount = expr(countOf(loops.loops()[nest.n].size, width));
    numRows = expr(allRows());
    blockRows = rowsOfBlock();
    numColumns = sizes[nest.n];
    // Carried along: which block of rows lies in the scratch memory.
    forRange(unitsBegin, unitsEnd, index.constant(1), {index.constant(-1)},
             [&](Value unit, ValueRange carried) { return SmallVector<Value>{emitUnit(unit, carried[0])}; });
    func::ReturnOp::create(b);
    info = launchInfo();
    return function;
  }

private:
  //===-- What is copied, and where to
  //---------------------------------------------------------------------------------===//

  /// What the ops behind the products read and write, and whether the row loops are one as far as that goes.
  void collectEpilogue() {
    bool asksForLoops = false;
    for (Operation &op : kernel.getBody().front()) {
      if (!op.hasAttr(kLoopsAttr) || &op == nest.op)
        continue;
      op.walk([&](linalg::IndexOp) { asksForLoops = true; });
      bool isBehind = llvm::none_of(
          loopsOf(&op), [&](int64_t loop) { return llvm::is_contained(nest.k, int64_t(loops.nestLoopOf(loop))); });
      for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands())
        if (isBehind && isa<BlockArgument>(readOf(&op, input->getOperandNumber()).value))
          epilogue.push_back(loops.accessOf(&op, input->getOperandNumber()));
    }
    for (unsigned k = 0; k < kernel.getFunctionType().getNumResults(); ++k)
      epilogue.push_back(loops.storeOf(k));
    bool seamless = llvm::all_of(epilogue, [&](const Access &access) { return stepsSeamlessly(access); });
    rowsAreOne = seamless && !asksForLoops;
  }

  /// Whether the access steps from the last row of one row loop to the first of the next without a gap.
  bool stepsSeamlessly(const Access &access) {
    for (size_t i = 0; i + 1 < nest.rows.size(); ++i) {
      const NestLoop &inner = loops.loops()[nest.rows[i + 1]];
      if (access.strides[nest.rows[i]] != normalize(access.strides[nest.rows[i + 1]] * inner.size))
        return false;
    }
    return access.bounds.empty();
  }

  AffineExpr constantExpr(int64_t value) { return getAffineConstantExpr(value, b.getContext()); }

  std::optional<int64_t> sizeOf(int64_t loop) {
    auto size = dyn_cast<AffineConstantExpr>(loops.loops()[loop].size);
    return size ? std::optional(size.getValue()) : std::nullopt;
  }

  AffineExpr countOf(AffineExpr size, int64_t step) { return normalize((size + (step - 1)).floorDiv(step)); }

  AffineExpr product(ArrayRef<int64_t> factors) {
    AffineExpr result = constantExpr(1);
    for (int64_t loop : factors)
      result = result * loops.loops()[loop].size;
    return normalize(result);
  }

  AffineExpr allRows() { return product(nest.rows); }
  AffineExpr depth() { return product(nest.k); }

  std::optional<int64_t> constantRows() {
    auto rows = dyn_cast<AffineConstantExpr>(allRows());
    return rows ? std::optional(rows.getValue()) : std::nullopt;
  }

  /// Rows of A are read where they lie if consecutive k lie side by side, all rows are known to exist, and the rows of
  /// a tile don't fall on the same few lines of an 8-way cache with 64 sets.
  bool mustCopyA() {
    if (!nest.a || !nest.a->bounds.empty() || nest.rows.size() > 1 || !constantRows() ||
        getElementTypeOrSelf(nest.a->tensor.getType()) != element)
      return true;
    if (nest.k.empty())
      return false;
    if (nest.a->strides[nest.k.back()] != constantExpr(1))
      return true;
    if (nest.rows.empty())
      return false;
    auto stride = dyn_cast<AffineConstantExpr>(nest.a->strides[nest.rows[0]]);
    if (!stride)
      return true;
    int64_t bytes = stride.getValue() * element.getIntOrFloatBitWidth() / 8;
    if (bytes % 64)
      return false;
    int64_t sets = 64 / std::gcd<int64_t>(64, bytes / 64);
    return llvm::divideCeil(tileRows, sets) > 4;
  }

  bool mustCopyB() {
    if (nest.panel)
      return false;
    if (!nest.b || getElementTypeOrSelf(nest.b->tensor.getType()) != element)
      return true;
    std::optional<int64_t> columns = sizeOf(nest.n);
    bool isPlain = nest.b->strides[nest.n] == constantExpr(1) && columns && *columns % width == 0;
    std::optional<int64_t> rows = constantRows();
    return !isPlain || !rows || std::min<int64_t>(*rows, config.getRows()) > kDirectTiles * tileRows;
  }

  void placeScratch() {
    int64_t bytes = element.getIntOrFloatBitWidth() / 8;
    auto place = [&](AffineExpr elements) {
      AffineExpr offset = scratchBytes;
      scratchBytes = normalize(scratchBytes + (elements * bytes + 63).floorDiv(64) * 64);
      return offset;
    };
    scratchBytes = constantExpr(0);
    tileOffset = place(constantExpr(tileRows * width));
    // Rows a line longer than they need be, so that they fall on different lines of the cache.
    rowStride = normalize((depth() + 15).floorDiv(16) * 16 + 64 / bytes);
    if (copiesA)
      aOffset = place(rowStride * config.getRows());
    if (copiesB)
      bOffset = place(depth() * width);
  }

  Value scratchAt(AffineExpr offset) {
    return LLVM::GEPOp::create(b, scratch.getType(), b.getI8Type(), scratch, ArrayRef<LLVM::GEPArg>{expr(offset)});
  }

  Value elementAt(Value base, Value position) {
    return LLVM::GEPOp::create(b, base.getType(), element, base, ArrayRef<LLVM::GEPArg>{position});
  }

  //===-- Units
  //----------------------------------------------------------------------------------------------------------===//

  /// The schedule's rows, or, where their number is known at run time only, as many fewer as make the blocks equal: 128
  /// rows by 112 are two blocks of 70 and 58, for threads get as many blocks each.
  Value rowsOfBlock() {
    if (constantRows())
      return index.constant(config.getRows());
    Value one = index.constant(1), tiles = expr(countOf(allRows(), tileRows));
    Value blocks = arith::MaxUIOp::create(b, blockCount, one);
    Value share = arith::DivUIOp::create(b, arith::SubIOp::create(b, index.add(tiles, blocks), one), blocks);
    return index.mul(share, index.constant(tileRows));
  }

  /// Returns the number of the block of rows whose copy lies in the scratch memory from now on.
  Value emitUnit(Value unit, Value copied) {
    // Panels change fastest, then blocks of rows.
    Value panel = arith::RemUIOp::create(b, unit, panelCount);
    Value blockNumber = arith::DivUIOp::create(b, unit, panelCount);
    Value block = arith::RemUIOp::create(b, blockNumber, blockCount);
    Value rest = arith::DivUIOp::create(b, blockNumber, blockCount);
    for (size_t i = nest.outer.size(); i-- > 0;) {
      int64_t loop = nest.outer[i];
      positions[loop] = i == 0 ? rest : arith::RemUIOp::create(b, rest, sizes[loop]).getResult();
      if (i > 0)
        rest = arith::DivUIOp::create(b, rest, sizes[loop]);
    }
    firstRow = index.mul(block, blockRows);
    firstColumn = index.mul(panel, index.constant(width));
    endRow = arith::MinSIOp::create(b, arith::AddIOp::create(b, firstRow, blockRows), numRows);
    if (copiesA) {
      Value isNew = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, blockNumber, copied);
      auto branch = scf::IfOp::create(b, isNew, false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      copyRows();
    }
    if (copiesB)
      copyPanel(panel);
    emitTiles(panel);
    return blockNumber;
  }

  /// The row loops' positions of one row in their sequence.
  void setRow(Value row) {
    for (size_t i = nest.rows.size(); i-- > 0;) {
      int64_t loop = nest.rows[i];
      positions[loop] = i == 0 ? row : arith::RemUIOp::create(b, row, sizes[loop]).getResult();
      if (i > 0)
        row = arith::DivUIOp::create(b, row, sizes[loop]);
    }
  }

  /// The same for the ops behind the products.
  void setEpilogueRow(Value row) {
    if (!rowsAreOne)
      return setRow(row);
    for (int64_t loop : nest.rows)
      positions[loop] = index.constant(0);
    if (!nest.rows.empty())
      positions[nest.rows.back()] = row;
  }

  /// Asks for the lines that the tile's end will touch: the tensors are larger than the cache, and each row is
  /// elsewhere.
  void prefetchEpilogue(int64_t height, Value row) {
    AffineExpr one = constantExpr(1);
    if (!rowsAreOne)
      return;
    for (const Access &access : epilogue) {
      bool hasRows = !nest.rows.empty() && access.strides[nest.rows.back()] != constantExpr(0);
      if (!hasRows || access.isGather || access.strides[nest.n] != one)
        continue;
      bool isStore = access.result >= 0;
      Value base = isStore ? resultPointers[access.result] : pointers.lookup(access.tensor);
      Type type = getElementTypeOrSelf(access.tensor.getType());
      positions[nest.n] = firstColumn;
      setEpilogueRow(row);
      Value start = elementIndex(access), stride = expr(access.strides[nest.rows.back()]);
      for (int64_t i = 0; i < height; ++i)
        memory.prefetchLines(base, index.add(start, index.mul(stride, index.constant(i))), type, width, isStore, 3);
    }
  }

  using AtK = llvm::function_ref<void(Value depthPosition)>;

  /// Loops over k one by one but for the innermost, which `emit` runs over itself.
  void forOuterK(size_t level, Value depthPosition, AtK emit) {
    if (nest.k.empty() || level + 1 == nest.k.size())
      return emit(nest.k.empty() ? depthPosition : index.mul(depthPosition, sizes[nest.k[level]]));
    int64_t loop = nest.k[level];
    forRange(index.constant(0), sizes[loop], index.constant(1), {}, [&](Value k, ValueRange) {
      positions[loop] = k;
      forOuterK(level + 1, index.add(index.mul(depthPosition, sizes[loop]), k), emit);
      return SmallVector<Value>();
    });
  }

  /// The block's rows of A, lanes along k.
  void copyRows() {
    Value base = scratchAt(aOffset);
    int64_t lanesCount = std::min<int64_t>(width, 32);
    forRange(firstRow, endRow, index.constant(1), {}, [&](Value row, ValueRange) {
      setRow(row);
      Value start = index.mul(arith::SubIOp::create(b, row, firstRow), expr(rowStride));
      forOuterK(0, index.constant(0), [&](Value depthPosition) {
        auto copy = [&](Value first, int64_t count, Value mask) {
          vectorLoop = nest.k.empty() ? -1 : nest.k.back();
          lanes = {count, first, mask};
          if (vectorLoop >= 0)
            positions[vectorLoop] = first;
          known.clear();
          Value value = memory.splat(operandValue(nest.op, 0), count);
          memory.storeLanes(value, base, index.add(index.add(start, depthPosition), first), index.constant(1), lanes);
        };
        if (nest.k.empty())
          return copy(index.constant(0), 1, Value());
        forLanes(sizes[nest.k.back()], lanesCount, copy);
      });
      return SmallVector<Value>();
    });
  }

  /// Whole vectors over [0, size), then a masked one.
  void forLanes(Value size, int64_t count, llvm::function_ref<void(Value, int64_t, Value)> emit) {
    Value rest = arith::RemUIOp::create(b, size, index.constant(count));
    Value whole = arith::SubIOp::create(b, size, rest);
    forRange(index.constant(0), whole, index.constant(count), {}, [&](Value first, ValueRange) {
      emit(first, count, Value());
      return SmallVector<Value>();
    });
    if (std::optional<int64_t> constant = IndexEmitter::constantOf(size); constant && *constant % count == 0)
      return;
    auto branch = scf::IfOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rest, index.constant(0)).getResult(), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emit(whole, count, memory.maskBelow(rest, count));
  }

  /// One panel of B, lanes along the columns; columns that don't exist become zeros.
  void copyPanel(Value) {
    Value base = scratchAt(bOffset);
    Value mask = columnMask(firstColumn, width);
    forOuterK(0, index.constant(0), [&](Value depthPosition) {
      auto copy = [&](Value k) {
        vectorLoop = nest.n;
        lanes = {width, firstColumn, mask};
        positions[nest.n] = firstColumn;
        if (!nest.k.empty())
          positions[nest.k.back()] = k;
        known.clear();
        Value value = memory.splat(operandValue(nest.op, 1), width);
        Lanes all{width, firstColumn, Value()};
        memory.storeLanes(value, base, index.mul(index.add(depthPosition, k), index.constant(width)), index.constant(1),
                          all);
      };
      if (nest.k.empty())
        return copy(index.constant(0));
      forRange(index.constant(0), sizes[nest.k.back()], index.constant(1), {}, [&](Value k, ValueRange) {
        copy(k);
        return SmallVector<Value>();
      });
    });
  }

  /// Which of `count` columns from `first` on exist; null if all always do.
  Value columnMask(Value first, int64_t count) {
    std::optional<int64_t> columns = sizeOf(nest.n);
    if (columns && *columns % width == 0)
      return {};
    Value rest = arith::SubIOp::create(b, numColumns, first);
    return memory.maskBelow(arith::MinSIOp::create(b, rest, index.constant(count)), count);
  }

  //===-- Tiles
  //----------------------------------------------------------------------------------------------------------===//

  void emitTiles(Value panel) {
    Value bBase = panelPointer(panel);
    std::optional<int64_t> rows = constantRows();
    Value count = arith::SubIOp::create(b, endRow, firstRow);
    Value rest = arith::RemUIOp::create(b, count, index.constant(tileRows));
    Value whole = arith::SubIOp::create(b, endRow, rest);
    if (!rows || *rows >= tileRows)
      forRange(firstRow, whole, index.constant(tileRows), {}, [&](Value row, ValueRange) {
        emitTile(tileRows, row, index.constant(tileRows), bBase);
        return SmallVector<Value>();
      });
    if (rows) {
      if (*rows % tileRows)
        when(rest, *rows > tileRows,
             [&] { emitTile(*rows % tileRows, whole, index.constant(*rows % tileRows), bBase); });
      return;
    }
    when(rest, true, [&] { emitRest(whole, rest, bBase); });
  }

  /// As many rows as are left, up to a whole tile, by the smallest tile that holds them.
  void emitRest(Value row, Value rest, Value bBase) {
    SmallVector<int64_t> heights;
    for (int64_t height : {1, 4, 8})
      if (height < tileRows)
        heights.push_back(height);
    std::function<void(size_t)> choose = [&](size_t i) {
      if (i == heights.size())
        return emitTile(tileRows, row, rest, bBase);
      Value fits = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, rest, index.constant(heights[i]));
      auto branch = scf::IfOp::create(b, fits, true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      emitTile(heights[i], row, rest, bBase);
      b.setInsertionPointToStart(branch.elseBlock());
      choose(i + 1);
    };
    choose(0);
  }

  void when(Value count, bool mayBeZero, llvm::function_ref<void()> emit) {
    if (!mayBeZero)
      return emit();
    Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, count, index.constant(0));
    auto branch = scf::IfOp::create(b, any, false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emit();
  }

  /// The element of B at the panel's first column and k = 0.
  Value panelPointer(Value panel) {
    if (copiesB)
      return scratchAt(bOffset);
    Value base = pointers.lookup(nest.b->tensor);
    for (int64_t k : nest.k)
      positions[k] = index.constant(0);
    if (!nest.panel) {
      positions[nest.n] = firstColumn;
      return elementAt(base, elementIndex(*nest.b));
    }
    LayoutAttr layout = kernel.argLayout(cast<BlockArgument>(nest.b->tensor).getArgNumber());
    Value start = index.mul(panel, expr(layout.getStrides().getValue().getResult(0)));
    for (int64_t loop : nest.outer)
      if (nest.b->strides[loop])
        start = index.add(start, index.mul(positions[loop], expr(nest.b->strides[loop])));
    return elementAt(base, index.add(start, expr(nest.b->offset)));
  }

  /// Distance between neighbours along k loop number `i` (of nest.k) in what the tiles read.
  Value strideA(size_t i) { return copiesA ? copiedStride(i) : expr(nest.a->strides[nest.k[i]]); }
  Value strideB(size_t i) {
    return copiesB ? index.mul(copiedStride(i), index.constant(width)) : expr(nest.b->strides[nest.k[i]]);
  }
  Value copiedStride(size_t i) {
    Value stride = index.constant(1);
    for (size_t j = i + 1; j < nest.k.size(); ++j)
      stride = index.mul(stride, sizes[nest.k[j]]);
    return stride;
  }

  /// Rows [row, row + rows) of the panel by a tile of `height` rows, of which `rows` exist.
  void emitTile(int64_t height, Value row, Value rows, Value bBase) {
    Value aBase;
    SmallVector<Value> rowOffsets(height);
    Value step;
    if (copiesA) {
      step = expr(rowStride);
      Value local = arith::SubIOp::create(b, row, firstRow);
      aBase = elementAt(scratchAt(aOffset), index.mul(local, step));
    } else {
      setRow(row);
      for (int64_t k : nest.k)
        positions[k] = index.constant(0);
      aBase = elementAt(pointers.lookup(nest.a->tensor), elementIndex(*nest.a));
      step = nest.rows.empty() ? index.constant(0) : expr(nest.a->strides[nest.rows[0]]);
    }
    for (int64_t i = 0; i < height; ++i)
      rowOffsets[i] = index.mul(index.constant(i), step);

    prefetchEpilogue(height, row);
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(VectorType::get({width}, element)));
    SmallVector<Value> tile = addProducts(0, SmallVector<Value>(height, zero), aBase, bBase, rowOffsets);
    known.clear();
    storeTile(height, row, rows, tile);
  }

  /// Whether A and B lie so that all loops over k can run as one.
  bool runsFlat() {
    if (nest.k.size() < 2 || !copiesA)
      return false;
    if (copiesB)
      return true;
    AffineExpr stride = constantExpr(width);
    for (size_t i = nest.k.size(); i-- > 0;) {
      if (nest.b->strides[nest.k[i]] != stride)
        return false;
      stride = normalize(stride * loops.loops()[nest.k[i]].size);
    }
    return true;
  }

  SmallVector<Value> addProducts(size_t level, ValueRange tile, Value a, Value bAddress, ArrayRef<Value> rowOffsets) {
    if (level == 0 && runsFlat())
      return forRange(index.constant(0), expr(depth()), index.constant(1), tile, [&](Value k, ValueRange current) {
        return addProducts(nest.k.size(), current, elementAt(a, k),
                           elementAt(bAddress, index.mul(k, index.constant(width))), rowOffsets);
      });
    if (level < nest.k.size())
      return forRange(index.constant(0), sizes[nest.k[level]], index.constant(1), tile,
                      [&](Value k, ValueRange current) {
                        return addProducts(level + 1, current, elementAt(a, index.mul(k, strideA(level))),
                                           elementAt(bAddress, index.mul(k, strideB(level))), rowOffsets);
                      });
    Lanes all{width, index.constant(0), Value()};
    Value columns = memory.loadLanes(bAddress, index.constant(0), index.constant(1), element, all);
    SmallVector<Value> next;
    for (auto [offset, sum] : llvm::zip(rowOffsets, tile)) {
      Value factor = memory.splat(memory.loadScalar(a, offset, element), width);
      next.push_back(multiplyAdd(factor, columns, sum));
    }
    return next;
  }

  //===-- What follows the products
  //------------------------------------------------------------------------------------===//

  unsigned epilogueOps() {
    unsigned count = 0;
    for (Operation &op : kernel.getBody().front())
      if (op.hasAttr(kLoopsAttr) && &op != nest.op)
        op.walk([&](Operation *inner) {
          count += inner != &op && !inner->hasTrait<OpTrait::IsTerminator>() && !isa<arith::ConstantOp>(inner);
        });
    return count;
  }

  void storeTile(int64_t height, Value row, Value rows, ArrayRef<Value> tile) {
    bool mathematics = callsMathematics(kernel) || inlinesMathematics(kernel);
    int64_t step = mathematics ? std::min<int64_t>(width, nativeLanes()) : width;
    if (IndexEmitter::constantOf(rows) == height && !mathematics && epilogueOps() <= kInlineOps) {
      for (int64_t i = 0; i < height; ++i)
        storeColumns(index.add(row, index.constant(i)), firstColumn, step, tile[i]);
      return;
    }
    Value memoryTile = scratchAt(tileOffset);
    Lanes all{width, index.constant(0), Value()};
    for (int64_t i = 0; i < height; ++i)
      memory.storeLanes(tile[i], memoryTile, index.constant(i * width), index.constant(1), all);
    forRange(index.constant(0), rows, index.constant(1), {}, [&](Value i, ValueRange) {
      forRange(index.constant(0), index.constant(width), index.constant(step), {}, [&](Value j, ValueRange) {
        Lanes part{step, j, Value()};
        Value position = index.add(index.mul(i, index.constant(width)), j);
        Value value = memory.loadLanes(memoryTile, position, index.constant(1), element, part);
        storeColumns(index.add(row, i), index.add(firstColumn, j), step, value);
        return SmallVector<Value>();
      });
      return SmallVector<Value>();
    });
  }

  void storeColumns(Value row, Value column, int64_t count, Value value) {
    vectorLoop = nest.n;
    lanes = {count, column, columnMask(column, count)};
    setEpilogueRow(row);
    positions[nest.n] = column;
    known.clear();
    known[sums] = value;
    for (unsigned k = 0; k < resultPointers.size(); ++k)
      store(k);
    known.clear();
  }

  int64_t nativeLanes() {
    return nativeVectorBits(kernel.getTarget()->getFeatures()) / element.getIntOrFloatBitWidth();
  }

  Value valueOf(Value tensor) override {
    if (auto it = known.find(tensor); it != known.end())
      return it->second;
    Value value = evaluate(cast<OpResult>(tensor));
    known[tensor] = value;
    return value;
  }

  KernelLaunchInfo launchInfo() {
    AffineExpr units = countOf(allRows(), config.getRows()) * countOf(loops.loops()[nest.n].size, width);
    for (int64_t loop : nest.outer)
      units = units * loops.loops()[loop].size;
    // A unit's products, as elements of memory traffic: a core does about that many while it moves one element.
    AffineExpr perUnit = normalize((depth() * (config.getRows() * width)).floorDiv(16));
    AffineExpr grain = constantExpr(config.getGrain()).floorDiv(perUnit + 1) + 1;
    return {normalize(units), grain, scratchBytes};
  }

  ContractionNest nest;
  Value sums;
  Type element;
  int64_t width, tileRows;
  bool copiesA = false, copiesB = false;
  SmallVector<Access> epilogue;
  bool rowsAreOne = false;
  AffineExpr scratchBytes, tileOffset, aOffset, bOffset, rowStride;
  Value blockCount, blockRows, panelCount, numRows, numColumns, firstRow, endRow, firstColumn;
  llvm::DenseMap<Value, Value> known; ///< at the current position
};

} // namespace

bool isContractionKernel(KernelOp kernel) { return findContraction(kernel.getBody().front()); }

FailureOr<func::FuncOp> emitContraction(KernelOp kernel, OpBuilder &builder, KernelLaunchInfo &info) {
  return ContractionEmitter(kernel, builder).run(info);
}

} // namespace accel
