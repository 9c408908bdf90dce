#include "passes/graph/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/graph/ConstantInputs.h"
#include "passes/graph/MemoryOrder.h"
#include "passes/graph/Packing.h"
#include "passes/kernels/Layouts.h"
#include "passes/schedule/Registers.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_CHOOSECONVOLUTIONSPASS
#include "passes/graph/Passes.h.inc"

namespace {

/// With fewer channels than this a run of channels is too short to copy by, and the input is padded in memory instead.
constexpr int64_t kLeastChannelsToCopy = 16;
constexpr int64_t kLeastOutputChannels = 8;

/// A call of aten::convolution, taken apart.
struct Convolution {
  mutable AtenCallOp call;   // MLIR's accessors are not const
  Value input, weight, bias; // bias may be null
  SmallVector<int64_t> stride, padding, dilation;
  bool transposed;
  int64_t groups;
  RankedTensorType inputType, weightType, resultType;

  unsigned spatial() const { return stride.size(); }
  int64_t inputChannels() const { return inputType.getDimSize(1); }
  int64_t outputChannels() const { return weightType.getDimSize(0); }
  bool isDepthwise() const { return groups > 1 && groups == inputChannels() && groups == outputChannels(); }
  bool isPadded() const {
    return llvm::any_of(padding, [](int64_t p) { return p != 0; });
  }
};

std::optional<Convolution> readConvolution(AtenCallOp call) {
  if (call.getName() != "aten::convolution" || call.getNumResults() != 1)
    return std::nullopt;
  ArrayRef<Attribute> args = call.getArgs().getValue();
  auto tensorAt = [&](unsigned i) -> Value {
    auto operand = dyn_cast<OperandAttr>(args[i]);
    return operand ? call.getOperands()[operand.getIndex()] : Value();
  };
  Convolution conv;
  conv.call = call;
  conv.input = tensorAt(0), conv.weight = tensorAt(1), conv.bias = tensorAt(2);
  conv.inputType = cast<RankedTensorType>(conv.input.getType());
  conv.weightType = cast<RankedTensorType>(conv.weight.getType());
  conv.resultType = cast<RankedTensorType>(call.getResult(0).getType());
  unsigned spatial = conv.weightType.getRank() - 2;
  // One number stands for all dimensions.
  auto integers = [&](unsigned i) -> std::optional<SmallVector<int64_t>> {
    SmallVector<int64_t> result;
    auto list = dyn_cast<ArrayAttr>(args[i]);
    if (!list)
      return std::nullopt;
    for (Attribute item : list) {
      auto number = dyn_cast<IntegerAttr>(item);
      if (!number)
        return std::nullopt;
      result.push_back(number.getInt());
    }
    if (result.size() == 1)
      result.resize(spatial, result[0]);
    return result.size() == spatial ? std::optional(result) : std::nullopt;
  };
  auto stride = integers(3), padding = integers(4), dilation = integers(5);
  auto transposed = dyn_cast<BoolAttr>(args[6]);
  auto groups = dyn_cast<IntegerAttr>(args[8]);
  if (!stride || !padding || !dilation || !transposed || !groups || conv.inputType.getRank() != spatial + 2)
    return std::nullopt;
  conv.stride = *stride, conv.padding = *padding, conv.dilation = *dilation;
  conv.transposed = transposed.getValue();
  conv.groups = groups.getInt();
  return conv;
}

/// Builds a convolution of ours in front of the call that it replaces.
class ConvolutionBuilder {
public:
  ConvolutionBuilder(const Convolution &conv, Layouts &layouts, StringRef features)
      : conv(conv), layouts(layouts), features(features), b(conv.call.getLoc(), conv.call), spatial(conv.spatial()),
        element(conv.resultType.getElementType()) {}

