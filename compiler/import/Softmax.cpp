#include "compiler/import/Families.h"
#include "compiler/import/ReductionMath.h"
#include "compiler/import/ScalarMath.h"

#include <limits>

using namespace mlir;

namespace accel {
namespace {

/// The dimension to normalize along; none for a tensor of rank 0, whose one element is a row of its own.
FailureOr<SmallVector<int64_t>> rowOf(NodeImporter &n, unsigned index, int64_t rank) {
  FailureOr<int64_t> dim = n.integer(index, "dim");
  if (failed(dim))
    return failure();
  FailureOr<int64_t> wrapped = n.wrapDim(*dim, rank);
  if (failed(wrapped))
    return failure();
  return rank == 0 ? SmallVector<int64_t>() : SmallVector<int64_t>{*wrapped};
}

enum class Kind { Softmax, LogSoftmax, SafeSoftmax };

/// `_softmax(self, dim, half_to_float)`, and `softmax(self, dim, dtype)`, which casts first; the same for the others.
template <Kind kind> LogicalResult lowerSoftmax(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  FailureOr<SmallVector<int64_t>> row = rowOf(n, 1, self->rank());
  if (failed(row))
    return failure();
  if (n.boolean(2, "half_to_float", false) && n.target().starts_with("aten._"))
    return n.refuse("softmax from half to float is for CUDA only");
  DType result = n.resultDType(), dtype = computeDType(result);
  if (!isFloat(result))
    return n.refuse("softmax of integers");
  Tensor x = n.cast(n.cast(*self, result), dtype);
  Tensor largest = maximumOver(n, x, *row);
  Tensor shifted = compute(n, x, largest, *row, [](ArrayRef<Scalar> s) { return s[0] - s[1]; });
  Tensor exps = compute(n, shifted, [](ArrayRef<Scalar> s) { return exp(s[0]); });
  Tensor sum = sumOver(n, exps, *row);
  if (kind == Kind::LogSoftmax)
    return n.yield(compute(n, shifted, sum, *row, [](ArrayRef<Scalar> s) { return s[0] - log(s[1]); }));
  // One division for the row: the sum has the largest element's 1 in it, so that its reciprocal is a normal number.
  Tensor factor = compute(n, sum, [](ArrayRef<Scalar> s) { return 1.0 / s[0]; });
  if (kind == Kind::Softmax)
    return n.yield(compute(n, exps, factor, *row, [](ArrayRef<Scalar> s) { return s[0] * s[1]; }));
  // A row of nothing but -inf, whose largest element is -inf, yields zeros.
  return n.yield(compute(n, exps, {factor, largest}, *row, [](ArrayRef<Scalar> s) {
    return select(s[2] == -std::numeric_limits<double>::infinity(), 0.0, s[0] * s[1]);
  }));
}

/// `_softmax_backward_data(grad_output, output, dim, input_dtype)` and `_log_softmax_backward_data(…)`.
template <bool IsLog> LogicalResult lowerSoftmaxBackward(NodeImporter &n) {
  FailureOr<Tensor> gradient = n.tensor(0, "grad_output"), output = n.tensor(1, "output");
  if (failed(gradient) || failed(output))
    return failure();
  FailureOr<SmallVector<int64_t>> row = rowOf(n, 2, output->rank());
  if (failed(row))
    return failure();
  DType dtype = computeDType(output->dtype);
  Tensor g = n.cast(*gradient, dtype), y = n.cast(*output, dtype);
  if (IsLog)
    return n.yield(
        compute(n, {g, y}, sumOver(n, g, *row), *row, [](ArrayRef<Scalar> s) { return s[0] - exp(s[1]) * s[2]; }));
  Tensor products = compute(n, {g, y}, [](ArrayRef<Scalar> s) { return s[0] * s[1]; });
  return n.yield(
      compute(n, {g, y}, sumOver(n, products, *row), *row, [](ArrayRef<Scalar> s) { return (s[0] - s[2]) * s[1]; }));
}

} // namespace

void populateSoftmax(LoweringTable &table) {
  table.add({"aten._softmax.default", "aten.softmax.int"}, lowerSoftmax<Kind::Softmax>);
  table.add({"aten._log_softmax.default", "aten.log_softmax.int"}, lowerSoftmax<Kind::LogSoftmax>);
  table.add("aten._safe_softmax.default", lowerSoftmax<Kind::SafeSoftmax>);
  table.add("aten._softmax_backward_data.default", lowerSoftmaxBackward<false>);
  table.add("aten._log_softmax_backward_data.default", lowerSoftmaxBackward<true>);
}

} // namespace accel
