#include "passes/schedule/KernelLoops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/fusion/FusionGroups.h"
#include "passes/kernels/Layouts.h"

using namespace mlir;

namespace accel {
namespace {

AffineExpr zero(MLIRContext *ctx) { return getAffineConstantExpr(0, ctx); }

/// Adds the expression's terms: `factor` times each dimension's coefficient goes to its loop, constants to the offset.
void addTerms(AffineExpr expr, AffineExpr factor, ArrayRef<int64_t> dimLoops, llvm::function_ref<int(int64_t)> nestLoop,
              Access &access) {
  if (expr.getKind() == AffineExprKind::Add) {
    auto sum = cast<AffineBinaryOpExpr>(expr);
    addTerms(sum.getLHS(), factor, dimLoops, nestLoop, access);
    addTerms(sum.getRHS(), factor, dimLoops, nestLoop, access);
  } else if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    if (int loop = nestLoop(dimLoops[dim.getPosition()]); loop >= 0)
      access.strides[loop] = normalize(access.strides[loop] + factor);
  } else if (expr.getKind() == AffineExprKind::Mul && !expr.isSymbolicOrConstant()) {
    auto product = cast<AffineBinaryOpExpr>(expr);
    addTerms(product.getLHS(), normalize(factor * product.getRHS()), dimLoops, nestLoop, access);
  } else if (!expr.isSymbolicOrConstant()) {
    // The panel and the lane of a packed operand: no stride.
    access.strides[nestLoop(dimLoops[cast<AffineDimExpr>(cast<AffineBinaryOpExpr>(expr).getLHS()).getPosition()])] =
        AffineExpr();
  } else {
    access.offset = normalize(access.offset + expr * factor);
  }
}

} // namespace

ArrayRef<int64_t> loopsOf(Operation *op) { return op->getAttrOfType<DenseI64ArrayAttr>(kLoopsAttr).asArrayRef(); }

SmallVector<int64_t> resultLoopsOf(Operation *op) {
  SmallVector<unsigned> reduced = reductionDims(op);
  SmallVector<int64_t> result;
  for (auto [d, loop] : llvm::enumerate(loopsOf(op)))
    if (!llvm::is_contained(reduced, d))
      result.push_back(loop);
  return result;
}

AttentionOp attentionOf(KernelOp kernel) { return dyn_cast_or_null<AttentionOp>(kernel.ownOp()); }

KernelLoops::KernelLoops(KernelOp kernel) : op(kernel), symbolic(kernel) {
  if (kernel.ownOp())
    return;
  setIdentityNest();
  sortAndCollapse();
}

Access KernelLoops::access(Value tensor, LayoutAttr layout, AffineMap map, ArrayRef<int64_t> dimLoops) const {
  MLIRContext *ctx = op.getContext();
  Access result{tensor, -1, false, SmallVector<AffineExpr>(nest.size(), zero(ctx)), zero(ctx), {}};
  for (auto [expr, stride] : llvm::zip(map.getResults(), layout.getStrides().getValue().getResults()))
    addTerms(expr, stride, dimLoops, [&](int64_t loop) { return nestLoopOf(loop); }, result);
  // A collapsed loop steps by the stride of its innermost.
  if (llvm::all_of(nest, [](const NestLoop &loop) { return loop.kernelLoops.size() == 1; }))
    return result;
  SmallVector<AffineExpr> byKernelLoop(nestOf.size(), zero(ctx));
  Access plain{tensor, -1, false, byKernelLoop, zero(ctx), {}};
  for (auto [expr, stride] : llvm::zip(map.getResults(), layout.getStrides().getValue().getResults()))
    addTerms(expr, stride, dimLoops, [](int64_t loop) { return int(loop); }, plain);
  for (auto [l, loop] : llvm::enumerate(nest))
    result.strides[l] = plain.strides[loop.kernelLoops.back()];
  return result;
}

Access KernelLoops::accessOf(Operation *reader, unsigned index) const {
  Read read = readOf(reader, index);
  Access result =
      access(read.value, op.argLayout(cast<BlockArgument>(read.value).getArgNumber()), read.map, loopsOf(reader));
  if (!read.padded)
    return result;
  MLIRContext *ctx = op.getContext();
  for (auto [d, expr] : llvm::enumerate(read.map.getResults())) {
    if (isa<AffineDimExpr>(expr))
      continue;
    Access position{read.value, -1, false, SmallVector<AffineExpr>(nest.size(), zero(ctx)), zero(ctx), {}};
    addTerms(
        expr, getAffineConstantExpr(1, ctx), loopsOf(reader), [&](int64_t loop) { return nestLoopOf(loop); }, position);
    result.bounds.push_back({position.strides, position.offset, symbolic.sizeOf(read.value, d)});
  }
  return result;
}

Access KernelLoops::storeOf(unsigned k) const {
  Value value = op.getBody().front().getTerminator()->getOperand(k);
  SmallVector<int64_t> loops = resultLoopsOf(value.getDefiningOp());
  Access result =
      access(value, op.resultLayout(k), AffineMap::getMultiDimIdentityMap(loops.size(), op.getContext()), loops);
  result.result = k;
  return result;
}

