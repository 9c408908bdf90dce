#include "compiler/import/Families.h"
#include "compiler/import/IndexMath.h"
#include "compiler/import/ReductionMath.h"
#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace accel {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The dimensions that an argument names; all where it is absent or empty. A tensor of rank 0 has none to reduce.
FailureOr<SmallVector<int64_t>> dimsOf(NodeImporter &n, unsigned index, StringRef keyword, int64_t rank) {
  FailureOr<SmallVector<int64_t>> named = n.integers(index, keyword);
  if (failed(named))
    return failure();
  SmallVector<int64_t> dims;
  for (int64_t dim : *named) {
    FailureOr<int64_t> wrapped = n.wrapDim(dim, rank);
    if (failed(wrapped))
      return failure();
    dims.push_back(*wrapped);
  }
  if (rank == 0)
    return SmallVector<int64_t>();
  if (dims.empty())
    dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  llvm::sort(dims);
  return dims;
}

/// The operands of a reduction: what most of the lowerings below start from.
struct Reduction {
  Tensor x;
  SmallVector<int64_t> dims;
  bool keepDim = false;
};

/// Arguments `self`, and from `dimIndex` on `dim` and `keepdim`.
FailureOr<Reduction> reductionOf(NodeImporter &n, unsigned dimIndex = 1) {
  FailureOr<Tensor> x = n.tensor(0, "self");
  if (failed(x))
    return failure();
  FailureOr<SmallVector<int64_t>> dims = dimsOf(n, dimIndex, "dim", x->rank());
  if (failed(dims))
    return failure();
  return Reduction{*x, *dims, n.boolean(dimIndex + 1, "keepdim", false)};
}

/// Sets the results: in eager's dtypes, and with the dimensions put back if `keepDim`.
LogicalResult yieldReduced(NodeImporter &n, ArrayRef<Tensor> results, const Reduction &r) {
  SmallVector<Tensor> finished;
  for (auto [k, result] : llvm::enumerate(results)) {
    Tensor t = n.hasResult(k) ? n.cast(result, n.resultDType(k)) : result;
    finished.push_back(r.keepDim ? keepDims(n, t, r.dims) : t);
  }
  return n.yield(finished);
}

/// `x` in `dtype`, rounded to it, and then in the dtype that it is computed in.
Tensor castToCompute(NodeImporter &n, const Tensor &x, DType dtype) {
  return n.cast(n.cast(x, dtype), computeDType(dtype));
}

/// Eager has no maximum of no elements.
LogicalResult refuseEmpty(NodeImporter &n, const Reduction &r) {
  for (int64_t d : r.dims)
    if (r.x.size(d) == 0)
      return n.refuse("there is no largest or smallest of no elements");
  return success();
}

//===-- Sums and products -----------------------------------------------------------------------------------------===//

LogicalResult lowerSum(NodeImporter &n) {
  FailureOr<Reduction> r = reductionOf(n);
  if (failed(r))
    return failure();
  return yieldReduced(n, sumOver(n, castToCompute(n, r->x, n.resultDType()), r->dims), *r);
}

LogicalResult lowerMean(NodeImporter &n) {
  FailureOr<Reduction> r = reductionOf(n);
  if (failed(r))
    return failure();
  if (!isFloat(n.resultDType()))
    return n.refuse("mean of integers");
  return yieldReduced(n, meanOver(n, castToCompute(n, r->x, n.resultDType()), r->dims), *r);
}

LogicalResult lowerProd(NodeImporter &n) {
  FailureOr<Reduction> r = reductionOf(n);
  if (failed(r))
    return failure();
  Tensor x = castToCompute(n, r->x, n.resultDType());
  Tensor product =
      reduceOver(n, x, r->dims, scalarAttribute(n.b, 1.0, x.dtype), [](Scalar x, Scalar y) { return x * y; });
  return yieldReduced(n, product, *r);
}

LogicalResult lowerCountNonzero(NodeImporter &n) {
  FailureOr<Reduction> r = reductionOf(n);
  if (failed(r))
    return failure();
  return yieldReduced(n, sumOver(n, n.cast(n.cast(r->x, DType::Bool), DType::I64), r->dims), *r);
}

