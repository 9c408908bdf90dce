#ifndef ACCEL_DIALECTS_ACCEL_ACCELDIALECT_H
#define ACCEL_DIALECTS_ACCEL_ACCELDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/accel/AccelDialect.h.inc"

namespace accel {
/// A tensor op that no loop nest of linalg ops can hold: it makes a kernel of its own.
template <typename ConcreteOp>
class OwnKernel // NOLINT(bugprone-crtp-constructor-accessibility): MLIR's ops construct their traits
    : public mlir::OpTrait::TraitBase<ConcreteOp, OwnKernel> {};
} // namespace accel

#define GET_ATTRDEF_CLASSES
#include "dialects/accel/AccelAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/accel/AccelOps.h.inc"

namespace accel {
/// Names of the discardable attributes.
inline constexpr llvm::StringLiteral kLoopsAttr = "accel.loops";
inline constexpr llvm::StringLiteral kLayoutAttr = "accel.layout";
inline constexpr llvm::StringLiteral kDtypeAttr = "accel.dtype";
inline constexpr llvm::StringLiteral kKindAttr = "accel.kind";
inline constexpr llvm::StringLiteral kNameAttr = "accel.name";
/// On an `index` argument: the value it had while tracing.
inline constexpr llvm::StringLiteral kHintAttr = "accel.hint";
/// On a result: the FX node in whose memory it lies in eager. Results with one owner share memory, all others don't.
inline constexpr llvm::StringLiteral kOwnerAttr = "accel.owner";
/// The PyTorch dtype (as FX JSON names it) that memory of an element type has when nothing says otherwise.
std::string naturalDtype(mlir::Type element);
/// Names of a module's functions: what a call runs, and what depends on weights alone.
inline constexpr llvm::StringLiteral kMainFunction = "main", kConstantsFunction = "constants";
} // namespace accel

#endif
