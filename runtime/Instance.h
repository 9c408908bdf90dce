// A plan made ready to run for one set of symbol values.

#ifndef ACCEL_RUNTIME_INSTANCE_H
#define ACCEL_RUNTIME_INSTANCE_H

#include "runtime/DirectCall.h"
#include "runtime/Layout.h"
#include "runtime/Program.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace accel::runtime {

/// Inputs and outputs of a call: tensors, integers and none.
using IValueList = c10::SmallVectorImpl<c10::IValue>;

/// What a call did.
struct CallCounters {
  uint64_t launches = 0;
  uint64_t atenCalls = 0;
  uint64_t fallbacks = 0; ///< those of the ATen calls that had no lowering
  uint64_t restrided = 0; ///< inputs and results that were copied into the plan's strides
};

/// Sizes, offsets, launch arguments and constant operands of a plan, computed once and used for
/// every call with the same symbol values. An instance serves one call at a time.
class Instance {
public:
  Instance(const Program &program, c10::IntArrayRef symbols);
  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  c10::IntArrayRef symbols() const { return symbolValues; }

  /// Runs the plan. `inputs` are checked against it, and let go of after their last use: what is
  /// left of the list is unspecified. `outputs` is filled. Throws what the plan's operators throw,
  /// c10::IndexError if a kernel met an index out of range, c10::Error if an input doesn't fit.
  void run(IValueList &inputs, IValueList &outputs, CallCounters &counters);

  /// False if something outside kept hold of the arena: then the instance must not run again.
  bool isReusable() const { return reusable; }

private:
  struct InputCheck {
    int input;
    int value; ///< its root, or -1 if no step and no output uses it
    bool mutated;
    c10::ScalarType dtype;
    c10::SmallVector<int64_t, 4> sizes;
    c10::SmallVector<int64_t, 4> strides;
  };
  struct Launch {
    int kernel;
    int firstArg;
    int numArgs;
    int firstSymbol;
    int64_t units;
    int64_t grain;
    int64_t scratch;
  };
  struct Call {
    const AtenCall *call;
    std::vector<c10::IValue> operands; ///< in the schema's order; empty where `dynamic` says so
    std::vector<int> dynamic;          ///< operands that differ from call to call
    std::optional<DirectCall> direct;  ///< used instead of the operands where there is one
  };
  struct StepPlan {
    bool isLaunch;
    int index; ///< in `launches` or `calls`
    int allocateEnd;
    int releaseEnd;
  };
  class Scope;

  void prepareInputs();
  void prepareSteps();
  void prepareLifetimes();
  void prepareLaunch(const LaunchStep &step);
  void prepareCall(const AtenCall &call);
  void prepareArenaTensor(int value);
  void rememberReferences();

  void bindInputs(CallCounters &counters);
  void bindInput(const InputCheck &check, CallCounters &counters);
  void runLaunch(const Launch &launch);
  void runCall(Call &call, CallCounters &counters);
  void setResults(const Call &call, CallCounters &counters);
  void setResult(int value, at::Tensor tensor, const AtenCall &call, CallCounters &counters);
  void allocateOutput(int value);
  void releaseRoot(int root);
  at::Tensor makeOutput(int value);
  const at::Tensor &tensorOf(int value);
  void setTensor(int value, at::Tensor tensor);
  void checkReach(int root, const at::Tensor &tensor) const;
  bool isInArena(const at::Tensor &tensor) const;
  ValueSpec::Kind rootKind(int value) const;
  bool arenaEscaped() const;

  const Program &program;
  const std::vector<int64_t> symbolValues;
  const Layout layout;

  std::vector<InputCheck> inputChecks;
  std::vector<StepPlan> steps;
  std::vector<Launch> launches;
  std::vector<Call> calls;
  std::vector<int> allocations;              ///< output values, in the order of their first use
  std::vector<int> releases;                 ///< roots, in the order of their last use
  std::vector<std::vector<int>> viewsOfRoot; ///< values to let go of with a root
  std::vector<int> argRoots;                 ///< of each launch argument
  std::vector<int64_t> argOffsets;           ///< bytes after the root's first element
  std::vector<int64_t> launchSymbols;
  std::vector<int64_t> outputIntegers;

  /// All tensors in the arena share this storage; each call sets its address.
  c10::intrusive_ptr<c10::StorageImpl> arenaStorage;
  /// How many references we hold ourselves: to the storage, and to each tensor in it.
  size_t storageReferences = 0;
  std::vector<std::pair<int, size_t>> tensorReferences;

  // State of the running call.
  IValueList *callInputs = nullptr;
  bool isProfiled = false;
  std::vector<char *> rootAddress;
  std::vector<at::Tensor> tensors; ///< of each value; those in the arena stay between calls
  std::vector<int> touched;        ///< values whose tensor goes at the end of the call
  std::vector<void *> argAddress;
  torch::jit::Stack stack;
  bool reusable = true;
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_INSTANCE_H
