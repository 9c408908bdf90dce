/// FX graph -> one func.func on tensors.
///
/// Each FX node's target is looked up in a table of lowerings, one function per op, in one file per family. A lowering
/// builds `linalg`, `tensor`, `arith`, `math` and `accel` ops through a NodeImporter, or refuses with a reason; a node
/// that is refused or has no lowering becomes `accel.aten_call`.
///
/// Form of the IR: a pointwise op is a `linalg.generic` with parallel loops only and an identity map for its result; a
/// reduction is a `linalg.reduce` whose body combines two partial results (what comes before it is a pointwise op of
/// its own); views are `accel.view` and `accel.reshape`.
#ifndef ACCEL_COMPILER_IMPORT_IMPORTER_H
#define ACCEL_COMPILER_IMPORT_IMPORTER_H

#include "compiler/import/FxJson.h"
#include "dialects/accel/SymbolicSizes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include <functional>
#include <map>

namespace accel {

/// A tensor during import: its SSA value, its PyTorch dtype (MLIR's integers have no sign) and its sizes over the
/// function's symbols.
struct Tensor {
  mlir::Value value;
  DType dtype = DType::F32;
  llvm::SmallVector<mlir::AffineExpr, 4> sizes;

  int64_t rank() const { return sizes.size(); }
  /// The size of dimension `d` if it is a constant, else nothing.
  std::optional<int64_t> size(int64_t d) const;
  bool isUnit(int64_t d) const { return size(d) == 1; }
};

class GraphImporter;

/// Everything that the lowering of one FX node needs.
class NodeImporter {
public:
  NodeImporter(GraphImporter &graph, const FxNode &node, mlir::ImplicitLocOpBuilder &b)
      : b(b), graph(graph), node(node) {}

  mlir::ImplicitLocOpBuilder &b;

  //===-- Arguments: by position or keyword; null or a default where they are absent or None
  //---------------------------===//
  llvm::StringRef target() const { return node.target; }
  const FxArg *arg(unsigned index, llvm::StringRef keyword) const;
  mlir::FailureOr<Tensor> tensor(unsigned index, llvm::StringRef keyword);
  /// Nothing where the argument is absent or None.
  std::optional<Tensor> optionalTensor(unsigned index, llvm::StringRef keyword);
  /// A list of tensors; None entries become tensors without a value.
  mlir::FailureOr<llvm::SmallVector<Tensor>> tensors(unsigned index, llvm::StringRef keyword);
  /// A constant integer; a symbolic one counts as refused.
  mlir::FailureOr<int64_t> integer(unsigned index, llvm::StringRef keyword, std::optional<int64_t> fallback = {});
  mlir::FailureOr<double> real(unsigned index, llvm::StringRef keyword, std::optional<double> fallback = {});
  bool boolean(unsigned index, llvm::StringRef keyword, bool fallback);
  std::string text(unsigned index, llvm::StringRef keyword, llvm::StringRef fallback);
  /// A list of constant integers (a single integer counts as a list of one); empty where absent.
  mlir::FailureOr<llvm::SmallVector<int64_t>> integers(unsigned index, llvm::StringRef keyword);
  /// An integer or symbolic argument as an expression.
  mlir::FailureOr<mlir::AffineExpr> expr(unsigned index, llvm::StringRef keyword, std::optional<int64_t> fallback = {});
  mlir::FailureOr<llvm::SmallVector<mlir::AffineExpr>> exprs(unsigned index, llvm::StringRef keyword);
  /// One item of such a list.
  mlir::FailureOr<mlir::AffineExpr> exprOf(const FxArg &arg);
  /// The least value that the symbols' ranges allow the expression; nothing if it has no bound, or none that is found.
  std::optional<int64_t> lowerBound(mlir::AffineExpr expr) const;
  std::optional<int64_t> upperBound(mlir::AffineExpr expr) const;
  /// Tensor of the argument that refers to a node's first result.
  mlir::FailureOr<Tensor> tensorOf(const FxArg &arg);
  /// Strides and storage offset of a tensor argument as eager has it.
  struct EagerLayout {
    llvm::SmallVector<mlir::AffineExpr> strides;
    mlir::AffineExpr offset;
  };
  mlir::FailureOr<EagerLayout> eagerLayout(unsigned index, llvm::StringRef keyword);
  /// `dim` wrapped into [0, rank); refuses what is out of range. A rank of 0 counts as 1, as in PyTorch.
  mlir::FailureOr<int64_t> wrapDim(int64_t dim, int64_t rank);

  //===-- What eager would yield
  //---------------------------------------------------------------------------------------===//
  unsigned numResults() const { return node.results.size(); }
  /// Whether result `k` is a tensor (and not None).
  bool hasResult(unsigned k) const;
  DType resultDType(unsigned k = 0) const;
  llvm::SmallVector<mlir::AffineExpr> resultSizes(unsigned k = 0);

