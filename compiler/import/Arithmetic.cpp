#include "compiler/import/Families.h"
#include "compiler/import/Importer.h"

using namespace mlir;

namespace accel {

void populateArithmetic(LoweringTable &table) {}

} // namespace accel
