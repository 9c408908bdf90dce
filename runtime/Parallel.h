// Runs a range of work on PyTorch's own threads.

#ifndef ACCEL_RUNTIME_PARALLEL_H
#define ACCEL_RUNTIME_PARALLEL_H

#include <cstdint>

namespace accel::runtime {

/// Work on `[begin, end)`. Must not throw.
using RangeFunction = void (*)(void *context, int64_t begin, int64_t end);

/// Calls `function` for parts that make up `[0, units)`: one part for each of PyTorch's threads
/// (`torch.set_num_threads` counts), each at least `grain` long, or the whole range here where that
/// leaves a single part, inside another parallel region, or in a forked child whose OpenMP can't
/// start threads. Parts have the same bounds as those of at::parallel_for.
void parallelFor(int64_t units, int64_t grain, RangeFunction function, void *context);

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_PARALLEL_H
