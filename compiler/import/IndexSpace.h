/// The space that indexing with tensors runs over, which reading and writing by indices share.
#ifndef ACCEL_COMPILER_IMPORT_INDEXSPACE_H
#define ACCEL_COMPILER_IMPORT_INDEXSPACE_H

#include "compiler/import/Importer.h"

namespace accel {

/// Whether a tensor of the dtype can be an index.
bool isIndexDType(DType dtype);
/// A tensor of rank 0 as one of rank 1, which an index can be checked against.
Tensor atLeastRank1(NodeImporter &n, const Tensor &tensor);

/// What `x[i, :, j]` runs over. The broadcast indices' dimensions stand where the first indexed dimension was if the
/// indexed dimensions are neighbours, else in front.
struct IndexSpace {
  llvm::SmallVector<mlir::AffineExpr> sizes;
  llvm::SmallVector<Tensor> indices;
  llvm::SmallVector<mlir::AffineMap> maps; // from the space to each index tensor
  llvm::SmallVector<int64_t> indexed;      // the tensor's dimensions that the indices are for
  llvm::SmallVector<int64_t> loopOf;       // for each of the tensor's dimensions the loop over it; -1 if it is indexed
};

/// Refuses masks, and indices that don't broadcast. `entries` has a Tensor without a value for `:`.
mlir::FailureOr<IndexSpace> indexSpace(NodeImporter &n, const Tensor &self, llvm::ArrayRef<Tensor> entries);

} // namespace accel

#endif
