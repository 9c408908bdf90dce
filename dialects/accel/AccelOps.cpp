#include "dialects/accel/AccelDialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/accel/AccelOps.cpp.inc"

namespace accel {
namespace {

LogicalResult verifySizes(Operation *op, Value result, OperandRange sizes) {
  auto type = cast<RankedTensorType>(result.getType());
  if (sizes.size() != size_t(type.getNumDynamicDims()))
    return op->emitOpError() << "has " << sizes.size() << " sizes for " << type.getNumDynamicDims()
                             << " dynamic dimensions of " << type;
  return success();
}

/// Whether the expression is linear in its dimensions, with constants and symbols as coefficients.
bool isLinear(AffineExpr expr) {
  switch (expr.getKind()) {
  case AffineExprKind::Add: {
    auto sum = cast<AffineBinaryOpExpr>(expr);
    return isLinear(sum.getLHS()) && isLinear(sum.getRHS());
  }
  case AffineExprKind::Mul: {
    auto product = cast<AffineBinaryOpExpr>(expr);
    return isLinear(product.getLHS()) && product.getRHS().isSymbolicOrConstant();
  }
  case AffineExprKind::DimId:
    return true;
  default:
    return expr.isSymbolicOrConstant();
  }
}

} // namespace

//===-- accel.view
//--------------------------------------------------------------------------------------------------===//

LogicalResult ViewOp::verify() {
  AffineMap map = getMap();
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (source.getElementType() != result.getElementType())
    return emitOpError() << "changes the element type from " << source.getElementType() << " to "
                         << result.getElementType();
  if (map.getNumDims() != result.getRank() || map.getNumResults() != source.getRank())
    return emitOpError() << "map " << getMapAttr() << " does not take " << result.getRank() << " dimensions to "
                         << source.getRank();
  if (map.getNumSymbols() != getSymbols().size())
    return emitOpError() << "map has " << map.getNumSymbols() << " symbols but " << getSymbols().size() << " are given";
  for (auto [i, expr] : llvm::enumerate(map.getResults()))
    if (!isLinear(expr))
      return emitOpError() << "result " << i << " of " << getMapAttr() << " is not linear in the dimensions";
  return verifySizes(*this, getResult(), getSizes());
}

OpFoldResult ViewOp::fold(FoldAdaptor) {
  // Equal types don't mean equal sizes where these are dynamic: x[:, :-1] has an identity map too.
  auto type = cast<RankedTensorType>(getResult().getType());
  if (!getPadded() && getMap().isIdentity() && getSource().getType() == type && type.hasStaticShape())
    return getSource();
  return {};
}

namespace {
/// view(view(x)) is one view.
struct ComposeViews : OpRewritePattern<ViewOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ViewOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<ViewOp>();
    if (!inner || inner.getPadded() || op.getPadded())
      return rewriter.notifyMatchFailure(op, "no view of a view without padding");
    AffineMap map = inner.getMap().compose(op.getMap());
    // compose() puts the symbols of the first map before those of the second.
    SmallVector<Value> symbols(inner.getSymbols());
    llvm::append_range(symbols, op.getSymbols());
    rewriter.replaceOpWithNewOp<ViewOp>(op, op.getType(), inner.getSource(), symbols, op.getSizes(),
                                        AffineMapAttr::get(simplifyAffineMap(map)));
    return success();
  }
};
} // namespace

void ViewOp::getCanonicalizationPatterns(RewritePatternSet &results, MLIRContext *context) {
  results.add<ComposeViews>(context);
}

//===-- accel.reshape, accel.concat
//---------------------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (source.getElementType() != result.getElementType())
    return emitOpError() << "changes the element type from " << source.getElementType() << " to "
                         << result.getElementType();
  if (source.hasStaticShape() && result.hasStaticShape() && source.getNumElements() != result.getNumElements())
    return emitOpError() << "takes " << source.getNumElements() << " elements to " << result.getNumElements();
  return verifySizes(*this, getResult(), getSizes());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  auto type = cast<RankedTensorType>(getResult().getType());
  // Beside dimensions of known size, none of them 0, a single unknown one is what it was.
  if (getSource().getType() == type && type.getNumDynamicDims() <= 1 && !llvm::is_contained(type.getShape(), 0))
    return getSource();
  if (auto inner = getSource().getDefiningOp<ReshapeOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

LogicalResult ConcatOp::verify() {
  auto result = cast<RankedTensorType>(getResult().getType());
  int64_t dim = getDim();
  if (getParts().empty())
    return emitOpError() << "has no parts";
  if (dim < 0 || dim >= result.getRank())
    return emitOpError() << "dimension " << dim << " is not in [0, " << result.getRank() << ")";
  for (Value part : getParts()) {
    auto type = cast<RankedTensorType>(part.getType());
    if (type.getElementType() != result.getElementType() || type.getRank() != result.getRank())
      return emitOpError() << "part " << type << " does not fit " << result;
  }
  return verifySizes(*this, getResult(), getSizes());
}

//===-- accel.scan, accel.scatter
//----------------------------------------------------------------------------------===//

LogicalResult ScanOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  int64_t dim = getDim();
  if (dim < 0 || dim >= type.getRank())
    return emitOpError() << "dimension " << dim << " is not in [0, " << type.getRank() << ")";
  if (getCombine() != "add" && getCombine() != "mul" && getCombine() != "logaddexp")
    return emitOpError() << "combines by \"" << getCombine() << "\", expected \"add\", \"mul\" or \"logaddexp\"";
  return verifySizes(*this, getResult(), getSizes());
}

