// An ATen step, matched with the operator's schema.

#ifndef ACCEL_RUNTIME_ATENCALL_H
#define ACCEL_RUNTIME_ATENCALL_H

#include "runtime/Plan.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/FunctionRef.h>

#include <optional>
#include <string>
#include <vector>

namespace accel::runtime {

/// The operator of an ATen step and the value of each of its schema's arguments.
class AtenCall {
public:
  using TensorOf = c10::function_ref<at::Tensor(int value)>;

  /// Looks the operator up and matches the step's arguments with its schema. `where` names the step
  /// in messages. Throws PlanError for an operator that doesn't exist, an argument that it doesn't
  /// have or that is missing, and more results than it returns.
  AtenCall(const Plan &plan, const AtenStep &step, std::string where);

  size_t numArguments() const { return slots.size(); }

  /// The plan's argument in that place of the schema; null where the schema's default is used.
  const Argument *argument(size_t index) const { return slots[index].argument; }

  /// Converts an argument to what the boxed call expects in its place. `symbols` are the values of
  /// the plan's symbols; `tensorOf` gives the tensor of a value. Throws PlanError if the argument
  /// doesn't fit the schema's type.
  c10::IValue convert(size_t index, const int64_t *symbols, TensorOf tensorOf) const;

  /// Values whose memory the results may share: the schema says so.
  const std::vector<int> &aliases() const { return aliased; }

  /// Values that the call writes to.
  const std::vector<int> &writes() const { return written; }

  const c10::OperatorHandle &op() const { return handle; }
  const AtenStep &step() const { return source; }
  const std::string &where() const { return place; }

  /// What a profiler shows: kind, operator, node and source line.
  const std::string &profileName() const { return name; }

private:
  struct Slot {
    const Argument *argument;
    c10::IValue defaultValue;
    c10::TypePtr type;
    std::optional<int32_t> length; ///< of "int[2]": a single number stands for that many
    std::string name;
  };

  [[noreturn]] void failArgument(const Slot &slot, const std::string &reason) const;
  c10::IValue convertTo(const Slot &slot, const Argument &argument, const c10::Type &type, const int64_t *symbols,
                        TensorOf tensorOf) const;
  c10::IValue convertList(const Slot &slot, const Argument::List &list, const c10::Type &type, const int64_t *symbols,
                          TensorOf tensorOf) const;
  void collectAliases();

  const AtenStep &source;
  std::string place;
  c10::OperatorHandle handle;
  std::vector<Slot> slots;
  std::vector<int> aliased;
  std::vector<int> written;
  std::string name;
};

/// Finds an operator by name ("aten::mm") and overload. Throws PlanError that names it.
c10::OperatorHandle findOperator(const std::string &name, const std::string &overload, const std::string &where);

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_ATENCALL_H
