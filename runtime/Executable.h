// A bundle that can be called.

#ifndef ACCEL_RUNTIME_EXECUTABLE_H
#define ACCEL_RUNTIME_EXECUTABLE_H

#include "runtime/Constants.h"
#include "runtime/Instance.h"
#include "runtime/Program.h"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace accel::runtime {

/// A loaded bundle. It may be called from several threads at once and from within one of its own
/// calls.
class Executable {
public:
  /// What all calls so far did.
  struct Stats {
    uint64_t calls = 0;
    CallCounters counters;
    uint64_t constantRuns = 0;  ///< times that what depends on weights alone was computed
    uint64_t constantBytes = 0; ///< of what is kept of that
    uint64_t instances = 0;     ///< made so far: one for each set of symbol values and parallel call
  };

  /// Loads a bundle. The bytes are not needed afterwards. `name`, if not empty, is what errors and
  /// profiles call the graph: a bundle from a cache has the name it was compiled under. Throws
  /// BundleError.
  explicit Executable(std::string_view bundle, std::string_view name = {});
  ~Executable();
  Executable(const Executable &) = delete;
  Executable &operator=(const Executable &) = delete;

  /// Runs the plan: one input for each of the plan's, outputs likewise. `inputs` are let go of as
  /// soon as they are no longer needed, so a caller that holds no other reference saves memory;
  /// what is left of the list is unspecified. Outputs don't require a gradient. Throws
  /// c10::IndexError if a kernel met an index out of range, what PyTorch's operators throw, and
  /// c10::Error if the inputs don't fit the plan.
  void run(IValueList &inputs, IValueList &outputs);

  /// The same for callers that don't count nanoseconds.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs);

  const std::string &name() const { return program.plan.name; }
  const std::string &planText() const { return planJson; }
  const std::string &report() const { return reportJson; } ///< "" if the bundle has none
  size_t numInputs() const { return program.plan.inputs.size() - (constants ? constants->count() : 0); }
  Stats stats() const;

private:
  struct Sections;
  Executable(const Sections &sections, std::string_view name);
  using Symbols = c10::SmallVector<int64_t, 8>;

  void readSymbols(const IValueList &inputs, Symbols &symbols) const;
  std::unique_ptr<Instance> acquire(const Symbols &symbols);
  void release(std::unique_ptr<Instance> instance);

  const std::string planJson;
  const std::string reportJson;
  Program program;
  std::unique_ptr<Constants> constants;        ///< its values are the plan's last inputs
  std::vector<std::unique_ptr<Instance>> idle; ///< the one used last is at the end

  std::atomic<uint64_t> calls{0}, launches{0}, atenCalls{0}, fallbacks{0}, restrided{0};
  std::atomic<uint64_t> instances{0};
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_EXECUTABLE_H