  Value build() {
    SmallVector<AffineExpr> sizes = layouts.symbolicSizes().sizesOf(conv.call.getResult(0));
    SmallVector<OpFoldResult> shape = {layouts.symbolicSizes().materialize(b, b.getLoc(), sizes[0])};
    for (unsigned i = 0; i < spatial; ++i)
      shape.push_back(b.getIndexAttr(conv.resultType.getDimSize(i + 2)));
    shape.push_back(b.getIndexAttr(conv.outputChannels()));
    Value empty = tensor::EmptyOp::create(b, shape, element);
    Value sums = conv.isDepthwise() ? depthwise(empty) : dense(empty);
    // [N, pixels..., C] as PyTorch's [N, C, pixels...].
    SmallVector<unsigned> order = {0, spatial + 1};
    for (unsigned i = 0; i < spatial; ++i)
      order.push_back(i + 1);
    Value result = conv.bias ? withBias(sums) : sums;
    return permuted(b, b.getLoc(), result, order);
  }

private:
  /// The input as [N, pixels..., kernel..., C]: a view, of the input itself or of a copy with its channels last.
  Value windows() {
    std::optional<Placement> placement = layouts.placementOf(conv.input);
    AffineExpr one = b.getAffineConstantExpr(1);
    bool channelsLast = placement && (placement->strides[1] == one || conv.inputChannels() == 1);
    bool padsInMemory = conv.isPadded() && (!channelsLast || conv.inputChannels() < kLeastChannelsToCopy);
    Value source = conv.input;
    // Which dimension of the source is which.
    SmallVector<unsigned> pixelDims;
    unsigned channelDim = 1;
    for (unsigned i = 0; i < spatial; ++i)
      pixelDims.push_back(i + 2);
    if (!channelsLast || padsInMemory) {
      source = copyOfInput(padsInMemory);
      for (unsigned i = 0; i < spatial; ++i)
        pixelDims[i] = i + 1;
      channelDim = spatial + 1;
    }
    unsigned rank = 2 * spatial + 2;
    SmallVector<AffineExpr> indices(spatial + 2);
    indices[0] = b.getAffineDimExpr(0);
    indices[channelDim] = b.getAffineDimExpr(rank - 1);
    SmallVector<int64_t> shape = {conv.resultType.getDimSize(0)};
    for (unsigned i = 0; i < spatial; ++i)
      shape.push_back(conv.resultType.getDimSize(i + 2));
    for (unsigned i = 0; i < spatial; ++i) {
      int64_t shift = padsInMemory ? 0 : conv.padding[i];
      AffineExpr pixel = b.getAffineDimExpr(1 + i) * conv.stride[i] - shift;
      if (conv.weightType.getDimSize(i + 2) > 1)
        pixel = pixel + b.getAffineDimExpr(1 + spatial + i) * conv.dilation[i];
      indices[pixelDims[i]] = pixel;
      shape.push_back(conv.weightType.getDimSize(i + 2));
    }
    shape.push_back(conv.inputChannels());
    auto type = RankedTensorType::get(shape, element);
    auto map = AffineMap::get(rank, 0, indices, b.getContext());
    auto view = ViewOp::create(b, type, source, ValueRange(), dynamicBatch(), AffineMapAttr::get(map));
    view.setPadded(conv.isPadded() && !padsInMemory);
    return view;
  }

  SmallVector<Value> dynamicBatch() {
    if (!conv.resultType.isDynamicDim(0))
      return {};
    AffineExpr size = layouts.symbolicSizes().sizesOf(conv.call.getResult(0))[0];
    return {cast<Value>(layouts.symbolicSizes().materialize(b, b.getLoc(), size))};
  }

