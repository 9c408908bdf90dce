#include "compiler/import/Families.h"
#include "compiler/import/Importer.h"
#include "compiler/import/ScalarMath.h"

using namespace mlir;

namespace accel {
namespace {

/// The same values in another dtype. A memory format only asks for strides, which the outputs' layouts hold.
LogicalResult lowerToCopy(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  if (failed(self))
    return failure();
  std::string device = n.text(3, "device", "cpu");
  if (device != "cpu")
    return n.refuse("a copy to device " + device);
  if (n.text(2, "layout", "strided") != "strided")
    return n.refuse("a layout other than strided");
  if (n.boolean(4, "pin_memory", false))
    return n.refuse("pinned memory");
  return n.yield(*self);
}

LogicalResult lowerConvertElementType(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "a");
  return failed(self) ? failure() : n.yield(*self);
}

/// Tensors are values, so a copy, an alias and the tensor itself are one.
LogicalResult lowerIdentity(NodeImporter &n) {
  FailureOr<Tensor> self = n.tensor(0, "self");
  return failed(self) ? failure() : n.yield(*self);
}

/// `src` with self's sizes and dtype.
LogicalResult lowerCopy(NodeImporter &n) {
  FailureOr<Tensor> src = n.tensor(1, "src");
  if (failed(src))
    return failure();
  SmallVector<AffineExpr> sizes = n.resultSizes();
  if (ArrayRef<AffineExpr>(src->sizes) == ArrayRef<AffineExpr>(sizes))
    return n.yield(*src);
  DType dtype = n.resultDType();
  return n.yield(n.pointwise(*src, sizes, dtype, [&](ImplicitLocOpBuilder &b, ValueRange x) {
    return convertScalar(b, x[0], src->dtype, dtype);
  }));
}

} // namespace

void populateCasting(LoweringTable &table) {
  table.add("aten._to_copy.default", lowerToCopy);
  table.add("aten.copy.default", lowerCopy);
  table.add("prims.convert_element_type.default", lowerConvertElementType);
  table.add({"aten.alias.default", "aten.clone.default", "aten.detach.default", "aten.lift_fresh.default",
             "aten.lift_fresh_copy.default"},
            lowerIdentity);
}

} // namespace accel
