#include "compiler/import/IndexSpace.h"

using namespace mlir;

namespace accel {

bool isIndexDType(DType dtype) { return dtype == DType::I64 || dtype == DType::I32; }

Tensor atLeastRank1(NodeImporter &n, const Tensor &tensor) { return tensor.rank() ? tensor : n.unsqueeze(tensor, 0); }

/// The sizes that tensors broadcast to together.
static FailureOr<SmallVector<AffineExpr>> broadcastSizes(NodeImporter &n, ArrayRef<Tensor> tensors) {
  SmallVector<AffineExpr> sizes;
  for (const Tensor &tensor : tensors) {
    while (int64_t(sizes.size()) < tensor.rank())
      sizes.insert(sizes.begin(), n.constant(1));
    for (int64_t d = 0; d < tensor.rank(); ++d) {
      AffineExpr &size = sizes[sizes.size() - tensor.rank() + d];
      if (size == n.constant(1))
        size = tensor.sizes[d];
      else if (!tensor.isUnit(d) && tensor.sizes[d] != size)
        return n.refuse("index tensors that do not broadcast");
    }
  }
  return sizes;
}

FailureOr<IndexSpace> indexSpace(NodeImporter &n, const Tensor &self, ArrayRef<Tensor> given) {
  if (int64_t(given.size()) > self.rank())
    return n.refuse("more indices than dimensions");
  SmallVector<Tensor> entries(given);
  entries.resize(self.rank());
  IndexSpace space;
  for (auto [d, entry] : llvm::enumerate(entries))
    if (entry.value) {
      if (!isIndexDType(entry.dtype))
        return n.refuse("an index that is a mask");
      space.indices.push_back(entry);
      space.indexed.push_back(d);
    }
  if (space.indices.empty()) {
    space.sizes.assign(self.sizes.begin(), self.sizes.end());
    space.loopOf = llvm::to_vector(llvm::seq<int64_t>(0, self.rank()));
    return space;
  }
  FailureOr<SmallVector<AffineExpr>> together = broadcastSizes(n, space.indices);
  if (failed(together))
    return failure();
  bool areNeighbours = space.indexed.back() - space.indexed.front() + 1 == int64_t(space.indexed.size());
  int64_t place = areNeighbours ? space.indexed.front() : 0, added = together->size();

  space.loopOf.assign(self.rank(), -1);
  for (int64_t d = 0; d < self.rank(); ++d)
    if (!entries[d].value) {
      space.loopOf[d] = space.sizes.size() + (int64_t(space.sizes.size()) >= place ? added : 0);
      space.sizes.push_back(self.sizes[d]);
    }
  space.sizes.insert(space.sizes.begin() + place, together->begin(), together->end());

  for (const Tensor &index : space.indices) {
    SmallVector<AffineExpr> results;
    for (int64_t d = 0; d < index.rank(); ++d) {
      int64_t loop = place + added - index.rank() + d;
      bool broadcasts = index.isUnit(d) && space.sizes[loop] != index.sizes[d];
      results.push_back(broadcasts ? n.constant(0) : n.b.getAffineDimExpr(loop));
    }
    space.maps.push_back(AffineMap::get(space.sizes.size(), 0, results, n.b.getContext()));
  }
  return space;
}

} // namespace accel