  /// [N, pixels..., C], with zeros around the pixels if `padded`.
  Value copyOfInput(bool padded) {
    SmallVector<AffineExpr> indices = {b.getAffineDimExpr(0), b.getAffineDimExpr(spatial + 1)};
    SmallVector<int64_t> shape = {conv.inputType.getDimSize(0)};
    for (unsigned i = 0; i < spatial; ++i) {
      int64_t padding = padded ? conv.padding[i] : 0;
      indices.push_back(b.getAffineDimExpr(i + 1) - padding);
      shape.push_back(conv.inputType.getDimSize(i + 2) + 2 * padding);
    }
    shape.push_back(conv.inputChannels());
    auto type = RankedTensorType::get(shape, element);
    auto map = AffineMap::get(spatial + 2, 0, indices, b.getContext());
    auto view = ViewOp::create(b, type, conv.input, ValueRange(), dynamicBatch(), AffineMapAttr::get(map));
    view.setPadded(padded);
    Value empty = tensor::EmptyOp::create(b, type, dynamicBatch());
    return linalg::CopyOp::create(b, ValueRange{view}, ValueRange{empty}).getResult(0);
  }

  Value dense(Value empty) {
    int64_t width = panelWidth(features, element.getIntOrFloatBitWidth(), std::nullopt, conv.outputChannels());
    SmallVector<unsigned> depth;
    for (unsigned i = 0; i < spatial; ++i)
      depth.push_back(i + 2);
    depth.push_back(1);
    Value panels = packPanels(b, conv.weight, 0, depth, width);
    // Loops: N, pixels..., output channels, kernel..., input channels.
    unsigned numLoops = 2 * spatial + 3;
    AffineExpr n = b.getAffineDimExpr(spatial + 1);
    SmallVector<AffineExpr> left, right = {n.floorDiv(width)}, out;
    for (unsigned l = 0; l < spatial + 1; ++l)
      left.push_back(b.getAffineDimExpr(l)), out.push_back(b.getAffineDimExpr(l));
    out.push_back(n);
    for (unsigned l = spatial + 2; l < numLoops; ++l)
      left.push_back(b.getAffineDimExpr(l)), right.push_back(b.getAffineDimExpr(l));
    right.push_back(n % width);
    auto map = [&](ArrayRef<AffineExpr> exprs) { return AffineMap::get(numLoops, 0, exprs, b.getContext()); };
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(element));
    Value init = linalg::FillOp::create(b, ValueRange{zero}, ValueRange{empty}).getResult(0);
    return contraction(b, windows(), panels, init, {map(left), map(right), map(out)}, numLoops, spatial + 1,
                       "convolution with constant weights, packed into panels once");
  }

  /// One kernel per channel: lanes along the channels.
  Value depthwise(Value empty) {
    unsigned rank = 2 * spatial + 2; // N, pixels..., kernel..., C
    // The weights with their channels last.
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> indices = {b.getAffineDimExpr(spatial), b.getAffineConstantExpr(0)};
    for (unsigned i = 0; i < spatial; ++i) {
      shape.push_back(conv.weightType.getDimSize(i + 2));
      indices.push_back(b.getAffineDimExpr(i));
    }
    shape.push_back(conv.outputChannels());
    Value turned = ViewOp::create(b, RankedTensorType::get(shape, element), conv.weight, ValueRange(), ValueRange(),
                                  AffineMapAttr::get(AffineMap::get(spatial + 1, 0, indices, b.getContext())));
    Value weights = linalg::CopyOp::create(b, ValueRange{turned},
                                           ValueRange{tensor::EmptyOp::create(b, shape, element).getResult()})
                        .getResult(0);
    Value input = windows();
    auto inputType = cast<RankedTensorType>(input.getType());
    SmallVector<AffineExpr> kernel;
    for (unsigned l = spatial + 1; l < rank; ++l)
      kernel.push_back(b.getAffineDimExpr(l));
    SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(rank), AffineMap::get(rank, 0, kernel, b.getContext()),
                                   b.getMultiDimIdentityMap(rank)};
    Value init = tensor::EmptyOp::create(b, inputType, dynamicBatch());
    Value products =
        linalg::GenericOp::create(b, TypeRange{inputType}, ValueRange{input, weights}, ValueRange{init}, maps,
                                  SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
                                  [](OpBuilder &nested, Location loc, ValueRange args) {
                                    Value product = arith::MulFOp::create(nested, loc, args[0], args[1]);
                                    linalg::YieldOp::create(nested, loc, product);
                                  })
            .getResult(0);
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(element));
    Value sums = linalg::FillOp::create(b, ValueRange{zero}, ValueRange{empty}).getResult(0);
    SmallVector<int64_t> reduced;
    for (unsigned l = spatial + 1; l + 1 < rank; ++l)
      reduced.push_back(l);
    return linalg::ReduceOp::create(b, ValueRange{products}, ValueRange{sums}, reduced,
                                    [](OpBuilder &nested, Location loc, ValueRange args) {
                                      Value sum = arith::AddFOp::create(nested, loc, args[0], args[1]);
                                      linalg::YieldOp::create(nested, loc, sum);
                                    })
        ->getResult(0);
  }

  Value withBias(Value sums) {
    auto type = cast<RankedTensorType>(sums.getType());
    unsigned rank = type.getRank();
    SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(rank),
                                   AffineMap::get(rank, 0, b.getAffineDimExpr(rank - 1)),
                                   b.getMultiDimIdentityMap(rank)};
    Value init = tensor::EmptyOp::create(b, type, dynamicBatch());
    return linalg::GenericOp::create(b, TypeRange{type}, ValueRange{sums, conv.bias}, ValueRange{init}, maps,
                                     SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
                                     [](OpBuilder &nested, Location loc, ValueRange args) {
                                       Value sum = arith::AddFOp::create(nested, loc, args[0], args[1]);
                                       linalg::YieldOp::create(nested, loc, sum);
                                     })
        .getResult(0);
  }

  const Convolution &conv;
  Layouts &layouts;
  StringRef features;
  ImplicitLocOpBuilder b;
  unsigned spatial;
  Type element;
};

