#include "compiler/import/Families.h"
#include "compiler/import/Importer.h"

using namespace mlir;

namespace accel {
namespace {

/// PyTorch's convolutions are oneDNN's: tuned, and chosen by shape and processor. What surrounds them is fused around
/// the call.
LogicalResult lowerConvolution(NodeImporter &n) { return n.callLibrary("convolution"); }

} // namespace

void populateConvolution(LoweringTable &table) {
  table.add({"aten.convolution.default", "aten.convolution_backward.default"}, lowerConvolution);
}

} // namespace accel
