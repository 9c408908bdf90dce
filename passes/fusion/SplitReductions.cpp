#include "passes/fusion/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "dialects/accel/SymbolicSizes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "passes/fusion/FusionGroups.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "passes/fusion/Passes.h.inc"

namespace {

/// Elements that a part should have: some 10 µs of work, against about 5 µs to wake the other threads.
constexpr int64_t kPart = 32768;
/// Fewest elements worth a second reduction.
constexpr int64_t kLeastElements = 4 * kPart;
/// As many units of parallel work are enough for the threads of a large machine to share, and as many are the most that
/// a split makes. Neither depends on the machine, so that results do not either.
constexpr int64_t kEnoughUnits = 16, kMostUnits = 256;
/// Outputs side by side in memory that one unit takes together, in vector lanes.
constexpr int64_t kLanes = 64;
/// What a symbolic size counts as beside the one that is cut.
constexpr int64_t kAssumedSize = 64;

std::optional<int64_t> constantOf(AffineExpr size) {
  auto constant = dyn_cast_or_null<AffineConstantExpr>(size);
  return constant ? std::optional<int64_t>(constant.getValue()) : std::nullopt;
}

/// How a reduction is split: dimensions that the first one keeps whole, and one that it takes in pieces of `chunk`.
struct Split {
  SmallVector<int64_t> whole;
  int64_t cut = -1, chunk = 0;
};

/// Iterations of the kept dimensions that can run in parallel; nothing where their number is not known.
std::optional<int64_t> unitsOf(ArrayRef<AffineExpr> sizes, ArrayRef<int64_t> reduced) {
  int64_t units = 1;
  bool isLast = true; // no larger dimension lies further in
  for (int64_t d = int64_t(sizes.size()) - 1; d >= 0; --d) {
    std::optional<int64_t> size = constantOf(sizes[d]);
    bool isKept = !llvm::is_contained(reduced, d);
    if (isKept && !size)
      return std::nullopt;
    if (size == 1)
      continue;
    if (isKept)
      units *= isLast ? llvm::divideCeil(*size, kLanes) : *size;
    isLast = false;
  }
  return units;
}

/// The length of the pieces of a dimension of which `count` are wanted: of whole vectors if they are long, and up to
/// twice the least length where that leaves a smaller rest.
int64_t chooseChunk(int64_t size, int64_t count) {
  int64_t least = llvm::divideCeil(size, count), step = least < 4 * kLanes ? 1 : kLanes;
  int64_t best = llvm::alignTo(least, step);
  for (int64_t chunk = best; chunk < 2 * least && size % best != 0; chunk += step)
    if (size % chunk < size % best)
      best = chunk;
  return best;
}

std::optional<Split> chooseSplit(ArrayRef<AffineExpr> sizes, ArrayRef<int64_t> reduced) {
  std::optional<int64_t> units = unitsOf(sizes, reduced);
  if (!units || *units == 0 || *units >= kEnoughUnits)
    return std::nullopt;
  int64_t elements = 1, cut = -1;
  for (auto [d, size] : llvm::enumerate(sizes)) {
    std::optional<int64_t> known = constantOf(size);
    if (!known && cut < 0)
      cut = d;
    else
      elements *= known.value_or(kAssumedSize);
  }
  int64_t perUnit = std::max<int64_t>(elements / *units, 1);
  if (cut >= 0)
    return Split{{}, cut, std::max<int64_t>(1, llvm::bit_floor(uint64_t(kPart / std::min(perUnit, kPart))))};
  if (elements < kLeastElements)
    return std::nullopt;
  int64_t wanted = std::min(perUnit / kPart, kMostUnits / *units);
  Split split;
  for (int64_t d : reduced) {
    if (wanted <= 1)
      break;
    int64_t size = *constantOf(sizes[d]);
    if (size > 2 * wanted) {
      split.cut = d, split.chunk = chooseChunk(size, wanted);
      break;
    }
    if (size > 1)
      split.whole.push_back(d);
    wanted = llvm::divideCeil(wanted, size);
  }
  return split.cut >= 0 || !split.whole.empty() ? std::optional<Split>(split) : std::nullopt;
}

/// One dimension taken as two: position `outer * step + inner + offset`.
struct Cut {
  AffineExpr outer, inner; // sizes
  int64_t step;
  AffineExpr offset;
};

struct SplitReductions : impl::SplitReductionsPassBase<SplitReductions> {
  void runOnOperation() override {
    Block &block = getOperation().getBody().front();
    SymbolicSizes symbolic(getOperation());
    sizes = &symbolic;
    clones.clear();
    for (Operation &op : llvm::make_early_inc_range(block))
      if (auto reduce = dyn_cast<linalg::ReduceOp>(op))
        if (isFusable(reduce))
          splitReduction(reduce);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  void splitReduction(linalg::ReduceOp op) {
    for (Value init : op.getInits()) {
      auto fill = init.getDefiningOp<linalg::FillOp>();
      if (!fill || !matchPattern(fill.getInputs()[0], m_Constant()))
        return;
    }
    SmallVector<AffineExpr> of = sizes->sizesOf(op.getInputs()[0]);
    SmallVector<int64_t> reduced(op.getDimensions());
    if (llvm::is_contained(of, AffineExpr()))
      return;
    std::optional<Split> split = chooseSplit(of, reduced);
    if (!split)
      return;
    OpBuilder b(op);
    // The dimensions of the first reduction's input and result, where the cut dimension is two.
    SmallVector<int64_t> first, second;
    int64_t next = 0, place = 0;
    for (int64_t d = 0, n = 0; d < int64_t(of.size()); ++d, ++n) {
      bool isCut = d == split->cut;
      if (isCut)
        place = next;
      if (isCut || llvm::is_contained(split->whole, d))
        second.push_back(next);
      if (isCut)
        first.push_back(++n);
      if (!isCut && llvm::is_contained(reduced, d) && !llvm::is_contained(split->whole, d))
        first.push_back(n);
      else
        ++next;
    }
    SmallVector<Value> partial;
    if (split->cut < 0) {
      partial = reduce(b, op, SmallVector<Value>(op.getInputs()), first);
    } else {
      AffineExpr size = of[split->cut], zero = b.getAffineConstantExpr(0), one = b.getAffineConstantExpr(1);
      AffineExpr count = normalize(size.floorDiv(split->chunk)), rest = normalize(size % split->chunk);
      partial = reduceCut(b, op, *split, {count, b.getAffineConstantExpr(split->chunk), split->chunk, zero}, first);
      if (rest != zero) {
        Cut tail{one, rest, 0, normalize(count * split->chunk)};
        SmallVector<Value> last = reduceCut(b, op, *split, tail, first);
        for (auto [whole, part] : llvm::zip(partial, last))
          whole = concat(b, op.getLoc(), {whole, part}, place);
      }
    }
    op.replaceAllUsesWith(reduce(b, op, partial, second));
  }

  SmallVector<Value> reduceCut(OpBuilder &b, linalg::ReduceOp op, const Split &split, const Cut &cut,
                               ArrayRef<int64_t> dims) {
    SmallVector<Value> inputs;
    for (Value input : op.getInputs())
      inputs.push_back(cutDimension(b, input, split.cut, cut, true));
    return reduce(b, op, inputs, dims);
  }

  /// The reduction `op` of other inputs.
  SmallVector<Value> reduce(OpBuilder &b, linalg::ReduceOp op, ArrayRef<Value> inputs, ArrayRef<int64_t> dims) {
    SmallVector<AffineExpr> kept;
    for (auto [d, size] : llvm::enumerate(sizes->sizesOf(inputs[0])))
      if (!llvm::is_contained(dims, int64_t(d)))
        kept.push_back(size);
    SmallVector<Value> inits;
    for (Value init : op.getInits()) {
      Value value = init.getDefiningOp<linalg::FillOp>().getInputs()[0];
      inits.push_back(
          linalg::FillOp::create(b, op.getLoc(), value, empty(b, op.getLoc(), kept, value.getType())).getResult(0));
    }
    auto body = [&](OpBuilder &nested, Location, ValueRange args) {
      IRMapping map;
      map.map(op.getCombiner().getArguments(), args);
      for (Operation &inner : op.getCombiner().front())
        nested.clone(inner, map);
    };
    return llvm::to_vector(
        ValueRange(linalg::ReduceOp::create(b, op.getLoc(), inputs, inits, dims, body)->getResults()));
  }

  Value concat(OpBuilder &b, Location loc, ArrayRef<Value> parts, int64_t dim) {
    SmallVector<AffineExpr> of = sizes->sizesOf(parts[0]);
    of[dim] = normalize(of[dim] + sizes->sizeOf(parts[1], dim));
    auto type = typeOf(of, getElementTypeOrSelf(parts[0].getType()));
    return ConcatOp::create(b, loc, type, parts, dynamicSizes(b, loc, of), dim);
  }

  //===-- Cutting a dimension of a value
  //------------------------------------------------------------------------------===//

  /// The value with dimension `dim` taken as two. What computes it is computed in the new form, so that it can share
  /// the reduction's kernel, if nothing else needs it (`exclusive` says so of the reader) or if it is cheap.
  Value cutDimension(OpBuilder &b, Value value, unsigned dim, const Cut &cut, bool exclusive) {
    auto [it, isNew] = clones.try_emplace(std::make_tuple(value, dim, cut.outer, cut.inner, cut.offset), Value());
    if (!isNew && it->second)
      return it->second;
    Value result;
    exclusive &= value.hasOneUse();
    Operation *def = value.getDefiningOp();
    if (auto view = dyn_cast_or_null<ViewOp>(def))
      result = cutView(b, view, dim, cut, exclusive);
    if (auto generic = dyn_cast_or_null<linalg::GenericOp>(def))
      if (isFusable(def) && (exclusive || isCheap(def)))
        result = cutGeneric(b, generic, dim, cut, exclusive);
    if (!result)
      result = viewOf(b, value, dim, cut);
    clones[std::make_tuple(value, dim, cut.outer, cut.inner, cut.offset)] = result;
    return result;
  }

  /// Dimension i of the old value in terms of the new one's; the cut one as its outer half.
  static AffineExpr renumber(AffineExpr expr, unsigned rank, unsigned dim) {
    SmallVector<AffineExpr> dims;
    for (unsigned d = 0; d < rank; ++d)
      dims.push_back(getAffineDimExpr(d <= dim ? d : d + 1, expr.getContext()));
    return expr.replaceDims(dims);
  }

  /// The one result that is dimension `dim` where no other depends on it; -1 where none does, nothing otherwise.
  static std::optional<int64_t> resultOf(AffineMap map, unsigned dim) {
    int64_t found = -1;
    for (auto [r, expr] : llvm::enumerate(map.getResults())) {
      if (!expr.isFunctionOfDim(dim))
        continue;
      if (found >= 0 || !isa<AffineDimExpr>(expr))
        return std::nullopt;
      found = r;
    }
    return found;
  }

  /// The map with dimension `dim` as two, the result that it is too.
  static AffineMap cutMap(AffineMap map, unsigned dim, int64_t result) {
    SmallVector<AffineExpr> results;
    for (auto [r, expr] : llvm::enumerate(map.getResults())) {
      results.push_back(renumber(expr, map.getNumDims(), dim));
      if (int64_t(r) == result)
        results.push_back(getAffineDimExpr(dim + 1, map.getContext()));
    }
    return AffineMap::get(map.getNumDims() + 1, map.getNumSymbols(), results, map.getContext());
  }

  Value viewOf(OpBuilder &b, Value value, unsigned dim, const Cut &cut) {
    SmallVector<AffineExpr> of = sizes->sizesOf(value), indices;
    for (unsigned d = 0; d < of.size(); ++d)
      indices.push_back(b.getAffineDimExpr(d <= dim ? d : d + 1));
    AffineExpr offset = cut.offset;
    SmallVector<Value> symbols;
    if (!constantOf(offset)) {
      symbols.push_back(indexValue(b, value.getLoc(), offset));
      offset = b.getAffineSymbolExpr(0);
    }
    indices[dim] = b.getAffineDimExpr(dim) * cut.step + b.getAffineDimExpr(dim + 1) + offset;
    AffineMap map = AffineMap::get(of.size() + 1, symbols.size(), indices, b.getContext());
    cutSizes(of, dim, cut);
    return ViewOp::create(b, value.getLoc(), typeOf(of, getElementTypeOrSelf(value.getType())), value, symbols,
                          dynamicSizes(b, value.getLoc(), of), AffineMapAttr::get(map));
  }

  /// A view that passes the whole dimension on, of something that is computed.
  Value cutView(OpBuilder &b, ViewOp view, unsigned dim, const Cut &cut, bool exclusive) {
    std::optional<int64_t> result = resultOf(view.getMap(), dim);
    if (!result || *result < 0 || !isa_and_nonnull<linalg::GenericOp, ViewOp>(view.getSource().getDefiningOp()) ||
        sizes->sizeOf(view.getSource(), *result) != sizes->sizeOf(view.getResult(), dim))
      return {};
    Value source = cutDimension(b, view.getSource(), *result, cut, exclusive);
    SmallVector<AffineExpr> of = sizes->sizesOf(view.getResult());
    cutSizes(of, dim, cut);
    return ViewOp::create(b, view.getLoc(), typeOf(of, getElementTypeOrSelf(view.getType())), source, view.getSymbols(),
                          dynamicSizes(b, view.getLoc(), of), AffineMapAttr::get(cutMap(view.getMap(), dim, *result)));
  }

  Value cutGeneric(OpBuilder &b, linalg::GenericOp op, unsigned dim, const Cut &cut, bool exclusive) {
    if (op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)))
      return {};
    SmallVector<int64_t> cutResults;
    for (OpOperand *input : op.getDpsInputOperands()) {
      std::optional<int64_t> result = resultOf(op.getMatchingIndexingMap(input), dim);
      if (!result)
        return {};
      cutResults.push_back(*result);
    }
    Location loc = op.getLoc();
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (auto [input, result] : llvm::zip(op.getDpsInputOperands(), cutResults)) {
      inputs.push_back(result < 0 ? input->get() : cutDimension(b, input->get(), result, cut, exclusive));
      maps.push_back(cutMap(op.getMatchingIndexingMap(input), dim, result));
    }
    SmallVector<AffineExpr> of = sizes->sizesOf(op.getResult(0));
    cutSizes(of, dim, cut);
    maps.push_back(b.getMultiDimIdentityMap(of.size()));
    Value offset;
    if (!constantOf(cut.offset))
      offset = indexValue(b, loc, cut.offset);
    Value init = empty(b, loc, of, getElementTypeOrSelf(op.getResult(0).getType()));
    SmallVector<utils::IteratorType> iterators(of.size(), utils::IteratorType::parallel);
    auto body = [&](OpBuilder &nested, Location, ValueRange args) {
      IRMapping map;
      map.map(op.getRegion().getArguments(), args);
      for (Operation &inner : op.getRegion().front()) {
        auto index = dyn_cast<linalg::IndexOp>(inner);
        if (index)
          map.map(index.getResult(), position(nested, index.getLoc(), index.getDim(), dim, cut, offset));
        else
          nested.clone(inner, map);
      }
    };
    return linalg::GenericOp::create(b, loc, TypeRange(init.getType()), inputs, ValueRange(init), maps, iterators, body)
        .getResult(0);
  }

