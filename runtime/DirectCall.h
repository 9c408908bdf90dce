// Calls of the operators that matter most, without the detour over a stack of boxed values.

#ifndef ACCEL_RUNTIME_DIRECTCALL_H
#define ACCEL_RUNTIME_DIRECTCALL_H

#include "runtime/AtenCall.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/FunctionRef.h>

#include <optional>

namespace accel::runtime {

/// A call of `mm.out`, `bmm.out` or `addmm.out`. Boxing costs about 140 ns a call, half of what
/// PyTorch needs for a small product.
class DirectCall {
public:
  using TensorOf = c10::function_ref<const at::Tensor &(int value)>;

  /// Returns the direct form of `call`, or nothing if it has none: another operator, an operand
  /// that isn't a value, or a result that is used.
  static std::optional<DirectCall> create(const AtenCall &call, const int64_t *symbols);

  void run(TensorOf tensorOf) const;

private:
  using Product = at::Tensor &(const at::Tensor &, const at::Tensor &, at::Tensor &);
  using SumAndProduct = at::Tensor &(const at::Tensor &, const at::Tensor &, const at::Tensor &, const c10::Scalar &,
                                     const c10::Scalar &, at::Tensor &);

  DirectCall() = default;

  std::optional<c10::TypedOperatorHandle<Product>> product;
  std::optional<c10::TypedOperatorHandle<SumAndProduct>> sumAndProduct;
  int summand = -1, left = -1, right = -1, out = -1; ///< values
  c10::Scalar beta = 1, alpha = 1;
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_DIRECTCALL_H
