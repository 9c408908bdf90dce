/// Positions, sizes and arguments as scalars inside the bodies of linalg ops.
#ifndef ACCEL_COMPILER_IMPORT_INDEXMATH_H
#define ACCEL_COMPILER_IMPORT_INDEXMATH_H

#include "compiler/import/Importer.h"

namespace accel {

/// An integer expression over the function's symbols, for use in bodies. A constant becomes a constant in the body;
/// anything else is an `index` value from outside.
class SizeScalar {
public:
  SizeScalar(NodeImporter &n, mlir::AffineExpr expr);

  std::optional<int64_t> constant() const { return known; }
  mlir::Value asIndex(mlir::ImplicitLocOpBuilder &b) const;
  mlir::Value as(mlir::ImplicitLocOpBuilder &b, DType dtype) const;

private:
  std::optional<int64_t> known;
  mlir::Value value;
};

/// A Scalar argument (an integer, symbolic or not, a real number or a boolean), for use in bodies.
class ScalarArg {
public:
  /// Refuses what is no number, and a number that PyTorch cannot convert to `dtype` without overflow.
  static mlir::FailureOr<ScalarArg> get(NodeImporter &n, const FxArg *arg, DType dtype);
  /// The number in the dtype that it was made for.
  mlir::Value in(mlir::ImplicitLocOpBuilder &b) const;

private:
  ScalarArg(DType dtype) : dtype(dtype) {}

  DType dtype;
  mlir::TypedAttr attribute;
  std::optional<SizeScalar> symbolic;
};

/// The position along a loop of the linalg op around `b`.
mlir::Value loopIndex(mlir::ImplicitLocOpBuilder &b, int64_t dim);
/// An integer scalar of a tensor as an index.
mlir::Value toIndex(mlir::ImplicitLocOpBuilder &b, mlir::Value integer, DType dtype);
mlir::Value fromIndex(mlir::ImplicitLocOpBuilder &b, mlir::Value index, DType dtype);

/// A tensor of one number.
mlir::FailureOr<Tensor> fillWith(NodeImporter &n, const FxArg *value, llvm::ArrayRef<mlir::AffineExpr> sizes,
                                 DType dtype);

} // namespace accel

#endif
