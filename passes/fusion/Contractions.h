/// Sums of products: C[batch, m, n] += A[batch, m, k] * B[batch, k, n], each role any number of dimensions.
///
/// A contraction that gets a kernel of ours is a linalg.generic. B is a plain tensor, or packed into panels: a tensor
/// [N / w, K..., w] (the last panel filled up with zeros) that the op reads at (n floordiv w, k..., n mod w), so that
/// the w columns of a register tile lie side by side for every k.
#ifndef ACCEL_PASSES_FUSION_CONTRACTIONS_H
#define ACCEL_PASSES_FUSION_CONTRACTIONS_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace accel {

/// Operands of the op: A, B, the destination.
struct Contraction {
  mlir::Operation *op;
  llvm::SmallVector<unsigned> batch, m, n, k; // the op's dimensions by role
  int64_t panel = 0;                          // width of B's panels; 0: B is a plain tensor
};

/// The op as a contraction, if it is a linalg.generic of that form over numbers of one type.
std::optional<Contraction> matchContraction(mlir::Operation *op);
/// The contraction among a block's ops; null if there is none.
mlir::Operation *findContraction(mlir::Block &block);

} // namespace accel

#endif
