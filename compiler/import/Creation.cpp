#include "compiler/import/Families.h"
#include "compiler/import/Importer.h"

using namespace mlir;

namespace accel {

void populateCreation(LoweringTable &table) {}

} // namespace accel
