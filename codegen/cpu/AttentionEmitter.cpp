#include "codegen/cpu/AttentionEmitter.h"

#include "codegen/cpu/ValueEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/schedule/Registers.h"

using namespace mlir;

namespace accel {
namespace {

/// Query rows up to which lanes run along the head's elements: measured, where the number is known and panels are as
/// narrow as that allows, and where it is not and panels are wide.
constexpr int64_t kFewRows = 2, kFewRowsOfWidePanels = 8;
/// Registers of a row of values that are added up at a time in that form.
constexpr int64_t kRowRegisters = 4;

/// A matrix in memory: element (i, j) is base[i * row + j * column].
struct Matrix {
  Value base;
  Type element;
  Value row, column;
};

class AttentionEmitter : private ValueEmitter {
public:
  AttentionEmitter(KernelOp kernel, OpBuilder &builder)
      : ValueEmitter(kernel, builder), op(attentionOf(kernel)), compute(cast<FloatType>(computeType())),
        bytes(compute.getIntOrFloatBitWidth() / 8), width(config.getVector()), step(config.getBlock()),
        native(std::min<int64_t>(width, nativeVectorBits(kernel.getTarget()->getFeatures()) / (8 * bytes))) {
    depth = staticSize(op.getQuery(), 3), columns = staticSize(op.getValue(), 3);
    copiesKeys = mustCopy(op.getKey(), 2, true), copiesValues = mustCopy(op.getValue(), 3, false);
    mask = op.getMask();
    isMaskPerRow = mask && strideOf(mask, 2) != getAffineConstantExpr(0, b.getContext());
    placeScratch();
  }

  FailureOr<func::FuncOp> run(KernelLaunchInfo &info) {
    func::FuncOp function = beginFunction();
    numRows = expr(sizeOf(op.getQuery(), 2)), numKeys = expr(sizeOf(op.getKey(), 2));
    blockCount = expr(blocks());
    forRange(unitsBegin, unitsEnd, index.constant(1), {}, [&](Value unit, ValueRange) {
      emitUnit(unit);
      return SmallVector<Value>();
    });
    func::ReturnOp::create(b);
    info = launchInfo();
    return function;
  }

private:
  //===-- Tensors -------------------------------------------------------------------------------------------------===//

  Type computeType() {
    Type element = getElementTypeOrSelf(op.getQuery().getType());
    return element.isF64() ? element : Type(b.getF32Type());
  }

  LayoutAttr layoutOf(Value tensor) { return kernel.argLayout(cast<BlockArgument>(tensor).getArgNumber()); }
  AffineExpr sizeOf(Value tensor, unsigned d) { return layoutOf(tensor).getSizes().getValue().getResult(d); }
  AffineExpr strideOf(Value tensor, unsigned d) { return layoutOf(tensor).getStrides().getValue().getResult(d); }
  int64_t staticSize(Value tensor, unsigned d) { return cast<RankedTensorType>(tensor.getType()).getDimSize(d); }

  /// Elements have to be of the type that is computed in, and those that one tile reads at a time a constant distance
  /// apart; rows that are read side by side (`sideBySide`) must not fall on the same few lines of an 8-way cache with
  /// 64 sets.
  bool mustCopy(Value tensor, unsigned tileDim, bool sideBySide) {
    auto stride = dyn_cast<AffineConstantExpr>(strideOf(tensor, tileDim));
    if (getElementTypeOrSelf(tensor.getType()) != compute || !stride)
      return true;
    int64_t distance = std::abs(stride.getValue()) * bytes;
    if (!sideBySide || distance % 64)
      return false;
    int64_t sets = 64 / std::gcd<int64_t>(64, distance / 64);
    return llvm::divideCeil(config.getTile(), sets) > 4;
  }

  /// The rows of a head: those of dimension `rowDim` by those of the last.
  Matrix headOf(Value tensor, Value batch, Value head, unsigned headDim, unsigned rowDim) {
    Value base = elementAt(
        pointers.lookup(tensor), getElementTypeOrSelf(tensor.getType()),
        index.add(index.mul(batch, expr(strideOf(tensor, 0))), index.mul(head, expr(strideOf(tensor, headDim)))));
    return {base, getElementTypeOrSelf(tensor.getType()), expr(strideOf(tensor, rowDim)), expr(strideOf(tensor, 3))};
  }

  //===-- Memory --------------------------------------------------------------------------------------------------===//

