/// The FX JSON document (docs/fx-json.md) as C++ values, checked: every reference names an earlier node, every
/// expression's symbols are declared.
#ifndef ACCEL_COMPILER_IMPORT_FXJSON_H
#define ACCEL_COMPILER_IMPORT_FXJSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accel {

/// PyTorch's dtypes. `Other` is one that no lowering touches (complex, float8, wide unsigned): such tensors only pass
/// through.
enum class DType { F32, F64, F16, BF16, I8, I16, I32, I64, U8, Bool, Other };

bool isFloat(DType dtype);
/// Integers and bool.
bool isIntegral(DType dtype);
inline bool isLowPrecision(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

/// An integer expression: a constant, a symbol, or an operator with operands.
struct FxExpr {
  enum Kind { Constant, Symbol, Add, Mul, Sub, FloorDiv, Mod, Max, Min } kind = Constant;
  int64_t value = 0;
  std::string symbol;
  std::vector<FxExpr> operands;

  std::optional<int64_t> constant() const { return kind == Constant ? std::optional<int64_t>(value) : std::nullopt; }
};

/// A tensor as eager would have it.
struct FxTensor {
  DType dtype = DType::F32;
  std::string dtypeName;
  std::vector<FxExpr> sizes, strides;
  FxExpr offset; // of the first element in its storage
  std::string device;
};

/// What a node yields: nothing, tensors (some may be absent), or a symbolic integer.
struct FxResult {
  enum Kind { None, Tensor, Symbol } kind = None;
  FxTensor tensor;
  FxExpr symbol;
};

struct FxArg {
  enum Kind { None, Int, Float, Bool, String, List, Ref, Symbol, DType, Device, Layout, MemoryFormat } kind = None;
  int64_t integer = 0;
  double real = 0;
  std::string text; // of String, Ref, DType, Device, Layout, MemoryFormat
  FxExpr symbol;
  std::vector<FxArg> list;
};

struct FxNode {
  enum Op { Input, Call, Output } op = Call;
  std::string name, target, kind;
  std::vector<FxArg> args;
  std::vector<std::pair<std::string, FxArg>> kwargs;
  std::vector<FxResult> results;
  std::string file;
  int64_t line = 0;
};

struct FxSymbol {
  std::string name;
  std::optional<int64_t> min, max, hint;
};

struct FxGraph {
  std::string name;
  std::vector<FxSymbol> symbols;
  std::vector<FxNode> nodes;
};

/// The dtype that a name of docs/fx-json.md stands for; nothing if there is no such name.
std::optional<DType> parseDType(llvm::StringRef name);
llvm::StringRef dtypeName(DType dtype);

/// Reads a document. The error names the node and the field.
llvm::Expected<FxGraph> parseFxJson(llvm::StringRef text);

} // namespace accel

#endif
