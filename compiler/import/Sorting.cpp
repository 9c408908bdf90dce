/// Ops that order elements: PyTorch's library has the algorithms.
#include "compiler/import/Families.h"
#include "compiler/import/Importer.h"

using namespace mlir;

namespace accel {

void populateSorting(LoweringTable &table) {
  table.add(
      {"aten.sort.default", "aten.sort.stable", "aten.msort.default", "aten.argsort.default", "aten.argsort.stable",
       "aten.topk.default", "aten.kthvalue.default", "aten.median.default", "aten.median.dim", "aten.nanmedian.default",
       "aten.nanmedian.dim", "aten.mode.default"},
      +[](NodeImporter &n) { return n.callLibrary("sorting"); });
  table.add(
      {"aten.searchsorted.Tensor", "aten.searchsorted.Scalar", "aten.bucketize.Tensor", "aten.bucketize.Scalar"},
      +[](NodeImporter &n) { return n.callLibrary("binary search"); });
}

} // namespace accel