LogicalResult ScatterOp::verify() {
  AffineMap map = getMap();
  auto updates = cast<RankedTensorType>(getUpdates().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (getCombine() != "add" && getCombine() != "set")
    return emitOpError() << "combines by \"" << getCombine() << "\", expected \"add\" or \"set\"";
  if (getInto() && getInto().getType() != result)
    return emitOpError() << "writes into " << getInto().getType() << " but yields " << result;
  if (updates.getElementType() != result.getElementType())
    return emitOpError() << "writes elements of " << updates.getElementType() << " into " << result;
  if (map.getNumDims() != updates.getRank() || map.getNumResults() != result.getRank() ||
      map.getNumSymbols() != getIndices().size())
    return emitOpError() << "map " << getMapAttr() << " does not take " << updates.getRank() << " dimensions and "
                         << getIndices().size() << " indices to " << result.getRank();
  llvm::SmallDenseSet<unsigned> seen;
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim && !isa<AffineSymbolExpr>(expr))
      return emitOpError() << "map " << getMapAttr() << " has a result that is neither a dimension nor an index";
    if (dim && !seen.insert(dim.getPosition()).second)
      return emitOpError() << "map " << getMapAttr() << " names a dimension twice";
  }
  if (getIndexMaps().size() != getIndices().size())
    return emitOpError() << "has " << getIndexMaps().size() << " index maps for " << getIndices().size() << " indices";
  for (auto [attr, index] : llvm::zip(getIndexMaps(), getIndices())) {
    AffineMap indexMap = cast<AffineMapAttr>(attr).getValue();
    auto type = cast<RankedTensorType>(index.getType());
    if (!type.getElementType().isInteger() || indexMap.getNumDims() != map.getNumDims() ||
        indexMap.getNumSymbols() != 0 || indexMap.getNumResults() != type.getRank())
      return emitOpError() << "index map " << attr << " does not read " << type;
  }
  return verifySizes(*this, getResult(), getSizes());
}

//===-- accel.attention
//---------------------------------------------------------------------------------------------===//

LogicalResult AttentionOp::verify() {
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  RankedTensorType q = typeOf(getQuery()), k = typeOf(getKey()), v = typeOf(getValue());
  for (RankedTensorType type : {q, k, v})
    if (type.getRank() != 4 || type.getElementType() != q.getElementType() || !isa<FloatType>(q.getElementType()))
      return emitOpError() << "takes tensors of rank 4 of one float type, got " << q << ", " << k << " and " << v;
  for (int64_t size : {q.getDimSize(1), q.getDimSize(3), k.getDimSize(1), v.getDimSize(3)})
    if (size <= 0)
      return emitOpError() << "takes static numbers of heads and head sizes above zero, got " << q << ", " << k
                           << " and " << v;
  if (q.getDimSize(1) % k.getDimSize(1))
    return emitOpError() << k.getDimSize(1) << " key heads don't divide " << q.getDimSize(1) << " query heads";
  auto fits = [](RankedTensorType type, ArrayRef<int64_t> shape) {
    return type.getRank() == int64_t(shape.size()) && llvm::all_of(llvm::zip(type.getShape(), shape), [](auto sizes) {
             auto [a, b] = sizes;
             return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
           });
  };
  int64_t batch = q.getDimSize(0), heads = q.getDimSize(1), rows = q.getDimSize(2), columns = k.getDimSize(2);
  if (!fits(k, {batch, k.getDimSize(1), columns, q.getDimSize(3)}))
    return emitOpError() << "keys " << k << " don't fit queries " << q;
  if (!fits(v, {batch, k.getDimSize(1), columns, v.getDimSize(3)}))
    return emitOpError() << "values " << v << " don't fit keys " << k;
  if (getMask() && !fits(typeOf(getMask()), {batch, heads, rows, columns}))
    return emitOpError() << "mask " << typeOf(getMask()) << " doesn't fit queries " << q << " and keys " << k;
  if (!fits(typeOf(getOut()), {batch, rows, heads, v.getDimSize(3)}))
    return emitOpError() << "yields " << typeOf(getOut()) << " for queries " << q << " and values " << v;
  if (!fits(typeOf(getLogsumexp()), {batch, rows, heads}))
    return emitOpError() << "yields logarithms " << typeOf(getLogsumexp()) << " for queries " << q;
  return success();
}

//===-- accel.aten_call
//---------------------------------------------------------------------------------------------===//

