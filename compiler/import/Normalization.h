/// What the normalizations share.
#ifndef ACCEL_COMPILER_IMPORT_NORMALIZATION_H
#define ACCEL_COMPILER_IMPORT_NORMALIZATION_H

#include "compiler/import/ReductionMath.h"

namespace accel {

/// Mean, sum of squared deviations from it, and 1 / sqrt(variance + eps); a tensor without a value where there is none.
struct Moments {
  Tensor mean, squares, rstd;
};

/// The moments of `x` over `dims`, in two passes.
Moments momentsOver(NodeImporter &n, const Tensor &x, Dims dims, double eps);
/// Whether argument `output_mask` of a backward op asks for result `k`.
bool wants(NodeImporter &n, unsigned maskIndex, unsigned k);

} // namespace accel

#endif
