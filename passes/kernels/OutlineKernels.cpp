#include "passes/kernels/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "passes/kernels/Layouts.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_OUTLINEKERNELSPASS
#include "passes/kernels/Passes.h.inc"

namespace {

/// An FX node that a location leads back to.
struct Origin {
  StringRef node, target;
  std::string source;
};

void collectOrigins(Location loc, SmallVectorImpl<Origin> &origins) {
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location inner : fused.getLocations())
      collectOrigins(inner, origins);
    return;
  }
  auto node = dyn_cast<NameLoc>(loc);
  auto target = node ? dyn_cast<NameLoc>(node.getChildLoc()) : NameLoc();
  if (!target)
    return;
  if (llvm::any_of(origins, [&](Origin &o) { return o.node == node.getName().getValue(); }))
    return;
  std::string source;
  if (auto file = dyn_cast<FileLineColLoc>(target.getChildLoc()))
    source = (file.getFilename().getValue() + ":" + Twine(file.getLine())).str();
  origins.push_back({node.getName().getValue(), target.getName().getValue(), source});
}

/// The names of up to three of the ops, for people who read profiles: `add_native_layer_norm`.
std::string baseName(ArrayRef<Origin> origins) {
  SmallVector<StringRef> names;
  for (const Origin &origin : origins) {
    StringRef op = origin.target.split('.').second.split('.').first;
    op = op.ltrim('_').rtrim('_');
    if (!op.empty() && !llvm::is_contained(names, op))
      names.push_back(op);
  }
  std::string name;
  for (StringRef op : ArrayRef(names).take_front(3))
    name += op.str() + "_";
  return name.empty() ? "kernel_" : name;
}

/// Outlines one fusion.
class Outliner {
public:
  Outliner(FusionOp fusion, Layouts &layouts) : fusion(fusion), layouts(layouts), sizes(layouts.symbolicSizes()) {}

  FailureOr<KernelOp> outline(OpBuilder &moduleBuilder) {
    collectCaptures();
    MLIRContext *ctx = fusion.getContext();
    OpBuilder b(ctx);
    SmallVector<Type> argTypes, resultTypes(fusion.getResultTypes());
    SmallVector<Attribute> argAttrs, resultAttrs;
    auto layoutAttrs = [&](Value tensor, SmallVectorImpl<Attribute> &attrs) -> LogicalResult {
      std::optional<Placement> placement = layouts.placementOf(tensor);
      if (!placement)
        return fusion.emitOpError() << (llvm::is_contained(sizes.sizesOf(tensor), AffineExpr())
                                            ? "has a tensor of a size that no index argument gives"
                                            : "reads a tensor that is not in memory in the layout it needs");
      attrs.push_back(b.getDictionaryAttr(b.getNamedAttr(kLayoutAttr, layoutOf(*placement))));
      return success();
    };
    for (Value tensor : tensors) {
      argTypes.push_back(tensor.getType());
      if (failed(layoutAttrs(tensor, argAttrs)))
        return failure();
    }
    for (Value result : fusion.getResults())
      if (failed(layoutAttrs(result, resultAttrs)))
        return failure();
    unsigned numIndices = symbols.size() + opaque.size();
    argTypes.append(numIndices, b.getIndexType());
    argAttrs.append(numIndices, b.getDictionaryAttr({}));

    auto kernel = KernelOp::create(moduleBuilder, fusion.getLoc(), b.getStringAttr("kernel"),
                                   TypeAttr::get(b.getFunctionType(argTypes, resultTypes)), b.getArrayAttr(argAttrs),
                                   b.getArrayAttr(resultAttrs), fusion.getParallelAttr(), fusion.getRowsAttr(),
                                   TargetAttr(), TileConfigAttr());
    kernel.getBody().takeBody(fusion.getBody());
    Block &body = kernel.getBody().front();
    for (Type type : argTypes)
      body.addArgument(type, fusion.getLoc());
    replaceCaptures(kernel);
    return kernel;
  }

  SmallVector<Value> launchOperands(ArrayRef<Value> functionSymbols) {
    SmallVector<Value> operands(tensors.begin(), tensors.end());
    for (unsigned symbol : symbols)
      operands.push_back(functionSymbols[symbol]);
    llvm::append_range(operands, opaque);
    return operands;
  }

private:
  static bool isConstant(Value value) { return matchPattern(value, m_Constant()); }

  void collectCaptures() {
    for (Value result : fusion.getResults())
      if (auto placement = layouts.placementOf(result))
        collectSymbols(*placement);
    fusion.getBody().walk([&](Operation *op) {
      for (Value operand : op->getOperands()) {
        if (fusion.getBody().isAncestor(operand.getParentRegion()) || isConstant(operand))
          continue;
        if (operand.getType().isIndex()) {
          if (AffineExpr expr = sizes.exprOf(operand))
            collectSymbols(expr);
          else
            opaque.insert(operand);
        } else if (tensors.insert(operand)) {
          if (auto placement = layouts.placementOf(operand))
            collectSymbols(*placement);
        }
      }
    });
    llvm::sort(symbols);
  }

