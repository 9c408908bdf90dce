#include "runtime/Parallel.h"

#include "runtime/ForkSafeMutex.h"

#include <ATen/Parallel.h>

#include <dlfcn.h>

#include <algorithm>
#include <cassert>

namespace accel::runtime {
namespace {

// at::parallel_for is a template: it uses whatever OpenMP its caller was compiled with. Compiled by
// Clang that is a second OpenMP with a second set of threads, and compiled without -fopenmp it is a
// plain loop. So we call the entry points of the OpenMP that libtorch itself is linked with. All
// three of GCC's, LLVM's and Intel's offer these.
struct OpenMp {
  void (*parallel)(void (*)(void *), void *, unsigned threads, unsigned flags) = nullptr;
  int (*numThreads)() = nullptr;
  int (*threadNum)() = nullptr;
  bool survivesFork = false;

  OpenMp() {
    // Any address in libtorch_cpu finds the library; its handle searches what it depends on.
    Dl_info info;
    if (!dladdr(reinterpret_cast<void *>(&at::get_num_threads), &info))
      return;
    void *torch = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!torch)
      return;
    numThreads = reinterpret_cast<int (*)()>(dlsym(torch, "omp_get_num_threads"));
    threadNum = reinterpret_cast<int (*)()>(dlsym(torch, "omp_get_thread_num"));
    // LLVM's and Intel's start anew in a child; GCC's waits for threads that are gone.
    survivesFork = dlsym(torch, "__kmpc_fork_call") != nullptr;
    if (numThreads && threadNum)
      parallel = reinterpret_cast<decltype(parallel)>(dlsym(torch, "GOMP_parallel"));
    dlclose(torch);
  }
};

const OpenMp &openMp() {
  static const OpenMp api;
  return api;
}

struct Region {
  int64_t units;
  int64_t grain;
  RangeFunction function;
  void *context;
};

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

void runPart(void *argument) {
  const auto &region = *static_cast<const Region *>(argument);
  // The team may be smaller than what was asked for. Its size can't be set for this region: GCC's
  // OpenMP would end and start threads each time the number changes.
  const OpenMp &api = openMp();
  assert(api.numThreads && api.threadNum && "a parallel region runs without OpenMP");
  int64_t parts = std::min<int64_t>(api.numThreads(), divideUp(region.units, region.grain));
  int64_t part = api.threadNum();
  int64_t size = divideUp(region.units, parts);
  int64_t begin = part * size;
  if (begin < region.units)
    region.function(region.context, begin, std::min(region.units, begin + size));
}

} // namespace

void parallelFor(int64_t units, int64_t grain, RangeFunction function, void *context) {
  if (units <= 0)
    return;
  grain = std::max<int64_t>(grain, 1);
  bool isSequential = units <= grain || at::get_num_threads() <= 1 || at::in_parallel_region() || !openMp().parallel ||
                      (isForkedChild() && !openMp().survivesFork);
  if (isSequential)
    return function(context, 0, units);
  Region region{units, grain, function, context};
  openMp().parallel(&runPart, &region, /*threads=*/0, /*flags=*/0);
}

} // namespace accel::runtime
