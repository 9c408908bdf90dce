#include "passes/graph/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "dialects/accel/SymbolicSizes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "passes/graph/ConstantInputs.h"
#include "passes/graph/Packing.h"
#include "passes/kernels/Layouts.h"
#include "passes/schedule/Registers.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_CHOOSECONTRACTIONSPASS
#include "passes/graph/Passes.h.inc"

namespace {

/// A product with fewer multiplications in its k loop or columns than this has no use for a tile of registers.
constexpr int64_t kLeastDepth = 8, kLeastColumns = 8;
/// Rows from which on copying a panel of B, which takes about as long as three rows' products, is worth it.
constexpr int64_t kLeastRowsToCopy = 24;
/// Rows from which on several blocks of rows would copy it, so that it is packed by a kernel of its own.
constexpr int64_t kLeastRowsToPack = 256;

/// The kernels start from zeros.
linalg::FillOp zeroFill(Value init) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  if (fill && (matchPattern(fill.getInputs()[0], m_Zero()) || matchPattern(fill.getInputs()[0], m_AnyZeroFloat())))
    return fill;
  return nullptr;
}

bool isOne(AffineExpr expr) { return expr == getAffineConstantExpr(1, expr.getContext()); }

std::optional<int64_t> constantOf(AffineExpr expr) {
  auto constant = dyn_cast_or_null<AffineConstantExpr>(expr);
  return constant ? std::optional(constant.getValue()) : std::nullopt;
}

/// Which kernel a product gets, and why.
struct Choice {
  bool own;
  int64_t panel = 0; // pack B into panels of this many columns
  std::string reason;
};

