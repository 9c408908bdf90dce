// Which memory each value lies in, and for how long that memory is needed.

#ifndef ACCEL_RUNTIME_LIVENESS_H
#define ACCEL_RUNTIME_LIVENESS_H

#include "runtime/Plan.h"

#include <vector>

namespace accel::runtime {

/// A root is a value that isn't a view: an input (the first value that names it), an allocation or a
/// result. Steps are counted from 0; `plan.steps.size()` stands for the time after the last one, when
/// outputs are handed over.
struct Liveness {
  static constexpr int kNever = -1;

  std::vector<int> root;     ///< of each value
  std::vector<int> firstUse; ///< of each root: the first step that touches it, or kNever
  std::vector<int> lastUse;  ///< of each root: the last step that touches it or shares its memory
};

/// `aliases[step]` lists the values whose memory the results of that step may share (empty for
/// launches). Whatever uses such a result uses their memory too.
Liveness computeLiveness(const Plan &plan, const std::vector<std::vector<int>> &aliases);

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_LIVENESS_H
