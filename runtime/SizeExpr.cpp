#include "runtime/SizeExpr.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

namespace accel::runtime {
namespace {

/// Deeper nesting is refused: expressions of real programs have a handful of levels, and the
/// translation recurses.
constexpr int kMaxDepth = 64;

/// The value stack can't outgrow this: every level of nesting holds at most two values.
constexpr size_t kStackSize = 2 * kMaxDepth + 2;

std::string quote(const std::string &text) { return "`" + text + "`"; }

} // namespace

SizeExpr SizeExpr::parse(const nlohmann::json &json, std::span<const std::string> symbols) {
  SizeExpr expr;
  expr.code.clear();
  expr.append(json, symbols, 0);
  return expr;
}

void SizeExpr::append(const nlohmann::json &json, std::span<const std::string> symbols, int depth) {
  if (depth > kMaxDepth)
    throw std::invalid_argument("expression is nested deeper than " + std::to_string(kMaxDepth));
  if (json.is_number_integer()) {
    bool tooLarge = json.is_number_unsigned() && json.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max());
    if (tooLarge)
      throw std::invalid_argument("integer " + json.dump() + " does not fit 64 bits");
    code.push_back({Op::Constant, json.get<int64_t>()});
    return;
  }
  if (json.is_string()) {
    const auto &name = json.get_ref<const std::string &>();
    auto found = std::find(symbols.begin(), symbols.end(), name);
    if (found == symbols.end())
      throw std::invalid_argument("no symbol " + quote(name));
    code.push_back({Op::Symbol, found - symbols.begin()});
    return;
  }
  if (!json.is_array() || json.empty() || !json[0].is_string())
    throw std::invalid_argument("expected an integer, a symbol or [operator, ...], found " +
                                std::string(json.type_name()));

  struct Operator {
    std::string_view name;
    Op op;
    bool isBinary;
  };
  static constexpr std::array<Operator, 7> kOperators = {{{"+", Op::Add, false},
                                                          {"*", Op::Mul, false},
                                                          {"-", Op::Sub, true},
                                                          {"//", Op::FloorDiv, true},
                                                          {"%", Op::Mod, true},
                                                          {"max", Op::Max, false},
                                                          {"min", Op::Min, false}}};
  const auto &name = json[0].get_ref<const std::string &>();
  auto found = std::find_if(kOperators.begin(), kOperators.end(),
                            [&](const Operator &candidate) { return candidate.name == name; });
  if (found == kOperators.end())
    throw std::invalid_argument("no operator " + quote(name));
  size_t operands = json.size() - 1;
  if (found->isBinary ? operands != 2 : operands < 1)
    throw std::invalid_argument("operator " + quote(name) + " has " + std::to_string(operands) +
                                " operands, expected " + (found->isBinary ? "2" : "at least 1"));
  append(json[1], symbols, depth + 1);
  for (size_t i = 2; i < json.size(); ++i) {
    append(json[i], symbols, depth + 1);
    code.push_back({found->op, 0});
  }
}

int64_t SizeExpr::apply(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
  case Op::Add:
    overflow = __builtin_add_overflow(a, b, &result);
    break;
  case Op::Mul:
    overflow = __builtin_mul_overflow(a, b, &result);
    break;
  case Op::Sub:
    overflow = __builtin_sub_overflow(a, b, &result);
    break;
  case Op::FloorDiv:
  case Op::Mod: {
    if (b == 0)
      throw std::domain_error("division by zero in a size expression");
    // INT64_MIN / -1 is the one quotient that does not fit.
    if (b == -1) {
      overflow = op == Op::FloorDiv && __builtin_sub_overflow(int64_t(0), a, &result);
      break;
    }
    int64_t quotient = a / b, remainder = a % b;
    bool roundDown = remainder != 0 && (remainder < 0) != (b < 0);
    result = op == Op::FloorDiv ? quotient - roundDown : remainder + (roundDown ? b : 0);
    break;
  }
  case Op::Max:
    return std::max(a, b);
  case Op::Min:
    return std::min(a, b);
  case Op::Constant:
  case Op::Symbol:
    break;
  }
  if (overflow)
    throw std::domain_error("a size expression overflows 64 bits");
  return result;
}

int64_t SizeExpr::evaluate(const int64_t *symbols) const {
  std::array<int64_t, kStackSize> stack;
  size_t top = 0;
  for (const Instruction &instruction : code) {
    if (instruction.op == Op::Constant) {
      stack[top++] = instruction.operand;
    } else if (instruction.op == Op::Symbol) {
      stack[top++] = symbols[instruction.operand];
    } else {
      --top;
      stack[top - 1] = apply(instruction.op, stack[top - 1], stack[top]);
    }
  }
  return stack[0];
}

} // namespace accel::runtime