void KernelLoops::setIdentityNest() {
  int64_t numLoops = op.getParallel() + op.getRows();
  SmallVector<AffineExpr> sizes(numLoops);
  for (Operation &inner : op.getBody().front()) {
    if (!inner.hasAttr(kLoopsAttr))
      continue;
    auto linalgOp = cast<linalg::LinalgOp>(inner);
    for (OpOperand &operand : inner.getOpOperands())
      for (auto [r, expr] : llvm::enumerate(linalgOp.getMatchingIndexingMap(&operand).getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr))
          if (int64_t loop = loopsOf(&inner)[dim.getPosition()]; loop >= 0 && !sizes[loop])
            sizes[loop] = symbolic.sizeOf(operand.get(), r);
  }
  for (int64_t l = 0; l < numLoops; ++l) {
    nest.push_back({{l}, sizes[l], l >= int64_t(op.getParallel())});
    nestOf.push_back(l);
  }
  parallel = op.getParallel();
}

void KernelLoops::sortAndCollapse() {
  // What is walked how, by kernel loop; and the loops whose number some op asks for, which stay as they are.
  auto collect = [&](SmallVectorImpl<Access> &accesses) {
    accesses.clear();
    for (unsigned k = 0; k < op.getFunctionType().getNumResults(); ++k)
      accesses.push_back(storeOf(k));
    for (Operation &inner : op.getBody().front()) {
      if (!inner.hasAttr(kLoopsAttr))
        continue;
      for (OpOperand *input : cast<linalg::LinalgOp>(inner).getDpsInputOperands())
        if (isa<BlockArgument>(readOf(&inner, input->getOperandNumber()).value))
          accesses.push_back(accessOf(&inner, input->getOperandNumber()));
      inner.walk([&](tensor::ExtractOp extract) {
        Access gather{extract.getTensor(), -1, true, SmallVector<AffineExpr>(nest.size()), zero(op.getContext()), {}};
        auto source = dyn_cast<BlockArgument>(extract.getTensor());
        if (!source)
          return;
        AffineMap strides = op.argLayout(source.getArgNumber()).getStrides().getValue();
        for (auto [d, index] : llvm::enumerate(extract.getIndices()))
          if (auto position = index.getDefiningOp<linalg::IndexOp>())
            if (int loop = nestLoopOf(loopsOf(&inner)[position.getDim()]); loop >= 0)
              gather.strides[loop] = strides.getResult(d);
        accesses.push_back(gather);
      });
    }
  };
  collect(list);
  llvm::SmallDenseSet<int64_t> pinned;
  op.getBody().walk([&](linalg::IndexOp index) { pinned.insert(loopsOf(index->getParentOp())[index.getDim()]); });
  // What a padded read compares with the tensor's sizes must stay apart, too.
  for (Operation &inner : op.getBody().front()) {
    if (!inner.hasAttr(kLoopsAttr))
      continue;
    for (OpOperand *input : cast<linalg::LinalgOp>(inner).getDpsInputOperands()) {
      Read read = readOf(&inner, input->getOperandNumber());
      if (!read.padded)
        continue;
      for (AffineExpr expr : read.map.getResults())
        if (!isa<AffineDimExpr>(expr))
          expr.walk([&](AffineExpr e) {
            if (auto dim = dyn_cast<AffineDimExpr>(e))
              pinned.insert(loopsOf(&inner)[dim.getPosition()]);
          });
    }
  }

  // The order of the access that spans the most loops, stores before loads.
  auto span = [&](const Access &access, bool rows) {
    unsigned count = 0;
    for (auto [l, stride] : llvm::enumerate(access.strides))
      count += nest[l].isRow == rows && stride && stride != zero(op.getContext());
    return count;
  };
  auto sortLoops = [&](MutableArrayRef<NestLoop> loops, bool rows) {
    const Access *guide = nullptr;
    for (const Access &access : list)
      if (!access.isGather && (!guide || span(access, rows) > span(*guide, rows)))
        guide = &access;
    if (!guide)
      return;
    llvm::sort(loops, [&](const NestLoop &a, const NestLoop &b) {
      int64_t sa = std::abs(representative(guide->strides[a.kernelLoops[0]]));
      int64_t sb = std::abs(representative(guide->strides[b.kernelLoops[0]]));
      return sa != sb ? sa > sb : a.kernelLoops[0] < b.kernelLoops[0];
    });
  };
  MutableArrayRef<NestLoop> all(nest);
  sortLoops(all.take_front(parallel), false);
  sortLoops(all.drop_front(parallel), true);

  // Two neighbours are one loop where every tensor steps from one to the other without a gap.
  SmallVector<NestLoop> collapsed;
  for (NestLoop &loop : nest) {
    if (!collapsed.empty() && collapsed.back().isRow == loop.isRow && !pinned.contains(loop.kernelLoops[0]) &&
        !pinned.contains(collapsed.back().kernelLoops[0])) {
      int64_t outer = collapsed.back().kernelLoops.back(), inner = loop.kernelLoops[0];
      bool seamless = llvm::all_of(list, [&](const Access &access) {
        AffineExpr a = access.strides[outer], b = access.strides[inner];
        if (!a || !b)
          return !a && !b;
        return a == normalize(b * loop.size);
      });
      if (seamless) {
        collapsed.back().kernelLoops.push_back(inner);
        collapsed.back().size = normalize(collapsed.back().size * loop.size);
        continue;
      }
    }
    collapsed.push_back(loop);
  }
  nest = std::move(collapsed);
  parallel = llvm::count_if(nest, [](const NestLoop &loop) { return !loop.isRow; });
  for (auto [l, loop] : llvm::enumerate(nest))
    for (int64_t kernelLoop : loop.kernelLoops)
      nestOf[kernelLoop] = l;
  collect(list);
}

} // namespace accel