struct ChooseConvolutions : impl::ChooseConvolutionsPassBase<ChooseConvolutions> {
  using ChooseConvolutionsPassBase::ChooseConvolutionsPassBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (constantWeights)
      func->setAttr(kConstantWeightsAttr, UnitAttr::get(&getContext()));
    ConstantInputs constants(func);
    Layouts layouts(func);
    bool any = false;
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
      auto call = dyn_cast<AtenCallOp>(op);
      std::optional<Convolution> conv = call ? readConvolution(call) : std::nullopt;
      if (!conv) {
        if (any)
          followMemoryOrder(&op, layouts);
        continue;
      }
      std::string refusal = refuse(*conv, constants);
      if (!refusal.empty()) {
        call.setReason("convolution: " + refusal);
        continue;
      }
      Value result = ConvolutionBuilder(*conv, layouts, features).build();
      call.getResult(0).replaceAllUsesWith(result);
      call.erase();
      any = true;
    }
  }

  /// Why the library keeps the convolution; empty if it doesn't.
  std::string refuse(const Convolution &conv, ConstantInputs &constants) {
    if (contractions == "library")
      return "contractions are the library's by option";
    Type element = conv.resultType.getElementType();
    if (!element.isF32() && !element.isF64())
      return "the type is the library's";
    if (conv.transposed)
      return "it is transposed";
    if (conv.groups != 1 && !conv.isDepthwise())
      return "several groups of several channels";
    auto isStatic = [](RankedTensorType type, unsigned from) {
      for (unsigned d = from; d < type.getRank(); ++d)
        if (type.isDynamicDim(d) || type.getDimSize(d) == 0)
          return false;
      return true;
    };
    if (!isStatic(conv.inputType, 1) || !isStatic(conv.weightType, 0) || !isStatic(conv.resultType, 1) ||
        conv.resultType.getDimSize(0) == 0)
      return "symbolic or empty sizes";
    if (contractions == "own")
      return "";
    if (!constants.isConstant(conv.weight))
      return "weights that may change with every call";
    if (!conv.isDepthwise() && conv.outputChannels() < kLeastOutputChannels)
      return "too few output channels for a tile of registers";
    return "";
  }
};

} // namespace
} // namespace accel
