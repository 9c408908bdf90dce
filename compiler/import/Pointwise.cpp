#include "compiler/import/Pointwise.h"
#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

using namespace mlir;

namespace accel {
namespace {

/// bool, integer or floating point: promotion looks at an operand without dimensions only if its category is the higher
/// one.
int category(DType dtype) { return isFloat(dtype) ? 2 : dtype == DType::Bool ? 0 : 1; }

using Promoted = std::optional<DType>;

Promoted promote(Promoted a, Promoted b) {
  if (!a || !b)
    return a ? a : b;
  return promoteTypes(*a, *b);
}

/// PyTorch's combine_categories: the dtype of the more important operands, unless the others are of a higher category.
Promoted combine(Promoted important, Promoted other) {
  if (!important || !other)
    return important ? important : other;
  return category(*important) >= category(*other) ? important : promote(important, other);
}

/// A Python number's dtype; a real number's is PyTorch's default one.
DType dtypeOf(const FxArg &number) {
  return number.kind == FxArg::Float ? DType::F32 : number.kind == FxArg::Bool ? DType::Bool : DType::I64;
}

const llvm::fltSemantics &semantics(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return llvm::APFloat::IEEEhalf();
  case DType::BF16:
    return llvm::APFloat::BFloat();
  case DType::F32:
    return llvm::APFloat::IEEEsingle();
  default:
    return llvm::APFloat::IEEEdouble();
  }
}

/// The nearest number that the float dtype holds; f16 and bf16 by way of f32, as eager rounds.
double rounded(double number, DType dtype) {
  llvm::APFloat value(number);
  bool losesInfo;
  if (isLowPrecision(dtype))
    value.convert(semantics(DType::F32), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  value.convert(semantics(dtype), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

double valueOf(const FxArg &number) { return number.kind == FxArg::Float ? number.real : double(number.integer); }

} // namespace

std::optional<double> constantNumber(const FxArg *arg) {
  if (!arg || (arg->kind != FxArg::Int && arg->kind != FxArg::Float && arg->kind != FxArg::Bool))
    return std::nullopt;
  return valueOf(*arg);
}

double largestNumber(DType dtype) { return llvm::APFloat::getLargest(semantics(dtype)).convertToDouble(); }

bool fits(const FxArg &number, DType dtype) {
  double value = valueOf(number);
  if (dtype == DType::Bool)
    return true;
  if (isFloat(dtype))
    return !std::isfinite(value) || std::abs(value) <= largestNumber(dtype);
  if (dtype == DType::I64 && number.kind != FxArg::Float)
    return true; // the largest ones round up to 2^63 as doubles
  unsigned bits = dtype == DType::I64 ? 64 : dtype == DType::I32 ? 32 : dtype == DType::I16 ? 16 : 8;
  double least = dtype == DType::U8 ? 0 : -std::ldexp(1.0, bits - 1);
  double beyond = std::ldexp(1.0, dtype == DType::U8 ? bits : bits - 1);
  return value >= least && value < beyond;
}

LogicalResult Operands::add(unsigned index, const Parameter &parameter) {
  const FxArg *arg = n.arg(index, parameter.keyword);
  Operand operand;
  operand.parameter = parameter;
  if (!arg) {
    if (!parameter.fallback)
      return n.refuse("argument '" + parameter.keyword + "' is absent");
  } else if (arg->kind == FxArg::Ref) {
    FailureOr<Tensor> tensor = n.tensorOf(*arg);
    if (failed(tensor))
      return failure();
    auto same = llvm::find_if(
        inputs, [&](const Tensor &input) { return input.value == tensor->value && input.dtype == tensor->dtype; });
    operand.input = same - inputs.begin();
    if (same == inputs.end())
      inputs.push_back(*tensor);
  } else if (arg->kind == FxArg::Symbol) {
    FailureOr<AffineExpr> expr = n.expr(index, parameter.keyword);
    if (failed(expr))
      return failure();
    operand.symbol = n.index(*expr);
  } else if (constantNumber(arg)) {
    operand.number = arg;
  } else {
    return n.refuse("argument '" + parameter.keyword + "' is neither a tensor nor a number");
  }
  operands.push_back(operand);
  return success();
}

DType Operands::promoted() const {
  Promoted ranked, unranked, numbers;
  for (const Operand &operand : operands) {
    if (operand.parameter.kind == Parameter::Condition)
      continue;
    if (operand.input >= 0) {
      const Tensor &tensor = inputs[operand.input];
      Promoted &group = tensor.rank() > 0 ? ranked : unranked;
      group = promote(group, tensor.dtype);
    } else if (operand.number || operand.symbol) {
      numbers = promote(numbers, operand.number ? dtypeOf(*operand.number) : DType::I64);
    }
  }
  return combine(ranked, combine(unranked, numbers)).value_or(DType::F32);
}

DType Operands::computeIn(DType common) const { return flags & kMoves ? common : computeDType(common); }

Scalar Operands::constant(ImplicitLocOpBuilder &b, const FxArg &number, DType common) {
  DType dtype = computeIn(common);
  if (number.kind != FxArg::Float && !isFloat(dtype))
    return {b, integerConstant(b, number.integer, dtype), dtype};
  double value = valueOf(number);
  if (isFloat(dtype))
    value = rounded(value, flags & kExactNumbers ? dtype : common);
  return {b, scalarConstant(b, value, dtype), dtype};
}

Scalar Operands::load(ImplicitLocOpBuilder &b, size_t i, ValueRange scalars, DType common) {
  const Operand &operand = operands[i];
  bool condition = operand.parameter.kind == Parameter::Condition;
  if (condition)
    common = DType::Bool;
  DType dtype = computeIn(common);
  if (operand.number)
    return constant(b, *operand.number, common);
  if (operand.symbol) {
    Scalar integer(b, arith::IndexCastOp::create(b, b.getI64Type(), operand.symbol), DType::I64);
    return flags & kExactNumbers ? integer.to(dtype) : integer.to(common).to(dtype);
  }
  if (operand.input < 0)
    return *operand.parameter.fallback;
  const Tensor &tensor = inputs[operand.input];
  Scalar value(b, scalars[operand.input], tensor.dtype);
  // Eager reads a lone second operand as a number, without rounding it to the common dtype.
  bool asNumber = (flags & kExactNumbers) && i == 1 && tensor.rank() == 0;
  return asNumber ? value.to(dtype) : value.to(common).to(dtype);
}

FailureOr<Tensor> Operands::compute(DType common, const PointwiseBody &body, unsigned k) {
  if (((flags & kFloats) && !isFloat(common)) || ((flags & kIntegers) && isFloat(common)) ||
      ((flags & kNumbers) && common == DType::Bool))
    return n.refuse("eager has no kernel for dtype " + dtypeName(common));
  for (const Operand &operand : operands)
    if ((flags & kFittingNumbers) && operand.number && !fits(*operand.number, common))
      return n.refuse("a number is out of the range of dtype " + dtypeName(common));
  SmallVector<AffineExpr> sizes = n.resultSizes(k);
  if (llvm::is_contained(sizes, AffineExpr()))
    return n.refuse("a size is known at run time only");
  DType dtype = n.resultDType(k);
  return n.pointwise(inputs, sizes, dtype, [&](ImplicitLocOpBuilder &b, ValueRange scalars) {
    SmallVector<Scalar> x;
    for (size_t i = 0; i < operands.size(); ++i)
      x.push_back(load(b, i, scalars, common));
    Scalar result = body(x);
    if (result.isLiteral())
      return scalarConstant(b, result.literal(), dtype);
    return result.to(dtype).value();
  });
}

LogicalResult lowerPointwise(NodeImporter &n, unsigned flags, ArrayRef<Parameter> parameters,
                             const PointwiseBody &body) {
  Operands operands(n, flags);
  for (auto [i, parameter] : llvm::enumerate(parameters))
    if (failed(operands.add(i, parameter)))
      return failure();
  FailureOr<Tensor> result = operands.compute(flags & kByOperands ? operands.promoted() : n.resultDType(), body);
  return failed(result) ? failure() : n.yield(*result);
}

void addPointwise(LoweringTable &table, unsigned flags, std::initializer_list<PointwiseOp> ops) {
  for (const PointwiseOp &op : ops)
    table.add(op.target, [flags, op](NodeImporter &n) { return lowerPointwise(n, flags, op.parameters, op.body); });
}

} // namespace accel