  void placeScratch() {
    auto place = [&](int64_t elements) {
      int64_t offset = scratchBytes;
      scratchBytes += llvm::alignTo(elements * bytes, 64);
      return offset;
    };
    int64_t panels = config.getRows() / width;
    queriesAt = place(panels * depth * width);
    sumsAt = place(panels * columns * width);
    statesAt = place(panels * 2 * width);
    scoresAt = place(step * width);
    squareAt = place(native * native);
    keysAt = place(copiesKeys ? step * copiedStride(depth) : 0);
    valuesAt = place(copiesValues ? step * copiedStride(columns) : 0);
    maskAt = place(isMaskPerRow ? llvm::alignTo(step, native) * width : 0);
    rowAt = place(llvm::alignTo(depth, native) + llvm::alignTo(columns, native) + llvm::alignTo(step, native));
  }

  /// Rows a line longer than they need be, so that they fall on different lines of the cache.
  int64_t copiedStride(int64_t size) { return llvm::alignTo(size, 64 / bytes) + 64 / bytes; }

  Value scratchPointer(int64_t offset) {
    return LLVM::GEPOp::create(b, scratch.getType(), b.getI8Type(), scratch, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  }
  Value elementAt(Value base, Type element, Value position) {
    Type type = element.isInteger(1) ? b.getI8Type() : element;
    return LLVM::GEPOp::create(b, base.getType(), type, base, ArrayRef<LLVM::GEPArg>{position});
  }
  Value elementAt(Value base, Value position) { return elementAt(base, compute, position); }
  /// Row `row` and what is behind it.
  Matrix from(const Matrix &m, Value row) {
    return {elementAt(m.base, m.element, index.mul(row, m.row)), m.element, m.row, m.column};
  }

  Value toCompute(Value value) {
    Type element = getElementTypeOrSelf(value.getType());
    if (element == compute)
      return value;
    auto vector = dyn_cast<VectorType>(value.getType());
    Type type = vector ? Type(vector.clone(compute)) : Type(compute);
    if (element.getIntOrFloatBitWidth() > compute.getIntOrFloatBitWidth())
      return arith::TruncFOp::create(b, type, value);
    return arith::ExtFOp::create(b, type, value);
  }

  /// `count` elements of a row from `column` on.
  Value loadRow(const Matrix &m, Value row, Value column, int64_t count, Value lanesMask = {}) {
    Value position = index.add(index.mul(row, m.row), index.mul(column, m.column));
    Value value = memory.loadLanes(m.base, position, m.column, m.element, {count, index.constant(0), lanesMask});
    return m.element.isInteger(1) ? value : toCompute(value);
  }
  void storeRow(Value value, const Matrix &m, Value row, Value column, int64_t count, Value lanesMask = {}) {
    Value position = index.add(index.mul(row, m.row), index.mul(column, m.column));
    if (m.element != compute)
      value = arith::TruncFOp::create(b, cast<VectorType>(value.getType()).clone(m.element), value);
    memory.storeLanes(value, m.base, position, m.column, {count, index.constant(0), lanesMask});
  }

  /// Vectors of the scratch memory at an element, and by number where they lie one behind the other.
  Value loadAt(Value base, Value position, int64_t count) {
    Lanes all{count, index.constant(0), Value()};
    return memory.loadLanes(base, position, index.constant(1), compute, all);
  }
  void storeAt(Value value, Value base, Value position, int64_t count) {
    Lanes all{count, index.constant(0), Value()};
    memory.storeLanes(value, base, position, index.constant(1), all);
  }
  Value loadVector(Value base, Value number, int64_t count) {
    return loadAt(base, index.mul(number, index.constant(count)), count);
  }
  void storeVector(Value value, Value base, Value number, int64_t count) {
    storeAt(value, base, index.mul(number, index.constant(count)), count);
  }
  Value loadFactor(Value base, Type element, Value position, int64_t count) {
    return memory.splat(toCompute(memory.loadScalar(base, position, element)), count);
  }

  //===-- Arithmetic ----------------------------------------------------------------------------------------------===//

  Value constant(double value, int64_t count) {
    return memory.splat(arith::ConstantOp::create(b, b.getFloatAttr(compute, value)), count);
  }
  /// The larger one; `a` where they don't compare.
  Value larger(Value value, Value a) {
    return arith::SelectOp::create(b, arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, value, a), value, a);
  }
  Value multiply(Value a, Value c) { return arith::MulFOp::create(b, a, c); }
  Value isEqual(Value a, Value c) { return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, a, c); }

