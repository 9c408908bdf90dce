#include "passes/graph/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "dialects/accel/SymbolicSizes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/fusion/Contractions.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_SPLITROWSPASS
#include "passes/graph/Passes.h.inc"

namespace {

/// For each dimension of a view's source the view's dimensions that it is the row-major product of; nothing if the view
/// is anything else, or a part. A dimension of size 1 in the source may have none.
std::optional<SmallVector<SmallVector<unsigned>>> splitGroups(ViewOp view) {
  if (!view.getSymbols().empty() || view.getPadded())
    return std::nullopt;
  auto source = cast<RankedTensorType>(view.getSource().getType());
  auto result = cast<RankedTensorType>(view.getResult().getType());
  SmallVector<SmallVector<unsigned>> groups(source.getRank());
  SymbolicSizes sizes(view->getParentOp());
  unsigned next = 0;
  for (auto [d, expr] : llvm::enumerate(view.getMap().getResults())) {
    // Coefficient of each dimension.
    SmallVector<std::pair<unsigned, int64_t>> terms;
    bool linear = true;
    std::function<void(AffineExpr, int64_t)> collect = [&](AffineExpr e, int64_t factor) {
      if (auto dim = dyn_cast<AffineDimExpr>(e)) {
        terms.push_back({dim.getPosition(), factor});
        return;
      }
      auto binary = dyn_cast<AffineBinaryOpExpr>(e);
      if (binary && e.getKind() == AffineExprKind::Add) {
        collect(binary.getLHS(), factor);
        collect(binary.getRHS(), factor);
        return;
      }
      auto constant = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
      if (constant && e.getKind() == AffineExprKind::Mul)
        return collect(binary.getLHS(), factor * constant.getValue());
      linear &= e == getAffineConstantExpr(0, e.getContext());
    };
    collect(expr, 1);
    if (!linear)
      return std::nullopt;
    llvm::sort(terms);
    int64_t stride = 1;
    for (auto [dim, factor] : llvm::reverse(terms)) {
      bool isFirst = dim == terms.front().first;
      if (factor != stride || (!isFirst && result.isDynamicDim(dim)))
        return std::nullopt;
      stride *= result.isDynamicDim(dim) ? 1 : result.getDimSize(dim);
      if (!isFirst)
        continue;
      AffineExpr whole = sizes.sizeOf(view.getSource(), d), outer = sizes.sizeOf(view.getResult(), dim);
      if (!whole || !outer || normalize(whole) != normalize(outer * factor))
        return std::nullopt;
    }
    if (terms.empty() && source.getDimSize(d) != 1)
      return std::nullopt;
    for (auto [dim, factor] : terms) {
      // Dimensions of size 1 that no source dimension has a part in stand in between.
      while (next < dim && !result.isDynamicDim(next) && result.getDimSize(next) == 1)
        ++next;
      if (next != dim)
        return std::nullopt;
      groups[d].push_back(next++);
    }
  }
  while (next < result.getRank() && !result.isDynamicDim(next) && result.getDimSize(next) == 1)
    ++next;
  return next == result.getRank() ? std::optional(groups) : std::nullopt;
}

/// Whether the op is pointwise or a contraction with a destination of its own, and knows nothing of its loops' numbers.
bool canSplit(linalg::GenericOp op) {
  bool kind = op.getNumReductionLoops() == 0 || matchContraction(op);
  return kind && op->getNumResults() == 1 && op.hasPureTensorSemantics() &&
         !op->walk([](linalg::IndexOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

class Splitter {
public:
  Splitter(ViewOp view, linalg::GenericOp op, ArrayRef<SmallVector<unsigned>> groups)
      : view(view), op(op), groups(groups), b(op.getLoc(), op),
        resultType(cast<RankedTensorType>(view.getResult().getType())) {}

  /// The op over the view's dimensions; nothing if an operand stands in the way.
  std::optional<Value> split() {
    numberLoops();
    SmallVector<Value> operands;
    SmallVector<AffineMap> maps;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      if (!canSplitOperand(map))
        return std::nullopt;
    }
    for (OpOperand *input : op.getDpsInputOperands()) {
      auto [value, map] = splitOperand(input->get(), op.getMatchingIndexingMap(input));
      operands.push_back(value);
      maps.push_back(map);
    }
    Value init = destination();
    SmallVector<AffineExpr> out;
    for (unsigned d = 0; d < resultType.getRank(); ++d)
      out.push_back(b.getAffineDimExpr(d));
    maps.push_back(AffineMap::get(numLoops, 0, out, b.getContext()));
    auto result = linalg::GenericOp::create(b, TypeRange{resultType}, operands, ValueRange{init}, maps, iterators);
    IRMapping mapping;
    op.getRegion().cloneInto(&result.getRegion(), mapping);
    for (NamedAttribute attr : op->getDiscardableAttrs())
      result->setAttr(attr.getName(), attr.getValue());
    return result.getResult(0);
  }

private:
  /// The result's dimensions are the first loops, in their order; loops of a reduction follow.
  void numberLoops() {
    AffineMap out = op.getIndexingMapsArray().back();
    numLoops = resultType.getRank();
    iterators.assign(numLoops, utils::IteratorType::parallel);
    newLoops.resize(op.getNumLoops());
    for (auto [d, expr] : llvm::enumerate(out.getResults()))
      newLoops[cast<AffineDimExpr>(expr).getPosition()] = groups[d];
    for (unsigned l = 0; l < op.getNumLoops(); ++l)
      if (op.getIteratorTypesArray()[l] == utils::IteratorType::reduction) {
        newLoops[l] = {numLoops++};
        iterators.push_back(utils::IteratorType::reduction);
      }
  }

  bool isKept(unsigned loop) { return newLoops[loop].size() == 1; }

  /// An operand's index is a loop of its own, or a formula of loops that stay.
  bool canSplitOperand(AffineMap map) {
    return llvm::all_of(map.getResults(), [&](AffineExpr expr) {
      if (isa<AffineDimExpr>(expr))
        return true;
      bool kept = true;
      expr.walk([&](AffineExpr e) {
        if (auto dim = dyn_cast<AffineDimExpr>(e))
          kept &= isKept(dim.getPosition());
      });
      return kept;
    });
  }

  std::pair<Value, AffineMap> splitOperand(Value value, AffineMap map) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<AffineExpr> renumbered(op.getNumLoops());
    for (unsigned l = 0; l < op.getNumLoops(); ++l)
      renumbered[l] = isKept(l) ? b.getAffineDimExpr(newLoops[l][0]) : b.getAffineConstantExpr(0);
    SmallVector<AffineExpr> indices, viewIndices;
    SmallVector<int64_t> shape;
    SmallVector<Value> sizes;
    auto addDim = [&](int64_t size, AffineExpr loop) {
      indices.push_back(loop);
      shape.push_back(size);
      return b.getAffineDimExpr(shape.size() - 1);
    };
    bool changes = false;
    for (auto [d, expr] : llvm::enumerate(map.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim || isKept(dim.getPosition())) {
        viewIndices.push_back(addDim(type.getDimSize(d), expr.replaceDims(renumbered)));
        if (type.isDynamicDim(d))
          sizes.push_back(tensor::DimOp::create(b, value, d));
        continue;
      }
      changes = true;
      AffineExpr index = b.getAffineConstantExpr(0);
      for (unsigned loop : newLoops[dim.getPosition()]) {
        int64_t size = resultType.getDimSize(loop);
        AffineExpr part = addDim(size, b.getAffineDimExpr(loop));
        index = (ShapedType::isDynamic(size) ? index : index * size) + part;
        if (ShapedType::isDynamic(size))
          sizes.push_back(dynamicSize(loop));
      }
      viewIndices.push_back(index);
    }
    AffineMap newMap = AffineMap::get(numLoops, 0, indices, b.getContext());
    if (!changes)
      return {value, newMap};
    auto viewType = RankedTensorType::get(shape, type.getElementType());
    // What was put together only to be taken apart.
    if (auto reshape = value.getDefiningOp<ReshapeOp>();
        reshape && reshape.getSource().getType() == viewType && viewType.getNumDynamicDims() <= 1)
      return {reshape.getSource(), newMap};
    Value result = ViewOp::create(b, viewType, value, ValueRange(), sizes,
                                  AffineMapAttr::get(AffineMap::get(shape.size(), 0, viewIndices, b.getContext())));
    return {result, newMap};
  }

  Value dynamicSize(unsigned resultDim) {
    unsigned number = 0;
    for (unsigned d = 0; d < resultDim; ++d)
      number += resultType.isDynamicDim(d);
    return view.getSizes()[number];
  }

  Value destination() {
    Value old = op.getDpsInits()[0];
    Value empty = tensor::EmptyOp::create(b, resultType, view.getSizes());
    if (auto fill = old.getDefiningOp<linalg::FillOp>())
      return linalg::FillOp::create(b, fill.getInputs(), ValueRange{empty}).getResult(0);
    return empty;
  }

  ViewOp view;
  linalg::GenericOp op;
  ArrayRef<SmallVector<unsigned>> groups;
  ImplicitLocOpBuilder b;
  RankedTensorType resultType;
  unsigned numLoops = 0;
  SmallVector<SmallVector<unsigned>> newLoops; // of each old loop; those below the result's rank are its dimensions
  SmallVector<utils::IteratorType> iterators;
};

struct SplitRows : impl::SplitRowsPassBase<SplitRows> {
  void runOnOperation() override {
    // Backwards, so that what a view asks of an op, the op asks of its operands.
    SmallVector<ViewOp> views(getOperation().getOps<ViewOp>());
    while (!views.empty()) {
      ViewOp view = views.pop_back_val();
      auto op = view.getSource().getDefiningOp<linalg::GenericOp>();
      auto sourceType = cast<RankedTensorType>(view.getSource().getType());
      auto groups = op && canSplit(op) ? splitGroups(view) : std::nullopt;
      if (!groups || !feedsFromContraction(op))
        continue;
      bool splits = llvm::any_of(*groups, [](auto &group) { return group.size() > 1; });
      bool others = !view.getSource().hasOneUse();
      if (!splits || (others && !sourceType.hasStaticShape()))
        continue;
      // Sizes must be known in front of the op.
      if (llvm::any_of(view.getSizes(), [&](Value size) {
            Operation *def = size.getDefiningOp();
            return def && !def->isBeforeInBlock(op);
          }))
        continue;
      std::optional<Value> result = Splitter(view, op, *groups).split();
      if (!result)
        continue;
      Operation *made = result->getDefiningOp();
      view.getResult().replaceAllUsesWith(*result);
      view.erase();
      if (!op->use_empty()) {
        OpBuilder b(op);
        Value whole = ReshapeOp::create(b, op.getLoc(), sourceType, *result, ValueRange());
        op->replaceAllUsesWith(ValueRange{whole});
      }
      op->erase();
      for (Value operand : made->getOperands())
        if (auto inner = operand.getDefiningOp<ViewOp>())
          views.push_back(inner);
    }
  }

  /// Whether a contraction comes before the op, through pointwise ops alone.
  static bool feedsFromContraction(linalg::GenericOp op) {
    if (matchContraction(op))
      return true;
    return op.getNumReductionLoops() == 0 && llvm::any_of(op.getDpsInputs(), [](Value input) {
             auto inner = input.getDefiningOp<linalg::GenericOp>();
             return inner && feedsFromContraction(inner);
           });
  }
};

} // namespace
} // namespace accel
