#include "dialects/accel/AccelDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/accel/AccelDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/accel/AccelAttributes.cpp.inc"

namespace accel {

std::string naturalDtype(Type element) {
  if (element.isF32())
    return "f32";
  if (element.isF64())
    return "f64";
  if (element.isF16())
    return "f16";
  if (element.isBF16())
    return "bf16";
  if (element.isInteger(1))
    return "bool";
  return "i" + std::to_string(element.getIntOrFloatBitWidth());
}

void AccelDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/accel/AccelAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/accel/AccelOps.cpp.inc"
      >();
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, AffineMapAttr sizes,
                                 AffineMapAttr strides) {
  AffineMap s = sizes.getValue(), t = strides.getValue();
  if (s.getNumDims() || t.getNumDims())
    return emitError() << "layout maps take symbols only, got " << (s.getNumDims() ? sizes : strides);
  if (s.getNumResults() != t.getNumResults() || s.getNumSymbols() != t.getNumSymbols())
    return emitError() << "layout has " << s.getNumResults() << " sizes over " << s.getNumSymbols() << " symbols but "
                       << t.getNumResults() << " strides over " << t.getNumSymbols();
  return success();
}

LogicalResult TileConfigAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t vectorLoop, int64_t vector,
                                     int64_t block, int64_t rows, int64_t grain, int64_t tile) {
  if (vectorLoop < -1)
    return emitError() << "vector_loop is " << vectorLoop << ", expected a loop's number or -1";
  if (vector < 1 || (vector & (vector - 1)))
    return emitError() << "vector is " << vector << ", expected a power of two";
  if (block < vector || block % vector)
    return emitError() << "block " << block << " is not a multiple of vector " << vector;
  if (rows < 1)
    return emitError() << "rows is " << rows << ", expected at least 1";
  if (tile < 1)
    return emitError() << "tile is " << tile << ", expected at least 1";
  if (grain < 1)
    return emitError() << "grain is " << grain << ", expected at least 1";
  return success();
}

} // namespace accel