//===-- Any, all --------------------------------------------------------------------------------------------------===//

template <bool IsAll> LogicalResult lowerAnyAll(NodeImporter &n) {
  FailureOr<Reduction> r = reductionOf(n);
  if (failed(r))
    return failure();
  // Unlike everywhere else, an empty list of dimensions reduces nothing here.
  if (const FxArg *dim = n.arg(1, "dim"); dim && dim->kind == FxArg::List && dim->list.empty())
    r->dims.clear();
  Tensor result = reduceOver(n, n.cast(r->x, DType::Bool), r->dims, scalarAttribute(n.b, IsAll, DType::Bool),
                             [](Scalar x, Scalar y) { return IsAll ? x & y : x | y; });
  return yieldReduced(n, result, *r);
}

//===-- Largest, smallest -----------------------------------------------------------------------------------------===//

Tensor extremeOver(NodeImporter &n, const Reduction &r, bool isMax) {
  Tensor x = n.cast(r.x, computeDType(r.x.dtype));
  return isMax ? maximumOver(n, x, r.dims) : minimumOver(n, x, r.dims);
}

template <bool IsMax> LogicalResult lowerExtreme(NodeImporter &n) {
  FailureOr<Reduction> r = reductionOf(n);
  if (failed(r) || failed(refuseEmpty(n, *r)))
    return failure();
  return yieldReduced(n, extremeOver(n, *r, IsMax), *r);
}

LogicalResult lowerAminmax(NodeImporter &n) {
  FailureOr<Reduction> r = reductionOf(n);
  if (failed(r) || failed(refuseEmpty(n, *r)))
    return failure();
  return yieldReduced(n, {extremeOver(n, *r, false), extremeOver(n, *r, true)}, *r);
}

/// The row-major number of each element among `dims`, as i64.
Tensor positions(NodeImporter &n, ArrayRef<AffineExpr> sizes, Dims dims) {
  SmallVector<SizeScalar> extents;
  for (int64_t d : dims)
    extents.emplace_back(n, sizes[d]);
  return n.pointwise({}, sizes, DType::I64, [&](ImplicitLocOpBuilder &b, ValueRange) {
    Value position;
    for (auto [d, extent] : llvm::zip(dims, extents)) {
      Value index = loopIndex(b, d);
      position =
          position ? arith::AddIOp::create(b, arith::MulIOp::create(b, position, extent.asIndex(b)), index) : index;
    }
    return fromIndex(b, position, DType::I64);
  });
}

/// Whether `x` comes before `y` by value: NaN before everything, then the larger (or the smaller).
Scalar isBetter(Scalar x, Scalar y, bool isMax) {
  Scalar better = isMax ? x > y : x < y;
  return isFloat(x.dtype()) ? better | (isNaN(x) & ~isNaN(y)) : better;
}

/// The extreme value along `dims` and the position of its first occurrence.
std::pair<Tensor, Tensor> extremeWithPosition(NodeImporter &n, const Reduction &r, bool isMax) {
  Tensor x = n.cast(r.x, computeDType(r.x.dtype));
  if (r.dims.empty())
    return {x, n.fill(0, x.sizes, DType::I64)};
  TypedAttr worst = isMax ? lowestValue(n.b, x.dtype) : highestValue(n.b, x.dtype);
  SmallVector<TypedAttr> init = {worst, highestValue(n.b, DType::I64)};
  auto combine = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    Scalar value(b, args[0], x.dtype), at(b, args[1], DType::I64), best(b, args[2], x.dtype),
        bestAt(b, args[3], DType::I64);
    // Neither better nor worse: equal, or both NaN. The first occurrence counts.
    Scalar taken = isBetter(value, best, isMax) | (~isBetter(best, value, isMax) & (at < bestAt));
    return {select(taken, value, best).value(), select(taken, at, bestAt).value()};
  };
  SmallVector<Tensor> results = n.reduce({x, positions(n, x.sizes, r.dims)}, r.dims, init, combine);
  return {results[0], results[1]};
}