  static Value position(OpBuilder &b, Location loc, unsigned old, unsigned dim, const Cut &cut, Value offset) {
    if (old != dim)
      return linalg::IndexOp::create(b, loc, old < dim ? old : old + 1);
    Value inner = linalg::IndexOp::create(b, loc, dim + 1);
    if (!offset && constantOf(cut.offset) != 0)
      offset = arith::ConstantIndexOp::create(b, loc, *constantOf(cut.offset));
    if (offset)
      inner = arith::AddIOp::create(b, loc, inner, offset);
    if (cut.step == 0)
      return inner;
    Value step = arith::ConstantIndexOp::create(b, loc, cut.step);
    Value first = arith::MulIOp::create(b, loc, linalg::IndexOp::create(b, loc, dim), step);
    return arith::AddIOp::create(b, loc, first, inner);
  }

  //===-- Types and sizes
  //---------------------------------------------------------------------------------------------===//

  static void cutSizes(SmallVector<AffineExpr> &of, unsigned dim, const Cut &cut) {
    of[dim] = cut.inner;
    of.insert(of.begin() + dim, cut.outer);
  }

  static RankedTensorType typeOf(ArrayRef<AffineExpr> of, Type element) {
    SmallVector<int64_t> shape;
    for (AffineExpr size : of)
      shape.push_back(constantOf(size).value_or(ShapedType::kDynamic));
    return RankedTensorType::get(shape, element);
  }

  Value indexValue(OpBuilder &b, Location loc, AffineExpr expr) {
    return getValueOrCreateConstantIndexOp(b, loc, sizes->materialize(b, loc, expr));
  }

  SmallVector<Value> dynamicSizes(OpBuilder &b, Location loc, ArrayRef<AffineExpr> of) {
    SmallVector<Value> values;
    for (AffineExpr size : of)
      if (!constantOf(size))
        values.push_back(indexValue(b, loc, size));
    return values;
  }

  Value empty(OpBuilder &b, Location loc, ArrayRef<AffineExpr> of, Type element) {
    return tensor::EmptyOp::create(b, loc, typeOf(of, element), dynamicSizes(b, loc, of));
  }

  SymbolicSizes *sizes = nullptr;
  /// Values already cut: by value, dimension, and the cut.
  llvm::DenseMap<std::tuple<Value, unsigned, AffineExpr, AffineExpr, AffineExpr>, Value> clones;
};

} // namespace
} // namespace accel
