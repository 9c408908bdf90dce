#include "passes/graph/Packing.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace accel {
namespace {

/// The node's location, with the packing as what is done there.
Location packingOf(Location loc) {
  auto node = dyn_cast<NameLoc>(loc);
  auto target = node ? dyn_cast<NameLoc>(node.getChildLoc()) : NameLoc();
  if (!target)
    return loc;
  auto packing = NameLoc::get(StringAttr::get(loc.getContext(), "accel.pack"), target.getChildLoc());
  return NameLoc::get(node.getName(), packing);
}

Value zeros(ImplicitLocOpBuilder &b, ArrayRef<int64_t> shape, Type element) {
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(element));
  Value empty = tensor::EmptyOp::create(b, shape, element);
  SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(shape.size())};
  SmallVector<utils::IteratorType> iterators(shape.size(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &nested, Location loc, ValueRange) { linalg::YieldOp::create(nested, loc, zero); };
  return linalg::GenericOp::create(b, TypeRange{empty.getType()}, ValueRange(), ValueRange{empty}, maps, iterators,
                                   body)
      .getResult(0);
}

} // namespace

Value packPanels(ImplicitLocOpBuilder &b, Value source, unsigned columns, ArrayRef<unsigned> depth, int64_t width) {
  Location before = b.getLoc();
  b.setLoc(packingOf(before));
  llvm::scope_exit restore([&] { b.setLoc(before); });
  auto type = cast<RankedTensorType>(source.getType());
  Type element = type.getElementType();
  int64_t count = type.getDimSize(columns), whole = count / width, rest = count % width;
  unsigned rank = depth.size() + 2;
  auto shape = [&](int64_t panels, int64_t lanes) {
    SmallVector<int64_t> result = {panels};
    for (unsigned d : depth)
      result.push_back(type.getDimSize(d));
    result.push_back(lanes);
    return result;
  };
  auto copied = [&](AffineExpr column, ArrayRef<int64_t> sizes) -> Value {
    SmallVector<AffineExpr> indices(type.getRank(), b.getAffineConstantExpr(0));
    indices[columns] = column;
    for (auto [i, d] : llvm::enumerate(depth))
      indices[d] = b.getAffineDimExpr(i + 1);
    Value view = ViewOp::create(b, RankedTensorType::get(sizes, element), source, ValueRange(), ValueRange(),
                                AffineMapAttr::get(AffineMap::get(rank, 0, indices, b.getContext())));
    Value empty = tensor::EmptyOp::create(b, sizes, element);
    return linalg::CopyOp::create(b, ValueRange{view}, ValueRange{empty}).getResult(0);
  };
  AffineExpr panel = b.getAffineDimExpr(0), lane = b.getAffineDimExpr(rank - 1);
  Value panels;
  if (whole)
    panels = copied(panel * width + lane, shape(whole, width));
  if (rest) {
    Value filled = copied(lane + whole * width, shape(1, rest));
    Value last =
        ConcatOp::create(b, RankedTensorType::get(shape(1, width), element),
                         ValueRange{filled, zeros(b, shape(1, width - rest), element)}, ValueRange(), rank - 1);
    panels = whole ? ConcatOp::create(b, RankedTensorType::get(shape(whole + 1, width), element),
                                      ValueRange{panels, last}, ValueRange(), 0)
                         .getResult()
                   : last;
  }
  return panels;
}

Value contraction(ImplicitLocOpBuilder &b, Value a, Value right, Value init, ArrayRef<AffineMap> maps,
                  unsigned numLoops, unsigned numReductions, StringRef choice) {
  SmallVector<utils::IteratorType> iterators(numLoops, utils::IteratorType::parallel);
  std::fill(iterators.end() - numReductions, iterators.end(), utils::IteratorType::reduction);
  auto body = [](OpBuilder &nested, Location loc, ValueRange args) {
    bool real = isa<FloatType>(args[0].getType());
    Value product = real ? arith::MulFOp::create(nested, loc, args[0], args[1]).getResult()
                         : arith::MulIOp::create(nested, loc, args[0], args[1]);
    Value sum = real ? arith::AddFOp::create(nested, loc, args[2], product).getResult()
                     : arith::AddIOp::create(nested, loc, args[2], product);
    linalg::YieldOp::create(nested, loc, sum);
  };
  auto generic = linalg::GenericOp::create(b, TypeRange{init.getType()}, ValueRange{a, right}, ValueRange{init}, maps,
                                           iterators, body);
  generic->setAttr("accel.choice", b.getStringAttr(choice));
  return generic.getResult(0);
}

} // namespace accel
