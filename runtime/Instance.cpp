// Preparation of an instance. What a call does is in InstanceRun.cpp.

#include "runtime/Instance.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

namespace accel::runtime {
namespace {

using Kind = ValueSpec::Kind;

} // namespace

Instance::Instance(const Program &program, c10::IntArrayRef symbols)
    : program(program), symbolValues(symbols.begin(), symbols.end()), layout(program, symbolValues.data()) {
  size_t numValues = program.plan.values.size();
  tensors.resize(numValues);
  // One more than values: the arena itself, so that all that lies in it needs one address.
  rootAddress.assign(numValues + 1, nullptr);
  touched.reserve(numValues);
  viewsOfRoot.resize(numValues);
  for (size_t v = 0; v < numValues; ++v)
    if (program.live.root[v] != static_cast<int>(v))
      viewsOfRoot[program.live.root[v]].push_back(static_cast<int>(v));
  if (layout.arenaBytes() > 0)
    arenaStorage =
        c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), layout.arenaBytes(),
                                              at::DataPtr(nullptr, c10::Device(c10::kCPU)), /*allocator=*/nullptr,
                                              /*resizable=*/false);

  prepareInputs();
  prepareSteps();
  prepareLifetimes();
  for (const OutputSpec &output : program.plan.outputs) {
    bool isInteger = output.kind == OutputSpec::Kind::Integer;
    outputIntegers.push_back(isInteger ? output.integer.evaluate(symbolValues.data()) : 0);
    if (output.kind == OutputSpec::Kind::Value)
      prepareArenaTensor(output.value);
  }
  rememberReferences();
}

Kind Instance::rootKind(int value) const { return program.plan.values[program.live.root[value]].kind; }

void Instance::prepareInputs() {
  std::vector<int> valueOfInput(program.plan.inputs.size(), -1);
  for (size_t v = 0; v < program.plan.values.size(); ++v) {
    const ValueSpec &value = program.plan.values[v];
    bool isRoot = program.live.root[v] == static_cast<int>(v);
    if (value.kind == Kind::Input && isRoot && program.live.firstUse[v] != Liveness::kNever)
      valueOfInput[value.source] = static_cast<int>(v);
  }
  for (size_t i = 0; i < program.plan.inputs.size(); ++i) {
    const InputSpec &input = program.plan.inputs[i];
    if (!input.isTensor)
      continue;
    InputCheck check{static_cast<int>(i), valueOfInput[i], input.mutated, input.tensor.dtype, {}, {}};
    for (const SizeExpr &size : input.tensor.sizes)
      check.sizes.push_back(size.evaluate(symbolValues.data()));
    for (const SizeExpr &stride : input.tensor.strides)
      check.strides.push_back(stride.evaluate(symbolValues.data()));
    inputChecks.push_back(std::move(check));
  }
}

void Instance::prepareSteps() {
  for (size_t i = 0; i < program.plan.steps.size(); ++i) {
    if (const auto *launch = std::get_if<LaunchStep>(&program.plan.steps[i])) {
      steps.push_back({true, static_cast<int>(launches.size()), 0, 0});
      prepareLaunch(*launch);
    } else {
      steps.push_back({false, static_cast<int>(calls.size()), 0, 0});
      prepareCall(*program.calls[i]);
    }
  }
  int maxArgs = 0;
  for (const Launch &launch : launches)
    maxArgs = std::max(maxArgs, launch.numArgs);
  argAddress.resize(static_cast<size_t>(maxArgs));
}

void Instance::prepareLaunch(const LaunchStep &step) {
  const int64_t *symbols = symbolValues.data();
  int64_t scratch = program.plan.kernels[step.kernel].scratch.evaluate(symbols);
  TORCH_CHECK(scratch >= 0, "kernel `", program.plan.kernels[step.kernel].symbol, "` wants ", scratch,
              " bytes of scratch");
  launches.push_back({step.kernel, static_cast<int>(argRoots.size()), static_cast<int>(step.args.size()),
                      static_cast<int>(launchSymbols.size()), step.units.evaluate(symbols),
                      std::max<int64_t>(1, step.grain.evaluate(symbols)), scratch});
  int arena = static_cast<int>(program.plan.values.size());
  for (int value : step.args) {
    const Placement &place = layout[value];
    bool isInArena = rootKind(value) == Kind::Arena;
    argRoots.push_back(isInArena ? arena : place.root);
    argOffsets.push_back(place.offset + (isInArena ? layout[place.root].inArena : 0));
  }
  for (const SizeExpr &symbol : step.symbols)
    launchSymbols.push_back(symbol.evaluate(symbols));
}

