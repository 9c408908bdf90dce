/// The schedules of a kernel: the one that heuristics choose, and those that a tuner may try.
#ifndef ACCEL_PASSES_SCHEDULE_TILECONFIGS_H
#define ACCEL_PASSES_SCHEDULE_TILECONFIGS_H

#include "dialects/accel/AccelDialect.h"

namespace accel {

/// The schedule for a kernel that has its target.
TileConfigAttr chooseTileConfig(KernelOp kernel);

} // namespace accel

#endif