struct ChooseContractions : impl::ChooseContractionsPassBase<ChooseContractions> {
  using ChooseContractionsPassBase::ChooseContractionsPassBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    Layouts layouts(func);
    if (constantWeights)
      func->setAttr(kConstantWeightsAttr, UnitAttr::get(&getContext()));
    ConstantInputs constants(func);
    SmallVector<std::pair<Operation *, Choice>> choices;
    for (Operation &op : func.getBody().front())
      if (isa<linalg::MatmulOp, linalg::BatchMatmulOp>(op) && zeroFill(cast<linalg::LinalgOp>(op).getDpsInits()[0]))
        choices.push_back({&op, choose(&op, layouts, constants)});
    for (auto &[op, choice] : choices) {
      if (choice.own)
        makeContraction(op, choice);
      else
        callLibrary(op, choice);
    }
  }

  Choice choose(Operation *op, Layouts &layouts, ConstantInputs &constants) {
    if (contractions == "library")
      return {false, 0, "contractions are the library's by option"};
    bool always = contractions == "own";
    Value a = op->getOperand(0), c = op->getOperand(1);
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    if (!element.isF32() && !element.isF64() && !isHalf(element) && !(always && element.isInteger()))
      return {false, 0, "the type is the library's"};
    if (element.isF16() && !hasFeature(features, "+f16c"))
      return {false, 0, "the processor doesn't convert f16"};
    if (isHalf(element) && hasProductsOf(element) && !always)
      return {false, 0, "the processor multiplies this type, and the library knows how"};
    std::optional<Placement> left = layouts.placementOf(a), right = layouts.placementOf(c);
    if (!left || !right)
      return {false, 0, "an operand is copied first"};
    size_t rank = left->sizes.size();
    auto rows = constantOf(left->sizes[rank - 2]), depth = constantOf(left->sizes[rank - 1]),
         columns = constantOf(right->sizes[rank - 1]);
    if (depth == 0 || depth == 1 || columns == 1 || rows == 0 || columns == 0)
      return {false, 0, "a vector or nothing"};
    unsigned bits = isHalf(element) ? 32 : element.getIntOrFloatBitWidth();
    int64_t panel = panelWidth(features, bits, rows, columns);
    bool isSmall = (depth && *depth < kLeastDepth) || (columns && *columns < kLeastColumns);
    if (isSmall && !always)
      return {false, 0, "too few columns or terms for a tile of registers"};
    if (rank == 2 && depth && columns && constants.isConstant(c))
      return {true, panel, "constant weights, packed into panels once"};
    if (rank == 2 && depth && columns && rows && *rows >= kLeastRowsToPack && (always || isOne(right->strides[1])))
      return {true, panel, "many rows, the right operand packed into panels first"};
    if (always)
      return {true, 0, "by option"};
    if (!depth)
      return {false, 0, "symbolically many terms"};
    if (!isOne(right->strides[rank - 1]))
      return {false, 0, "columns of the right operand don't lie side by side"};
    if (!isOne(left->strides[rank - 1]))
      return {false, 0, "terms of the left operand don't lie side by side"};
    if (rows && *rows < kLeastRowsToCopy)
      return {false, 0, "too few rows to pay for copying the right operand"};
    return {true, 0, "operands lie as the tiles want them"};
  }

  static bool isHalf(Type element) { return element.isBF16() || element.isF16(); }

  /// Whether the target has instructions for products of bf16 or f16.
  bool hasProductsOf(Type element) {
    return element.isBF16() ? hasFeature(features, "+amx-bf16") || hasFeature(features, "+avx512bf16")
                            : hasFeature(features, "+amx-fp16") || hasFeature(features, "+avx512fp16");
  }

  /// A tensor of that shape without values. Sizes are expressions: an op that asks a product's destination for them
  /// would keep it.
  Value emptyLike(ImplicitLocOpBuilder &b, Value tensor, Type element) {
    SymbolicSizes sizes(getOperation());
    SmallVector<OpFoldResult> shape;
    for (int64_t d = 0; d < cast<RankedTensorType>(tensor.getType()).getRank(); ++d) {
      AffineExpr size = sizes.sizeOf(tensor, d);
      shape.push_back(size ? sizes.materialize(b, b.getLoc(), size) : tensor::getMixedSize(b, b.getLoc(), tensor, d));
    }
    return tensor::EmptyOp::create(b, shape, element);
  }

  /// The tensor's elements in another float type.
  Value converted(ImplicitLocOpBuilder &b, Value tensor, Type element) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (type.getElementType() == element)
      return tensor;
    Value empty = emptyLike(b, tensor, element);
    SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(type.getRank()));
    SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
    bool widens = element.getIntOrFloatBitWidth() > type.getElementTypeBitWidth();
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
      Value result = widens ? arith::ExtFOp::create(nested, loc, element, args[0]).getResult()
                            : arith::TruncFOp::create(nested, loc, element, args[0]).getResult();
      linalg::YieldOp::create(nested, loc, result);
    };
    return linalg::GenericOp::create(b, TypeRange{empty.getType()}, ValueRange{tensor}, ValueRange{empty}, maps,
                                     iterators, body)
        .getResult(0);
  }

  void makeContraction(Operation *op, const Choice &choice) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    // Half precision is added up in f32, and converted where tiles are copied anyway.
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    Type sums = isHalf(element) ? Type(b.getF32Type()) : element;
    bool isBatched = isa<linalg::BatchMatmulOp>(op);
    unsigned dims = isBatched ? 4 : 3;
    SmallVector<AffineExpr> batch;
    if (isBatched)
      batch.push_back(b.getAffineDimExpr(0));
    AffineExpr m = b.getAffineDimExpr(dims - 3), n = b.getAffineDimExpr(dims - 2), k = b.getAffineDimExpr(dims - 1);
    auto map = [&](std::initializer_list<AffineExpr> exprs) {
      SmallVector<AffineExpr> all(batch);
      llvm::append_range(all, exprs);
      return AffineMap::get(dims, 0, all, b.getContext());
    };
    Value left = converted(b, op->getOperand(0), sums);
    Value right = op->getOperand(1);
    AffineMap rightMap = map({k, n});
    if (choice.panel) {
      right = pack(b, right, sums, choice.panel);
      rightMap = map({n.floorDiv(choice.panel), k, n % choice.panel});
    }
    Value init = cast<linalg::LinalgOp>(op).getDpsInits()[0];
    if (isHalf(element)) {
      right = converted(b, right, sums);
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(sums));
      Value empty = emptyLike(b, init, sums);
      init = linalg::FillOp::create(b, ValueRange{zero}, ValueRange{empty}).getResult(0);
    }
    Value result = contraction(b, left, right, init, {map({m, k}), rightMap, map({m, n})}, dims, 1, choice.reason);
    if (isHalf(element))
      passUnrounded(op, result);
    op->replaceAllUsesWith(ValueRange{converted(b, result, element)});
    op->erase();
  }

  /// What the product's own node adds to it (addmm, linear) is added before rounding, as in eager.
  static void passUnrounded(Operation *op, Value sums) {
    Type type = getElementTypeOrSelf(sums.getType());
    for (OpOperand &use : llvm::make_early_inc_range(op->getResult(0).getUses())) {
      auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
      if (!reader || reader.getLoc() != op->getLoc() || !reader.isDpsInput(&use))
        continue;
      BlockArgument argument = reader.getMatchingBlockArgument(&use);
      bool isWidened = llvm::all_of(argument.getUsers(), [&](Operation *user) {
        return isa<arith::ExtFOp>(user) && user->getResult(0).getType() == type;
      });
      if (!isWidened)
        continue;
      for (Operation *widening : llvm::make_early_inc_range(argument.getUsers())) {
        widening->getResult(0).replaceAllUsesWith(argument);
        widening->erase();
      }
      argument.setType(type);
      use.set(sums);
    }
  }

  /// [K, N] as panels [N / width, K, width].
  Value pack(ImplicitLocOpBuilder &b, Value matrix, Type element, int64_t width) {
    Value &packed = packedOf[{matrix, width}];
    if (packed)
      return packed;
    // Behind the matrix, so that other products can share the panels.
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(matrix);
    return packed = packPanels(b, converted(b, matrix, element), 1, {0}, width);
  }

  void callLibrary(Operation *op, const Choice &choice) {
    OpBuilder b(op);
    linalg::FillOp fill = zeroFill(cast<linalg::LinalgOp>(op).getDpsInits()[0]);
    Attribute operands[] = {OperandAttr::get(&getContext(), 0), OperandAttr::get(&getContext(), 1)};
    // The result lies in memory of ours, which the launcher passes as `out`.
    auto call = AtenCallOp::create(
        b, op->getLoc(), op->getResultTypes(), b.getStringAttr(isa<linalg::MatmulOp>(op) ? "aten::mm" : "aten::bmm"),
        b.getStringAttr("out"), b.getStringAttr("library"), op->getOperands().take_front(2), b.getArrayAttr(operands),
        DictionaryAttr(), b.getStringAttr("contraction: " + choice.reason), ArrayAttr(), ArrayAttr(), ArrayAttr(),
        UnitAttr());
    // The sizes of a dynamic result are those of the destination it replaces.
    SmallVector<Value> sizes;
    if (Operation *empty = fill.getOutputs()[0].getDefiningOp())
      sizes.append(empty->operand_begin(), empty->operand_end());
    call.getOperandsMutable().append(sizes);
    op->replaceAllUsesWith(call);
    op->erase();
  }

  llvm::DenseMap<std::pair<Value, int64_t>, Value> packedOf;
};

} // namespace
} // namespace accel
