/// Running sums and their like.
#include "compiler/import/Families.h"
#include "compiler/import/Importer.h"
#include "compiler/import/ViewMath.h"
#include "dialects/accel/AccelDialect.h"

using namespace mlir;

namespace accel {
namespace {

enum class Running { Sum, Product, LogSumExp };

/// `cumsum(self, dim, *, dtype)`, `cumprod(self, dim, *, dtype)`, `logcumsumexp(self, dim)`.
template <Running Kind> LogicalResult lowerScan(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim = dimArg(n, 1, "dim", self->rank());
  if (failed(dim))
    return failure();
  DType dtype = n.resultDType();
  if (dtype == DType::Bool)
    return n.refuse("running sums of booleans as booleans");
  Tensor x = n.cast(*self, dtype);
  if (x.rank() == 0)
    return n.yield(x);
  StringRef combine = Kind == Running::Sum ? "add" : Kind == Running::Product ? "mul" : "logaddexp";
  Value result = ScanOp::create(n.b, x.value.getType(), n.b.getStringAttr(combine), x.value, n.dynamicSizes(x.sizes),
                                n.b.getI64IntegerAttr(*dim));
  return n.yield(Tensor{result, dtype, x.sizes});
}

} // namespace

void populateScan(LoweringTable &table) {
  table.add("aten.cumsum.default", lowerScan<Running::Sum>);
  table.add("aten.cumprod.default", lowerScan<Running::Product>);
  table.add("aten.logcumsumexp.default", lowerScan<Running::LogSumExp>);
  table.add(
      {"aten.cummax.default", "aten.cummin.default"},
      +[](NodeImporter &n) { return n.callLibrary("running extremes with their positions"); });
}

} // namespace accel
