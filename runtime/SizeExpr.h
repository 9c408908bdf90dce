// Integer expressions over a plan's symbols, in the form that is evaluated.

#ifndef ACCEL_RUNTIME_SIZEEXPR_H
#define ACCEL_RUNTIME_SIZEEXPR_H

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace accel::runtime {

/// A size, stride, offset or count: an integer expression over symbols, as postfix code.
///
/// The grammar is that of docs/fx-json.md: an integer, a symbol's name, or a list that starts with
/// one of `+ * - // % max min`. Division rounds down and the remainder has the divisor's sign.
class SizeExpr {
public:
  /*implicit*/ SizeExpr(int64_t constant = 0) : code{{Op::Constant, constant}} {}

  /// Translates `json`; `symbols[i]` names symbol `i`. Throws std::invalid_argument with a reason
  /// such as "no symbol `s9`".
  static SizeExpr parse(const nlohmann::json &json, std::span<const std::string> symbols);

  /// Returns the value where symbol `i` is `symbols[i]`. Throws std::domain_error on division by
  /// zero and on overflow of 64 bits.
  int64_t evaluate(const int64_t *symbols) const;

  bool isConstant() const { return code.size() == 1 && code[0].op == Op::Constant; }

private:
  enum class Op : uint8_t { Constant, Symbol, Add, Mul, Sub, FloorDiv, Mod, Max, Min };
  struct Instruction {
    Op op;
    int64_t operand; ///< the constant, or the symbol's number
  };

  void append(const nlohmann::json &json, std::span<const std::string> symbols, int depth);
  static int64_t apply(Op op, int64_t a, int64_t b);

  std::vector<Instruction> code;
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_SIZEEXPR_H