void Instance::prepareCall(const AtenCall &call) {
  Call prepared{&call, {}, {}, DirectCall::create(call, symbolValues.data())};
  for (size_t i = 0; i < call.numArguments(); ++i) {
    bool isDynamic = false;
    if (const Argument *argument = call.argument(i))
      visitValues(*argument, [&](int value) {
        isDynamic |= rootKind(value) != Kind::Arena;
        prepareArenaTensor(value);
      });
    if (isDynamic) {
      prepared.dynamic.push_back(static_cast<int>(i));
      prepared.operands.emplace_back();
      continue;
    }
    prepared.operands.push_back(
        call.convert(i, symbolValues.data(), [&](int value) -> at::Tensor { return tensors[value]; }));
  }
  calls.push_back(std::move(prepared));
}

void Instance::prepareArenaTensor(int value) {
  if (rootKind(value) != Kind::Arena || tensors[value].defined())
    return;
  // Made as in normal mode, whatever mode the first caller is in: later callers use it too.
  c10::InferenceMode normal(false);
  const Placement &place = layout[value];
  if (!arenaStorage) // nothing in the arena has elements
    arenaStorage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 0,
                                                         at::DataPtr(nullptr, c10::Device(c10::kCPU)),
                                                         /*allocator=*/nullptr, /*resizable=*/false);
  tensors[value] = makeTensor(c10::Storage(arenaStorage), place, layout[place.root].inArena + place.offset);
}

void Instance::prepareLifetimes() {
  const Liveness &live = program.live;
  int numSteps = static_cast<int>(steps.size());
  auto isStep = [&](int step) { return step >= 0 && step < numSteps; };
  for (size_t v = 0; v < live.root.size(); ++v) {
    int value = static_cast<int>(v);
    Kind kind = program.plan.values[v].kind;
    bool isRoot = live.root[v] == value;
    if (isRoot && kind == Kind::Output && isStep(live.firstUse[v]))
      allocations.push_back(value);
    if (isRoot && kind != Kind::Arena && isStep(live.lastUse[v]))
      releases.push_back(value);
  }
  auto sortBy = [](std::vector<int> &values, const std::vector<int> &step) {
    std::sort(values.begin(), values.end(),
              [&](int a, int b) { return step[a] != step[b] ? step[a] < step[b] : a < b; });
  };
  sortBy(allocations, live.firstUse);
  sortBy(releases, live.lastUse);
  int allocated = 0, released = 0;
  for (int i = 0; i < numSteps; ++i) {
    while (allocated < static_cast<int>(allocations.size()) && live.firstUse[allocations[allocated]] == i)
      ++allocated;
    while (released < static_cast<int>(releases.size()) && live.lastUse[releases[released]] == i)
      ++released;
    steps[i].allocateEnd = allocated;
    steps[i].releaseEnd = released;
  }
}

void Instance::rememberReferences() {
  if (!arenaStorage)
    return;
  storageReferences = arenaStorage.use_count();
  for (size_t v = 0; v < tensors.size(); ++v)
    if (tensors[v].defined())
      tensorReferences.emplace_back(static_cast<int>(v), tensors[v].use_count());
}

bool Instance::arenaEscaped() const {
  if (!arenaStorage || tensorReferences.empty())
    return false;
  if (arenaStorage.use_count() != storageReferences)
    return true;
  return std::any_of(tensorReferences.begin(), tensorReferences.end(),
                     [&](const auto &each) { return tensors[each.first].use_count() != each.second; });
}

} // namespace accel::runtime
