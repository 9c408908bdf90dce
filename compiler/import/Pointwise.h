/// Pointwise ops as table entries: target, parameters, and the formula for one element.
///
///   addPointwise(table, kFloats | kExactNumbers,
///                {{"aten.leaky_relu.default", {"self", {"negative_slope", 0.01}}, leakyRelu}});
#ifndef ACCEL_COMPILER_IMPORT_POINTWISE_H
#define ACCEL_COMPILER_IMPORT_POINTWISE_H

#include "compiler/import/Importer.h"
#include "compiler/import/Scalar.h"
#include <functional>

namespace accel {

/// A parameter, which may be a tensor, a number or a symbolic integer.
struct Parameter {
  enum Kind { Value, Condition };

  Parameter(const char *keyword) : keyword(keyword) {}
  Parameter(const char *keyword, double fallback) : keyword(keyword), fallback(fallback) {}
  Parameter(const char *keyword, Kind kind) : keyword(keyword), kind(kind) {}

  llvm::StringRef keyword;
  std::optional<double> fallback; // where the argument is absent or None
  Kind kind = Value;              // a condition is converted to bool and takes no part in type promotion
};

/// How a pointwise op treats its operands. They are converted to one dtype, the result's if no flag says otherwise, and
/// from f16 or bf16 on to f32; the formula's value is rounded once, at the end.
enum PointwiseFlags : unsigned {
  kAnyDType = 0,
  kFloats = 1,          // refused for integers and bool, which eager's kernel has not
  kNumbers = 2,         // refused for bool
  kIntegers = 4,        // refused for floats
  kByOperands = 8,      // the operands' own promoted dtype, where the result is a bool
  kExactNumbers = 16,   // numbers, and a second operand without dimensions, aren't first rounded to f16 or bf16
  kFittingNumbers = 32, // refused for a number out of the dtype's range, for which eager raises
  kMoves = 64,          // no arithmetic, so no f32
};

/// The formula, over one scalar per parameter; one that is absent is a literal.
using PointwiseBody = std::function<Scalar(llvm::ArrayRef<Scalar>)>;

struct PointwiseOp {
  template <typename... Scalars>
  PointwiseOp(llvm::StringRef target, std::initializer_list<Parameter> parameters, Scalar (*formula)(Scalars...))
      : target(target), parameters(parameters), body(unpacked(formula, std::index_sequence_for<Scalars...>())) {}

  llvm::StringRef target;
  std::vector<Parameter> parameters;
  PointwiseBody body;

private:
  template <typename... Scalars, size_t... i>
  static PointwiseBody unpacked(Scalar (*formula)(Scalars...), std::index_sequence<i...>) {
    return [=](llvm::ArrayRef<Scalar> x) { return formula(x[i]...); };
  }
};

void addPointwise(LoweringTable &table, unsigned flags, std::initializer_list<PointwiseOp> ops);

/// The operands of one node as they are found in its arguments.
class Operands {
public:
  explicit Operands(NodeImporter &n, unsigned flags = kAnyDType) : n(n), flags(flags) {}

  /// Reads the argument of this number and keyword, or refuses.
  mlir::LogicalResult add(unsigned index, const Parameter &parameter);
  /// `torch.result_type` of the operands but for conditions.
  DType promoted() const;
  /// Result `k` of the node, its operands converted to `common`; refuses a dtype that the flags exclude.
  mlir::FailureOr<Tensor> compute(DType common, const PointwiseBody &body, unsigned k = 0);

private:
  struct Operand {
    Parameter parameter = "";
    int64_t input = -1;            // number of the tensor in `inputs`
    const FxArg *number = nullptr; // a constant
    mlir::Value symbol;            // an index
  };
  Scalar load(mlir::ImplicitLocOpBuilder &b, size_t i, mlir::ValueRange scalars, DType common);
  Scalar constant(mlir::ImplicitLocOpBuilder &b, const FxArg &number, DType common);
  DType computeIn(DType common) const;

  NodeImporter &n;
  unsigned flags;
  llvm::SmallVector<Operand> operands;
  llvm::SmallVector<Tensor> inputs;
};

/// Lowers the node as a table entry with these parameters would.
mlir::LogicalResult lowerPointwise(NodeImporter &n, unsigned flags, llvm::ArrayRef<Parameter> parameters,
                                   const PointwiseBody &body);

/// Whether the dtype holds the number; a fraction counts as held by an integer dtype, which drops it.
bool fits(const FxArg &number, DType dtype);

/// The largest finite number of a float dtype.
double largestNumber(DType dtype);

/// The argument as a number, if it is a constant one.
std::optional<double> constantNumber(const FxArg *arg);

} // namespace accel

#endif
