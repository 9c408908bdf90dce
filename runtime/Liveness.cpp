#include "runtime/Liveness.h"

#include <algorithm>
#include <set>

namespace accel::runtime {

Liveness computeLiveness(const Plan &plan, const std::vector<std::vector<int>> &aliases) {
  size_t count = plan.values.size();
  Liveness live;
  live.root.resize(count);
  live.firstUse.assign(count, Liveness::kNever);
  live.lastUse.assign(count, Liveness::kNever);
  std::vector<int> firstOfInput(plan.inputs.size(), -1);
  for (size_t v = 0; v < count; ++v) {
    const ValueSpec &value = plan.values[v];
    live.root[v] = static_cast<int>(v);
    if (value.kind == ValueSpec::Kind::View) {
      live.root[v] = live.root[value.source];
    } else if (value.kind == ValueSpec::Kind::Input) {
      int &first = firstOfInput[value.source];
      first = first < 0 ? live.root[v] : first;
      live.root[v] = first;
    }
  }

  // For each root, all roots whose memory it may share. Steps come in order, so those of a step's
  // arguments are complete when its results are reached.
  std::vector<std::set<int>> shares(count);
  auto touch = [&](int value, int step) {
    int root = live.root[value];
    auto mark = [&](int each) {
      if (live.firstUse[each] == Liveness::kNever)
        live.firstUse[each] = step;
      live.lastUse[each] = std::max(live.lastUse[each], step);
    };
    mark(root);
    for (int shared : shares[root])
      mark(shared);
  };

  for (size_t i = 0; i < plan.steps.size(); ++i) {
    int step = static_cast<int>(i);
    visitOperands(plan.steps[i], [&](int value) { touch(value, step); });
    const auto *aten = std::get_if<AtenStep>(&plan.steps[i]);
    if (!aten)
      continue;
    for (int result : aten->results) {
      if (result < 0)
        continue;
      for (int source : aliases[i]) {
        int root = live.root[source];
        shares[result].insert(root);
        shares[result].insert(shares[root].begin(), shares[root].end());
      }
      touch(result, step);
    }
  }
  for (const OutputSpec &output : plan.outputs)
    if (output.kind == OutputSpec::Kind::Value)
      touch(output.value, static_cast<int>(plan.steps.size()));
  return live;
}

} // namespace accel::runtime
