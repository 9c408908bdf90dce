/// One function per op family; each adds its lowerings to the table.
#ifndef ACCEL_COMPILER_IMPORT_FAMILIES_H
#define ACCEL_COMPILER_IMPORT_FAMILIES_H

namespace accel {
class LoweringTable;

void populateArithmetic(LoweringTable &table);
void populateComparison(LoweringTable &table);
void populateActivation(LoweringTable &table);
void populateCasting(LoweringTable &table);
void populateReduction(LoweringTable &table);
void populateNormalization(LoweringTable &table);
void populateSoftmax(LoweringTable &table);
void populateBatchNorm(LoweringTable &table);
void populateLoss(LoweringTable &table);
void populateContraction(LoweringTable &table);
void populateConvolution(LoweringTable &table);
void populateAttention(LoweringTable &table);
void populateView(LoweringTable &table);
void populateViewScatter(LoweringTable &table);
void populateConcat(LoweringTable &table);
void populateCreation(LoweringTable &table);
void populateIndexing(LoweringTable &table);
void populatePooling(LoweringTable &table);
void populateUpsample(LoweringTable &table);
void populateScatter(LoweringTable &table);
void populateScan(LoweringTable &table);
void populateSorting(LoweringTable &table);
} // namespace accel

#endif
