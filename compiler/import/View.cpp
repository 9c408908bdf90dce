#include "compiler/import/Families.h"
#include "compiler/import/ViewMath.h"

using namespace mlir;

namespace accel {
namespace {

//===-- Same elements, other dimensions ---------------------------------------------------------------------------===//

/// Ops whose result has the source's elements in row-major order, under eager's sizes.
LogicalResult lowerView(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  return failed(self) ? failure() : n.yield(viewed(n, *self, n.resultSizes()));
}

LogicalResult lowerExpand(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  return failed(self) ? failure() : n.yield(expanded(n, *self, n.resultSizes()));
}

LogicalResult yieldPermuted(NodeImporter &n, const Tensor &self, ArrayRef<int64_t> order) {
  return n.yield(llvm::is_sorted(order) ? self : n.permute(self, order));
}

LogicalResult lowerPermute(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  FailureOr<SmallVector<int64_t>> dims = n.integers(1, "dims");
  if (failed(self) || failed(dims))
    return failure();
  if (int64_t(dims->size()) != self->rank())
    return n.refuse("dims does not name every dimension");
  for (int64_t &dim : *dims) {
    FailureOr<int64_t> wrapped = n.wrapDim(dim, self->rank());
    if (failed(wrapped))
      return failure();
    dim = *wrapped;
  }
  return yieldPermuted(n, *self, *dims);
}

LogicalResult lowerTranspose(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim0 = dimArg(n, 1, "dim0", self->rank()), dim1 = dimArg(n, 2, "dim1", self->rank());
  if (failed(dim0) || failed(dim1))
    return failure();
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, self->rank()));
  if (self->rank() > 0)
    std::swap(order[*dim0], order[*dim1]);
  return yieldPermuted(n, *self, order);
}

/// `t`, `mT` and `numpy_T`: the last two dimensions change places, or all are reversed.
LogicalResult lowerT(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, self->rank()));
  if (n.target() == "aten.numpy_T.default")
    std::reverse(order.begin(), order.end());
  else if (order.size() >= 2)
    std::swap(order[order.size() - 2], order[order.size() - 1]);
  return yieldPermuted(n, *self, order);
}

//===-- Dimensions of size 1 --------------------------------------------------------------------------------------===//

/// `squeeze(self)`, `squeeze(self, dim)` and `squeeze(self, dims)`. A dimension of another size than 1 stays.
LogicalResult lowerSqueeze(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, self->rank()));
  if (!n.target().ends_with(".default")) {
    FailureOr<SmallVector<int64_t>> named = n.integers(1, "dim");
    if (failed(named))
      return failure();
    dims.clear();
    for (int64_t dim : *named) {
      FailureOr<int64_t> wrapped = n.wrapDim(dim, self->rank());
      if (failed(wrapped))
        return failure();
      dims.push_back(*wrapped);
    }
  }
  SmallVector<AffineExpr> sizes;
  for (int64_t d = 0; d < self->rank(); ++d)
    if (!llvm::is_contained(dims, d) || !self->isUnit(d))
      sizes.push_back(self->sizes[d]);
  SmallVector<AffineExpr> indices;
  unsigned next = 0;
  for (int64_t d = 0; d < self->rank(); ++d)
    indices.push_back(llvm::is_contained(dims, d) && self->isUnit(d) ? n.constant(0) : n.b.getAffineDimExpr(next++));
  return n.yield(next == self->rank() ? *self : n.view(*self, sizes, indices));
}

LogicalResult lowerUnsqueeze(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", self->rank() + 1);
  return failed(dim) ? failure() : n.yield(n.unsqueeze(*self, *dim));
}

/// `self`, which must have a dimension to take parts of.
FailureOr<Tensor> selfWithDims(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (succeeded(self) && self->rank() == 0)
    return n.refuse("a tensor of rank 0 has no parts");
  return self;
}

//===-- Parts -----------------------------------------------------------------------------------------------------===//

LogicalResult lowerSlice(NodeImporter &n) {
  FailureOr<Tensor> self = selfWithDims(n);
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", self->rank(), 0), step = n.integer(4, "step", 1);
  if (failed(dim) || failed(step))
    return failure();
  SmallVector<AffineExpr> sizes = n.resultSizes();
  if (int64_t(sizes.size()) != self->rank())
    return n.refuse("a slice has its tensor's rank");
  AffineExpr length = sizes[*dim];
  FailureOr<AffineExpr> start = sliceStart(n, 2, self->sizes[*dim], length, *step);
  return failed(start) ? failure() : n.yield(sliced(n, *self, *dim, *start, length, *step));
}

