// The plan of docs/bundle.md as typed data: what a call does, step by step.

#ifndef ACCEL_RUNTIME_PLAN_H
#define ACCEL_RUNTIME_PLAN_H

#include "runtime/Bundle.h"
#include "runtime/SizeExpr.h"

#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace accel::runtime {

/// A plan that breaks the rules. The message names the field: "plan: values[3].view: ...".
class PlanError : public BundleError {
public:
  using BundleError::BundleError;
};

struct TargetSpec {
  std::string name;
  std::string cpu;
  std::vector<std::string> features; ///< LLVM's names; each must be there
};

/// Where a call finds the value of a symbol.
struct SymbolSpec {
  std::string name;
  int input;
  int dim; ///< -1: the input is the integer itself
};

/// Sizes and strides count elements.
struct TensorSpec {
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  std::vector<SizeExpr> sizes;
  std::vector<SizeExpr> strides;
};

struct InputSpec {
  bool isTensor = false;
  std::string name;
  TensorSpec tensor;
  bool mutated = false; ///< written to by a step: must be used in place
};

struct ValueSpec {
  enum class Kind { Input, Arena, Output, View, Result };
  Kind kind = Kind::Result;
  int source = -1; ///< of an input: its number; of a view: its base, a value with a lower number
  TensorSpec tensor;
  SizeExpr offset; ///< of a view: elements of its dtype after the base's first element
};

struct KernelSpec {
  std::string symbol; ///< the function's name in the code section
  std::string label;
  std::vector<std::string> nodes;
  std::string source;
  SizeExpr scratch; ///< bytes of memory for each thread
};

struct LaunchStep {
  int kernel = -1;
  std::vector<int> args; ///< values
  std::vector<SizeExpr> symbols;
  SizeExpr units;
  SizeExpr grain;
};

/// An argument of an ATen step.
struct Argument {
  struct Value {
    int value;
  };
  struct Null {};
  struct Layout {
    c10::Layout layout;
  };
  struct List {
    std::vector<Argument> elements;
  };
  std::variant<Null, bool, int64_t, double, std::string, Value, SizeExpr, List, c10::ScalarType, c10::Device, Layout,
               c10::MemoryFormat>
      content;
};

struct AtenStep {
  std::string name;
  std::string overload;
  std::vector<Argument> args;
  std::vector<std::pair<std::string, Argument>> kwargs;
  std::vector<int> results; ///< the value that each result sets, or -1
  bool isFallback = false;
  std::string node;
  std::string source;
};

using Step = std::variant<LaunchStep, AtenStep>;

struct OutputSpec {
  enum class Kind { None, Value, Integer };
  Kind kind = Kind::None;
  int value = -1;
  SizeExpr integer;
};

struct Plan {
  std::string name;
  TargetSpec target;
  std::vector<SymbolSpec> symbols;
  std::vector<InputSpec> inputs;
  std::vector<ValueSpec> values;
  std::vector<KernelSpec> kernels;
  std::vector<Step> steps;
  std::vector<OutputSpec> outputs;
  std::vector<int> mainInputs; ///< of a plan of constants: the main plan's inputs that are its own
};

/// Reads a plan. Every number that refers to something is checked here, so that no later stage
/// has to. Throws PlanError.
Plan parsePlan(std::string_view json);

/// Returns the dtype of that name in docs/fx-json.md, or Undefined.
c10::ScalarType dtypeFromName(std::string_view name);

/// Calls `visit(value)` for each value that the argument holds, lists included.
template <typename Visitor> void visitValues(const Argument &argument, const Visitor &visit) {
  if (const auto *value = std::get_if<Argument::Value>(&argument.content))
    visit(value->value);
  else if (const auto *list = std::get_if<Argument::List>(&argument.content))
    for (const Argument &element : list->elements)
      visitValues(element, visit);
}

/// Calls `visit(value)` for each value that the step reads or writes, apart from its results.
template <typename Visitor> void visitOperands(const Step &step, const Visitor &visit) {
  if (const auto *launch = std::get_if<LaunchStep>(&step)) {
    for (int value : launch->args)
      visit(value);
    return;
  }
  const auto &aten = std::get<AtenStep>(step);
  for (const Argument &argument : aten.args)
    visitValues(argument, visit);
  for (const auto &[name, argument] : aten.kwargs)
    visitValues(argument, visit);
}

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_PLAN_H
