#include "passes/schedule/TileConfigs.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "passes/schedule/ContractionNest.h"
#include "passes/schedule/Registers.h"

using namespace mlir;

namespace accel {
namespace {

/// Elements of a pointwise loop that one unit of parallel work takes: 16 KiB of f32, half of a usual L1 cache.
constexpr int64_t kBlock = 4096;
/// Elements that a unit should have at least: finding out where it starts costs as much as some tens of them.
constexpr int64_t kUnit = 1024;
/// So many times the elements where rows are done several at a time, for these take less time.
constexpr int64_t kTiledRows = 8;
/// Tile of a transposition: rows by elements of the vector loop. A cache line of 16 f32 is read whole while it is in
/// the L1 cache: 256 lines are 16 KiB.
constexpr int64_t kTransposeRows = 16, kTransposeBlock = 256;
/// Bytes of A that share a contraction's unit. More than an L2 cache holds: A is read along its rows, which the
/// processor foresees, while each further block of rows reads all of B again, from memory where B is a layer's weights.
/// Measured with weights that no cache held, products of 128 to 1024 rows and 768 to 3072 terms take 2 to 9 % longer at
/// 896 KiB.
constexpr int64_t kBlockBytes = 4 << 20;
/// Units that a contraction should have at least, for threads to share, where it has tiles enough.
constexpr int64_t kUnits = 16;
/// Query rows of an attention's unit and keys of one step: the scores of 32 rows by 128 keys are 16 KiB of f32.
constexpr int64_t kQueryRows = 64, kKeys = 128;
/// Elements worth waking a thread for: about 10 µs of memory traffic at 10 GB/s.
constexpr int64_t kGrain = 16384;

bool isConstant(AffineExpr expr, int64_t value) {
  auto constant = dyn_cast_or_null<AffineConstantExpr>(expr);
  return constant && constant.getValue() == value;
}

/// Whether an access is made once for each element of a row, and not once for the row.
bool isInRow(const KernelLoops &loops, const Access &access) {
  return llvm::any_of(ArrayRef(access.strides).drop_front(loops.numParallel()),
                      [](AffineExpr stride) { return !isConstant(stride, 0); });
}

/// How well a loop suits vector lanes: contiguous accesses count for it, strided ones against it, stores twice. Where
/// there are rows, what happens once for a row decides only between equals.
int64_t contiguity(const KernelLoops &loops, unsigned loop) {
  constexpr int64_t kInRow = 1024;
  int64_t score = 0;
  for (const Access &access : loops.accesses()) {
    AffineExpr stride = access.strides[loop];
    int64_t weight = (access.result >= 0 ? 2 : 1) * (isInRow(loops, access) ? kInRow : 1);
    if (isConstant(stride, 0))
      continue;
    if (stride)
      score += isConstant(stride, 1) ? weight : -weight;
  }
  return score;
}

class Chooser {
public:
  Chooser(MLIRContext *context, StringRef features) : context(context), features(features) {}

