#include "runtime/Executable.h"

#include "runtime/Bundle.h"
#include "runtime/ForkSafeMutex.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <mutex>

namespace accel::runtime {
namespace {

/// Instances that wait for the next call with their sizes. The one unused for longest goes.
constexpr size_t kMaxIdleInstances = 16;

/// The graph is differentiated already, casts of autocast are part of it, and the runtime counts
/// writes to inputs itself.
constexpr c10::DispatchKeySet kHandledByTheGraph =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;

} // namespace

struct Executable::Sections {
  std::string_view plan;
  std::string_view constants; ///< a plan, too
  std::string_view code;
  std::string_view report;

  explicit Sections(std::string_view bundle) {
    std::vector<BundleSection> sections = readBundle(bundle);
    auto payload = [&](std::string_view name) {
      const BundleSection *section = findSection(sections, name);
      return section ? section->payload : std::string_view();
    };
    if (!findSection(sections, "plan"))
      throw BundleError("bundle has no section `plan`");
    plan = payload("plan");
    constants = payload("constants");
    code = payload("code");
    report = payload("report");
  }
};

Executable::Executable(std::string_view bundle, std::string_view name) : Executable(Sections(bundle), name) {}

Executable::Executable(const Sections &sections, std::string_view name)
    : planJson(sections.plan), reportJson(sections.report), program(sections.plan, sections.code, name) {
  if (!sections.constants.empty()) {
    constants = std::make_unique<Constants>(sections.constants, sections.code);
    size_t inputs = program.plan.inputs.size();
    if (constants->count() > inputs)
      throw BundleError("the plan has fewer inputs than there are constants");
    for (int index : constants->mainInputs())
      if (static_cast<size_t>(index) >= inputs - constants->count())
        throw BundleError("constants: no input " + std::to_string(index) + " of the plan");
  }
  // release() must not fail: it runs while an error is on its way.
  idle.reserve(kMaxIdleInstances + 1);
}

Executable::~Executable() = default;

void Executable::readSymbols(const IValueList &inputs, Symbols &symbols) const {
  for (const SymbolSpec &symbol : program.plan.symbols) {
    const c10::IValue &input = inputs[symbol.input];
    if (symbol.dim < 0) {
      TORCH_CHECK_TYPE(input.isInt(), "input ", symbol.input, " of `", name(), "` must be an integer, not ",
                       input.tagKind());
      symbols.push_back(input.toInt());
      continue;
    }
    bool hasDim = input.isTensor() && input.toTensor().defined() && input.toTensor().dim() > symbol.dim;
    TORCH_CHECK_TYPE(hasDim, "input ", symbol.input, " of `", name(), "` must be a tensor of more than ", symbol.dim,
                     " dimensions");
    symbols.push_back(input.toTensor().size(symbol.dim));
  }
}

std::unique_ptr<Instance> Executable::acquire(const Symbols &symbols) {
  {
    std::lock_guard lock(forkSafeMutex());
    for (size_t i = idle.size(); i-- > 0;) {
      if (idle[i]->symbols() != c10::IntArrayRef(symbols))
        continue;
      std::unique_ptr<Instance> instance = std::move(idle[i]);
      idle.erase(idle.begin() + static_cast<ptrdiff_t>(i));
      return instance;
    }
  }
  instances.fetch_add(1, std::memory_order_relaxed);
  return std::make_unique<Instance>(program, symbols);
}

void Executable::release(std::unique_ptr<Instance> instance) {
  if (!instance->isReusable())
    return;
  std::unique_ptr<Instance> dropped;
  std::lock_guard lock(forkSafeMutex());
  idle.push_back(std::move(instance));
  if (idle.size() > kMaxIdleInstances) {
    dropped = std::move(idle.front());
    idle.erase(idle.begin());
  }
}

void Executable::run(IValueList &inputs, IValueList &outputs) {
  TORCH_CHECK(inputs.size() == numInputs(), "`", name(), "` has ", numInputs(), " inputs, ", inputs.size(),
              " were given");
  std::shared_ptr<const Constants::Values> values;
  if (constants) {
    c10::impl::ExcludeDispatchKeyGuard guard(kHandledByTheGraph);
    values = constants->valuesFor(inputs);
    inputs.append(values->begin(), values->end());
  }
  Symbols symbols;
  readSymbols(inputs, symbols);

  struct Lease {
    Executable &owner;
    std::unique_ptr<Instance> instance;
    ~Lease() { owner.release(std::move(instance)); }
  } lease{*this, acquire(symbols)};

  CallCounters counters;
  {
    c10::impl::ExcludeDispatchKeyGuard guard(kHandledByTheGraph);
    lease.instance->run(inputs, outputs, counters);
  }
  auto add = [](std::atomic<uint64_t> &total, uint64_t value) {
    if (value != 0)
      total.fetch_add(value, std::memory_order_relaxed);
  };
  add(calls, 1);
  add(launches, counters.launches);
  add(atenCalls, counters.atenCalls);
  add(fallbacks, counters.fallbacks);
  add(restrided, counters.restrided);
}

std::vector<c10::IValue> Executable::run(std::vector<c10::IValue> inputs) {
  c10::SmallVector<c10::IValue, 16> given(std::make_move_iterator(inputs.begin()),
                                          std::make_move_iterator(inputs.end()));
  inputs.clear();
  c10::SmallVector<c10::IValue, 16> outputs;
  run(given, outputs);
  return {std::make_move_iterator(outputs.begin()), std::make_move_iterator(outputs.end())};
}

Executable::Stats Executable::stats() const {
  auto read = [](const std::atomic<uint64_t> &total) { return total.load(std::memory_order_relaxed); };
  return {read(calls),
          {read(launches), read(atenCalls), read(fallbacks), read(restrided)},
          constants ? constants->runs() : 0,
          constants ? constants->bytes() : 0,
          read(instances)};
}

} // namespace accel::runtime