  void collectSymbols(const Placement &placement) {
    for (AffineExpr expr : placement.sizes)
      collectSymbols(expr);
    for (AffineExpr expr : placement.strides)
      collectSymbols(expr);
  }
  void collectSymbols(AffineExpr expr) {
    expr.walk([&](AffineExpr e) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(e); symbol && !llvm::is_contained(symbols, symbol.getPosition()))
        symbols.push_back(symbol.getPosition());
    });
  }

  /// The function's symbols as the kernel's.
  AffineExpr renumber(AffineExpr expr) {
    SmallVector<AffineExpr> replacements(sizes.numSymbols(), getAffineConstantExpr(0, fusion.getContext()));
    for (auto [i, symbol] : llvm::enumerate(symbols))
      replacements[symbol] = getAffineSymbolExpr(i, fusion.getContext());
    return expr.replaceSymbols(replacements);
  }

  LayoutAttr layoutOf(const Placement &placement) {
    MLIRContext *ctx = fusion.getContext();
    auto map = [&](ArrayRef<AffineExpr> exprs) {
      SmallVector<AffineExpr> mapped;
      for (AffineExpr expr : exprs)
        mapped.push_back(normalize(renumber(expr)));
      return AffineMapAttr::get(AffineMap::get(0, symbols.size() + opaque.size(), mapped, ctx));
    };
    return LayoutAttr::get(ctx, map(placement.sizes), map(placement.strides));
  }

  void replaceCaptures(KernelOp kernel) {
    Block &body = kernel.getBody().front();
    OpBuilder b = OpBuilder::atBlockBegin(&body);
    ValueRange args = body.getArguments();
    ValueRange indices = args.drop_front(tensors.size()).take_front(symbols.size());
    llvm::DenseMap<Value, Value> map;
    for (auto [i, tensor] : llvm::enumerate(tensors))
      map[tensor] = args[i];
    for (auto [i, value] : llvm::enumerate(opaque))
      map[value] = args[tensors.size() + symbols.size() + i];
    kernel.getBody().walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands()) {
        if (kernel.getBody().isAncestor(operand.get().getParentRegion()))
          continue;
        Value &inside = map[operand.get()];
        if (!inside && isConstant(operand.get())) {
          inside = b.clone(*operand.get().getDefiningOp())->getResult(0);
        } else if (!inside) {
          AffineExpr expr = normalize(renumber(sizes.exprOf(operand.get())));
          if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
            inside = indices[symbol.getPosition()];
          else
            inside = affine::makeComposedAffineApply(b, kernel.getLoc(), AffineMap::get(0, symbols.size(), expr),
                                                     getAsOpFoldResult(indices));
        }
        operand.set(inside);
      }
    });
  }

  FusionOp fusion;
  Layouts &layouts;
  SymbolicSizes &sizes;
  llvm::SetVector<Value> tensors, opaque;
  SmallVector<unsigned> symbols;
};

struct OutlineKernels : impl::OutlineKernelsPassBase<OutlineKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<KernelOp> known;
    unsigned before = 0;
    for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      Layouts layouts(func);
      // Layouts are read off the whole function before any of it changes.
      SmallVector<FusionOp> fusions(func.getOps<FusionOp>());
      for (FusionOp fusion : fusions)
        for (Value result : fusion.getResults())
          (void)layouts.placementOf(result);
      SmallVector<Value> symbols;
      for (BlockArgument arg : func.getArguments())
        if (arg.getType().isIndex())
          symbols.push_back(arg);
      for (FusionOp fusion : fusions) {
        ++before;
        SmallVector<Origin> origins;
        for (Operation &op : fusion.getBody().front())
          if (op.hasAttr(kLoopsAttr) || op.hasTrait<OwnKernel>())
            collectOrigins(op.getLoc(), origins);
        OpBuilder moduleBuilder(func);
        Outliner outliner(fusion, layouts);
        FailureOr<KernelOp> kernel = outliner.outline(moduleBuilder);
        if (failed(kernel))
          return signalPassFailure();
        std::string text;
        llvm::raw_string_ostream stream(text);
        (*kernel)->print(stream, OpPrintingFlags().useLocalScope());
        KernelOp &first = known[text];
        if (first) {
          (*kernel)->erase();
        } else {
          first = *kernel;
          std::string hash = llvm::utohexstr(llvm::xxh3_64bits(text), true, 16).substr(0, 8);
          first.setSymName(baseName(origins) + hash);
          OpBuilder b(func);
          SmallVector<Attribute> nodes;
          for (const Origin &origin : origins)
            nodes.push_back(b.getStrArrayAttr({origin.node, origin.target, origin.source}));
          first->setAttr("accel.origins", b.getArrayAttr(nodes));
        }
        OpBuilder b(fusion);
        auto launch = LaunchOp::create(b, fusion.getLoc(), fusion.getResultTypes(), first.getSymName(),
                                       outliner.launchOperands(symbols));
        // The new results keep the old ones' placement.
        fusion->replaceAllUsesWith(launch);
        for (auto [old, now] : llvm::zip(fusion.getResults(), launch.getResults()))
          layouts.rename(old, now);
        fusion->erase();
      }
    }
    module->setAttr("accel.kernels_before", Builder(&getContext()).getI64IntegerAttr(before));
  }
};

} // namespace
} // namespace accel
