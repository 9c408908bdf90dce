#include "passes/kernels/Layouts.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace accel {
namespace {

AffineExpr one(MLIRContext *ctx) { return getAffineConstantExpr(1, ctx); }

bool isOne(AffineExpr expr) {
  auto constant = dyn_cast<AffineConstantExpr>(expr);
  return constant && constant.getValue() == 1;
}

bool isZero(AffineExpr expr) {
  auto constant = dyn_cast<AffineConstantExpr>(expr);
  return constant && constant.getValue() == 0;
}

/// Splits a linear expression into the coefficients of its dimensions and the rest.
void linearTerms(AffineExpr expr, AffineExpr factor, MutableArrayRef<AffineExpr> coefficients, AffineExpr &rest) {
  if (expr.getKind() == AffineExprKind::Add) {
    auto sum = cast<AffineBinaryOpExpr>(expr);
    linearTerms(sum.getLHS(), factor, coefficients, rest);
    linearTerms(sum.getRHS(), factor, coefficients, rest);
  } else if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    coefficients[dim.getPosition()] = coefficients[dim.getPosition()] + factor;
  } else if (expr.getKind() == AffineExprKind::Mul && !expr.isSymbolicOrConstant()) {
    auto product = cast<AffineBinaryOpExpr>(expr);
    linearTerms(product.getLHS(), factor * product.getRHS(), coefficients, rest);
  } else {
    rest = rest + expr * factor;
  }
}

} // namespace

int64_t representative(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return 1009 + 110 * symbol.getPosition();
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return 1;
  int64_t a = representative(binary.getLHS()), b = representative(binary.getRHS());
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return a + b;
  case AffineExprKind::Mul:
    return a * b;
  case AffineExprKind::FloorDiv:
    return b ? a / b : 1;
  case AffineExprKind::CeilDiv:
    return b ? (a + b - 1) / b : 1;
  default:
    return b ? a % b : 1;
  }
}

Operation *concatOfPart(Value value) {
  if (!value.hasOneUse())
    return nullptr;
  return dyn_cast<ConcatOp>(*value.user_begin());
}

std::optional<SmallVector<AffineExpr>> reshapeStrides(ArrayRef<AffineExpr> sizes, ArrayRef<AffineExpr> strides,
                                                      ArrayRef<AffineExpr> newSizes, MLIRContext *ctx) {
  // A tensor without elements has no strides to respect.
  if (llvm::any_of(sizes, isZero))
    return contiguousStrides(newSizes, ctx);
  SmallVector<AffineExpr> oldSizes, oldStrides;
  for (auto [size, stride] : llvm::zip(sizes, strides))
    if (!isOne(size)) {
      // Merge with the dimension before where the two are one run.
      if (!oldSizes.empty() && oldStrides.back() == normalize(size * stride)) {
        oldSizes.back() = normalize(oldSizes.back() * size);
        oldStrides.back() = stride;
        continue;
      }
      oldSizes.push_back(size);
      oldStrides.push_back(stride);
    }
  SmallVector<AffineExpr> result(newSizes.size(), one(ctx));
  if (oldSizes.size() <= 1) {
    AffineExpr step = oldSizes.empty() ? one(ctx) : oldStrides[0];
    for (auto [d, stride] : llvm::enumerate(contiguousStrides(newSizes, ctx)))
      result[d] = normalize(stride * step);
    return result;
  }
  // From the last dimension on, each run of the old sizes is cut into new ones.
  int64_t d = int64_t(newSizes.size()) - 1;
  for (int64_t i = int64_t(oldSizes.size()) - 1; i >= 0; --i) {
    AffineExpr product = one(ctx), step = oldStrides[i];
    while (d >= 0 && product != oldSizes[i]) {
      if (i > 0 && representative(product) > representative(oldSizes[i]))
        return std::nullopt;
      result[d] = normalize(product * step);
      product = normalize(product * newSizes[d]);
      --d;
    }
    if (i > 0 && product != oldSizes[i])
      return std::nullopt;
  }
  for (; d >= 0; --d) // what is left are ones
    result[d] = one(ctx);
  return result;
}

