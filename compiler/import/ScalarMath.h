/// Scalar code inside the bodies of linalg ops, with PyTorch's rules.
#ifndef ACCEL_COMPILER_IMPORT_SCALARMATH_H
#define ACCEL_COMPILER_IMPORT_SCALARMATH_H

#include "compiler/import/FxJson.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace accel {

mlir::Type scalarType(mlir::MLIRContext *context, DType dtype);
/// A constant of the dtype; an integer dtype takes the value's integer part.
mlir::Value scalarConstant(mlir::ImplicitLocOpBuilder &b, double value, DType dtype);
mlir::Value integerConstant(mlir::ImplicitLocOpBuilder &b, int64_t value, DType dtype);
mlir::TypedAttr scalarAttribute(mlir::Builder &b, double value, DType dtype);
mlir::TypedAttr integerAttribute(mlir::Builder &b, int64_t value, DType dtype);

/// The value in another dtype: to bool means "is not zero", float to integer truncates, low precision goes through f32.
mlir::Value convertScalar(mlir::ImplicitLocOpBuilder &b, mlir::Value value, DType from, DType to);

/// The dtype that eager computes in: f32 for f16 and bf16, else the dtype itself.
inline DType computeDType(DType dtype) { return isLowPrecision(dtype) ? DType::F32 : dtype; }

/// The dtype of `torch.promote_types(a, b)`.
DType promoteTypes(DType a, DType b);

} // namespace accel

#endif
