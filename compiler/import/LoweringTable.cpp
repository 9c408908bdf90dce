#include "compiler/import/Families.h"
#include "compiler/import/Importer.h"

namespace accel {

const LoweringTable &loweringTable() {
  static const LoweringTable table = [] {
    LoweringTable t;
    populateArithmetic(t);
    populateComparison(t);
    populateActivation(t);
    populateCasting(t);
    populateReduction(t);
    populateNormalization(t);
    populateSoftmax(t);
    populateBatchNorm(t);
    populateLoss(t);
    populateContraction(t);
    populateConvolution(t);
    populateAttention(t);
    populateView(t);
    populateViewScatter(t);
    populateConcat(t);
    populateCreation(t);
    populateIndexing(t);
    populatePooling(t);
    populateUpsample(t);
    populateScatter(t);
    populateScan(t);
    populateSorting(t);
    return t;
  }();
  return table;
}

} // namespace accel