template <bool IsMax> LogicalResult lowerExtremeWithPosition(NodeImporter &n) {
  FailureOr<Reduction> r = reductionOf(n);
  if (failed(r) || failed(refuseEmpty(n, *r)))
    return failure();
  auto [value, position] = extremeWithPosition(n, *r, IsMax);
  return yieldReduced(n, {value, position}, *r);
}

template <bool IsMax> LogicalResult lowerArgExtreme(NodeImporter &n) {
  FailureOr<Reduction> r = reductionOf(n);
  if (failed(r) || failed(refuseEmpty(n, *r)))
    return failure();
  return yieldReduced(n, extremeWithPosition(n, *r, IsMax).second, *r);
}

//===-- Variance --------------------------------------------------------------------------------------------------===//

/// The correction of an overload: a number, or 1 or 0 from `unbiased`.
FailureOr<double> correctionOf(NodeImporter &n, unsigned unbiasedIndex) {
  if (n.target().ends_with(".correction"))
    return n.real(~0u, "correction", 1.0);
  return n.boolean(unbiasedIndex, "unbiased", true) ? 1.0 : 0.0;
}

/// `.correction(self, dim, *, correction, keepdim)`, `.dim(self, dim, unbiased, keepdim)`, `.default(self, unbiased)`.
FailureOr<Reduction> varianceOperands(NodeImporter &n) {
  FailureOr<Tensor> x = n.tensor(0, "self");
  if (failed(x))
    return failure();
  bool hasDim = !n.target().ends_with(".default");
  FailureOr<SmallVector<int64_t>> dims = dimsOf(n, hasDim ? 1 : ~0u, "dim", x->rank());
  if (failed(dims))
    return failure();
  return Reduction{*x, *dims, n.boolean(n.target().ends_with(".dim") ? 3 : ~0u, "keepdim", false)};
}

template <bool IsRoot, bool WithMean> LogicalResult lowerVariance(NodeImporter &n) {
  FailureOr<Reduction> r = varianceOperands(n);
  if (failed(r))
    return failure();
  FailureOr<double> correction = correctionOf(n, n.target().ends_with(".default") ? 1 : 2);
  if (failed(correction))
    return failure();
  Tensor x = castToCompute(n, r->x, n.resultDType());
  Tensor mean = meanOver(n, x, r->dims);
  Tensor deviations = compute(n, x, mean, r->dims, [](ArrayRef<Scalar> s) { return s[0] - s[1]; });
  Tensor squares = compute(n, deviations, [](ArrayRef<Scalar> s) { return s[0] * s[0]; });
  SizeScalar count(n, countOver(x, r->dims));
  Tensor sums[] = {sumOver(n, squares, r->dims), sumOver(n, deviations, r->dims)};
  Tensor result = compute(n, sums, [&](ArrayRef<Scalar> s) {
    Scalar size = s[0].with(count.as(s[0].builder(), x.dtype)), freedom = maximum(size - *correction, 0.0);
    // The second sum is what rounding took from the mean. Without it the variance of equal numbers would not be 0.
    Scalar variance = maximum(s[0] - s[1] * s[1] / size, 0.0) / freedom;
    return IsRoot ? sqrt(variance) : variance;
  });
  return WithMean ? yieldReduced(n, {result, mean}, *r) : yieldReduced(n, result, *r);
}

//===-- Norms, logsumexp ------------------------------------------------------------------------------------------===//

/// (sum |x|^p)^(1/p), with the largest and the smallest magnitude for infinite p and a count for 0.
FailureOr<Tensor> normOver(NodeImporter &n, const Tensor &x, const Reduction &r, double p) {
  if (std::isinf(p)) {
    if (failed(refuseEmpty(n, r)))
      return failure();
    Tensor magnitudes = compute(n, x, [](ArrayRef<Scalar> s) { return abs(s[0]); });
    return p > 0 ? maximumOver(n, magnitudes, r.dims) : minimumOver(n, magnitudes, r.dims);
  }
  if (p == 0.0)
    return sumOver(n, n.cast(n.cast(x, DType::Bool), x.dtype), r.dims);
  Tensor powers = compute(n, x, [&](ArrayRef<Scalar> s) {
    return p == 1.0 ? abs(s[0]) : p == 2.0 ? s[0] * s[0] : pow(abs(s[0]), p);
  });
  return compute(n, sumOver(n, powers, r.dims), [&](ArrayRef<Scalar> s) {
    return p == 1.0 ? s[0] : p == 2.0 ? sqrt(s[0]) : pow(s[0], 1.0 / p);
  });
}

