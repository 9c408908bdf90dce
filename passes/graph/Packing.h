/// The right operand of a contraction as panels (passes/fusion/Contractions.h).
#ifndef ACCEL_PASSES_GRAPH_PACKING_H
#define ACCEL_PASSES_GRAPH_PACKING_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace accel {

/// Copies a tensor of static shape to [ceil(columns / width), depth dimensions..., width], the last panel filled up
/// with zeros. `columns` and `depth` number the source's dimensions. The ops are made at the builder's insertion point,
/// their locations name the packing.
mlir::Value packPanels(mlir::ImplicitLocOpBuilder &b, mlir::Value source, unsigned columns,
                       llvm::ArrayRef<unsigned> depth, int64_t width);
/// acc + a * b over the given maps (A, B, C) and iterators, starting from zeros.
mlir::Value contraction(mlir::ImplicitLocOpBuilder &b, mlir::Value a, mlir::Value right, mlir::Value init,
                        llvm::ArrayRef<mlir::AffineMap> maps, unsigned numLoops, unsigned numReductions,
                        llvm::StringRef choice);

} // namespace accel

#endif
