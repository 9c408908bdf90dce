#include "dialects/accel/SymbolicSizes.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace accel {
namespace {

/// A product of factors that are not constants, sorted by `factorLess`.
using Monomial = SmallVector<AffineExpr, 4>;
using Polynomial = SmallVector<std::pair<Monomial, int64_t>>;

/// A total order that does not depend on addresses.
bool factorLess(AffineExpr a, AffineExpr b) {
  if (a == b)
    return false;
  if (a.getKind() != b.getKind())
    return a.getKind() > b.getKind();
  if (auto sa = dyn_cast<AffineSymbolExpr>(a))
    return sa.getPosition() < cast<AffineSymbolExpr>(b).getPosition();
  if (auto da = dyn_cast<AffineDimExpr>(a))
    return da.getPosition() < cast<AffineDimExpr>(b).getPosition();
  if (auto ca = dyn_cast<AffineConstantExpr>(a))
    return ca.getValue() < cast<AffineConstantExpr>(b).getValue();
  auto ba = cast<AffineBinaryOpExpr>(a), bb = cast<AffineBinaryOpExpr>(b);
  return ba.getLHS() == bb.getLHS() ? factorLess(ba.getRHS(), bb.getRHS()) : factorLess(ba.getLHS(), bb.getLHS());
}

bool monomialLess(const Monomial &a, const Monomial &b) {
  if (a.size() != b.size())
    return a.size() > b.size();
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), factorLess);
}

void addTerm(Polynomial &poly, Monomial monomial, int64_t coefficient) {
  llvm::sort(monomial, factorLess);
  for (auto &[m, c] : poly)
    if (m == monomial) {
      c += coefficient;
      return;
    }
  poly.emplace_back(std::move(monomial), coefficient);
}

Polynomial polynomial(AffineExpr expr) {
  Polynomial result;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    addTerm(result, {}, constant.getValue());
    return result;
  }
  if (expr.getKind() == AffineExprKind::Add || expr.getKind() == AffineExprKind::Mul) {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Polynomial a = polynomial(binary.getLHS()), b = polynomial(binary.getRHS());
    if (expr.getKind() == AffineExprKind::Add) {
      for (auto &[m, c] : b)
        addTerm(a, m, c);
      return a;
    }
    for (auto &[ma, ca] : a)
      for (auto &[mb, cb] : b) {
        Monomial m = ma;
        m.append(mb.begin(), mb.end());
        addTerm(result, std::move(m), ca * cb);
      }
    return result;
  }
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr))
    expr = getAffineBinaryOpExpr(expr.getKind(), normalize(binary.getLHS()), normalize(binary.getRHS()));
  addTerm(result, {expr}, 1);
  return result;
}

} // namespace

AffineExpr normalize(AffineExpr expr) {
  if (isa<AffineConstantExpr, AffineSymbolExpr, AffineDimExpr>(expr))
    return expr;
  Polynomial poly = polynomial(expr);
  llvm::sort(poly, [](auto &a, auto &b) { return monomialLess(a.first, b.first); });
  AffineExpr sum = getAffineConstantExpr(0, expr.getContext());
  for (auto &[monomial, coefficient] : poly) {
    if (!coefficient)
      continue;
    AffineExpr product = getAffineConstantExpr(1, expr.getContext());
    for (AffineExpr factor : monomial)
      product = product * factor;
    sum = sum + product * coefficient;
  }
  return sum;
}

SymbolicSizes::SymbolicSizes(Operation *function) : ctx(function->getContext()) {
  entry = &function->getRegion(0).front();
  for (BlockArgument arg : entry->getArguments())
    if (arg.getType().isIndex()) {
      exprs[arg] = getAffineSymbolExpr(numSyms++, ctx);
      symbols.push_back(arg);
    }
}

AffineExpr SymbolicSizes::exprOf(Value index) {
  if (auto it = exprs.find(index); it != exprs.end())
    return it->second;
  AffineExpr expr;
  APInt constant;
  Operation *def = index.getDefiningOp();
  if (matchPattern(index, m_ConstantInt(&constant))) {
    expr = getAffineConstantExpr(constant.getSExtValue(), ctx);
  } else if (auto apply = dyn_cast_or_null<affine::AffineApplyOp>(def)) {
    AffineMap map = apply.getAffineMap();
    SmallVector<AffineExpr> operands;
    for (Value v : apply.getMapOperands()) {
      operands.push_back(exprOf(v));
      if (!operands.back())
        return nullptr;
    }
    ArrayRef<AffineExpr> all = operands;
    expr = normalize(
        map.getResult(0).replaceDimsAndSymbols(all.take_front(map.getNumDims()), all.drop_front(map.getNumDims())));
  } else if (auto dim = dyn_cast_or_null<tensor::DimOp>(def)) {
    if (auto d = dim.getConstantIndex())
      expr = sizeOf(dim.getSource(), *d);
  } else if (def && def->getNumOperands() == 2 && isa<arith::AddIOp, arith::MulIOp, arith::SubIOp>(def)) {
    AffineExpr a = exprOf(def->getOperand(0)), b = exprOf(def->getOperand(1));
    if (a && b)
      expr = normalize(isa<arith::AddIOp>(def) ? a + b : isa<arith::MulIOp>(def) ? a * b : a - b);
  }
  if (expr)
    exprs[index] = expr;
  return expr;
}

