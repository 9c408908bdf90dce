// A mutex that a forked child can still lock.

#ifndef ACCEL_RUNTIME_FORKSAFEMUTEX_H
#define ACCEL_RUNTIME_FORKSAFEMUTEX_H

#include <mutex>

namespace accel::runtime {

/// The one lock of the runtime. It guards lists that are touched for tens of nanoseconds: idle
/// blocks and idle instances. It is held across `fork`, so the child never inherits it locked by a
/// thread that no longer exists. Nothing that can take another lock may run under it. Never
/// destroyed: tensors are freed after static destructors have run.
std::mutex &forkSafeMutex();

/// True in a process that was forked after `forkSafeMutex` was first used.
bool isForkedChild();

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_FORKSAFEMUTEX_H
