#include "runtime/AtenCall.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

namespace accel::runtime {
namespace {

/// Python's and the scripting parser's rule for a number where a tensor is expected: a tensor
/// without dimensions that doesn't take part in type promotion.
at::Tensor wrapNumber(const c10::Scalar &number) {
  at::Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

/// The integer that an argument stands for, if it stands for one.
std::optional<int64_t> asInteger(const Argument &argument, const int64_t *symbols) {
  const auto &content = argument.content;
  if (const auto *integer = std::get_if<int64_t>(&content))
    return *integer;
  if (const auto *expr = std::get_if<SizeExpr>(&content))
    return expr->evaluate(symbols);
  return std::nullopt;
}

/// Dtypes, layouts and memory formats travel as integers in boxed calls.
std::optional<int64_t> asEnumerator(const Argument &argument) {
  const auto &content = argument.content;
  if (const auto *dtype = std::get_if<c10::ScalarType>(&content))
    return static_cast<int64_t>(*dtype);
  if (const auto *layout = std::get_if<Argument::Layout>(&content))
    return static_cast<int64_t>(layout->layout);
  if (const auto *format = std::get_if<c10::MemoryFormat>(&content))
    return static_cast<int64_t>(*format);
  return std::nullopt;
}

std::optional<c10::Scalar> asNumber(const Argument &argument, const int64_t *symbols) {
  if (auto integer = asInteger(argument, symbols))
    return c10::Scalar(*integer);
  if (const auto *real = std::get_if<double>(&argument.content))
    return c10::Scalar(*real);
  if (const auto *truth = std::get_if<bool>(&argument.content))
    return c10::Scalar(*truth);
  return std::nullopt;
}

std::string joinOverload(const std::string &name, const std::string &overload) {
  return overload.empty() ? name : name + "." + overload;
}

void appendUnique(std::vector<int> &values, int value) {
  if (std::find(values.begin(), values.end(), value) == values.end())
    values.push_back(value);
}

} // namespace

c10::OperatorHandle findOperator(const std::string &name, const std::string &overload, const std::string &where) {
  auto found = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!found)
    throw PlanError(where + ": PyTorch has no operator `" + joinOverload(name, overload) + "`");
  return *found;
}

AtenCall::AtenCall(const Plan &plan, const AtenStep &step, std::string where)
    : source(step), place(std::move(where)), handle(findOperator(step.name, step.overload, place)) {
  const c10::FunctionSchema &schema = handle.schema();
  if (step.args.size() > schema.arguments().size())
    throw PlanError(place + ": " + std::to_string(step.args.size()) + " arguments for `" + c10::toString(schema) + "`");
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument &parameter = schema.arguments()[i];
    Slot slot{nullptr, c10::IValue(), parameter.type(), parameter.N(), parameter.name()};
    if (i < step.args.size())
      slot.argument = &step.args[i];
    slots.push_back(std::move(slot));
  }
  for (const auto &[key, argument] : step.kwargs) {
    auto slot = std::find_if(slots.begin(), slots.end(), [&](const Slot &candidate) { return candidate.name == key; });
    if (slot == slots.end())
      throw PlanError(place + ": `" + c10::toString(schema) + "` has no argument `" + key + "`");
    if (slot->argument)
      failArgument(*slot, "given twice");
    slot->argument = &argument;
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].argument)
      continue;
    const auto &defaultValue = schema.arguments()[i].default_value();
    if (!defaultValue)
      failArgument(slots[i], "missing, and has no default");
    slots[i].defaultValue = *defaultValue;
  }

  auto isList = [](const c10::Argument &each) { return each.type()->kind() == c10::TypeKind::ListType; };
  bool hasList = std::any_of(schema.returns().begin(), schema.returns().end(), isList);
  if (!hasList && step.results.size() > schema.returns().size())
    throw PlanError(place + ": " + std::to_string(step.results.size()) + " results, `" +
                    joinOverload(step.name, step.overload) + "` returns " + std::to_string(schema.returns().size()));
  collectAliases();

  name = std::string("accel::") + (step.isFallback ? "fallback " : "library ") + joinOverload(step.name, step.overload);
  if (!step.node.empty() || !step.source.empty())
    name += " [" + step.node + (step.source.empty() ? "" : " @ " + step.source) + "]";
}

void AtenCall::failArgument(const Slot &slot, const std::string &reason) const {
  throw PlanError(place + ": argument `" + slot.name + "` of `" + joinOverload(source.name, source.overload) +
                  "`: " + reason);
}

void AtenCall::collectAliases() {
  // Any annotated argument may be the one that an annotated result aliases: to tell them apart
  // would save a little arena, and the annotations of lists are easily misread.
  const c10::FunctionSchema &schema = handle.schema();
  bool resultsAlias = std::any_of(schema.returns().begin(), schema.returns().end(),
                                  [](const c10::Argument &each) { return each.alias_info() != nullptr; });
  for (size_t i = 0; i < slots.size(); ++i) {
    const c10::AliasInfo *info = schema.arguments()[i].alias_info();
    if (!info || !slots[i].argument)
      continue;
    visitValues(*slots[i].argument, [&](int value) {
      if (resultsAlias)
        appendUnique(aliased, value);
      bool elementsWritten = std::any_of(info->containedTypes().begin(), info->containedTypes().end(),
                                         [](const c10::AliasInfo &each) { return each.isWrite(); });
      if (info->isWrite() || elementsWritten)
        appendUnique(written, value);
    });
  }
}