std::optional<Placement> Layouts::fresh(Value tensor) {
  MLIRContext *ctx = sizes.context();
  Placement placement{tensor, sizes.sizesOf(tensor), {}, getAffineConstantExpr(0, ctx)};
  if (llvm::is_contained(placement.sizes, AffineExpr()))
    return std::nullopt;
  // A result that leaves the function has the layout that eager gives it.
  for (OpOperand &use : tensor.getUses())
    if (auto ret = dyn_cast<func::ReturnOp>(use.getOwner())) {
      auto func = cast<func::FuncOp>(ret->getParentOp());
      if (auto layout = func.getResultAttrOfType<LayoutAttr>(use.getOperandNumber(), kLayoutAttr)) {
        placement.strides = llvm::to_vector(layout.getStrides().getValue().getResults());
        bool dense = llvm::all_of(llvm::zip(placement.sizes, placement.strides),
                                  [](auto pair) { return isOne(std::get<0>(pair)) || !isZero(std::get<1>(pair)); });
        if (dense)
          return placement;
      }
    }
  placement.strides = contiguousStrides(placement.sizes, ctx);
  return placement;
}

std::optional<Placement> Layouts::compute(Value tensor) {
  MLIRContext *ctx = sizes.context();
  if (auto arg = dyn_cast<BlockArgument>(tensor)) {
    auto function = cast<FunctionOpInterface>(arg.getOwner()->getParentOp());
    auto layout = function.getArgAttrOfType<LayoutAttr>(arg.getArgNumber(), kLayoutAttr);
    if (!layout)
      return fresh(tensor);
    return Placement{tensor, llvm::to_vector(layout.getSizes().getValue().getResults()),
                     llvm::to_vector(layout.getStrides().getValue().getResults()), getAffineConstantExpr(0, ctx)};
  }
  Operation *def = tensor.getDefiningOp();
  if (auto view = dyn_cast<ViewOp>(def)) {
    if (view.getPadded())
      return std::nullopt;
    std::optional<Placement> source = placementOf(view.getSource());
    if (!source)
      return std::nullopt;
    AffineMap map = view.getMap();
    SmallVector<AffineExpr> symbols;
    for (Value symbol : view.getSymbols())
      symbols.push_back(sizes.exprOf(symbol));
    Placement result{source->root, sizes.sizesOf(tensor), {}, source->offset};
    result.strides.assign(map.getNumDims(), getAffineConstantExpr(0, ctx));
    for (auto [expr, stride] : llvm::zip(map.getResults(), source->strides))
      linearTerms(expr.replaceSymbols(symbols), stride, result.strides, result.offset);
    for (AffineExpr &stride : result.strides)
      stride = normalize(stride);
    result.offset = normalize(result.offset);
    return result;
  }
  if (auto reshape = dyn_cast<ReshapeOp>(def)) {
    std::optional<Placement> source = placementOf(reshape.getSource());
    if (!source)
      return std::nullopt;
    SmallVector<AffineExpr> newSizes = sizes.sizesOf(tensor);
    auto strides = reshapeStrides(source->sizes, source->strides, newSizes, ctx);
    if (!strides)
      return std::nullopt;
    return Placement{source->root, newSizes, *strides, source->offset};
  }
  if (auto concat = dyn_cast_or_null<ConcatOp>(concatOfPart(tensor)); concat && !isa<AtenCallOp>(def)) {
    std::optional<Placement> whole = placementOf(concat.getResult());
    if (!whole)
      return std::nullopt;
    Placement result{whole->root, sizes.sizesOf(tensor), whole->strides, whole->offset};
    int64_t dim = concat.getDim();
    for (Value part : concat.getParts()) {
      if (part == tensor)
        break;
      result.offset = result.offset + sizes.sizeOf(part, dim) * whole->strides[dim];
    }
    result.offset = normalize(result.offset);
    return result;
  }
  if (auto call = dyn_cast<AtenCallOp>(def))
    if (auto layouts = call.getResultLayoutsAttr()) {
      auto layout = cast<LayoutAttr>(layouts[cast<OpResult>(tensor).getResultNumber()]);
      return Placement{tensor, llvm::to_vector(layout.getSizes().getValue().getResults()),
                       llvm::to_vector(layout.getStrides().getValue().getResults()), getAffineConstantExpr(0, ctx)};
    }
  return fresh(tensor);
}

void Layouts::rename(Value old, Value now) {
  std::optional<Placement> moved = placementOf(old);
  known.erase(old);
  for (auto &[value, placement] : known)
    if (placement && placement->root == old)
      placement->root = now;
  if (moved && moved->root == old)
    moved->root = now;
  known[now] = moved;
}

std::optional<Placement> Layouts::placementOf(Value tensor) {
  if (auto it = known.find(tensor); it != known.end())
    return it->second;
  std::optional<Placement> result = compute(tensor);
  known[tensor] = result;
  return result;
}

} // namespace accel