LogicalResult AtenCallOp::verify() {
  if (getKind() != "library" && getKind() != "fallback")
    return emitOpError() << "kind is \"" << getKind() << "\", expected \"library\" or \"fallback\"";
  if (auto layouts = getResultLayoutsAttr())
    if (layouts.size() != getNumResults())
      return emitOpError() << "has " << layouts.size() << " result layouts for " << getNumResults() << " results";
  int64_t count = getOperands().size();
  WalkResult found = WalkResult::advance();
  getOperation()->getAttrDictionary().walk([&](OperandAttr operand) {
    if (operand.getIndex() < 0 || operand.getIndex() >= count)
      found = emitOpError() << "argument names operand " << operand.getIndex() << " of " << count;
    return WalkResult::advance();
  });
  return failure(found.wasInterrupted());
}

void AtenCallOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (getEffects())
    effects.emplace_back(MemoryEffects::Write::get());
}

//===-- accel.fusion, accel.kernel, accel.launch
//--------------------------------------------------------------------===//

namespace {
LogicalResult verifyLoops(Operation *op, Block &body, int64_t loops) {
  for (Operation &inner : body) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(inner);
    if (!linalgOp || isa<linalg::FillOp>(inner))
      continue;
    auto attr = inner.getAttrOfType<DenseI64ArrayAttr>(kLoopsAttr);
    if (!attr)
      return inner.emitOpError() << "in a kernel has no '" << kLoopsAttr << "'";
    if (attr.size() != int64_t(linalgOp.getNumLoops()))
      return inner.emitOpError() << "has " << linalgOp.getNumLoops() << " dimensions but '" << kLoopsAttr << "' names "
                                 << attr.size();
    for (int64_t loop : attr.asArrayRef())
      if (loop < -1 || loop >= loops)
        return inner.emitOpError() << "runs over loop " << loop << " of " << loops;
  }
  return success();
}
} // namespace

LogicalResult FusionOp::verify() {
  Operation *yield = getBody().front().getTerminator();
  if (yield->getOperandTypes() != getResultTypes())
    return emitOpError() << "yields other types than its results";
  return verifyLoops(*this, getBody().front(), getParallel() + getRows());
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto build = [](Builder &b, ArrayRef<Type> in, ArrayRef<Type> out, function_interface_impl::VariadicFlag,
                  std::string &) { return b.getFunctionType(in, out); };
  return function_interface_impl::parseFunctionOp(parser, result, false, getFunctionTypeAttrName(result.name), build,
                                                  getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &p) {
  function_interface_impl::printFunctionOp(p, *this, false, getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                           getResAttrsAttrName());
}

LayoutAttr KernelOp::argLayout(unsigned i) { return getArgAttrOfType<LayoutAttr>(i, kLayoutAttr); }
LayoutAttr KernelOp::resultLayout(unsigned i) { return getResultAttrOfType<LayoutAttr>(i, kLayoutAttr); }

Operation *KernelOp::ownOp() {
  for (Operation &op : getBody().front())
    if (op.hasTrait<OwnKernel>())
      return &op;
  return nullptr;
}

LogicalResult KernelOp::verify() {
  bool sawIndex = false;
  unsigned symbols = llvm::count_if(getArgumentTypes(), [](Type t) { return t.isIndex(); });
  auto verifyLayout = [&](Type type, LayoutAttr layout, StringRef what, unsigned i) -> LogicalResult {
    if (!layout)
      return emitOpError() << what << " " << i << " has no '" << kLayoutAttr << "'";
    auto tensor = cast<RankedTensorType>(type);
    AffineMap sizes = layout.getSizes().getValue();
    if (sizes.getNumResults() != unsigned(tensor.getRank()) || sizes.getNumSymbols() != symbols)
      return emitOpError() << what << " " << i << " of type " << type << " has layout " << layout;
    return success();
  };
  for (auto [i, type] : llvm::enumerate(getArgumentTypes())) {
    if (type.isIndex()) {
      sawIndex = true;
      continue;
    }
    if (!isa<RankedTensorType>(type))
      return emitOpError() << "argument " << i << " is " << type << ", expected a tensor or an index";
    if (sawIndex)
      return emitOpError() << "tensor argument " << i << " comes after an index argument";
    if (failed(verifyLayout(type, argLayout(i), "argument", i)))
      return failure();
  }
  for (auto [i, type] : llvm::enumerate(getResultTypes()))
    if (failed(verifyLayout(type, resultLayout(i), "result", i)))
      return failure();
  if (getBody().front().getTerminator()->getOperandTypes() != getResultTypes())
    return emitOpError() << "yields other types than its results";
  return verifyLoops(*this, getBody().front(), getParallel() + getRows());
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto kernel = symbolTable.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "there is no kernel '" << getKernel() << "'";
  if (kernel.getArgumentTypes() != ArrayRef<Type>(SmallVector<Type>(getOperandTypes())) ||
      kernel.getResultTypes() != ArrayRef<Type>(SmallVector<Type>(getResultTypes())))
    return emitOpError() << "does not fit kernel '" << getKernel() << "' of type " << kernel.getFunctionType();
  return success();
}

} // namespace accel
