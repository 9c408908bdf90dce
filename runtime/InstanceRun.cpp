#include "runtime/Instance.h"

#include "runtime/BlockPool.h"
#include "runtime/Parallel.h"

#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <memory>
#include <optional>

namespace accel::runtime {
namespace {

using Kind = ValueSpec::Kind;

/// Conjugated, negated and zero tensors hold other numbers than they stand for.
bool isLazy(const at::Tensor &tensor) {
  constexpr c10::DispatchKeySet kLazy(
      {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor});
  return tensor.key_set().has_any(kLazy);
}

/// What a kernel writes to its error word.
constexpr int64_t kIndexOutOfRange = 1;

constexpr size_t kScratchAlignment = 64;

/// Memory of the calling thread alone, aligned to 64 bytes. It grows and is kept until the thread
/// ends.
void *threadScratch(int64_t bytes) {
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  thread_local std::unique_ptr<void, Free> memory;
  thread_local size_t capacity = 0;
  size_t needed = (static_cast<size_t>(bytes) + kScratchAlignment - 1) & ~(kScratchAlignment - 1);
  if (needed > capacity) {
    memory.reset();
    capacity = 0;
    memory.reset(std::aligned_alloc(kScratchAlignment, needed));
    capacity = memory ? needed : 0;
  }
  return memory.get();
}

/// A range in a profile, if there is one.
class ProfileRange {
public:
  ProfileRange(bool isProfiled, const std::string &name) {
    if (!isProfiled)
      return;
    range.emplace(at::RecordScope::FUNCTION);
    if (range->isActive())
      range->before(std::string_view(name));
  }

private:
  std::optional<at::RecordFunction> range;
};

struct LaunchContext {
  KernelFunction kernel;
  void *const *args;
  const int64_t *symbols;
  int64_t scratch;
  int64_t *error;
};

/// Stands for a thread that had no memory for its scratch: nothing may be thrown there.
constexpr int64_t kOutOfScratch = -1;

void runRange(void *opaque, int64_t begin, int64_t end) {
  const auto &context = *static_cast<const LaunchContext *>(opaque);
  void *scratch = context.scratch > 0 ? threadScratch(context.scratch) : nullptr;
  if (context.scratch > 0 && !scratch) {
    __atomic_store_n(context.error, kOutOfScratch, __ATOMIC_RELAXED);
    return;
  }
  context.kernel(context.args, context.symbols, begin, end, scratch, context.error);
}

std::string describe(const at::Tensor &tensor) { return c10::str(tensor.sizes(), " with strides ", tensor.strides()); }

} // namespace

/// The state of one call: cleans up however the call ends.
class Instance::Scope {
public:
  Scope(Instance &instance, IValueList &inputs) : instance(instance) {
    instance.callInputs = &inputs;
    instance.isProfiled = at::hasCallbacks();
    if (instance.layout.arenaBytes() == 0)
      return;
    block = BlockPool::process().allocate(static_cast<size_t>(instance.layout.arenaBytes()));
    instance.rootAddress.back() = static_cast<char *>(block.get());
    instance.arenaStorage->set_data_ptr_noswap(at::DataPtr(block.get(), c10::Device(c10::kCPU)));
  }