  /// e to the power of x, for x up to 0 or NaN. The f32 form is Cephes' expf: x = n ln 2 + r, a polynomial of degree 7
  /// in r, 2 to the power of n by its bits. In line, for a call would take every register. What has no normal number
  /// as its result gives 0.
  Value exponential(Value x, int64_t count) {
    if (!compute.isF32())
      return math::ExpOp::create(b, x);
    Value least = constant(-87.3, count);
    Value isLess = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, least);
    Value bounded = arith::SelectOp::create(b, isLess, least, x);
    // Adding 1.5 * 2^23 rounds to an integer, which then is the number's low bits.
    Value magic = constant(12582912.0, count);
    Value shifted = multiplyAdd(bounded, constant(1.44269504088896341, count), magic);
    Value n = arith::SubFOp::create(b, shifted, magic);
    Value r = multiplyAdd(n, constant(-0.693359375, count), bounded);
    r = multiplyAdd(n, constant(2.12194440e-4, count), r);
    Value sum = constant(1.9875691500e-4, count);
    for (double next : {1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0})
      sum = multiplyAdd(sum, r, constant(next, count));
    auto integers = VectorType::get({count}, b.getI32Type());
    auto integer = [&](int32_t value) {
      return arith::ConstantOp::create(b, DenseElementsAttr::get(integers, value)).getResult();
    };
    Value bits = arith::AddIOp::create(b, arith::BitcastOp::create(b, integers, shifted), integer(127));
    Value power = arith::BitcastOp::create(b, x.getType(), arith::ShLIOp::create(b, bits, integer(23)));
    return arith::SelectOp::create(b, isLess, constant(0, count), multiply(sum, power));
  }

  /// What is subtracted from scores whose maximum is `most`: nothing where all of them are -inf.
  Value shiftOf(Value most, int64_t count) {
    return arith::SelectOp::create(b, isEqual(most, constant(-INFINITY, count)), constant(0, count), most);
  }
  Value difference(Value a, Value c) { return arith::SubFOp::create(b, a, c); }
  Value minimum(Value a, Value c) { return arith::MinSIOp::create(b, a, c); }
  Value subtract(Value a, Value c) {
    std::optional<int64_t> x = IndexEmitter::constantOf(a), y = IndexEmitter::constantOf(c);
    return x && y ? index.constant(*x - *y) : arith::SubIOp::create(b, a, c).getResult();
  }

  /// Of square-many vectors: lane i of vector j becomes lane j of vector i. Blocks off the diagonal change places, of
  /// one element first, then of two, and so on.
  void transpose(MutableArrayRef<Value> rows) {
    int64_t n = rows.size();
    for (int64_t d = 1; d < n; d *= 2)
      for (int64_t i = 0; i < n; ++i) {
        if (i & d)
          continue;
        SmallVector<int64_t> low(n), high(n);
        for (int64_t l = 0; l < n; ++l) {
          low[l] = l & d ? n + l - d : l;
          high[l] = l & d ? n + l : l + d;
        }
        Value a = rows[i], c = rows[i + d];
        rows[i] = vector::ShuffleOp::create(b, a, c, low);
        rows[i + d] = vector::ShuffleOp::create(b, a, c, high);
      }
  }

  //===-- Loops ---------------------------------------------------------------------------------------------------===//

  void loop(Value begin, Value end, int64_t by, llvm::function_ref<void(Value)> emit) {
    forRange(begin, end, index.constant(by), {}, [&](Value i, ValueRange) {
      emit(i);
      return SmallVector<Value>();
    });
  }

  /// `emit(first, mask)` for whole registers of [0, size), then for what is left.
  void forRegisters(int64_t size, llvm::function_ref<void(Value, Value)> emit) {
    int64_t whole = size / native * native;
    if (whole)
      loop(index.constant(0), index.constant(whole), native, [&](Value first) { emit(first, Value()); });
    if (size % native)
      emit(index.constant(whole), memory.maskBelow(index.constant(size % native), native));
  }

  /// Runs over [0, size) by tiles of the given height, then by lower ones.
  SmallVector<Value> forTiles(Value size, ValueRange carried,
                              llvm::function_ref<SmallVector<Value>(int64_t, Value, ValueRange)> emit) {
    SmallVector<Value> values(carried);
    Value done = index.constant(0);
    std::optional<int64_t> known = IndexEmitter::constantOf(size);
    SmallVector<int64_t> heights = {config.getTile()};
    for (int64_t height : {16, 8, 4, 1})
      if (height < config.getTile())
        heights.push_back(height);
    for (int64_t height : heights) {
      Value end;
      if (known) {
        int64_t from = *IndexEmitter::constantOf(done);
        end = index.constant(from + (*known - from) / height * height);
        if (*IndexEmitter::constantOf(end) == from)
          continue;
      } else {
        Value rest = arith::RemUIOp::create(b, subtract(size, done), index.constant(height));
        end = subtract(size, rest);
      }
      values = forRange(done, end, index.constant(height), values,
                        [&](Value first, ValueRange current) { return emit(height, first, current); });
      done = end;
    }
    return values;
  }

