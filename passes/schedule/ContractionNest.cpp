#include "passes/schedule/ContractionNest.h"

#include "passes/fusion/FusionGroups.h"

using namespace mlir;

namespace accel {

/// Rows that fill tiles well whatever their height.
static constexpr int64_t kRowsOfTheirOwn = 48;

std::optional<ContractionNest> contractionNest(const KernelLoops &loops) {
  Operation *op = findContraction(loops.kernel().getBody().front());
  if (!op)
    return std::nullopt;
  std::optional<Contraction> contraction = matchContraction(op);
  ContractionNest nest{op, {}, {}, -1, {}, contraction->panel, std::nullopt, std::nullopt};
  if (isa<BlockArgument>(readOf(op, 0).value))
    nest.a = loops.accessOf(op, 0);
  if (isa<BlockArgument>(readOf(op, 1).value))
    nest.b = loops.accessOf(op, 1);
  auto nestLoops = [&](ArrayRef<unsigned> dims) {
    llvm::SmallDenseSet<int64_t> result;
    for (unsigned dim : dims)
      if (int loop = loops.nestLoopOf(loopsOf(op)[dim]); loop >= 0)
        result.insert(loop);
    return result;
  };
  llvm::SmallDenseSet<int64_t> rows = nestLoops(contraction->m), columns = nestLoops(contraction->n);
  for (int64_t l = 0; l < int64_t(loops.loops().size()); ++l) {
    if (loops.loops()[l].isRow)
      nest.k.push_back(l);
    else if (rows.contains(l))
      nest.rows.push_back(l);
    else if (columns.contains(l))
      nest.n = l; // the innermost is the one that tiles
  }
  if (nest.rows.size() > 1) {
    auto innermost = dyn_cast<AffineConstantExpr>(loops.loops()[nest.rows.back()].size);
    bool readsInPlace = nest.a && nest.a->bounds.empty() && innermost && innermost.getValue() >= kRowsOfTheirOwn;
    if (readsInPlace)
      nest.rows = {nest.rows.back()};
  }
  for (int64_t l = 0; l < int64_t(loops.loops().size()); ++l)
    if (!loops.loops()[l].isRow && !llvm::is_contained(nest.rows, l) && l != nest.n)
      nest.outer.push_back(l);
  return nest;
}

} // namespace accel
