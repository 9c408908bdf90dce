#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace accel {

Type scalarType(MLIRContext *context, DType dtype) {
  switch (dtype) {
  case DType::F32:
    return Float32Type::get(context);
  case DType::F64:
    return Float64Type::get(context);
  case DType::F16:
    return Float16Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  case DType::I8:
  case DType::U8:
    return IntegerType::get(context, 8);
  case DType::I16:
    return IntegerType::get(context, 16);
  case DType::I32:
    return IntegerType::get(context, 32);
  case DType::I64:
    return IntegerType::get(context, 64);
  case DType::Bool:
    return IntegerType::get(context, 1);
  case DType::Other:
    break;
  }
  return NoneType::get(context);
}

TypedAttr scalarAttribute(Builder &b, double value, DType dtype) {
  Type type = scalarType(b.getContext(), dtype);
  if (isFloat(dtype))
    return b.getFloatAttr(type, value);
  if (dtype == DType::Bool)
    return b.getIntegerAttr(type, value != 0);
  return integerAttribute(b, int64_t(value), dtype);
}

TypedAttr integerAttribute(Builder &b, int64_t value, DType dtype) {
  Type type = scalarType(b.getContext(), dtype);
  if (isFloat(dtype))
    return b.getFloatAttr(type, double(value));
  if (dtype == DType::Bool)
    return b.getIntegerAttr(type, value != 0);
  return b.getIntegerAttr(type, APInt(type.getIntOrFloatBitWidth(), value, true, true));
}

Value scalarConstant(ImplicitLocOpBuilder &b, double value, DType dtype) {
  return arith::ConstantOp::create(b, scalarAttribute(b, value, dtype));
}

Value integerConstant(ImplicitLocOpBuilder &b, int64_t value, DType dtype) {
  return arith::ConstantOp::create(b, integerAttribute(b, value, dtype));
}

Value convertScalar(ImplicitLocOpBuilder &b, Value value, DType from, DType to) {
  if (from == to)
    return value;
  Type type = scalarType(b.getContext(), to);
  unsigned fromBits = value.getType().getIntOrFloatBitWidth(), toBits = type.getIntOrFloatBitWidth();
  bool isUnsigned = from == DType::U8 || from == DType::Bool;
  if (to == DType::Bool) {
    Value zero = scalarConstant(b, 0.0, from);
    if (isFloat(from))
      return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, value, zero);
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
  }
  if (isFloat(from) && isFloat(to)) {
    if (isLowPrecision(from) && isLowPrecision(to))
      return convertScalar(b, convertScalar(b, value, from, DType::F32), DType::F32, to);
    if (fromBits < toBits)
      return arith::ExtFOp::create(b, type, value);
    // f64 goes to low precision through f32, as eager does it.
    if (from == DType::F64 && isLowPrecision(to))
      return convertScalar(b, convertScalar(b, value, from, DType::F32), DType::F32, to);
    return arith::TruncFOp::create(b, type, value);
  }
  if (isFloat(from)) {
    // Eager converts to int64 or int32; narrower integers, u8 too, keep the low bits of the latter.
    if (isLowPrecision(from))
      value = convertScalar(b, value, from, DType::F32);
    Value integer = arith::FPToSIOp::create(b, to == DType::I64 ? b.getI64Type() : b.getI32Type(), value);
    return toBits >= 32 ? integer : arith::TruncIOp::create(b, type, integer).getResult();
  }
  if (isFloat(to)) {
    DType via = computeDType(to);
    Type viaType = scalarType(b.getContext(), via);
    Value real = isUnsigned ? arith::UIToFPOp::create(b, viaType, value).getResult()
                            : arith::SIToFPOp::create(b, viaType, value).getResult();
    return convertScalar(b, real, via, to);
  }
  if (fromBits == toBits)
    return value;
  if (fromBits > toBits)
    return arith::TruncIOp::create(b, type, value);
  return isUnsigned ? arith::ExtUIOp::create(b, type, value).getResult()
                    : arith::ExtSIOp::create(b, type, value).getResult();
}

DType promoteTypes(DType a, DType b) {
  if (a == b)
    return a;
  if (isFloat(a) != isFloat(b))
    return isFloat(a) ? a : b;
  if (isFloat(a)) {
    if (a == DType::F64 || b == DType::F64)
      return DType::F64;
    return DType::F32; // f32 with low precision, or f16 with bf16
  }
  if (a == DType::Bool || b == DType::Bool)
    return a == DType::Bool ? b : a;
  auto bits = [](DType d) { return d == DType::I64 ? 64 : d == DType::I32 ? 32 : d == DType::I16 ? 16 : 8; };
  if (a == DType::U8 || b == DType::U8) {
    DType other = a == DType::U8 ? b : a;
    return other == DType::I8 ? DType::I16 : other;
  }
  return bits(a) > bits(b) ? a : b;
}

} // namespace accel