  void when(Value condition, llvm::function_ref<void()> emit) {
    auto branch = scf::IfOp::create(b, condition, false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emit();
  }

  //===-- Units ---------------------------------------------------------------------------------------------------===//

  AffineExpr blocks() {
    return normalize((sizeOf(op.getQuery(), 2) + (config.getRows() - 1)).floorDiv(config.getRows()));
  }

  void emitUnit(Value unit) {
    Value block = arith::RemUIOp::create(b, unit, blockCount), rest = arith::DivUIOp::create(b, unit, blockCount);
    int64_t heads = staticSize(op.getQuery(), 1), groups = heads / staticSize(op.getKey(), 1);
    head = arith::RemUIOp::create(b, rest, index.constant(heads));
    batch = arith::DivUIOp::create(b, rest, index.constant(heads));
    Value keyHead = groups == 1 ? head : arith::DivUIOp::create(b, head, index.constant(groups)).getResult();
    if (op.getCausal()) {
      // Later blocks have more keys: first and last, second and last but one, ... so that threads get equal shares.
      Value half = arith::DivUIOp::create(b, block, index.constant(2));
      Value isOdd = arith::TruncIOp::create(b, b.getI1Type(), block);
      Value back = subtract(subtract(blockCount, index.constant(1)), half);
      block = arith::SelectOp::create(b, isOdd, back, half);
    }
    firstRow = index.mul(block, index.constant(config.getRows()));
    endRow = minimum(index.add(firstRow, index.constant(config.getRows())), numRows);
    query = headOf(op.getQuery(), batch, head, 1, 2);
    key = headOf(op.getKey(), batch, keyHead, 1, 2);
    value = headOf(op.getValue(), batch, keyHead, 1, 2);
    if (mask)
      maskRows = headOf(mask, batch, head, 1, 2);
    auto rows = dyn_cast<AffineConstantExpr>(sizeOf(op.getQuery(), 2));
    if (rows)
      return rows.getValue() <= kFewRows ? emitFewRows() : emitBlock();
    Value few = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, numRows, index.constant(kFewRowsOfWidePanels));
    auto branch = scf::IfOp::create(b, few, true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitFewRows();
    b.setInsertionPointToStart(branch.elseBlock());
    emitBlock();
  }

  /// Result `k` of the op as the rows of the current head; no base where the kernel doesn't yield it.
  Matrix resultRows(unsigned k) {
    for (unsigned i = 0; i < resultPointers.size(); ++i)
      if (yielded(i) == op->getResult(k)) {
        Type element = getElementTypeOrSelf(op->getResult(k).getType());
        auto strides = kernel.resultLayout(i).getStrides().getValue().getResults();
        Value start = index.add(index.mul(batch, expr(strides[0])), index.mul(head, expr(strides[2])));
        Value base = elementAt(resultPointers[i], element, start), row = expr(strides[1]);
        // Logarithms are a row of their own: one for each row of the head.
        return k == 0 ? Matrix{base, element, row, expr(strides[3])} : Matrix{base, element, index.constant(0), row};
      }
    return {};
  }

  //===-- A block of rows -----------------------------------------------------------------------------------------===//

  void emitBlock() {
    Value one = index.constant(1);
    Value panels = arith::DivUIOp::create(b, index.add(subtract(endRow, firstRow), index.constant(width - 1)),
                                          index.constant(width));
    loop(index.constant(0), panels, 1, [&](Value panel) {
      enterPanel(panel);
      copyQueries();
      Value zero = constant(0, width);
      loop(index.constant(0), index.constant(columns), 1, [&](Value i) { storeVector(zero, sums, i, width); });
      storeVector(constant(-INFINITY, width), states, index.constant(0), width);
      storeVector(zero, states, one, width);
    });
    Value end = op.getCausal() ? minimum(numKeys, endRow) : numKeys;
    loop(index.constant(0), end, step, [&](Value first) {
      firstKey = first;
      std::optional<int64_t> known = IndexEmitter::constantOf(end);
      Value count =
          known && *known % step == 0 ? index.constant(step) : minimum(index.constant(step), subtract(end, first));
      keys = copiesKeys ? copied(key, keysAt, depth, count) : from(key, first);
      values = copiesValues ? copied(value, valuesAt, columns, count) : from(value, first);
      loop(index.constant(0), panels, 1, [&](Value panel) {
        enterPanel(panel);
        if (!op.getCausal())
          return addKeys(count);
        Value visible = minimum(count, subtract(index.add(panelRow, index.constant(width)), first));
        Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, visible, index.constant(0));
        when(any, [&] { addKeys(visible); });
      });
    });
    loop(index.constant(0), panels, 1, [&](Value panel) {
      enterPanel(panel);
      storeResults();
    });
  }