/// `linalg_vector_norm(self, ord, dim, keepdim, *, dtype)` and the overloads of `norm(self, p, dim, keepdim, *,
/// dtype)`.
LogicalResult lowerNorm(NodeImporter &n) {
  FailureOr<Reduction> r = reductionOf(n, 2);
  if (failed(r))
    return failure();
  FailureOr<double> p = n.real(1, n.target().contains("vector_norm") ? "ord" : "p", 2.0);
  if (failed(p))
    return failure();
  if (!isFloat(r->x.dtype))
    return n.refuse("a norm of integers");
  FailureOr<Tensor> norm = normOver(n, castToCompute(n, r->x, n.resultDType()), *r, *p);
  return failed(norm) ? failure() : yieldReduced(n, *norm, *r);
}

LogicalResult lowerLogsumexp(NodeImporter &n) {
  FailureOr<Reduction> r = reductionOf(n);
  if (failed(r))
    return failure();
  Tensor x = castToCompute(n, r->x, n.resultDType());
  Tensor largest = maximumOver(n, x, r->dims);
  // An infinite maximum is not subtracted: the result is then infinite, and not NaN.
  Tensor shift = compute(n, largest, [](ArrayRef<Scalar> s) { return select(abs(s[0]) == kInfinity, 0.0, s[0]); });
  Tensor exps = compute(n, x, shift, r->dims, [](ArrayRef<Scalar> s) { return exp(s[0] - s[1]); });
  Tensor result = compute(n, {sumOver(n, exps, r->dims), shift}, [](ArrayRef<Scalar> s) { return log(s[0]) + s[1]; });
  return yieldReduced(n, result, *r);
}

} // namespace

void populateReduction(LoweringTable &table) {
  table.add({"aten.sum.default", "aten.sum.dim_IntList"}, lowerSum);
  table.add({"aten.mean.default", "aten.mean.dim"}, lowerMean);
  table.add({"aten.prod.default", "aten.prod.dim_int"}, lowerProd);
  table.add({"aten.count_nonzero.default", "aten.count_nonzero.dim_IntList"}, lowerCountNonzero);
  table.add({"aten.any.default", "aten.any.dim", "aten.any.dims"}, lowerAnyAll<false>);
  table.add({"aten.all.default", "aten.all.dim", "aten.all.dims"}, lowerAnyAll<true>);
  table.add({"aten.amax.default", "aten.max.default"}, lowerExtreme<true>);
  table.add({"aten.amin.default", "aten.min.default"}, lowerExtreme<false>);
  table.add("aten.aminmax.default", lowerAminmax);
  table.add("aten.max.dim", lowerExtremeWithPosition<true>);
  table.add("aten.min.dim", lowerExtremeWithPosition<false>);
  table.add("aten.argmax.default", lowerArgExtreme<true>);
  table.add("aten.argmin.default", lowerArgExtreme<false>);
  table.add({"aten.var.correction", "aten.var.dim", "aten.var.default"}, lowerVariance<false, false>);
  table.add({"aten.std.correction", "aten.std.dim", "aten.std.default"}, lowerVariance<true, false>);
  table.add({"aten.var_mean.correction", "aten.var_mean.dim", "aten.var_mean.default"}, lowerVariance<false, true>);
  table.add({"aten.std_mean.correction", "aten.std_mean.dim", "aten.std_mean.default"}, lowerVariance<true, true>);
  table.add({"aten.linalg_vector_norm.default", "aten.norm.Scalar", "aten.norm.ScalarOpt_dim",
             "aten.norm.ScalarOpt_dtype", "aten.norm.ScalarOpt_dim_dtype"},
            lowerNorm);
  table.add("aten.logsumexp.default", lowerLogsumexp);
}

} // namespace accel
