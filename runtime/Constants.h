// What a bundle computes from weights alone, once for all calls.

#ifndef ACCEL_RUNTIME_CONSTANTS_H
#define ACCEL_RUNTIME_CONSTANTS_H

#include "runtime/Instance.h"
#include "runtime/Program.h"

#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

namespace accel::runtime {

/// Runs the plan of a bundle's `constants` section and keeps what it returns until a weight that it
/// read is another tensor or has been written to. A write through `.data`, which PyTorch doesn't
/// count, goes unnoticed. Weights that are inference tensors have no count of writes, so with one of
/// them the plan runs in every call.
class Constants {
public:
  using Values = std::vector<at::Tensor>;

  /// Throws BundleError, as Program does.
  Constants(std::string_view planJson, std::string_view elf) : program(planJson, elf) {}

  /// The values for a call of the main plan with these inputs. They stay valid with the pointer,
  /// whatever other calls do. May be called from several threads.
  std::shared_ptr<const Values> valuesFor(const IValueList &mainInputs);

  size_t count() const { return program.plan.outputs.size(); }
  const std::vector<int> &mainInputs() const { return program.plan.mainInputs; }
  uint64_t runs() const { return numRuns.load(std::memory_order_relaxed); }
  /// Of the values that are kept now.
  size_t bytes() const;

private:
  /// A tensor as it was when it was read. The storage's address stays taken while this lives.
  struct Weight {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    const void *data;
    uint32_t version;
    c10::SmallVector<int64_t, 4> strides;
  };
  struct Kept {
    std::vector<Weight> weights; ///< empty: not to be used again
    Values values;
  };

  std::shared_ptr<const Kept> run(const IValueList &mainInputs);
  bool isUnchanged(const Kept &kept, const IValueList &mainInputs) const;

  Program program;
  std::shared_ptr<const Kept> kept; ///< guarded by forkSafeMutex()
  std::atomic<uint64_t> numRuns{0};
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CONSTANTS_H