c10::IValue AtenCall::convert(size_t index, const int64_t *symbols, TensorOf tensorOf) const {
  const Slot &slot = slots[index];
  if (!slot.argument)
    return slot.defaultValue;
  return convertTo(slot, *slot.argument, *slot.type, symbols, tensorOf);
}

c10::IValue AtenCall::convertTo(const Slot &slot, const Argument &argument, const c10::Type &type,
                                const int64_t *symbols, TensorOf tensorOf) const {
  const auto &content = argument.content;
  if (type.kind() == c10::TypeKind::OptionalType) {
    if (std::holds_alternative<Argument::Null>(content))
      return c10::IValue();
    return convertTo(slot, argument, *type.castRaw<c10::OptionalType>()->getElementType(), symbols, tensorOf);
  }
  switch (type.kind()) {
  case c10::TypeKind::TensorType:
    if (const auto *value = std::get_if<Argument::Value>(&content))
      return tensorOf(value->value);
    if (std::holds_alternative<Argument::Null>(content))
      return at::Tensor();
    if (auto number = asNumber(argument, symbols))
      return wrapNumber(*number);
    break;
  case c10::TypeKind::NumberType:
    if (auto number = asNumber(argument, symbols))
      return *number;
    break;
  case c10::TypeKind::FloatType:
    if (auto number = asNumber(argument, symbols))
      return number->toDouble();
    break;
  case c10::TypeKind::IntType:
  case c10::TypeKind::SymIntType:
  case c10::TypeKind::ScalarTypeType:
  case c10::TypeKind::LayoutType:
  case c10::TypeKind::MemoryFormatType:
    if (auto integer = asInteger(argument, symbols))
      return *integer;
    if (auto enumerator = asEnumerator(argument))
      return *enumerator;
    if (const auto *truth = std::get_if<bool>(&content))
      return static_cast<int64_t>(*truth);
    break;
  case c10::TypeKind::BoolType:
  case c10::TypeKind::SymBoolType:
    if (const auto *truth = std::get_if<bool>(&content))
      return *truth;
    if (auto integer = asInteger(argument, symbols))
      return *integer != 0;
    break;
  case c10::TypeKind::StringType:
    if (const auto *text = std::get_if<std::string>(&content))
      return *text;
    break;
  case c10::TypeKind::DeviceObjType:
    if (const auto *device = std::get_if<c10::Device>(&content))
      return *device;
    break;
  case c10::TypeKind::ListType:
    if (const auto *list = std::get_if<Argument::List>(&content))
      return convertList(slot, *list, *type.castRaw<c10::ListType>()->getElementType(), symbols, tensorOf);
    if (slot.length) {
      Argument::List repeated;
      repeated.elements.assign(static_cast<size_t>(*slot.length), argument);
      return convertList(slot, repeated, *type.castRaw<c10::ListType>()->getElementType(), symbols, tensorOf);
    }
    break;
  default:
    break;
  }
  failArgument(slot, "does not fit the type `" + type.str() + "`");
}

c10::IValue AtenCall::convertList(const Slot &slot, const Argument::List &list, const c10::Type &type,
                                  const int64_t *symbols, TensorOf tensorOf) const {
  auto fill = [&](auto typedList, auto unwrap) {
    typedList.reserve(list.elements.size());
    for (const Argument &element : list.elements)
      typedList.push_back(unwrap(convertTo(slot, element, type, symbols, tensorOf)));
    return c10::IValue(std::move(typedList));
  };
  switch (type.kind()) {
  case c10::TypeKind::TensorType:
    return fill(c10::List<at::Tensor>(), [](c10::IValue &&element) { return std::move(element).toTensor(); });
  case c10::TypeKind::IntType:
  case c10::TypeKind::SymIntType:
    return fill(c10::List<int64_t>(), [](c10::IValue &&element) { return element.toInt(); });
  case c10::TypeKind::FloatType:
    return fill(c10::List<double>(), [](c10::IValue &&element) { return element.toDouble(); });
  case c10::TypeKind::BoolType:
    return fill(c10::List<bool>(), [](c10::IValue &&element) { return element.toBool(); });
  case c10::TypeKind::NumberType:
    return fill(c10::impl::GenericList(c10::NumberType::get()),
                [](c10::IValue &&element) { return std::move(element); });
  case c10::TypeKind::StringType:
    return fill(c10::List<std::string>(), [](c10::IValue &&element) { return element.toStringRef(); });
  case c10::TypeKind::OptionalType:
    if (type.castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::TensorType)
      return fill(c10::List<std::optional<at::Tensor>>(),
                  [](c10::IValue &&element) { return element.toOptional<at::Tensor>(); });
    break;
  default:
    break;
  }
  failArgument(slot, "lists of `" + type.str() + "` are not supported");
}

} // namespace accel::runtime
