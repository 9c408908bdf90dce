#include "runtime/ForkSafeMutex.h"

#include <pthread.h>

#include <atomic>

namespace accel::runtime {
namespace {

std::atomic<bool> forked{false};

std::mutex *createMutex() {
  static std::mutex *mutex = new std::mutex;
  pthread_atfork([] { mutex->lock(); }, [] { mutex->unlock(); },
                 [] {
                   // Only the forking thread lives on, and it holds the lock.
                   mutex->unlock();
                   forked.store(true, std::memory_order_relaxed);
                 });
  return mutex;
}

} // namespace

std::mutex &forkSafeMutex() {
  static std::mutex *mutex = createMutex();
  return *mutex;
}

bool isForkedChild() { return forked.load(std::memory_order_relaxed); }

} // namespace accel::runtime
