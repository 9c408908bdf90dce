#include "runtime/Program.h"

#include "runtime/CpuFeatures.h"

namespace accel::runtime {
namespace {

std::string join(const std::vector<std::string> &parts, const char *separator) {
  std::string joined;
  for (const std::string &part : parts)
    joined += (joined.empty() ? "" : separator) + part;
  return joined;
}

void checkTarget(const TargetSpec &target) {
  if (target.name != "cpu")
    throw BundleError("plan: target.name: no target `" + target.name + "` in this runtime");
  std::vector<std::string> missing = missingCpuFeatures(target.features);
  if (!missing.empty())
    throw BundleError("code was compiled for " + (target.cpu.empty() ? "a cpu" : target.cpu) +
                      ", this processor lacks: " + join(missing, ", "));
}

std::string nameKernel(const KernelSpec &kernel) {
  std::string name = "accel::" + kernel.label;
  if (kernel.nodes.empty() && kernel.source.empty())
    return name;
  return name + " [" + join(kernel.nodes, " ") + (kernel.source.empty() ? "" : " @ " + kernel.source) + "]";
}

std::string nameStep(size_t index, const AtenStep &step) {
  std::string name = "plan: steps[" + std::to_string(index) + "]";
  if (!step.node.empty())
    name += " (node `" + step.node + "`" + (step.source.empty() ? "" : ", " + step.source) + ")";
  return name;
}

/// A write to an input that isn't marked as mutated would escape autograd's notice, and would be
/// lost where the input had to be copied.
void checkWrites(const Plan &plan, const Liveness &live, const AtenCall &call) {
  for (int value : call.writes()) {
    const ValueSpec &root = plan.values[live.root[value]];
    if (root.kind == ValueSpec::Kind::Input && !plan.inputs[root.source].mutated)
      throw PlanError(call.where() + ": writes to input " + std::to_string(root.source) + ", which is not `mutated`");
  }
}

std::vector<int> findFirstOutputs(const Plan &plan) {
  std::vector<int> firstOfValue(plan.values.size(), -1);
  std::vector<int> first;
  for (const OutputSpec &output : plan.outputs) {
    int self = static_cast<int>(first.size());
    if (output.kind != OutputSpec::Kind::Value) {
      first.push_back(self);
      continue;
    }
    int &known = firstOfValue[output.value];
    known = known < 0 ? self : known;
    first.push_back(known);
  }
  return first;
}

} // namespace

Program::Program(std::string_view planJson, std::string_view elf, std::string_view name) : plan(parsePlan(planJson)) {
  if (!name.empty())
    plan.name = name;
  checkTarget(plan.target);
  profileName = "accel::run " + plan.name;
  if (!plan.kernels.empty()) {
    if (elf.empty())
      throw BundleError("plan has kernels, the bundle has no code section");
    code = CodeModule(elf, plan.name);
  }
  for (const KernelSpec &kernel : plan.kernels) {
    kernels.push_back(code.kernel(kernel.symbol));
    kernelNames.push_back(nameKernel(kernel));
  }

  std::vector<std::vector<int>> aliases(plan.steps.size());
  calls.resize(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto *aten = std::get_if<AtenStep>(&plan.steps[i]);
    if (!aten)
      continue;
    calls[i] = std::make_unique<AtenCall>(plan, *aten, nameStep(i, *aten));
    aliases[i] = calls[i]->aliases();
  }
  live = computeLiveness(plan, aliases);
  for (const auto &call : calls)
    if (call)
      checkWrites(plan, live, *call);
  firstOutput = findFirstOutputs(plan);
}

} // namespace accel::runtime
