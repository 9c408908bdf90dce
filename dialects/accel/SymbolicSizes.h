/// Sizes of tensors as affine expressions over the `index` arguments of the function or kernel around them.
#ifndef ACCEL_DIALECTS_ACCEL_SYMBOLICSIZES_H
#define ACCEL_DIALECTS_ACCEL_SYMBOLICSIZES_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir {
class OpBuilder;
class OpFoldResult;
} // namespace mlir

namespace accel {

class LayoutAttr;

/// Looks up sizes and index values. One object serves one function or kernel; it keeps what it found.
class SymbolicSizes {
public:
  /// `function` is a func.func or an accel.kernel.
  explicit SymbolicSizes(mlir::Operation *function);

  /// The value of an `index` as an expression over the function's index arguments; null if it isn't one.
  mlir::AffineExpr exprOf(mlir::Value index);
  /// The size of dimension `dim`; null if it is not known.
  mlir::AffineExpr sizeOf(mlir::Value tensor, unsigned dim);
  /// All sizes of a tensor; any may be null.
  llvm::SmallVector<mlir::AffineExpr> sizesOf(mlir::Value tensor);
  /// Number of `index` arguments, which is the number of symbols in the expressions.
  unsigned numSymbols() const { return numSyms; }
  /// An `index` value or attribute for the expression, made before the builder's insertion point.
  mlir::OpFoldResult materialize(mlir::OpBuilder &builder, mlir::Location loc, mlir::AffineExpr expr);
  /// The layout attribute for sizes and strides over this function's symbols.
  LayoutAttr layout(llvm::ArrayRef<mlir::AffineExpr> sizes, llvm::ArrayRef<mlir::AffineExpr> strides);

  mlir::MLIRContext *context() const { return ctx; }

private:
  mlir::MLIRContext *ctx;
  mlir::Block *entry;
  unsigned numSyms = 0;
  llvm::SmallVector<mlir::Value> symbols;
  llvm::DenseMap<mlir::Value, mlir::AffineExpr> exprs;
};

/// The expression as a sum of products in one fixed order, so that equal polynomials are the same object. floordiv,
/// ceildiv and mod count as factors of their own.
mlir::AffineExpr normalize(mlir::AffineExpr expr);

/// Row-major strides of the given sizes: the last is 1. A size of zero counts as 1, as in PyTorch, when it is constant.
llvm::SmallVector<mlir::AffineExpr> contiguousStrides(llvm::ArrayRef<mlir::AffineExpr> sizes, mlir::MLIRContext *ctx);

} // namespace accel

#endif