  TileConfigAttr choose(KernelOp kernel) {
    if (AttentionOp attention = attentionOf(kernel))
      return chooseAttention(attention);
    // Scans and scatters find their loops themselves.
    if (kernel.ownOp()) {
      int64_t vector = nativeVectorBits(features) / 32;
      return TileConfigAttr::get(context, -1, vector, vector, 1, kGrain, 1);
    }
    KernelLoops loops(kernel);
    if (std::optional<ContractionNest> nest = contractionNest(loops))
      return chooseTile(loops, *nest);
    int64_t best = -1, bestScore = 0;
    for (unsigned l = 0; l < loops.loops().size(); ++l) {
      int64_t score = contiguity(loops, l);
      // Later loops are the inner ones; of equals the innermost wins.
      if (best < 0 || score >= bestScore)
        best = l, bestScore = score;
    }
    if (best < 0)
      return TileConfigAttr::get(context, -1, 1, 1, 1, kGrain, 1);
    const NestLoop &loop = loops.loops()[best];
    bool reduces = loops.numParallel() < loops.loops().size();
    // Four registers a value hide the latency of a reduction; calls spill every register, so there one is best. Inline
    // mathematics needs registers for itself, and has enough to do beside a reduction.
    int64_t registers = callsMathematics(kernel) ? 1 : reduces && !inlinesMathematics(kernel) ? 4 : 2;
    int64_t vector = nativeVectorBits(features) / 32 * registers;
    if (auto size = dyn_cast<AffineConstantExpr>(loop.size))
      vector = std::min<int64_t>(vector, llvm::PowerOf2Ceil(std::max<int64_t>(size.getValue(), 1)));
    int64_t block = loop.isRow ? vector : reduces ? vector : std::max(kBlock, vector);
    int64_t rows = chooseRows(loops, best);
    if (!reduces && transposes(loops, best)) {
      block = std::max(kTransposeBlock, vector);
      rows = std::max(kTransposeRows, rows);
    }
    if (reduces && !loop.isRow)
      if (std::optional<int64_t> size = rowsThatShare(loops, best)) {
        // Two registers of lanes by as many rows as leave some registers for what they share.
        bool isWide = nativeVectorBits(features) == 512;
        vector = std::min<int64_t>(vector, isWide ? 32 : 16);
        int64_t count = std::max<int64_t>(*size, 1),
                tile = llvm::divideCeil(count, llvm::divideCeil(count, isWide ? 8 : 4));
        int64_t tiles = std::max<int64_t>(1, std::min(*size, kTiledRows * rows) / tile);
        return TileConfigAttr::get(context, best, vector, vector, tiles * tile, kGrain, tile);
      }
    return TileConfigAttr::get(context, best, vector, block, rows, kGrain, 1);
  }

private:
  /// The size of the innermost parallel loop beside the vector loop, if a row is run over once, for a reduction, and
  /// some of its elements are the same for all iterations of that loop.
  static std::optional<int64_t> rowsThatShare(const KernelLoops &loops, int64_t vectorLoop) {
    int64_t other = innermostOther(loops, vectorLoop);
    auto size = other < 0 ? AffineConstantExpr() : dyn_cast<AffineConstantExpr>(loops.loops()[other].size);
    auto reductions = llvm::count_if(loops.kernel().getBody().getOps<linalg::LinalgOp>(),
                                     [](linalg::LinalgOp op) { return op.getNumReductionLoops() > 0; });
    bool storesInRow = false, shares = false;
    for (const Access &access : loops.accesses()) {
      if (!size || !isInRow(loops, access))
        continue;
      storesInRow |= access.result >= 0;
      shares |= isConstant(access.strides[other], 0);
    }
    return size && reductions == 1 && shares && !storesInRow ? std::optional(size.getValue()) : std::nullopt;
  }

  /// As many accumulators as registers hold beside a row of B and one element of A.
  TileConfigAttr chooseTile(const KernelLoops &loops, const ContractionNest &nest) {
    auto constantSize = [&](int64_t loop) -> std::optional<int64_t> {
      return loop < 0 ? std::optional<int64_t>(1) : loops.loops()[loop].constantSize();
    };
    unsigned bits = getElementTypeOrSelf(nest.op->getResult(0).getType()).getIntOrFloatBitWidth();
    std::optional<int64_t> rows = 1;
    for (int64_t loop : nest.rows)
      if (rows)
        rows = constantSize(loop) ? std::optional(*rows * *constantSize(loop)) : std::nullopt;
    int64_t lanes = nativeVectorBits(features) / bits;
    int64_t vector = nest.panel ? nest.panel : panelWidth(features, bits, rows, constantSize(nest.n));
    int64_t registers = nativeVectorBits(features) == 512 ? 32 : 16, perRow = std::max<int64_t>(1, vector / lanes);
    int64_t tile = std::max<int64_t>(1, (registers - 1 - perRow) / perRow);
    // Tiles of equal height.
    if (rows)
      tile = llvm::divideCeil(*rows, llvm::divideCeil(*rows, tile));
    int64_t depth = 1;
    for (int64_t k : nest.k)
      depth *= constantSize(k).value_or(1024);
    int64_t most = std::max<int64_t>(1, kBlockBytes / (bits / 8) / depth / tile);
    if (!rows)
      return TileConfigAttr::get(context, nest.n, vector, vector, most * tile, kGrain, tile);
    int64_t tiles = llvm::divideCeil(*rows, tile), others = llvm::divideCeil(constantSize(nest.n).value_or(1), vector);
    for (int64_t loop : nest.outer)
      others *= constantSize(loop).value_or(1);
    most = std::max<int64_t>(1, std::min(most, tiles * others / kUnits));
    int64_t block = evenShare(tiles, most) * tile;
    return TileConfigAttr::get(context, nest.n, vector, vector, block, kGrain, tile);
  }

