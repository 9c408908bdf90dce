#include "passes/graph/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "dialects/accel/SymbolicSizes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_FORMATTENTIONPASS
#include "passes/graph/Passes.h.inc"

namespace {

bool isFilledWith(Value init, llvm::function_ref<bool(const APFloat &)> matches) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  APFloat value(0.0);
  return fill && matchPattern(fill.getInputs()[0], m_ConstantFloat(&value)) && matches(value);
}
bool isMinusInfinity(const APFloat &value) { return value.isInfinity() && value.isNegative(); }

/// What a body yields or computes with, casts left out.
Value withoutCasts(Value value) {
  while (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// A pointwise op of one result, whose body is one op `T` of (casts of) its arguments; null if it is something else.
template <typename T> T onlyOp(linalg::GenericOp op) {
  return withoutCasts(op.getBody()->getTerminator()->getOperand(0)).getDefiningOp<T>();
}

bool isPointwise(linalg::GenericOp op) {
  return op && op.getNumReductionLoops() == 0 && op.getNumDpsInits() == 1 &&
         op.getIndexingMapsArray().back().isIdentity();
}

/// Operand `i` of the body's op is the op's input of number `input`.
bool isInput(linalg::GenericOp op, Value bodyOperand, unsigned input) {
  return withoutCasts(bodyOperand) == op.getBody()->getArgument(input);
}

/// An op's only input, reduced along the last dimension by `T` from an initial value that changes nothing.
template <typename T> Value reducedBy(Value value, llvm::function_ref<bool(const APFloat &)> neutral) {
  auto reduce = value.getDefiningOp<linalg::ReduceOp>();
  if (!reduce || reduce.getNumDpsInputs() != 1 || !isFilledWith(reduce.getDpsInits()[0], neutral))
    return nullptr;
  Value input = reduce.getDpsInputs()[0];
  Block &body = reduce.getCombiner().front();
  bool matches = reduce.getDimensions() == ArrayRef{cast<RankedTensorType>(input.getType()).getRank() - 1} &&
                 body.getOperations().size() == 2 && isa<T>(body.front());
  return matches ? input : nullptr;
}

/// A sum of dimensions times constants as batch * heads + head.
struct HeadIndex {
  AffineExpr batch, head;
};

std::optional<HeadIndex> splitHeads(AffineExpr expr, int64_t heads, ArrayRef<int64_t> sizes) {
  MLIRContext *ctx = expr.getContext();
  HeadIndex index{getAffineConstantExpr(0, ctx), getAffineConstantExpr(0, ctx)};
  SmallVector<AffineExpr> pending = {expr};
  bool hasHead = false;
  while (!pending.empty()) {
    AffineExpr term = pending.pop_back_val();
    if (term == getAffineConstantExpr(0, ctx))
      continue;
    auto binary = dyn_cast<AffineBinaryOpExpr>(term);
    if (binary && term.getKind() == AffineExprKind::Add) {
      pending.append({binary.getRHS(), binary.getLHS()});
      continue;
    }
    auto factor = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
    AffineExpr dim = factor && term.getKind() == AffineExprKind::Mul ? binary.getLHS() : term;
    int64_t times = factor ? factor.getValue() : 1;
    auto position = dyn_cast<AffineDimExpr>(dim);
    if (!position)
      return std::nullopt;
    if (times % heads == 0) {
      index.batch = index.batch + dim * (times / heads);
    } else {
      int64_t size = sizes[position.getPosition()];
      if (times != 1 || hasHead || ShapedType::isDynamic(size) || size > heads)
        return std::nullopt;
      hasHead = true;
      index.head = dim;
    }
  }
  return index;
}

/// The written-out form behind one product, found from its end.
class Matcher {
public:
  Matcher(linalg::BatchMatmulOp product, SymbolicSizes &sizes) : product(product), sizes(sizes) {}

  /// Empty if the form is there, else what is missing.
  std::string match() {
    ctx = product->getContext();
    auto isZero = [](const APFloat &value) { return value.isZero(); };
    if (!isFilledWith(product.getDpsInits()[0], isZero))
      return "the second product doesn't start from zeros";
    Value weights = product.getDpsInputs()[0];
    if (Value split = withHeads(weights)) {
      taken.insert(weights.getDefiningOp());
      weights = split;
    }
    rank = cast<RankedTensorType>(weights.getType()).getRank();

    // The softmax.
    auto quotient = skipCasts(weights);
    if (!quotient || quotient.getNumDpsInputs() != 2 || !readsRows(quotient))
      return "no quotient";
    Value powers = quotient.getDpsInputs()[0], sum = divisorOf(quotient);
    if (!sum || reducedBy<arith::AddFOp>(sum, isZero) != powers)
      return "the divisor is not the row's sum";
    take<linalg::ReduceOp>(sum);
    auto power = take<linalg::GenericOp>(powers);
    if (!isPointwise(power) || power.getNumDpsInputs() != 1 || !onlyOp<math::ExpOp>(power) || !readsAll(power, 0) ||
        !isInput(power, onlyOp<math::ExpOp>(power).getOperand(), 0))
      return "no exponentials";
    auto difference = take<linalg::GenericOp>(power.getDpsInputs()[0]);
    if (!isPointwise(difference) || difference.getNumDpsInputs() != 2 || !readsRows(difference))
      return "no difference to the row's maximum";
    auto subtraction = onlyOp<arith::SubFOp>(difference);
    Value logits = difference.getDpsInputs()[0];
    if (!subtraction || !isInput(difference, subtraction.getLhs(), 0) ||
        !isInput(difference, subtraction.getRhs(), 1) ||
        reducedBy<arith::MaximumFOp>(difference.getDpsInputs()[1], isMinusInfinity) != logits)
      return "no difference to the row's maximum";
    take<linalg::ReduceOp>(difference.getDpsInputs()[1]);

    if (std::string why = matchScores(logits); !why.empty())
      return why;
    for (Operation *op : taken)
      for (Operation *user : op->getUsers())
        if (user != product && !taken.contains(user))
          return "another op reads the scores";
    return findShape();
  }

  void rewrite() {
    ImplicitLocOpBuilder b(product.getLoc(), product);
    auto dim = [&](unsigned d) { return b.getAffineDimExpr(d); };
    Value query = operand(b, scores.getDpsInputs()[0], rows, depth, false),
          key = operand(b, scores.getDpsInputs()[1], columns, depth, true),
          value = operand(b, product.getDpsInputs()[1], columns, width, false);
    Type element = getElementTypeOrSelf(product.getType(0));
    Type compute = element.isF64() ? element : Type(b.getF32Type());
    auto op =
        AttentionOp::create(b, typeOf(element, {batch, rows, heads, width}), typeOf(compute, {batch, rows, heads}),
                            query, key, value, makeMask(b), b.getF64FloatAttr(scale), UnitAttr(), b.getUnitAttr(),
                            hidden && *hidden != -INFINITY ? b.getF64FloatAttr(*hidden) : FloatAttr());
    for (Operation *user : llvm::make_early_inc_range(product->getUsers())) {
      // A view that splits the heads again reads the result as it lies.
      auto view = dyn_cast<ViewOp>(user);
      auto shape = view ? cast<RankedTensorType>(view.getType()).getShape() : ArrayRef<int64_t>();
      auto index = view ? splitHeads(view.getMap().getResult(0), headCount(), shape) : std::nullopt;
      if (!index)
        continue;
      AffineMap map =
          AffineMap::get(shape.size(), view.getMap().getNumSymbols(),
                         {index->batch, view.getMap().getResult(1), index->head, view.getMap().getResult(2)}, ctx);
      view.getSourceMutable().assign(op.getOut());
      view.setMapAttr(AffineMapAttr::get(map));
    }
    if (!product->use_empty()) {
      Value split = makeView(b, op.getOut(), {batch, heads, rows, width}, {dim(0), dim(2), dim(1), dim(3)});
      SmallVector<AffineExpr> merged = {normalize(batch * heads), rows, width};
      Value result = ReshapeOp::create(b, typeOf(element, merged), split, dynamic(b, merged));
      product->replaceAllUsesWith(ValueRange(result));
    }
    product->erase();
  }

private:
  /// The op that defines the value, counted as a part of the form; null if it is another one.
  template <typename T> T take(Value value) {
    auto op = value.getDefiningOp<T>();
    if (op)
      taken.insert(op);
    return op;
  }

  /// What input 0 is divided by: input 1, or what input 1 is the reciprocal of; null if it is another op.
  Value divisorOf(linalg::GenericOp op) {
    if (auto division = onlyOp<arith::DivFOp>(op))
      return isInput(op, division.getLhs(), 0) && isInput(op, division.getRhs(), 1) ? op.getDpsInputs()[1] : Value();
    auto product = onlyOp<arith::MulFOp>(op);
    auto reciprocal = product ? take<linalg::GenericOp>(op.getDpsInputs()[1]) : nullptr;
    auto division = isPointwise(reciprocal) ? onlyOp<arith::DivFOp>(reciprocal) : nullptr;
    bool matches = division && reciprocal.getNumDpsInputs() == 1 && readsAll(reciprocal, 0) &&
                   numberOf(reciprocal, division.getLhs()) == 1.0 && isInput(reciprocal, division.getRhs(), 0) &&
                   isInput(op, product.getLhs(), 0) && isInput(op, product.getRhs(), 1);
    return matches ? reciprocal.getDpsInputs()[0] : Value();
  }

  bool readsAll(linalg::GenericOp op, unsigned input) { return op.getIndexingMapsArray()[input].isIdentity(); }
  /// Input 0 as it is, input 1 by row.
  bool readsRows(linalg::GenericOp op) {
    SmallVector<AffineExpr> outer;
    for (int64_t d = 0; d + 1 < rank; ++d)
      outer.push_back(getAffineDimExpr(d, ctx));
    return readsAll(op, 0) && op.getIndexingMapsArray()[1] == AffineMap::get(rank, 0, outer, ctx);
  }

  /// [B, H, ...] that [B * H, ...] was merged from, by a reshape or, where either is 1, by a view.
  Value withHeads(Value merged) {
    auto view = merged.getDefiningOp<ViewOp>();
    auto reshape = merged.getDefiningOp<ReshapeOp>();
    if (!view && !reshape)
      return nullptr;
    Value source = view ? view.getSource() : reshape.getSource();
    auto type = cast<RankedTensorType>(source.getType()), mergedType = cast<RankedTensorType>(merged.getType());
    if (type.getRank() != 4 || type.getShape().drop_front(2) != mergedType.getShape().drop_front(1))
      return nullptr;
    if (reshape)
      return source;
    AffineExpr d[3], zero = getAffineConstantExpr(0, ctx);
    for (int i = 0; i < 3; ++i)
      d[i] = getAffineDimExpr(i, ctx);
    AffineMap map = view.getMap();
    bool oneBatch = type.getDimSize(0) == 1 && map == AffineMap::get(3, 0, {zero, d[0], d[1], d[2]}, ctx);
    bool oneHead = type.getDimSize(1) == 1 && map == AffineMap::get(3, 0, {d[0], zero, d[1], d[2]}, ctx);
    return oneBatch || oneHead ? source : Value();
  }

  /// The op that computes the value, pointwise; ops that only cast are passed by.
  linalg::GenericOp skipCasts(Value value) {
    while (auto op = take<linalg::GenericOp>(value)) {
      if (!isPointwise(op))
        return nullptr;
      Value yielded = op.getBody()->getTerminator()->getOperand(0);
      if (op.getNumDpsInputs() != 1 || !readsAll(op, 0) || !isInput(op, yielded, 0))
        return op;
      value = op.getDpsInputs()[0];
    }
    return nullptr;
  }

  /// Whether the scores are among what the value is computed from, pointwise.
  static bool leadsToProduct(Value value, int depth = 0) {
    Operation *def = value.getDefiningOp();
    if (auto view = dyn_cast_or_null<ViewOp>(def))
      return leadsToProduct(view.getSource(), depth);
    auto op = dyn_cast_or_null<linalg::GenericOp>(def);
    constexpr int kMaxOps = 8;
    return isa_and_nonnull<linalg::BatchMatmulOp>(def) ||
           (op && isPointwise(op) && depth < kMaxOps &&
            llvm::any_of(op.getDpsInputs(), [&](Value input) { return leadsToProduct(input, depth + 1); }));
  }

  /// From the logits up to the first product: masks, then scales.
  std::string matchScores(Value value) {
    while (linalg::GenericOp op = value.getDefiningOp<linalg::GenericOp>()) {
      taken.insert(op);
      auto inputs = llvm::to_vector(op.getDpsInputs());
      auto *found = llvm::find_if(inputs, [](Value input) { return leadsToProduct(input); });
      unsigned score = found - inputs.begin();
      if (!isPointwise(op) || found == inputs.end() || !readsAll(op, score))
        return "scores that are not pointwise";
      if (!matchScale(op, score) && !matchMask(op, score))
        return "scores that are more than scaled and masked";
      value = *found;
    }
    if (rank == 4) {
      split = take<ViewOp>(value);
      if (!split)
        return "no heads split off the first product";
      value = split.getSource();
    }
    scores = take<linalg::BatchMatmulOp>(value);
    return scores && isFilledWith(scores.getDpsInits()[0], [](const APFloat &v) { return v.isZero(); })
               ? ""
               : "no first product";
  }

  /// The number that an operand in the body always is: a constant, or an element of a tensor filled with one.
  static std::optional<double> numberOf(linalg::GenericOp op, Value bodyOperand) {
    bodyOperand = withoutCasts(bodyOperand);
    if (auto argument = dyn_cast<BlockArgument>(bodyOperand); argument && argument.getOwner() == op.getBody()) {
      auto fill = op->getOperand(argument.getArgNumber()).getDefiningOp<linalg::GenericOp>();
      if (!isPointwise(fill) || fill.getNumDpsInputs() != 0)
        return std::nullopt;
      bodyOperand = withoutCasts(fill.getBody()->getTerminator()->getOperand(0));
    }
    APFloat number(0.0);
    return matchPattern(bodyOperand, m_ConstantFloat(&number)) ? std::optional(number.convertToDouble()) : std::nullopt;
  }

  bool matchScale(linalg::GenericOp op, unsigned score) {
    Value yielded = op.getBody()->getTerminator()->getOperand(0);
    if (isInput(op, yielded, score))
      return true;
    auto multiply = onlyOp<arith::MulFOp>(op);
    auto divide = onlyOp<arith::DivFOp>(op);
    if (!multiply && !divide)
      return false;
    Value left = multiply ? multiply.getLhs() : divide.getLhs(), right = multiply ? multiply.getRhs() : divide.getRhs();
    if (multiply && !isInput(op, left, score))
      std::swap(left, right);
    std::optional<double> number = numberOf(op, right);
    if (!isInput(op, left, score) || !number)
      return false;
    scale = multiply ? scale * *number : scale / *number;
    return std::isfinite(scale);
  }

  bool matchMask(linalg::GenericOp op, unsigned score) {
    // A scale that was found behind the mask would apply to it too.
    if (mask || scale != 1)
      return false;
    std::optional<unsigned> number;
    if (auto add = onlyOp<arith::AddFOp>(op)) {
      Value other = isInput(op, add.getLhs(), score) ? add.getRhs() : add.getLhs();
      auto argument = dyn_cast<BlockArgument>(withoutCasts(other));
      if (argument && argument.getArgNumber() != score &&
          (isInput(op, add.getLhs(), score) || isInput(op, add.getRhs(), score)))
        number = argument.getArgNumber();
    } else if (auto select = onlyOp<arith::SelectOp>(op)) {
      auto argument = dyn_cast<BlockArgument>(select.getCondition());
      inverted = isInput(op, select.getFalseValue(), score);
      hidden = numberOf(op, inverted ? select.getTrueValue() : select.getFalseValue());
      if (argument && hidden && (inverted || isInput(op, select.getTrueValue(), score)))
        number = argument.getArgNumber();
    }
    if (!number || *number >= op.getNumDpsInputs())
      return false;
    mask = op.getDpsInputs()[*number], maskMap = op.getIndexingMapsArray()[*number];
    return llvm::all_of(maskMap.getResults(), [](AffineExpr e) {
      auto constant = dyn_cast<AffineConstantExpr>(e);
      return isa<AffineDimExpr>(e) || (constant && constant.getValue() == 0);
    });
  }

  std::string findShape() {
    SmallVector<AffineExpr> first = sizes.sizesOf(scores.getDpsInputs()[0]),
                            second = sizes.sizesOf(scores.getDpsInputs()[1]),
                            third = sizes.sizesOf(product.getDpsInputs()[1]);
    batch = first[0], heads = getAffineConstantExpr(1, ctx);
    rows = first[1], depth = first[2], columns = second[2], width = third[2];
    if (rank == 4) {
      auto shape = cast<RankedTensorType>(split.getType()).getShape();
      AffineMap map = split.getMap();
      SmallVector<AffineExpr> all = sizes.sizesOf(split.getResult());
      if (ShapedType::isDynamic(shape[1]) || shape[1] <= 0)
        return "a symbolic number of heads";
      auto index = splitHeads(map.getResult(0), shape[1], shape);
      auto isDim = [&](AffineExpr expr, unsigned d) {
        return expr == getAffineDimExpr(d, ctx) || (shape[d] == 1 && expr == getAffineConstantExpr(0, ctx));
      };
      if (!index || !isDim(index->batch, 0) || !isDim(index->head, 1) || !isDim(map.getResult(1), 2) ||
          !isDim(map.getResult(2), 3))
        return "heads that are not split";
      batch = all[0], heads = all[1];
    }
    for (AffineExpr size : {batch, rows, columns})
      if (!size)
        return "a size that no index argument gives";
    for (AffineExpr size : {depth, width}) {
      auto constant = dyn_cast_or_null<AffineConstantExpr>(size);
      if (!constant || constant.getValue() <= 0)
        return "a symbolic head size, or none";
    }
    return "";
  }

  int64_t headCount() { return cast<AffineConstantExpr>(heads).getValue(); }

  RankedTensorType typeOf(Type element, ArrayRef<AffineExpr> shape) {
    SmallVector<int64_t> numbers;
    for (AffineExpr size : shape) {
      auto constant = dyn_cast<AffineConstantExpr>(size);
      numbers.push_back(constant ? constant.getValue() : ShapedType::kDynamic);
    }
    return RankedTensorType::get(numbers, element);
  }

  SmallVector<Value> dynamic(ImplicitLocOpBuilder &b, ArrayRef<AffineExpr> shape) {
    SmallVector<Value> values;
    for (AffineExpr size : shape)
      if (!isa<AffineConstantExpr>(size))
        values.push_back(cast<Value>(sizes.materialize(b, b.getLoc(), size)));
    return values;
  }

  Value makeView(ImplicitLocOpBuilder &b, Value source, ArrayRef<AffineExpr> shape, ArrayRef<AffineExpr> indices) {
    AffineMap map = AffineMap::get(shape.size(), 0, indices, ctx);
    return ViewOp::create(b, typeOf(getElementTypeOrSelf(source.getType()), shape), source, ValueRange(),
                          dynamic(b, shape), AffineMapAttr::get(map));
  }

  /// A product's operand as [B, H, size, inner]: what its heads were merged from, or split again.
  Value operand(ImplicitLocOpBuilder &b, Value merged, AffineExpr size, AffineExpr inner, bool transposed) {
    AffineExpr d[4];
    for (int i = 0; i < 4; ++i)
      d[i] = b.getAffineDimExpr(i);
    SmallVector<AffineExpr> shape = {batch, heads, size, inner};
    AffineExpr row = transposed ? d[3] : d[2], column = transposed ? d[2] : d[3];
    SmallVector<AffineExpr> from = {batch, heads, transposed ? inner : size, transposed ? size : inner};
    if (Value source = withHeads(merged); source && sizes.sizesOf(source) == from)
      return transposed ? makeView(b, source, shape, {d[0], d[1], row, column}) : source;
    return makeView(b, merged, shape, {d[0] * headCount() + d[1], row, column});
  }

  /// The mask as [B, H, L, S], true where scores count.
  Value makeMask(ImplicitLocOpBuilder &b) {
    if (!mask)
      return nullptr;
    Value source = mask;
    if (inverted) {
      SmallVector<AffineExpr> shape = sizes.sizesOf(mask);
      AffineMap identity = b.getMultiDimIdentityMap(shape.size());
      SmallVector<utils::IteratorType> iterators(shape.size(), utils::IteratorType::parallel);
      Value empty =
          tensor::EmptyOp::create(b, typeOf(b.getI1Type(), shape).getShape(), b.getI1Type(), dynamic(b, shape));
      source = linalg::GenericOp::create(b, TypeRange(empty.getType()), ValueRange(mask), ValueRange(empty),
                                         ArrayRef<AffineMap>{identity, identity}, iterators,
                                         [](OpBuilder &nested, Location loc, ValueRange args) {
                                           Value yes = arith::ConstantIntOp::create(nested, loc, 1, 1);
                                           Value inverse = arith::XOrIOp::create(nested, loc, args[0], yes);
                                           linalg::YieldOp::create(nested, loc, inverse);
                                         })
                   .getResult(0);
    }
    SmallVector<AffineExpr> dims = {b.getAffineDimExpr(0), b.getAffineDimExpr(2), b.getAffineDimExpr(3)};
    if (rank == 4)
      dims.insert(dims.begin() + 1, b.getAffineDimExpr(1));
    SmallVector<AffineExpr> indices;
    for (AffineExpr e : maskMap.getResults())
      indices.push_back(e.replaceDims(dims));
    return makeView(b, source, {batch, heads, rows, columns}, indices);
  }

  linalg::BatchMatmulOp product, scores;
  SymbolicSizes &sizes;
  MLIRContext *ctx = nullptr;
  int64_t rank = 0; ///< of the scores: 4, or 3 where there are no heads
  llvm::SetVector<Operation *> taken;
  ViewOp split;
  double scale = 1;
  Value mask;
  AffineMap maskMap;
  bool inverted = false;        ///< the mask is true where scores don't count
  std::optional<double> hidden; ///< what it puts in their place
  AffineExpr batch, heads, rows, columns, depth, width;
};

struct FormAttention : impl::FormAttentionPassBase<FormAttention> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    SymbolicSizes sizes(func);
    bool changed = false;
    for (auto product : llvm::make_early_inc_range(func.getBody().front().getOps<linalg::BatchMatmulOp>())) {
      Matcher matcher(product, sizes);
      if (!matcher.match().empty())
        continue;
      matcher.rewrite();
      changed = true;
    }
    if (!changed)
      return;
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace
} // namespace accel
