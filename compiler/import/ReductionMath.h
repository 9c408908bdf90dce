/// Reductions that several families share, and pointwise ops between them. Tensors come in the dtype to compute in;
/// `dims` are wrapped, and leave the result.
#ifndef ACCEL_COMPILER_IMPORT_REDUCTIONMATH_H
#define ACCEL_COMPILER_IMPORT_REDUCTIONMATH_H

#include "compiler/import/Importer.h"
#include "compiler/import/Scalar.h"

namespace accel {

using Dims = llvm::ArrayRef<int64_t>;
/// One element of a result from one element of each operand. An operand that is absent comes as a literal.
using Formula = llvm::function_ref<Scalar(llvm::ArrayRef<Scalar>)>;

/// A tensor, or none, and the map from loops to its indices.
struct Operand {
  Tensor tensor;
  mlir::AffineMap map;
};

Tensor compute(NodeImporter &n, llvm::ArrayRef<Operand> operands, llvm::ArrayRef<mlir::AffineExpr> sizes, DType dtype,
               Formula formula);
/// Over tensors of the same sizes, in the dtype of the first.
Tensor compute(NodeImporter &n, llvm::ArrayRef<Tensor> operands, Formula formula);
/// Over the sizes of `full[0]`, in its dtype; the operands are those of `full`, then those of `reduced`, which lack the
/// dimensions `dims`.
Tensor compute(NodeImporter &n, llvm::ArrayRef<Tensor> full, llvm::ArrayRef<Tensor> reduced, Dims dims,
               Formula formula);
/// A map from loops over `rank` dimensions to what is left of them without `dims`.
mlir::AffineMap keptMap(NodeImporter &n, int64_t rank, Dims dims);

/// The smallest and the largest value of a dtype: infinities where it has them.
mlir::TypedAttr lowestValue(mlir::Builder &b, DType dtype);
mlir::TypedAttr highestValue(mlir::Builder &b, DType dtype);

/// A reduction of one tensor by an associative and commutative combiner; the tensor itself if `dims` is empty.
Tensor reduceOver(NodeImporter &n, const Tensor &x, Dims dims, mlir::TypedAttr init, Scalar (*combine)(Scalar, Scalar));
Tensor sumOver(NodeImporter &n, const Tensor &x, Dims dims);
Tensor maximumOver(NodeImporter &n, const Tensor &x, Dims dims);
Tensor minimumOver(NodeImporter &n, const Tensor &x, Dims dims);

/// How many elements each result of a reduction has come from.
mlir::AffineExpr countOver(const Tensor &x, Dims dims);
/// x / count, a true division.
Tensor divideByCount(NodeImporter &n, const Tensor &x, mlir::AffineExpr count);
Tensor meanOver(NodeImporter &n, const Tensor &x, Dims dims);
/// The sum of (x - mean)^2: the second of the two passes of a variance.
Tensor squaredDeviationsOver(NodeImporter &n, const Tensor &x, const Tensor &mean, Dims dims);

/// The result of a reduction with its dimensions put back, of size 1.
Tensor keepDims(NodeImporter &n, const Tensor &reduced, Dims dims);

} // namespace accel

#endif