  void enterPanel(Value panel) {
    panelRow = index.add(firstRow, index.mul(panel, index.constant(width)));
    queries = elementAt(scratchPointer(queriesAt), index.mul(panel, index.constant(depth * width)));
    sums = elementAt(scratchPointer(sumsAt), index.mul(panel, index.constant(columns * width)));
    states = elementAt(scratchPointer(statesAt), index.mul(panel, index.constant(2 * width)));
    scores = scratchPointer(scoresAt);
  }

  /// The panel's queries times the scale, transposed; rows that don't exist repeat the last one.
  void copyQueries() {
    Value last = subtract(numRows, index.constant(1));
    loop(index.constant(0), index.constant(width), native, [&](Value group) {
      forRegisters(depth, [&](Value first, Value lanesMask) {
        SmallVector<Value> square;
        for (int64_t i = 0; i < native; ++i) {
          Value row = minimum(index.add(index.add(panelRow, group), index.constant(i)), last);
          Value loaded = loadRow(query, row, first, native, lanesMask);
          square.push_back(multiply(loaded, constant(op.getScale().convertToDouble(), native)));
        }
        transpose(square);
        int64_t count = lanesMask ? depth % native : native;
        for (int64_t i = 0; i < count; ++i) {
          Value position = index.mul(index.add(first, index.constant(i)), index.constant(width));
          storeAt(square[i], queries, index.add(position, group), native);
        }
      });
    });
  }

  /// The step's `count` rows as numbers of the type that is computed in.
  Matrix copied(const Matrix &source, int64_t offset, int64_t size, Value count) {
    Matrix target{scratchPointer(offset), compute, index.constant(copiedStride(size)), index.constant(1)};
    Matrix rows = from(source, firstKey);
    loop(index.constant(0), count, 1, [&](Value row) {
      forRegisters(size, [&](Value first, Value lanesMask) {
        storeRow(loadRow(rows, row, first, native, lanesMask), target, row, first, native, lanesMask);
      });
    });
    return target;
  }

  /// Takes the step's first `count` keys into the panel's state.
  void addKeys(Value count) {
    if (isMaskPerRow)
      copyMask(count);
    Value before = loadVector(states, index.constant(0), width);
    Value most = forTiles(count, before, [&](int64_t height, Value first, ValueRange current) {
      return SmallVector<Value>{emitScores(height, first, current[0])};
    })[0];
    Value shift = shiftOf(most, width), factor = exponential(difference(before, shift), width);
    Value sum =
        forRange(index.constant(0), count, index.constant(1), constant(0, width), [&](Value i, ValueRange current) {
          Value weight = exponential(difference(loadVector(scores, i, width), shift), width);
          storeVector(weight, scores, i, width);
          return SmallVector<Value>{arith::AddFOp::create(b, current[0], weight)};
        })[0];
    storeVector(most, states, index.constant(0), width);
    Value total = loadVector(states, index.constant(1), width);
    storeVector(multiplyAdd(total, factor, sum), states, index.constant(1), width);
    forTiles(index.constant(columns), {}, [&](int64_t height, Value first, ValueRange) {
      SmallVector<Value> tile;
      for (int64_t i = 0; i < height; ++i)
        tile.push_back(multiply(loadVector(sums, index.add(first, index.constant(i)), width), factor));
      Value base = elementAt(values.base, index.mul(first, values.column));
      tile = addProducts(tile, count, scores, base, values.row, values.column);
      for (int64_t i = 0; i < height; ++i)
        storeVector(tile[i], sums, index.add(first, index.constant(i)), width);
      return SmallVector<Value>();
    });
  }

  /// tile[i] += sum over k below `count` of vectors[k] * factors[k * along + i * apart].
  SmallVector<Value> addProducts(ValueRange tile, Value count, Value vectors, Value factors, Value along, Value apart) {
    return forRange(index.constant(0), count, index.constant(1), tile, [&](Value k, ValueRange current) {
      Value lanesOfK = loadVector(vectors, k, width), base = elementAt(factors, index.mul(k, along));
      SmallVector<Value> next;
      for (auto [i, sum] : llvm::enumerate(current))
        next.push_back(
            multiplyAdd(loadFactor(base, compute, index.mul(index.constant(i), apart), width), lanesOfK, sum));
      return next;
    });
  }

