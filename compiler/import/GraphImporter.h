/// The state of one import: the function being built, its symbols, and what each FX node became.
#ifndef ACCEL_COMPILER_IMPORT_GRAPHIMPORTER_H
#define ACCEL_COMPILER_IMPORT_GRAPHIMPORTER_H

#include "compiler/import/Importer.h"
#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

class GraphImporter {
public:
  GraphImporter(const FxGraph &graph, mlir::MLIRContext *context, bool fallback, ImportStatistics &statistics)
      : graph(graph), ctx(context), builder(context), fallback(fallback), statistics(statistics) {}

  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> run();

  /// The expression over the function's index arguments. One that is not affine (max, min, or over a symbol that only
  /// an input's expression binds) becomes an index argument of its own.
  mlir::AffineExpr affine(const FxExpr &expr);
  llvm::SmallVector<mlir::AffineExpr, 4> affine(llvm::ArrayRef<FxExpr> exprs);
  mlir::Value indexValue(mlir::OpBuilder &b, mlir::Location loc, mlir::AffineExpr expr);
  /// The layout attribute of eager's tensor.
  LayoutAttr layout(const FxTensor &tensor);
  /// The largest or the least value that the symbols' ranges allow the expression; nothing if none is found.
  std::optional<int64_t> bound(mlir::AffineExpr expr, bool largest) const;
  llvm::ArrayRef<mlir::Value> symbols() const { return symbolArgs; }
  mlir::MLIRContext *context() const { return ctx; }
  mlir::Type elementType(const FxTensor &tensor);

  /// The node as a call of PyTorch's dispatcher; `kind` is `library` or `fallback`.
  llvm::SmallVector<Tensor, 1> makeAtenCall(const FxNode &node, llvm::StringRef kind, llvm::StringRef reason,
                                            mlir::Location loc);

  /// The tensors that a node became; a Tensor without a value where there is none.
  llvm::ArrayRef<Tensor> tensorsOf(llvm::StringRef node) const;
  /// A node's first result as eager would have it; null if that is no tensor.
  const FxTensor *metadataOf(llvm::StringRef node) const;

private:
  void makeSymbols();
  void makeInputs();
  /// A symbol of the expression that neither an input nor a size of one gives a value; empty if there is none.
  std::string unboundSymbol(const FxExpr &expr) const;
  /// Sizes, strides and arguments may name only symbols that have a value.
  llvm::Error checkSymbols(const FxNode &node) const;
  llvm::Error importCall(const FxNode &node);
  llvm::Error importGetitem(const FxNode &node);
  llvm::Error importFallback(const FxNode &node, llvm::StringRef reason, mlir::Location loc);
  llvm::Error importOutput(const FxNode &node);
  mlir::Attribute argAttribute(const FxArg &arg, llvm::SmallVectorImpl<mlir::Value> &operands,
                               llvm::SmallVectorImpl<llvm::StringRef> &dtypes);
  llvm::StringRef memoryOwner(llvm::StringRef node) const;
  mlir::Value addIndexArgument(llvm::StringRef name, mlir::DictionaryAttr binding,
                               std::optional<int64_t> hint = std::nullopt);
  mlir::Location location(const FxNode &node);

  const FxGraph &graph;
  mlir::MLIRContext *ctx;
  mlir::OpBuilder builder;
  bool fallback;
  ImportStatistics &statistics;
  mlir::func::FuncOp func;
  llvm::SmallVector<mlir::Value> symbolArgs;
  std::map<std::string, unsigned> symbolNumbers; // symbol's name, or the text of an opaque expression
  std::map<std::string, int64_t> inputExprs;     // text of a symbolic input's expression -> input
  std::map<std::string, llvm::SmallVector<Tensor, 1>> values;
  std::map<std::string, const FxNode *> nodes;
};

/// The expression as JSON text, as in docs/fx-json.md.
std::string toJson(const FxExpr &expr);

} // namespace accel

#endif
