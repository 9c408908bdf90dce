#include "passes/graph/MemoryOrder.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace accel {
namespace {

/// The result's dimensions from the largest stride to the smallest, by the strides that each has in an operand (0: the
/// operand doesn't change along it); nothing if the operand doesn't walk all of them.
std::optional<SmallVector<unsigned>> orderOf(ArrayRef<int64_t> strides, ArrayRef<int64_t> shape) {
  SmallVector<unsigned> walked;
  for (auto [d, stride] : llvm::enumerate(strides)) {
    if (shape[d] == 1)
      continue;
    if (stride == 0)
      return std::nullopt;
    walked.push_back(d);
  }
  SmallVector<unsigned> sorted(walked);
  llvm::stable_sort(sorted, [&](unsigned a, unsigned b) { return strides[a] > strides[b]; });
  // Dimensions of size 1 stay where they are.
  SmallVector<unsigned> order;
  size_t next = 0;
  for (unsigned d = 0; d < strides.size(); ++d)
    order.push_back(shape[d] == 1 ? d : sorted[next++]);
  return order;
}

bool isIdentity(ArrayRef<unsigned> order) {
  for (auto [i, d] : llvm::enumerate(order))
    if (i != d)
      return false;
  return true;
}

SmallVector<unsigned> inverse(ArrayRef<unsigned> order) {
  SmallVector<unsigned> result(order.size());
  for (auto [i, d] : llvm::enumerate(order))
    result[d] = i;
  return result;
}

/// The order of the first operand that walks all of the result and whose order is another than the result's own.
std::optional<SmallVector<unsigned>> chosenOrder(Operation *op, Layouts &layouts) {
  auto shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  auto ofOperand = [&](Value value, AffineMap map) -> std::optional<SmallVector<unsigned>> {
    std::optional<Placement> placement = layouts.placementOf(value);
    if (!placement)
      return std::nullopt;
    SmallVector<int64_t> strides(shape.size(), 0);
    for (auto [expr, stride] : llvm::zip(map.getResults(), placement->strides))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        strides[dim.getPosition()] += std::abs(representative(stride));
    return orderOf(strides, shape);
  };
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    for (Value part : concat.getParts())
      if (auto order = ofOperand(part, AffineMap::getMultiDimIdentityMap(shape.size(), op->getContext()));
          order && !isIdentity(*order))
        return order;
    return std::nullopt;
  }
  auto generic = cast<linalg::GenericOp>(op);
  for (OpOperand *input : generic.getDpsInputOperands())
    if (auto order = ofOperand(input->get(), generic.getMatchingIndexingMap(input)); order && !isIdentity(*order))
      return order;
  return std::nullopt;
}

/// The value with its dimensions in the given order: what a permuted view permutes, or one view in place of two.
Value inOrder(OpBuilder &b, Location loc, Value value, ArrayRef<unsigned> order) {
  auto view = value.getDefiningOp<ViewOp>();
  Value result = permuted(b, loc, value, order);
  if (!view || view.getPadded() || !view.getSymbols().empty())
    return result;
  auto outer = result.getDefiningOp<ViewOp>();
  AffineMap whole = simplifyAffineMap(view.getMap().compose(outer.getMap()));
  if (whole.isIdentity() && view.getSource().getType() == result.getType()) {
    outer.erase();
    return view.getSource();
  }
  outer.getSourceMutable().assign(view.getSource());
  outer.setMapAttr(AffineMapAttr::get(whole));
  return result;
}

} // namespace

Value permuted(OpBuilder &b, Location loc, Value source, ArrayRef<unsigned> order) {
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<int64_t> shape;
  SmallVector<Value> sizes;
  SmallVector<AffineExpr> indices(order.size());
  for (auto [d, from] : llvm::enumerate(order)) {
    shape.push_back(type.getDimSize(from));
    indices[from] = b.getAffineDimExpr(d);
    if (type.isDynamicDim(from))
      sizes.push_back(tensor::DimOp::create(b, loc, source, from));
  }
  return ViewOp::create(b, loc, RankedTensorType::get(shape, type.getElementType()), source, ValueRange(), sizes,
                        AffineMapAttr::get(AffineMap::get(order.size(), 0, indices, b.getContext())));
}

bool followMemoryOrder(Operation *op, Layouts &layouts) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  auto concat = dyn_cast<ConcatOp>(op);
  if (generic && (generic.getNumReductionLoops() || generic->getNumResults() != 1 ||
                  !generic.getIndexingMapsArray().back().isIdentity()))
    return false;
  if (!generic && !concat)
    return false;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (!type.hasStaticShape() && type.getNumDynamicDims() > 1)
    return false;
  std::optional<SmallVector<unsigned>> order = chosenOrder(op, layouts);
  if (!order)
    return false;
  ImplicitLocOpBuilder b(op->getLoc(), op);
  SmallVector<unsigned> back = inverse(*order);
  SmallVector<int64_t> shape;
  for (unsigned d : *order)
    shape.push_back(type.getDimSize(d));
  auto newType = RankedTensorType::get(shape, type.getElementType());
  Value result;
  if (concat) {
    SmallVector<Value> parts;
    for (Value part : concat.getParts())
      parts.push_back(inOrder(b, op->getLoc(), part, *order));
    result = ConcatOp::create(b, newType, parts, concat.getSizes(), back[concat.getDim()]);
  } else {
    // Old loop d is new loop back[d].
    SmallVector<AffineExpr> dims;
    for (unsigned d : back)
      dims.push_back(b.getAffineDimExpr(d));
    SmallVector<AffineMap> maps;
    for (AffineMap map : generic.getIndexingMapsArray())
      maps.push_back(map.replaceDimsAndSymbols(dims, {}, dims.size(), 0));
    maps.back() = b.getMultiDimIdentityMap(dims.size());
    Value oldInit = generic.getDpsInits()[0];
    auto oldEmpty = oldInit.getDefiningOp<tensor::EmptyOp>();
    if (!oldEmpty)
      return false;
    Value init = tensor::EmptyOp::create(b, newType, oldEmpty.getDynamicSizes());
    SmallVector<Value> inputs(generic.getInputs());
    // A view in the loops' order shows a view that splits rows as such.
    for (auto [input, map] : llvm::zip(inputs, maps))
      if (input.getDefiningOp<ViewOp>() && generic.getIndexingMapsArray()[&input - inputs.data()].isIdentity()) {
        input = inOrder(b, op->getLoc(), input, *order);
        map = b.getMultiDimIdentityMap(dims.size());
      }
    auto made = linalg::GenericOp::create(b, TypeRange{newType}, inputs, ValueRange{init}, maps,
                                          SmallVector<utils::IteratorType>(dims.size(), utils::IteratorType::parallel));
    made.getRegion().takeBody(generic.getRegion());
    made.walk([&](linalg::IndexOp index) { index.setDim(back[index.getDim()]); });
    result = made.getResult(0);
  }
  Value view = permuted(b, op->getLoc(), result, back);
  op->getResult(0).replaceAllUsesWith(view);
  op->erase();
  return true;
}

} // namespace accel
