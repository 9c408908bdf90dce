/// Which values depend on weights alone.
#ifndef ACCEL_PASSES_GRAPH_CONSTANTINPUTS_H
#define ACCEL_PASSES_GRAPH_CONSTANTINPUTS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"

namespace accel {

/// On a function: its parameters and buffers are the same from call to call, unless someone writes to them in between.
inline constexpr llvm::StringLiteral kConstantWeightsAttr = "accel.constant_weights";

/// Answers for one function. Sizes of what isn't `Varies` are numbers.
class ConstantInputs {
public:
  enum class Kind {
    Varies,   // differs from call to call
    Nothing,  // made of nothing: zeros, or a range of numbers
    Constant, // made of parameters and buffers, and of nothing else
  };

  /// Without `accel.constant_weights` on the function, nothing is constant.
  explicit ConstantInputs(mlir::Operation *function);
  Kind kindOf(mlir::Value value);
  bool isConstant(mlir::Value value) { return kindOf(value) == Kind::Constant; }

private:
  Kind compute(mlir::Value value);

  mlir::Operation *function;
  bool enabled;
  llvm::DenseMap<mlir::Value, Kind> known;
};

} // namespace accel

#endif