LogicalResult lowerSelect(NodeImporter &n) {
  FailureOr<Tensor> self = selfWithDims(n);
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", self->rank());
  if (failed(dim))
    return failure();
  FailureOr<AffineExpr> position = selectedPosition(n, 2, self->sizes[*dim]);
  return failed(position) ? failure() : n.yield(selected(n, *self, *dim, *position));
}

/// `narrow(self, dim, start, length)`.
LogicalResult lowerNarrow(NodeImporter &n) {
  FailureOr<Tensor> self = selfWithDims(n);
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", self->rank());
  FailureOr<AffineExpr> length = n.expr(3, "length");
  if (failed(dim) || failed(length))
    return failure();
  FailureOr<AffineExpr> start = selectedPosition(n, 2, self->sizes[*dim]);
  return failed(start) ? failure() : n.yield(sliced(n, *self, *dim, *start, *length));
}

/// `split`, `split_with_sizes` and `chunk(self, …, dim)`: eager's sizes say where the parts begin.
LogicalResult lowerSplit(NodeImporter &n) {
  FailureOr<Tensor> self = selfWithDims(n);
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 2, "dim", self->rank(), 0);
  if (failed(dim))
    return failure();
  SmallVector<Tensor> parts;
  AffineExpr start = n.constant(0);
  for (unsigned k = 0; k < n.numResults(); ++k) {
    SmallVector<AffineExpr> sizes = n.resultSizes(k);
    if (int64_t(sizes.size()) != self->rank())
      return n.refuse("a part has its tensor's rank");
    AffineExpr length = sizes[*dim];
    parts.push_back(sliced(n, *self, *dim, start, length));
    start = normalize(start + length);
  }
  return n.yield(parts);
}

LogicalResult lowerUnbind(NodeImporter &n) {
  FailureOr<Tensor> self = selfWithDims(n);
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", self->rank(), 0);
  if (failed(dim))
    return failure();
  SmallVector<Tensor> parts;
  for (unsigned k = 0; k < n.numResults(); ++k)
    parts.push_back(selected(n, *self, *dim, n.constant(k)));
  return n.yield(parts);
}

/// `diagonal(self, offset, dim1, dim2)`: the last dimension of the result runs along both.
LogicalResult lowerDiagonal(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> offset = n.integer(1, "offset", 0);
  FailureOr<int64_t> dim1 = dimArg(n, 2, "dim1", self->rank(), 0), dim2 = dimArg(n, 3, "dim2", self->rank(), 1);
  if (failed(offset) || failed(dim1) || failed(dim2))
    return failure();
  SmallVector<AffineExpr> sizes = n.resultSizes(), indices(self->rank());
  AffineExpr along = n.b.getAffineDimExpr(sizes.size() - 1);
  unsigned next = 0;
  for (int64_t d = 0; d < self->rank(); ++d)
    if (d != *dim1 && d != *dim2)
      indices[d] = n.b.getAffineDimExpr(next++);
  // An offset beyond the matrix leaves an empty diagonal, of which nothing is read.
  indices[*dim1] = along + std::max<int64_t>(-*offset, 0);
  indices[*dim2] = along + std::max<int64_t>(*offset, 0);
  return n.yield(n.view(*self, sizes, indices));
}

/// `unfold(self, dimension, size, step)`: windows along the dimension, their elements along a new last one.
LogicalResult lowerUnfold(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dimension", self->rank()), step = n.integer(3, "step");
  if (failed(dim) || failed(step))
    return failure();
  SmallVector<AffineExpr> indices;
  for (int64_t d = 0; d < self->rank(); ++d)
    indices.push_back(n.b.getAffineDimExpr(d));
  if (self->rank() > 0)
    indices[*dim] = indices[*dim] * *step + n.b.getAffineDimExpr(self->rank());
  return n.yield(n.view(*self, n.resultSizes(), indices));
}