  ~Scope() {
    instance.stack.clear();
    for (int value : instance.touched)
      instance.tensors[value].reset();
    instance.touched.clear();
    instance.callInputs = nullptr;
    if (!instance.arenaStorage)
      return;
    // Whoever kept a tensor of the arena keeps its memory too. We do without it from now on.
    instance.reusable = !instance.arenaEscaped();
    instance.arenaStorage->set_data_ptr_noswap(instance.reusable ? at::DataPtr(nullptr, c10::Device(c10::kCPU))
                                                                 : std::move(block));
  }

private:
  Instance &instance;
  at::DataPtr block;
};

void Instance::run(IValueList &inputs, IValueList &outputs, CallCounters &counters) {
  Scope scope(*this, inputs);
  ProfileRange range(isProfiled, program.profileName);
  bindInputs(counters);

  int allocated = 0, released = 0;
  for (const StepPlan &step : steps) {
    for (; allocated < step.allocateEnd; ++allocated)
      allocateOutput(allocations[allocated]);
    if (step.isLaunch)
      runLaunch(launches[step.index]);
    else
      runCall(calls[step.index], counters);
    for (; released < step.releaseEnd; ++released)
      releaseRoot(releases[released]);
  }
  counters.launches += launches.size();
  counters.atenCalls += calls.size();

  outputs.clear();
  for (size_t i = 0; i < program.plan.outputs.size(); ++i) {
    const OutputSpec &output = program.plan.outputs[i];
    if (output.kind == OutputSpec::Kind::Integer)
      outputs.emplace_back(outputIntegers[i]);
    else if (output.kind == OutputSpec::Kind::None)
      outputs.emplace_back();
    else if (program.firstOutput[i] != static_cast<int>(i))
      outputs.push_back(outputs[program.firstOutput[i]]);
    else
      outputs.emplace_back(makeOutput(output.value));
  }
}

void Instance::bindInputs(CallCounters &counters) {
  for (const InputCheck &check : inputChecks)
    bindInput(check, counters);
  // Dispatch runs below the layer that counts writes. Before anything is written: an inference
  // tensor outside inference mode is refused here, as eager refuses it.
  for (const InputCheck &check : inputChecks)
    if (check.mutated)
      (*callInputs)[check.input].toTensor().unsafeGetTensorImpl()->bump_version();
}

void Instance::bindInput(const InputCheck &check, CallCounters &counters) {
  const c10::IValue &input = (*callInputs)[check.input];
  auto name = [&] {
    const std::string &known = program.plan.inputs[check.input].name;
    return c10::str("input ", check.input, known.empty() ? "" : " (`" + known + "`)", " of `", program.plan.name, "`");
  };
  TORCH_CHECK_TYPE(input.isTensor() && input.toTensor().defined(), name(), " must be a tensor, not ", input.tagKind());
  const at::Tensor &tensor = input.toTensor();
  TORCH_CHECK(tensor.scalar_type() == check.dtype, name(), " has dtype ", tensor.scalar_type(), ", expected ",
              check.dtype);
  TORCH_CHECK(tensor.device().is_cpu() && tensor.layout() == c10::kStrided, name(),
              " must be a dense tensor on the CPU, not ", tensor.layout(), " on ", tensor.device());
  TORCH_CHECK(tensor.sizes() == c10::IntArrayRef(check.sizes), name(), " has sizes ", tensor.sizes(), ", expected ",
              c10::IntArrayRef(check.sizes));
  if (check.value < 0)
    return;

  bool isPlain = !isLazy(tensor);
  if (isPlain && stridesAgree(tensor.sizes(), tensor.strides(), check.strides)) {
    checkReach(check.value, tensor);
    rootAddress[check.value] =
        static_cast<char *>(check.mutated ? tensor.mutable_data_ptr() : const_cast<void *>(tensor.const_data_ptr()));
    return;
  }
  TORCH_CHECK(!check.mutated, name(), " is written to and has ", describe(tensor),
              isPlain ? "" : " and a lazy conjugation or negation", ", expected strides ",
              c10::IntArrayRef(check.strides));
  at::Tensor copy = allocateTensor(layout[check.value]);
  copy.copy_(tensor);
  checkReach(check.value, copy);
  rootAddress[check.value] = static_cast<char *>(copy.mutable_data_ptr());
  setTensor(check.value, std::move(copy));
  ++counters.restrided;
}

void Instance::checkReach(int root, const at::Tensor &tensor) const {
  const Placement &place = layout[root];
  if (place.reach <= place.bytes)
    return;
  int64_t there = static_cast<int64_t>(tensor.storage().nbytes()) - tensor.storage_offset() * place.itemBytes;
  TORCH_CHECK(place.reach <= there, "views of value ", root, " of `", program.plan.name, "` reach ", place.reach,
              " bytes into a tensor whose memory ends after ", there);
}

void Instance::runLaunch(const Launch &launch) {
  if (launch.units <= 0)
    return;
  for (int i = 0; i < launch.numArgs; ++i) {
    auto base = reinterpret_cast<uintptr_t>(rootAddress[argRoots[launch.firstArg + i]]);
    argAddress[i] = reinterpret_cast<void *>(base + static_cast<uintptr_t>(argOffsets[launch.firstArg + i]));
  }
  int64_t error = 0;
  LaunchContext context{program.kernels[launch.kernel], argAddress.data(), launchSymbols.data() + launch.firstSymbol,
                        launch.scratch, &error};
  {
    ProfileRange range(isProfiled, program.kernelNames[launch.kernel]);
    if (launch.units <= launch.grain)
      runRange(&context, 0, launch.units);
    else
      parallelFor(launch.units, launch.grain, &runRange, &context);
  }
  if (__builtin_expect(error == 0, true))
    return;
  TORCH_CHECK_INDEX(error != kIndexOutOfRange, "index out of range in self");
  TORCH_CHECK_WITH(OutOfMemoryError, error != kOutOfScratch, "can't allocate memory: kernel `",
                   program.plan.kernels[launch.kernel].label, "` needs ", launch.scratch, " bytes for each thread");
  TORCH_CHECK(false, "kernel `", program.plan.kernels[launch.kernel].label, "` failed with code ", error);
}

void Instance::runCall(Call &call, CallCounters &counters) {
  counters.fallbacks += call.call->step().isFallback;
  if (call.direct) {
    ProfileRange range(isProfiled, call.call->profileName());
    call.direct->run([&](int value) -> const at::Tensor & { return tensorOf(value); });
    return;
  }
  stack.clear();
  stack.insert(stack.end(), call.operands.begin(), call.operands.end());
  for (int index : call.dynamic)
    stack[index] = call.call->convert(static_cast<size_t>(index), symbolValues.data(),
                                      [&](int value) -> at::Tensor { return tensorOf(value); });
  {
    ProfileRange range(isProfiled, call.call->profileName());
    call.call->op().callBoxed(stack);
  }
  setResults(call, counters);
  stack.clear();
}

void Instance::setResults(const Call &call, CallCounters &counters) {
  const std::vector<int> &results = call.call->step().results;
  size_t next = 0;
  auto assign = [&](const c10::IValue &result) {
    if (next >= results.size())
      return;
    int value = results[next++];
    if (value < 0)
      return;
    TORCH_CHECK(result.isTensor() && result.toTensor().defined(), call.call->where(), ": result ", next - 1,
                " is not a tensor but ", result.tagKind());
    setResult(value, result.toTensor(), *call.call, counters);
  };
  for (const c10::IValue &result : stack) {
    if (!result.isTensorList()) {
      assign(result);
      continue;
    }
    for (const at::Tensor &element : result.toTensorVector())
      assign(element);
  }
  for (; next < results.size(); ++next)
    TORCH_CHECK(results[next] < 0, call.call->where(), ": there is no result ", next);
}

void Instance::setResult(int value, at::Tensor tensor, const AtenCall &call, CallCounters &counters) {
  const Placement &place = layout[value];
  TORCH_CHECK(tensor.scalar_type() == place.dtype && tensor.sizes() == place.sizes, call.where(),
              ": the result for value ", value, " is ", tensor.scalar_type(), tensor.sizes(), ", expected ",
              place.dtype, place.sizes);
  bool agrees = !isLazy(tensor) && stridesAgree(place.sizes, tensor.strides(), place.strides);
  // Some operators return an argument without saying so in their schema. The arena was laid out
  // without knowing.
  bool aliasesUnknown = agrees && call.aliases().empty() && isInArena(tensor);
  if (!agrees || aliasesUnknown) {
    at::Tensor copy = allocateTensor(place);
    copy.copy_(tensor);
    tensor = std::move(copy);
    counters.restrided += !agrees;
  }
  checkReach(value, tensor);
  rootAddress[value] = static_cast<char *>(tensor.mutable_data_ptr());
  setTensor(value, std::move(tensor));
}

void Instance::allocateOutput(int value) {
  at::Tensor tensor = allocateTensor(layout[value]);
  rootAddress[value] = static_cast<char *>(tensor.mutable_data_ptr());
  setTensor(value, std::move(tensor));
}

void Instance::releaseRoot(int root) {
  tensors[root].reset();
  for (int view : viewsOfRoot[root])
    tensors[view].reset();
  const ValueSpec &value = program.plan.values[root];
  if (value.kind == Kind::Input)
    (*callInputs)[value.source] = c10::IValue();
}

at::Tensor Instance::makeOutput(int value) {
  const ValueSpec &spec = program.plan.values[value];
  if (spec.kind == Kind::Input)
    return (*callInputs)[spec.source].toTensor();
  int root = program.live.root[value];
  if (program.plan.values[root].kind == Kind::Output && !tensors[root].defined())
    allocateOutput(root);
  const at::Tensor &tensor = tensorOf(value);
  if (isInArena(tensor)) {
    at::Tensor copy = allocateTensor(layout[value]);
    copy.copy_(tensor);
    return copy;
  }
  if (value != root) {
    // As for any view: who writes to one of them changes what autograd saved of the other.
    const at::Tensor &base = tensorOf(root);
    if (!tensor.is_inference() && !base.is_inference())
      tensor.unsafeGetTensorImpl()->set_version_counter(base.unsafeGetTensorImpl()->version_counter());
  }
  return tensor;
}

const at::Tensor &Instance::tensorOf(int value) {
  at::Tensor &tensor = tensors[value];
  if (tensor.defined())
    return tensor;
  const Placement &place = layout[value];
  const ValueSpec &spec = program.plan.values[value];
  if (spec.kind == Kind::Input)
    return place.root == value ? (*callInputs)[spec.source].toTensor() : tensorOf(place.root);
  TORCH_INTERNAL_ASSERT(spec.kind == Kind::View, "value ", value, " of `", program.plan.name, "` has no tensor");
  const at::Tensor &base = tensorOf(place.root);
  int64_t begin = base.storage_offset() * layout[place.root].itemBytes;
  setTensor(value, makeTensor(base.storage(), place, begin + place.offset));
  return tensor;
}

void Instance::setTensor(int value, at::Tensor tensor) {
  tensors[value] = std::move(tensor);
  touched.push_back(value);
}

bool Instance::isInArena(const at::Tensor &tensor) const {
  return arenaStorage && tensor.storage().unsafeGetStorageImpl() == arenaStorage.get();
}

} // namespace accel::runtime