AffineExpr SymbolicSizes::sizeOf(Value tensor, unsigned dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return getAffineConstantExpr(type.getDimSize(dim), ctx);
  unsigned dynamic = type.getDynamicDimIndex(dim);
  if (auto arg = dyn_cast<BlockArgument>(tensor)) {
    auto function = dyn_cast<FunctionOpInterface>(arg.getOwner()->getParentOp());
    if (!function)
      return nullptr;
    auto layout = function.getArgAttrOfType<LayoutAttr>(arg.getArgNumber(), kLayoutAttr);
    return layout ? layout.getSizes().getValue().getResult(dim) : AffineExpr();
  }
  Operation *def = tensor.getDefiningOp();
  if (auto empty = dyn_cast<tensor::EmptyOp>(def))
    return exprOf(empty.getDynamicSizes()[dynamic]);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(def))
    return sizeOf(linalgOp.getDpsInits()[cast<OpResult>(tensor).getResultNumber()], dim);
  if (auto view = dyn_cast<ViewOp>(def))
    return exprOf(view.getSizes()[dynamic]);
  if (auto reshape = dyn_cast<ReshapeOp>(def))
    return exprOf(reshape.getSizes()[dynamic]);
  if (auto concat = dyn_cast<ConcatOp>(def))
    return exprOf(concat.getSizes()[dynamic]);
  if (auto scan = dyn_cast<ScanOp>(def))
    return exprOf(scan.getSizes()[dynamic]);
  if (auto scatter = dyn_cast<ScatterOp>(def))
    return exprOf(scatter.getSizes()[dynamic]);
  if (auto attention = dyn_cast<AttentionOp>(def))
    return sizeOf(dim == 3 ? attention.getValue() : attention.getQuery(), dim == 1 ? 2 : dim == 2 ? 1 : dim);
  if (auto fusion = dyn_cast<FusionOp>(def))
    return sizeOf(fusion.getBody().front().getTerminator()->getOperand(cast<OpResult>(tensor).getResultNumber()), dim);
  if (auto call = dyn_cast<AtenCallOp>(def)) {
    auto layouts = call.getResultLayoutsAttr();
    // A library call carries the dynamic sizes of its only result as its last operands.
    if (!layouts)
      return exprOf(call.getOperands().take_back(type.getNumDynamicDims())[dynamic]);
    auto layout = cast<LayoutAttr>(layouts[cast<OpResult>(tensor).getResultNumber()]);
    return layout.getSizes().getValue().getResult(dim);
  }
  if (auto launch = dyn_cast<LaunchOp>(def)) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(def, launch.getKernelAttr());
    if (!kernel)
      return nullptr;
    AffineMap sizes = kernel.resultLayout(cast<OpResult>(tensor).getResultNumber()).getSizes().getValue();
    SmallVector<AffineExpr> replacements;
    for (Value operand : launch.getOperands())
      if (operand.getType().isIndex()) {
        replacements.push_back(exprOf(operand));
        if (!replacements.back())
          return nullptr;
      }
    return normalize(sizes.getResult(dim).replaceSymbols(replacements));
  }
  return nullptr;
}

SmallVector<AffineExpr> SymbolicSizes::sizesOf(Value tensor) {
  SmallVector<AffineExpr> sizes;
  for (int64_t d = 0, e = cast<RankedTensorType>(tensor.getType()).getRank(); d < e; ++d)
    sizes.push_back(sizeOf(tensor, d));
  return sizes;
}

OpFoldResult SymbolicSizes::materialize(OpBuilder &builder, Location loc, AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return builder.getIndexAttr(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  Value v = affine::AffineApplyOp::create(builder, loc, AffineMap::get(0, numSyms, expr), symbols);
  exprs[v] = expr;
  return v;
}

LayoutAttr SymbolicSizes::layout(ArrayRef<AffineExpr> sizes, ArrayRef<AffineExpr> strides) {
  return LayoutAttr::get(ctx, AffineMapAttr::get(AffineMap::get(0, numSyms, sizes, ctx)),
                         AffineMapAttr::get(AffineMap::get(0, numSyms, strides, ctx)));
}

SmallVector<AffineExpr> contiguousStrides(ArrayRef<AffineExpr> sizes, MLIRContext *ctx) {
  SmallVector<AffineExpr> strides(sizes.size());
  AffineExpr stride = getAffineConstantExpr(1, ctx);
  for (int64_t d = int64_t(sizes.size()) - 1; d >= 0; --d) {
    strides[d] = stride;
    auto constant = dyn_cast<AffineConstantExpr>(sizes[d]);
    if (!constant || constant.getValue() != 0)
      stride = normalize(stride * sizes[d]);
  }
  return strides;
}

} // namespace accel
