/// In which order a tensor's dimensions lie in memory, and ops made to write in that order.
///
/// A convolution of ours yields channels behind the pixels, as a permuted view of what it writes. Ops that follow would
/// write PyTorch's order and read across memory; here they take over the order of what they read, so that a network
/// keeps it from end to end.
#ifndef ACCEL_PASSES_GRAPH_MEMORYORDER_H
#define ACCEL_PASSES_GRAPH_MEMORYORDER_H

#include "passes/kernels/Layouts.h"

namespace accel {

/// A view of `source` with its dimensions in another order: dimension d of the result is dimension order[d] of the
/// source.
mlir::Value permuted(mlir::OpBuilder &b, mlir::Location loc, mlir::Value source, llvm::ArrayRef<unsigned> order);
/// Makes a pointwise op or a concatenation write its result in the order in which most of what it reads lies. Its place
/// is taken by a permuted view. Returns whether anything changed.
bool followMemoryOrder(mlir::Operation *op, Layouts &layouts);

} // namespace accel

#endif