  //===-- Building
  //-------------------------------------------------------------------------------------------------------===//
  mlir::Type type(DType dtype) const;
  mlir::RankedTensorType type(DType dtype, llvm::ArrayRef<mlir::AffineExpr> sizes) const;
  mlir::AffineExpr constant(int64_t value) const;
  mlir::OpFoldResult fold(mlir::AffineExpr expr);
  /// An `index` value of the expression.
  mlir::Value index(mlir::AffineExpr expr);
  /// The dynamic ones among `sizes`, as values.
  llvm::SmallVector<mlir::Value> dynamicSizes(llvm::ArrayRef<mlir::AffineExpr> sizes);
  mlir::Value empty(DType dtype, llvm::ArrayRef<mlir::AffineExpr> sizes);

  using Body = llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;
  using MultiBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;
  /// A linalg.generic over `sizes`: the inputs broadcast as in PyTorch, `body` gets one scalar of each in its own dtype
  /// (bool as i1) and returns one of `dtype`.
  Tensor pointwise(llvm::ArrayRef<Tensor> inputs, llvm::ArrayRef<mlir::AffineExpr> sizes, DType dtype, Body body);
  /// The same with each input's own map from the result's dimensions to its indices.
  Tensor pointwise(llvm::ArrayRef<Tensor> inputs, llvm::ArrayRef<mlir::AffineMap> maps,
                   llvm::ArrayRef<mlir::AffineExpr> sizes, DType dtype, Body body);
  /// A linalg.reduce over `dims` (kept out of the results). `init` and `combine` give one value per input; `combine`
  /// gets (inputs..., accumulators...) and is associative and commutative.
  llvm::SmallVector<Tensor> reduce(llvm::ArrayRef<Tensor> inputs, llvm::ArrayRef<int64_t> dims,
                                   llvm::ArrayRef<mlir::TypedAttr> init, MultiBody combine);
  /// A view by a map from result dimensions to source indices. Its symbols are the function's.
  Tensor view(const Tensor &source, llvm::ArrayRef<mlir::AffineExpr> sizes, llvm::ArrayRef<mlir::AffineExpr> indices);
  Tensor reshape(const Tensor &source, llvm::ArrayRef<mlir::AffineExpr> sizes);
  /// The dimensions in the given order: result dimension i is source dimension order[i].
  Tensor permute(const Tensor &source, llvm::ArrayRef<int64_t> order);
  Tensor unsqueeze(const Tensor &source, int64_t dim);
  Tensor concat(llvm::ArrayRef<Tensor> parts, int64_t dim);
  /// A tensor of one value.
  Tensor fill(double value, llvm::ArrayRef<mlir::AffineExpr> sizes, DType dtype);
  /// The same elements in another dtype, with PyTorch's rules; the tensor itself if it has that dtype.
  Tensor cast(const Tensor &source, DType dtype);
  /// [.., M, K] x [.., K, N] of rank 2 or 3, accumulating in f32 for low precision.
  Tensor matmul(const Tensor &a, const Tensor &b);

  //===-- Ending
  //-----------------------------------------------------------------------------------------------------===//
  /// Sets the results, in order; a Tensor without a value for one that is None or unused. A dtype that differs from
  /// eager's is cast.
  mlir::LogicalResult yield(llvm::ArrayRef<Tensor> results);
  /// Gives the whole node to PyTorch's library by choice: `why` is shown by explain.
  mlir::LogicalResult callLibrary(const llvm::Twine &why);
  /// Gives up: the node becomes an aten_call, and `why` is shown by explain.
  mlir::LogicalResult refuse(const llvm::Twine &why);

  llvm::SmallVector<Tensor> results;
  std::string reason;

private:
  GraphImporter &graph;
  const FxNode &node;
};

using Lowering = std::function<mlir::LogicalResult(NodeImporter &)>;

/// Lowerings by target (`aten.add.Tensor`).
class LoweringTable {
public:
  void add(llvm::StringRef target, Lowering lowering) { table[target] = lowering; }
  void add(std::initializer_list<llvm::StringRef> targets, Lowering lowering) {
    for (llvm::StringRef target : targets)
      add(target, lowering);
  }
  Lowering find(llvm::StringRef target) const { return table.lookup(target); }

private:
  llvm::StringMap<Lowering> table;
};

/// How many FX nodes went which way, and why some fell back.
struct ImportStatistics {
  struct Call {
    std::string node, target, reason, source;
  };
  unsigned native = 0;
  std::vector<Call> fallbacks;
};

/// Imports a graph. On failure the error names node and field. `fallback` is false when an op without a lowering is an
/// error.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importFxGraph(const FxGraph &graph, mlir::MLIRContext *context,
                                                                bool fallback, ImportStatistics &statistics);

/// All families.
const LoweringTable &loweringTable();

} // namespace accel

#endif
