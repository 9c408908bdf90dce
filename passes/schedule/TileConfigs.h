/// The schedules of a kernel: the one that heuristics choose, and those that a tuner may try.
#ifndef ACCEL_PASSES_SCHEDULE_TILECONFIGS_H
#define ACCEL_PASSES_SCHEDULE_TILECONFIGS_H

#include "dialects/accel/AccelDialect.h"

namespace accel {

/// The schedule for a kernel that has its target.
TileConfigAttr chooseTileConfig(KernelOp kernel);

/// Schedules worth measuring beside the chosen one, the most promising first; none equals it. At most `limit`.
llvm::SmallVector<TileConfigAttr> candidateTileConfigs(KernelOp kernel, TileConfigAttr chosen, unsigned limit);

} // namespace accel

#endif