/// The tensor's elements in the order of eager's memory, as a row; refuses a tensor that leaves gaps or overlaps itself
/// there.
FailureOr<Tensor> memoryRow(NodeImporter &n, const Tensor &self, ArrayRef<AffineExpr> strides) {
  SmallVector<int64_t> order;
  SmallVector<bool> placed(self.rank());
  AffineExpr count = n.constant(1);
  // From the innermost dimension outwards, each stride is the number of elements inside it.
  for (int64_t step = 0; step < self.rank(); ++step) {
    int64_t found = -1;
    for (int64_t d = 0; d < self.rank(); ++d)
      if (!placed[d] && (self.isUnit(d) || strides[d] == count))
        found = d;
    if (found < 0)
      return n.refuse("as_strided of a tensor that is not dense");
    placed[found] = true;
    order.insert(order.begin(), found);
    count = normalize(count * self.sizes[found]);
  }
  return viewed(n, llvm::is_sorted(order) ? self : n.permute(self, order), count);
}

/// `as_strided(self, size, stride, storage_offset)`, of memory laid out as eager's.
LogicalResult lowerAsStrided(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  FailureOr<NodeImporter::EagerLayout> layout = n.eagerLayout(0, "self");
  FailureOr<SmallVector<AffineExpr>> strides = n.exprs(2, "stride");
  if (failed(self) || failed(layout) || failed(strides))
    return failure();
  SmallVector<AffineExpr> sizes = n.resultSizes();
  if (strides->size() != sizes.size())
    return n.refuse("as_strided takes as many strides as sizes");
  AffineExpr start = n.constant(0);
  if (n.arg(3, "storage_offset")) {
    FailureOr<AffineExpr> offset = n.expr(3, "storage_offset");
    if (failed(offset))
      return failure();
    start = normalize(*offset - layout->offset);
  }
  FailureOr<Tensor> row = memoryRow(n, *self, layout->strides);
  if (failed(row))
    return failure();
  AffineExpr index = start, last = start;
  for (auto [d, stride] : llvm::enumerate(*strides)) {
    index = index + n.b.getAffineDimExpr(d) * stride;
    last = last + (sizes[d] - 1) * stride;
  }
  // Eager may read on in the storage, behind the tensor's own elements.
  AffineExpr room = normalize(row->sizes[0] - 1 - last);
  if (n.lowerBound(start).value_or(-1) < 0 || n.lowerBound(room).value_or(-1) < 0)
    return n.refuse("as_strided of more than the tensor's own elements");
  return n.yield(n.view(*row, sizes, index));
}

} // namespace

void populateView(LoweringTable &table) {
  table.add({"aten.view.default", "aten._unsafe_view.default", "aten.reshape.default", "aten.flatten.using_ints",
             "aten.unflatten.int", "aten.view_copy.default"},
            lowerView);
  table.add({"aten.expand.default", "aten.expand_copy.default", "aten.expand_as.default", "aten.broadcast_to.default"},
            lowerExpand);
  table.add({"aten.permute.default", "aten.permute_copy.default"}, lowerPermute);
  table.add({"aten.transpose.int", "aten.transpose_copy.int", "aten.swapaxes.default"}, lowerTranspose);
  table.add({"aten.t.default", "aten.t_copy.default", "aten.mT.default", "aten.numpy_T.default"}, lowerT);
  table.add({"aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze_copy.default",
             "aten.squeeze_copy.dim", "aten.squeeze_copy.dims"},
            lowerSqueeze);
  table.add({"aten.unsqueeze.default", "aten.unsqueeze_copy.default"}, lowerUnsqueeze);
  table.add({"aten.slice.Tensor", "aten.slice_copy.Tensor"}, lowerSlice);
  table.add({"aten.select.int", "aten.select_copy.int"}, lowerSelect);
  table.add("aten.narrow.default", lowerNarrow);
  table.add({"aten.split.Tensor", "aten.split_with_sizes.default", "aten.unsafe_split.Tensor",
             "aten.unsafe_split_with_sizes.default", "aten.split_copy.Tensor", "aten.split_with_sizes_copy.default",
             "aten.chunk.default"},
            lowerSplit);
  table.add({"aten.unbind.int", "aten.unbind_copy.int"}, lowerUnbind);
  table.add({"aten.diagonal.default", "aten.diagonal_copy.default"}, lowerDiagonal);
  table.add({"aten.as_strided.default", "aten.as_strided_copy.default"}, lowerAsStrided);
  table.add({"aten.unfold.default", "aten.unfold_copy.default"}, lowerUnfold);
}

} // namespace accel