  /// Scores of `height` keys from `first` on; returns the maximum of them and `most`.
  Value emitScores(int64_t height, Value first, Value most) {
    SmallVector<Value> tile(height, constant(0, width));
    Value base = elementAt(keys.base, index.mul(first, keys.row));
    tile = addProducts(tile, index.constant(depth), queries, base, keys.column, keys.row);
    for (auto [i, product] : llvm::enumerate(tile)) {
      Value number = index.add(first, index.constant(i));
      Value score = masked(product, number);
      storeVector(score, scores, number, width);
      most = larger(score, most);
    }
    return most;
  }

  /// Rows along the lanes: the score of the step's key `number`, or -inf where it doesn't count.
  Value masked(Value score, Value number) {
    Value hidden = hiddenScore(width);
    if (isMaskPerRow) {
      Value entry = loadVector(scratchPointer(maskAt), number, width);
      score = maskRows.element.isInteger(1)
                  ? arith::SelectOp::create(b, isEqual(entry, constant(0, width)), score, hidden).getResult()
                  : arith::AddFOp::create(b, score, entry);
    } else if (mask) {
      Value position = index.mul(index.add(firstKey, number), maskRows.column);
      Value entry = memory.loadScalar(maskRows.base, position, maskRows.element);
      score = maskRows.element.isInteger(1)
                  ? arith::SelectOp::create(b, memory.splat(entry, width), score, hidden).getResult()
                  : arith::AddFOp::create(b, score, memory.splat(toCompute(entry), width));
    }
    if (!op.getCausal())
      return score;
    // Row panelRow + lane sees keys up to its own number.
    Value least = arith::TruncIOp::create(b, b.getI32Type(), subtract(index.add(firstKey, number), panelRow));
    auto laneNumbers = llvm::to_vector(llvm::seq<int32_t>(0, width));
    Value visible = arith::CmpIOp::create(b, arith::CmpIPredicate::sge,
                                          arith::ConstantOp::create(b, b.getI32VectorAttr(laneNumbers)),
                                          memory.splat(least, width));
    return arith::SelectOp::create(b, visible, score, constant(-INFINITY, width));
  }

  /// What a Boolean mask puts in place of a score.
  Value hiddenScore(int64_t count) {
    std::optional<APFloat> hidden = op.getHidden();
    return constant(hidden ? hidden->convertToDouble() : -INFINITY, count);
  }

  /// The mask's part for the panel and the step, keys as rows; a Boolean one as 0 and -inf.
  void copyMask(Value count) {
    Value target = scratchPointer(maskAt), last = subtract(numRows, index.constant(1));
    loop(index.constant(0), count, native, [&](Value first) {
      Value lanesMask = memory.maskBelow(minimum(subtract(count, first), index.constant(native)), native);
      loop(index.constant(0), index.constant(width), native, [&](Value group) {
        SmallVector<Value> square;
        for (int64_t i = 0; i < native; ++i) {
          Value row = minimum(index.add(index.add(panelRow, group), index.constant(i)), last);
          Value entry = loadRow(maskRows, row, index.add(firstKey, first), native, lanesMask);
          if (maskRows.element.isInteger(1))
            entry = arith::SelectOp::create(b, entry, constant(0, native), constant(-INFINITY, native));
          square.push_back(entry);
        }
        transpose(square);
        for (int64_t i = 0; i < native; ++i) {
          Value position = index.mul(index.add(first, index.constant(i)), index.constant(width));
          storeAt(square[i], target, index.add(position, group), native);
        }
      });
    });
  }

  /// The panel's sums over their weights, and the logarithms.
  void storeResults() {
    Matrix out = resultRows(0), logarithms = resultRows(1);
    loop(index.constant(0), index.constant(width), native, [&](Value group) {
      Value row = index.add(panelRow, group), count = minimum(subtract(endRow, row), index.constant(native));
      auto state = [&](int64_t number) {
        return loadAt(states, index.add(index.constant(number * width), group), native);
      };
      Value total = state(1);
      if (logarithms.base)
        storeRow(logarithmOf(state(0), total), logarithms, index.constant(0), row, native,
                 memory.maskBelow(count, native));
      if (!out.base)
        return;
      Value factor = quotientOf(total, native), squareBase = scratchPointer(squareAt);
      forRegisters(columns, [&](Value first, Value lanesMask) {
        SmallVector<Value> square;
        for (int64_t i = 0; i < native; ++i) {
          // Columns that don't exist repeat the last one.
          int64_t column = lanesMask ? std::min(i, columns % native - 1) : i;
          Value position = index.mul(index.add(first, index.constant(column)), index.constant(width));
          Value sum = loadAt(sums, index.add(position, group), native);
          square.push_back(multiply(sum, factor));
        }
        transpose(square);
        for (int64_t i = 0; i < native; ++i)
          storeVector(square[i], squareBase, index.constant(i), native);
        loop(index.constant(0), count, 1, [&](Value i) {
          storeRow(loadVector(squareBase, i, native), out, index.add(row, i), first, native, lanesMask);
        });
      });
    });
  }

