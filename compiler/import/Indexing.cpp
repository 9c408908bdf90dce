#include "compiler/import/Families.h"
#include "compiler/import/Importer.h"

using namespace mlir;

namespace accel {

void populateIndexing(LoweringTable &table) {}

} // namespace accel
