/// Ops that put copies of tensors side by side.
#include "compiler/import/Families.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/ViewMath.h"

using namespace mlir;

namespace accel {
namespace {

Tensor joined(NodeImporter &n, ArrayRef<Tensor> parts, int64_t dim) {
  return parts.size() == 1 ? parts[0] : n.concat(parts, dim);
}

/// Drops parts that have nothing to give, but one.
SmallVector<Tensor> withoutEmpty(ArrayRef<Tensor> parts, int64_t dim) {
  SmallVector<Tensor> kept;
  for (const Tensor &part : parts)
    if (part.size(dim) != 0)
      kept.push_back(part);
  if (kept.empty())
    kept.push_back(parts.front());
  return kept;
}

LogicalResult lowerCat(NodeImporter &n) {
  FailureOr<SmallVector<Tensor>> tensors = n.tensors(0, "tensors");
  if (failed(tensors))
    return failure();
  // Kept from older days: an empty tensor of rank 1 fits any other.
  SmallVector<Tensor> parts;
  int64_t rank = n.resultSizes().size();
  for (const Tensor &tensor : *tensors)
    if (tensor.value && tensor.rank() == rank)
      parts.push_back(n.cast(tensor, n.resultDType()));
    else if (!tensor.value || tensor.rank() != 1 || tensor.size(0) != 0)
      return n.refuse("cat of tensors of different ranks");
  if (parts.empty())
    return n.refuse("cat of no tensors");
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", rank, 0);
  if (failed(dim))
    return failure();
  return n.yield(joined(n, withoutEmpty(parts, *dim), *dim));
}

LogicalResult lowerStack(NodeImporter &n) {
  FailureOr<SmallVector<Tensor>> tensors = n.tensors(0, "tensors");
  if (failed(tensors))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", n.resultSizes().size(), 0);
  if (failed(dim))
    return failure();
  SmallVector<Tensor> parts;
  for (const Tensor &tensor : *tensors) {
    if (!tensor.value)
      return n.refuse("stack of something that is no tensor");
    parts.push_back(n.unsqueeze(n.cast(tensor, n.resultDType()), *dim));
  }
  return n.yield(joined(n, parts, *dim));
}

/// `constant_pad_nd(self, pad, value)`: pairs of (before, after), the last dimension first; negative ones cut off.
LogicalResult lowerConstantPad(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  FailureOr<SmallVector<AffineExpr>> pad = n.exprs(1, "pad");
  if (failed(self) || failed(pad))
    return failure();
  if (pad->size() % 2 != 0 || int64_t(pad->size()) > 2 * self->rank())
    return n.refuse("pad does not fit the tensor");
  FxArg zero;
  zero.kind = FxArg::Int;
  const FxArg *value = n.arg(2, "value") ? n.arg(2, "value") : &zero;
  // Cut first: no copy is needed for that.
  Tensor result = *self;
  for (size_t i = 0; i < pad->size(); ++i) {
    AffineExpr amount = (*pad)[i];
    int64_t dim = self->rank() - 1 - i / 2;
    if (n.upperBound(amount).value_or(0) < 0) {
      AffineExpr length = normalize(result.sizes[dim] + amount);
      result = sliced(n, result, dim, i % 2 == 0 ? normalize(-amount) : n.constant(0), length);
    } else if (n.lowerBound(amount).value_or(-1) < 0) {
      return n.refuse("a symbolic pad may be negative");
    }
  }
  for (size_t i = 0; i < pad->size(); i += 2) {
    int64_t dim = self->rank() - 1 - i / 2;
    SmallVector<Tensor> parts = {result};
    for (size_t side : {i, i + 1}) {
      AffineExpr amount = (*pad)[side];
      if (n.upperBound(amount).value_or(1) <= 0)
        continue;
      SmallVector<AffineExpr> sizes(result.sizes.begin(), result.sizes.end());
      sizes[dim] = amount;
      FailureOr<Tensor> border = fillWith(n, value, sizes, self->dtype);
      if (failed(border))
        return failure();
      parts.insert(side == i ? parts.begin() : parts.end(), *border);
    }
    if (parts.size() > 1)
      result = joined(n, withoutEmpty(parts, dim), dim);
  }
  return n.yield(result);
}

/// `repeat(self, repeats)`: each dimension behind a dimension that only repeats, and then the two as one.
LogicalResult lowerRepeat(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  FailureOr<SmallVector<AffineExpr>> repeats = n.exprs(1, "repeats");
  if (failed(self) || failed(repeats))
    return failure();
  int64_t added = int64_t(repeats->size()) - self->rank();
  if (added < 0)
    return n.refuse("repeats has fewer entries than the tensor has dimensions");
  SmallVector<AffineExpr> sizes, indices;
  auto loop = [&](AffineExpr size) {
    sizes.push_back(size);
    return n.b.getAffineDimExpr(sizes.size() - 1);
  };
  for (auto [i, repeat] : llvm::enumerate(*repeats)) {
    int64_t d = int64_t(i) - added;
    if (d < 0) {
      loop(repeat);
    } else if (self->isUnit(d)) {
      loop(repeat);
      indices.push_back(n.constant(0));
    } else {
      if (repeat != n.constant(1))
        loop(repeat);
      indices.push_back(loop(self->sizes[d]));
    }
  }
  Tensor spread =
      ArrayRef<AffineExpr>(self->sizes) == ArrayRef<AffineExpr>(sizes) ? *self : n.view(*self, sizes, indices);
  return n.yield(n.reshape(spread, n.resultSizes()));
}

/// The elements of a dimension moved by `shift` positions, those that fall off coming back at the other end.
Tensor rolled(NodeImporter &n, const Tensor &x, int64_t dim, AffineExpr shift) {
  if (x.size(dim) == 0)
    return x;
  AffineExpr size = x.sizes[dim], start = normalize((-shift) % size);
  if (start == n.constant(0))
    return x;
  Tensor front = sliced(n, x, dim, start, normalize(size - start)), back = sliced(n, x, dim, n.constant(0), start);
  return n.concat({front, back}, dim);
}

LogicalResult lowerRoll(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  FailureOr<SmallVector<AffineExpr>> shifts = n.exprs(1, "shifts");
  FailureOr<SmallVector<int64_t>> dims = n.integers(2, "dims");
  if (failed(self) || failed(shifts) || failed(dims))
    return failure();
  if (self->rank() == 0)
    return n.yield(*self);
  if (dims->empty()) {
    // Without dimensions the tensor counts as one row.
    AffineExpr count = n.constant(1);
    for (AffineExpr size : self->sizes)
      count = normalize(count * size);
    Tensor row = rolled(n, n.reshape(*self, count), 0, (*shifts)[0]);
    return n.yield(n.reshape(row, self->sizes));
  }
  if (dims->size() != shifts->size())
    return n.refuse("roll needs as many shifts as dimensions");
  Tensor result = *self;
  for (auto [dim, shift] : llvm::zip(*dims, *shifts)) {
    FailureOr<int64_t> wrapped = n.wrapDim(dim, self->rank());
    if (failed(wrapped))
      return failure();
    result = rolled(n, result, *wrapped, shift);
  }
  return n.yield(result);
}

LogicalResult lowerFlip(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  FailureOr<SmallVector<int64_t>> dims = n.integers(1, "dims");
  if (failed(self) || failed(dims))
    return failure();
  SmallVector<AffineExpr> indices;
  for (int64_t d = 0; d < self->rank(); ++d)
    indices.push_back(n.b.getAffineDimExpr(d));
  for (int64_t dim : *dims) {
    FailureOr<int64_t> wrapped = n.wrapDim(dim, self->rank());
    if (failed(wrapped))
      return failure();
    if (self->rank() > 0)
      indices[*wrapped] = self->sizes[*wrapped] - 1 - n.b.getAffineDimExpr(*wrapped);
  }
  return n.yield(n.view(*self, self->sizes, indices));
}

} // namespace

void populateConcat(LoweringTable &table) {
  table.add({"aten.cat.default", "aten.concat.default", "aten.concatenate.default"}, lowerCat);
  table.add("aten.stack.default", lowerStack);
  table.add("aten.constant_pad_nd.default", lowerConstantPad);
  table.add({"aten.repeat.default", "aten.tile.default"}, lowerRepeat);
  table.add("aten.roll.default", lowerRoll);
  table.add("aten.flip.default", lowerFlip);
}

} // namespace accel
