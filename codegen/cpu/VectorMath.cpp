#include "codegen/cpu/VectorMath.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace accel {
namespace {

/// The C function of a math op; empty where libmvec has none.
llvm::StringRef functionOf(Operation *op) {
  static const llvm::StringMap<llvm::StringRef> table = {
      {"math.exp", "exp"},     {"math.exp2", "exp2"},   {"math.expm1", "expm1"}, {"math.log", "log"},
      {"math.log2", "log2"},   {"math.log10", "log10"}, {"math.log1p", "log1p"}, {"math.sin", "sin"},
      {"math.cos", "cos"},     {"math.tan", "tan"},     {"math.asin", "asin"},   {"math.acos", "acos"},
      {"math.atan", "atan"},   {"math.sinh", "sinh"},   {"math.cosh", "cosh"},   {"math.tanh", "tanh"},
      {"math.asinh", "asinh"}, {"math.acosh", "acosh"}, {"math.atanh", "atanh"}, {"math.erf", "erf"},
      {"math.erfc", "erfc"},   {"math.cbrt", "cbrt"},   {"math.atan2", "atan2"}, {"math.powf", "pow"}};
  return table.lookup(op->getName().getStringRef());
}

/// The name in the x86 vector function ABI: `_ZGV`, the instruction set, `N` for unmasked, lanes, a `v` per argument.
std::string mangle(llvm::StringRef function, bool single, unsigned registerBits, unsigned lanes, unsigned numArgs) {
  char isa = registerBits == 512 ? 'e' : registerBits == 256 ? 'd' : 'b';
  return "_ZGV" + std::string(1, isa) + "N" + std::to_string(lanes) + std::string(numArgs, 'v') + "_" + function.str() +
         (single ? "f" : "");
}

func::FuncOp declare(ModuleOp module, llvm::StringRef name, Type type, unsigned numArgs) {
  if (auto known = module.lookupSymbol<func::FuncOp>(name))
    return known;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto function =
      func::FuncOp::create(b, module.getLoc(), name, b.getFunctionType(SmallVector<Type>(numArgs, type), type));
  function.setPrivate();
  return function;
}

} // namespace

void callVectorMath(ModuleOp module, unsigned registerBits) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    auto type = op->getNumResults() == 1 ? dyn_cast<VectorType>(op->getResult(0).getType()) : VectorType();
    if (type && !functionOf(op).empty() && (type.getElementType().isF32() || type.getElementType().isF64()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    auto type = cast<VectorType>(op->getResult(0).getType());
    bool single = type.getElementType().isF32();
    int64_t lanes = registerBits / (single ? 32 : 64), count = type.getNumElements();
    auto part = VectorType::get({lanes}, type.getElementType());
    func::FuncOp function = declare(module, mangle(functionOf(op), single, registerBits, lanes, op->getNumOperands()),
                                    part, op->getNumOperands());
    // A vector shorter than a register is widened; the lanes added compute what nobody reads.
    int64_t padded = llvm::alignTo(count, lanes);
    auto shuffle = [&](Value from, int64_t size, llvm::function_ref<int64_t(int64_t)> source) {
      SmallVector<int64_t> mask;
      for (int64_t i = 0; i < size; ++i)
        mask.push_back(source(i));
      return vector::ShuffleOp::create(b, from, from, mask).getResult();
    };
    SmallVector<Value> results;
    for (int64_t first = 0; first < padded; first += lanes) {
      SmallVector<Value> args;
      for (Value operand : op->getOperands())
        args.push_back(count == lanes ? operand : shuffle(operand, lanes, [&](int64_t i) {
          return std::min(first + i, count - 1);
        }));
      results.push_back(func::CallOp::create(b, function, args).getResult(0));
    }
    Value whole = results[0];
    for (size_t i = 1; i < results.size(); ++i) {
      // Join pairwise from the left: `whole` has i registers, the next one is appended.
      SmallVector<int64_t> mask;
      for (int64_t l = 0; l < int64_t(i + 1) * lanes; ++l)
        mask.push_back(l);
      whole = vector::ShuffleOp::create(b, whole, results[i], mask);
    }
    if (padded != count)
      whole = shuffle(whole, count, [](int64_t i) { return i; });
    op->replaceAllUsesWith(ValueRange(whole));
    op->erase();
  }
}

} // namespace accel
