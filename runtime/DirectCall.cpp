#include "runtime/DirectCall.h"

#include <algorithm>

namespace accel::runtime {
namespace {

/// The value in that place of the schema, or -1.
int valueAt(const AtenCall &call, size_t index) {
  const Argument *argument = call.argument(index);
  const auto *value = argument ? std::get_if<Argument::Value>(&argument->content) : nullptr;
  return value ? value->value : -1;
}

} // namespace

std::optional<DirectCall> DirectCall::create(const AtenCall &call, const int64_t *symbols) {
  const AtenStep &step = call.step();
  bool isUsed = std::any_of(step.results.begin(), step.results.end(), [](int result) { return result >= 0; });
  if (step.overload != "out" || isUsed)
    return std::nullopt;

  DirectCall direct;
  if (step.name == "aten::mm" || step.name == "aten::bmm") {
    // (Tensor self, Tensor mat2, *, Tensor(a!) out)
    direct.product = call.op().typed<Product>();
    direct.left = valueAt(call, 0);
    direct.right = valueAt(call, 1);
    direct.out = valueAt(call, 2);
  } else if (step.name == "aten::addmm") {
    // (Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta, Scalar alpha, Tensor(a!) out)
    direct.sumAndProduct = call.op().typed<SumAndProduct>();
    direct.summand = valueAt(call, 0);
    direct.left = valueAt(call, 1);
    direct.right = valueAt(call, 2);
    auto noTensor = [](int) { return at::Tensor(); };
    direct.beta = call.convert(3, symbols, noTensor).toScalar();
    direct.alpha = call.convert(4, symbols, noTensor).toScalar();
    direct.out = valueAt(call, 5);
  } else {
    return std::nullopt;
  }
  bool allValues = direct.left >= 0 && direct.right >= 0 && direct.out >= 0 && (direct.product || direct.summand >= 0);
  return allValues ? std::optional(direct) : std::nullopt;
}

void DirectCall::run(TensorOf tensorOf) const {
  // Taken by value: the operator wants it mutable, and our tables are not.
  at::Tensor target = tensorOf(out);
  if (product)
    product->call(tensorOf(left), tensorOf(right), target);
  else
    sumAndProduct->call(tensorOf(summand), tensorOf(left), tensorOf(right), beta, alpha, target);
}

} // namespace accel::runtime