  /// 1 / total, and 1 where no key counts; a plain softmax of no key at all has no sum that could be zero.
  Value quotientOf(Value total, int64_t count) {
    Value one = constant(1, count), isEmpty = isEqual(total, constant(0, count));
    if (op.getPlain())
      isEmpty = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, numKeys, index.constant(0));
    return arith::DivFOp::create(b, one, arith::SelectOp::create(b, isEmpty, one, total));
  }
  Value logarithmOf(Value most, Value total) { return arith::AddFOp::create(b, most, math::LogOp::create(b, total)); }

  //===-- A few rows ----------------------------------------------------------------------------------------------===//

  void emitFewRows() {
    loop(firstRow, endRow, 1, [&](Value row) { emitRow(row); });
  }

  void emitRow(Value row) {
    Value queryRow = scratchPointer(rowAt);
    Value sumRow = elementAt(queryRow, index.constant(llvm::alignTo(depth, native)));
    Value weights = elementAt(sumRow, index.constant(llvm::alignTo(columns, native)));
    forRegisters(depth, [&](Value first, Value lanesMask) {
      Value loaded = loadRow(query, row, first, native, lanesMask);
      Value scaled = multiply(loaded, constant(op.getScale().convertToDouble(), native));
      storeAt(scaled, queryRow, first, native);
    });
    Value zero = constant(0, native);
    loop(index.constant(0), index.constant(llvm::alignTo(columns, native)), native,
         [&](Value first) { storeAt(zero, sumRow, first, native); });
    Value end = op.getCausal() ? minimum(numKeys, index.add(row, index.constant(1))) : numKeys;
    // The maximum in all lanes, and the lanes' sums.
    SmallVector<Value> state =
        forRange(index.constant(0), end, index.constant(step), {constant(-INFINITY, native), zero},
                 [&](Value first, ValueRange current) {
                   Value count = minimum(index.constant(step), subtract(end, first));
                   Value most = rowScores(row, first, count, queryRow, weights, current[0]);
                   Value shift = shiftOf(most, native), factor = exponential(difference(current[0], shift), native);
                   Value total = forRange(index.constant(0), count, index.constant(native),
                                          multiply(current[1], factor), [&](Value i, ValueRange sum) {
                                            Value score = loadAt(weights, i, native);
                                            Value weight = exponential(difference(score, shift), native);
                                            storeAt(weight, weights, i, native);
                                            return SmallVector<Value>{arith::AddFOp::create(b, sum[0], weight)};
                                          })[0];
                   addValues(first, count, weights, sumRow, factor);
                   return SmallVector<Value>{most, total};
                 });
    Value total = memory.splat(reduced(vector::CombiningKind::ADD, state[1]), native);
    Matrix out = resultRows(0), logarithms = resultRows(1);
    if (logarithms.base)
      storeRow(logarithmOf(state[0], total), logarithms, index.constant(0), row, native,
               memory.maskBelow(index.constant(1), native));
    if (!out.base)
      return;
    Value factor = quotientOf(total, native);
    forRegisters(columns, [&](Value first, Value lanesMask) {
      Value sum = loadAt(sumRow, first, native);
      storeRow(multiply(sum, factor), out, row, first, native, lanesMask);
    });
  }

  Value reduced(vector::CombiningKind kind, Value vectorValue) {
    return vector::ReductionOp::create(b, kind, vectorValue, arith::FastMathFlags::reassoc);
  }

  /// Scores of one row with the keys [first, first + count), a register of keys at a time; lanes behind become -inf.
  Value rowScores(Value row, Value first, Value count, Value queryRow, Value weights, Value most) {
    Value last = subtract(numKeys, index.constant(1)), zero = constant(0, native);
    Value lanesMost =
        forRange(index.constant(0), count, index.constant(native), most, [&](Value i, ValueRange current) {
          SmallVector<Value> keyRows;
          for (int64_t k = 0; k < native; ++k)
            keyRows.push_back(minimum(index.add(index.add(first, i), index.constant(k)), last));
          auto add = [&](Value column, ValueRange sums, Value lanesMask) {
            Value factor = loadAt(queryRow, column, native);
            SmallVector<Value> next;
            for (auto [keyRow, sum] : llvm::zip(keyRows, sums))
              next.push_back(multiplyAdd(loadRow(key, keyRow, column, native, lanesMask), factor, sum));
            return next;
          };
          SmallVector<Value> products(native, zero);
          int64_t whole = depth / native * native;
          if (whole)
            products = forRange(index.constant(0), index.constant(whole), index.constant(native), products,
                                [&](Value column, ValueRange sums) { return add(column, sums, Value()); });
          if (depth % native)
            products = add(index.constant(whole), products, memory.maskBelow(index.constant(depth % native), native));
          transpose(products);
          for (int64_t d = native / 2; d > 0; d /= 2)
            for (int64_t k = 0; k < d; ++k)
              products[k] = arith::AddFOp::create(b, products[k], products[k + d]);
          Value exists = memory.maskBelow(minimum(subtract(count, i), index.constant(native)), native);
          Value score = products[0], hidden = constant(-INFINITY, native);
          if (mask) {
            Value entry = loadRow(maskRows, row, index.add(first, i), native, exists);
            score = maskRows.element.isInteger(1)
                        ? arith::SelectOp::create(b, entry, score, hiddenScore(native)).getResult()
                        : arith::AddFOp::create(b, score, entry);
          }
          score = arith::SelectOp::create(b, exists, score, hidden);
          storeAt(score, weights, i, native);
          return SmallVector<Value>{larger(score, current[0])};
        })[0];
    return memory.splat(reduced(vector::CombiningKind::MAXNUMF, lanesMost), native);
  }

  /// sumRow = sumRow * factor + weights * values, a few registers of columns at a time.
  void addValues(Value first, Value count, Value weights, Value sumRow, Value factor) {
    Matrix rows = from(value, first);
    for (int64_t begin = 0; begin < columns; begin += kRowRegisters * native) {
      int64_t end = std::min(columns, begin + kRowRegisters * native);
      SmallVector<Value> starts, masks, tile;
      for (int64_t column = begin; column < end; column += native) {
        starts.push_back(index.constant(column));
        int64_t left = columns - column;
        masks.push_back(left < native ? memory.maskBelow(index.constant(left), native) : Value());
        tile.push_back(multiply(loadAt(sumRow, starts.back(), native), factor));
      }
      tile = forRange(index.constant(0), count, index.constant(1), tile, [&](Value k, ValueRange current) {
        Value weight = loadFactor(weights, compute, k, native);
        SmallVector<Value> next;
        for (auto [start, lanesMask, sum] : llvm::zip(starts, masks, current))
          next.push_back(multiplyAdd(weight, loadRow(rows, k, start, native, lanesMask), sum));
        return next;
      });
      for (auto [start, sum] : llvm::zip(starts, tile))
        storeAt(sum, sumRow, start, native);
    }
  }

  //===-- What the runtime has to know ----------------------------------------------------------------------------===//

  KernelLaunchInfo launchInfo() {
    AffineExpr units = normalize(sizeOf(op.getQuery(), 0) * sizeOf(op.getQuery(), 1) * blocks());
    // A unit's products, as elements of memory traffic: a core does about that many while it moves one element.
    AffineExpr perUnit = normalize((sizeOf(op.getKey(), 2) * (config.getRows() * (depth + columns))).floorDiv(16));
    AffineExpr grain = getAffineConstantExpr(config.getGrain(), b.getContext()).floorDiv(perUnit + 1) + 1;
    return {units, grain, getAffineConstantExpr(scratchBytes, b.getContext())};
  }

  Value valueOf(Value) override { return {}; } // there are no ops to evaluate

  AttentionOp op;
  FloatType compute;
  int64_t bytes, width, step, native; ///< of an element; rows of a panel; keys of a step; lanes of a register
  int64_t depth = 0, columns = 0;     ///< E and V
  bool copiesKeys = false, copiesValues = false, isMaskPerRow = false;
  Value mask;
  int64_t scratchBytes = 0, queriesAt = 0, sumsAt = 0, statesAt = 0, scoresAt = 0, squareAt = 0, keysAt = 0,
          valuesAt = 0, maskAt = 0, rowAt = 0;
  Value numRows, numKeys, blockCount;
  // Of the current unit, step and panel:
  Value batch, head, firstRow, endRow, firstKey, panelRow;
  Matrix query, key, value, maskRows, keys, values;
  Value queries, sums, states, scores; ///< [E][panel], [V][panel], maximum and sum, [step][panel]
};

} // namespace

FailureOr<func::FuncOp> emitAttention(KernelOp kernel, OpBuilder &builder, KernelLaunchInfo &info) {
  return AttentionEmitter(kernel, builder).run(info);
}

} // namespace accel
