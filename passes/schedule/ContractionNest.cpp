#include "passes/schedule/ContractionNest.h"

#include "passes/fusion/FusionGroups.h"

using namespace mlir;

namespace accel {

std::optional<ContractionNest> contractionNest(const KernelLoops &loops) {
  Operation *op = findContraction(loops.kernel().getBody().front());
  if (!op)
    return std::nullopt;
  std::optional<Contraction> contraction = matchContraction(op);
  ContractionNest nest{op, {}, -1, -1, {}, contraction->panel, std::nullopt, std::nullopt};
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
    // The innermost of a role is the one that tiles.
    else if (rows.contains(l))
      nest.m = l;
    else if (columns.contains(l))
      nest.n = l;
  }
  for (int64_t l = 0; l < int64_t(loops.loops().size()); ++l)
    if (!loops.loops()[l].isRow && l != nest.m && l != nest.n)
      nest.outer.push_back(l);
  if (isa<BlockArgument>(readOf(op, 0).value))
    nest.a = loops.accessOf(op, 0);
  if (isa<BlockArgument>(readOf(op, 1).value))
    nest.b = loops.accessOf(op, 1);
  return nest;
}

} // namespace accel
