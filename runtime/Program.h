// A loaded plan: everything that is the same for all calls and all sizes.

#ifndef ACCEL_RUNTIME_PROGRAM_H
#define ACCEL_RUNTIME_PROGRAM_H

#include "runtime/AtenCall.h"
#include "runtime/CodeModule.h"
#include "runtime/Liveness.h"
#include "runtime/Plan.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace accel::runtime {

struct Program {
  /// Reads the `plan` section and loads the `code` section (empty: there is none). Throws
  /// BundleError if the plan is wrong, names an operator that PyTorch doesn't have, writes to an
  /// input that it doesn't call mutated, or needs processor features that aren't there.
  /// `name`, if not empty, takes the place of the plan's.
  Program(std::string_view planJson, std::string_view elf, std::string_view name = {});
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  Plan plan;
  CodeModule code;
  std::vector<KernelFunction> kernels;          ///< of each of the plan's kernels
  std::string profileName;                      ///< what a profiler shows for a call
  std::vector<std::string> kernelNames;         ///< and for each kernel
  std::vector<std::unique_ptr<AtenCall>> calls; ///< of each step; null for launches
  Liveness live;
  std::vector<int> firstOutput; ///< of each output: the first that holds the same value, or itself
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_PROGRAM_H
