#include "runtime/Constants.h"

#include "runtime/ForkSafeMutex.h"

#include <c10/core/InferenceMode.h>

#include <mutex>

namespace accel::runtime {
namespace {

const at::Tensor &tensorAt(const IValueList &inputs, int index) {
  const c10::IValue &input = inputs[index];
  TORCH_CHECK_TYPE(input.isTensor() && input.toTensor().defined(), "input ", index, " must be a tensor, not ",
                   input.tagKind());
  return input.toTensor();
}

} // namespace

std::shared_ptr<const Constants::Values> Constants::valuesFor(const IValueList &mainInputs) {
  std::shared_ptr<const Kept> current;
  {
    std::lock_guard lock(forkSafeMutex());
    current = kept;
  }
  if (!current || !isUnchanged(*current, mainInputs)) {
    current = run(mainInputs);
    std::shared_ptr<const Kept> old = current; // let go of behind the lock
    std::lock_guard lock(forkSafeMutex());
    old.swap(kept);
  }
  return {current, &current->values};
}

bool Constants::isUnchanged(const Kept &known, const IValueList &inputs) const {
  if (known.weights.empty())
    return false;
  for (size_t i = 0; i < known.weights.size(); ++i) {
    const Weight &weight = known.weights[i];
    const c10::IValue &input = inputs[mainInputs()[i]];
    if (!input.isTensor() || !input.toTensor().defined())
      return false;
    const at::Tensor &tensor = input.toTensor();
    if (!tensor.has_storage() || tensor.is_inference() ||
        tensor.storage().unsafeGetStorageImpl() != weight.storage._unsafe_get_target() ||
        tensor.unsafeGetTensorImpl()->version_counter().current_version() != weight.version ||
        tensor.const_data_ptr() != weight.data || tensor.strides() != c10::IntArrayRef(weight.strides))
      return false;
  }
  return true;
}

std::shared_ptr<const Constants::Kept> Constants::run(const IValueList &inputs) {
  // As in normal mode, whatever mode this caller is in: later callers use the values too.
  c10::InferenceMode normal(false);
  auto result = std::make_shared<Kept>();
  c10::SmallVector<c10::IValue, 16> weights, values;
  bool counted = true;
  for (int index : mainInputs()) {
    const at::Tensor &tensor = tensorAt(inputs, index);
    weights.emplace_back(tensor);
    counted &= !tensor.is_inference() && tensor.has_storage();
    if (!counted)
      continue;
    Weight weight{c10::weak_intrusive_ptr<c10::StorageImpl>(tensor.storage().getWeakStorageImpl()),
                  tensor.const_data_ptr(),
                  tensor.unsafeGetTensorImpl()->version_counter().current_version(),
                  {}};
    weight.strides.assign(tensor.strides().begin(), tensor.strides().end());
    result->weights.push_back(std::move(weight));
  }
  if (!counted)
    result->weights.clear();
  CallCounters counters;
  Instance(program, {}).run(weights, values, counters);
  for (c10::IValue &value : values)
    result->values.push_back(std::move(value).toTensor());
  numRuns.fetch_add(1, std::memory_order_relaxed);
  return result;
}

size_t Constants::bytes() const {
  std::shared_ptr<const Kept> current;
  {
    std::lock_guard lock(forkSafeMutex());
    current = kept;
  }
  size_t sum = 0;
  if (current)
    for (const at::Tensor &value : current->values)
      sum += value.nbytes();
  return sum;
}

} // namespace accel::runtime