  /// Two registers of query rows, or one or half of one where there are no more rows, by as many sums as the other
  /// registers hold.
  TileConfigAttr chooseAttention(AttentionOp op) {
    auto query = cast<RankedTensorType>(op.getQuery().getType());
    int64_t bits = query.getElementType().isF64() ? 64 : 32, lanes = nativeVectorBits(features) / bits;
    int64_t size = query.getDimSize(2), columns = cast<RankedTensorType>(op.getKey().getType()).getDimSize(2);
    bool isStatic = !ShapedType::isDynamic(size);
    int64_t perRow = isStatic && size <= lanes ? 1 : 2, vector = perRow * lanes, rows = kQueryRows;
    if (isStatic && size <= lanes / 2 && lanes > 4)
      vector = lanes / 2;
    if (isStatic) {
      int64_t blocks = llvm::divideCeil(std::max<int64_t>(size, 1), kQueryRows);
      rows = llvm::alignTo(llvm::divideCeil(std::max<int64_t>(size, 1), blocks), vector);
    }
    int64_t block = std::max(kKeys, vector);
    if (!ShapedType::isDynamic(columns))
      block = std::min<int64_t>(block, llvm::alignTo(std::max<int64_t>(columns, 1), vector));
    int64_t registers = nativeVectorBits(features) == 512 ? 32 : 16;
    int64_t tile = (registers - 1 - perRow) / perRow / 2 * 2;
    return TileConfigAttr::get(context, -1, vector, block, rows, kGrain, tile);
  }

  /// Of all numbers up to `most` and not below half of it the one that leaves the last share fullest: threads get as
  /// many shares each, so they should be equal.
  static int64_t evenShare(int64_t count, int64_t most) {
    if (count <= most)
      return count;
    int64_t best = most;
    auto missing = [&](int64_t share) { return llvm::divideCeil(count, share) * share - count; };
    for (int64_t share = most; share >= std::max<int64_t>(1, most / 2); --share)
      if (missing(share) < missing(best))
        best = share;
    return best;
  }

  /// The innermost parallel loop beside the vector loop; -1 if there is none.
  static int64_t innermostOther(const KernelLoops &loops, int64_t vectorLoop) {
    int64_t other = -1;
    for (int64_t l = 0; l < int64_t(loops.numParallel()); ++l)
      if (l != vectorLoop)
        other = l;
    return other;
  }

  /// Whether a tensor is contiguous along the innermost loop beside the vector loop instead of along that.
  static bool transposes(const KernelLoops &loops, int64_t vectorLoop) {
    int64_t other = innermostOther(loops, vectorLoop);
    return other >= 0 && llvm::any_of(loops.accesses(), [&](const Access &access) {
             AffineExpr along = access.strides[vectorLoop];
             return along && !isConstant(along, 0) && !isConstant(along, 1) && isConstant(access.strides[other], 1);
           });
  }

  /// As many iterations of the innermost other parallel loop as make a unit of work large enough.
  static int64_t chooseRows(const KernelLoops &loops, int64_t vectorLoop) {
    int64_t inner = 1;
    for (auto [l, loop] : llvm::enumerate(loops.loops())) {
      if (!loop.isRow && int64_t(l) != vectorLoop)
        continue;
      auto size = dyn_cast<AffineConstantExpr>(loop.size);
      if (!size)
        return 1; // a dynamic row counts as a long one
      inner *= std::max<int64_t>(size.getValue(), 1);
    }
    return std::max<int64_t>(1, kUnit / inner);
  }

  MLIRContext *context;
  StringRef features;
};

} // namespace

TileConfigAttr chooseTileConfig(KernelOp kernel) {
  return Chooser(kernel.getContext(), kernel.getTarget()->getFeatures()).choose(kernel);
}

} // namespace accel
