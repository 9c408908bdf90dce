#include "passes/schedule/TileConfigs.h"

#include "passes/schedule/ContractionNest.h"
#include "passes/schedule/Registers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace accel {
namespace {

/// A candidate's place in the order of trying: less is better, 1 is about as good as the chosen schedule.
using Cost = double;
/// Candidates that the cost model puts so far behind the chosen schedule are not measured.
constexpr Cost kHopeless = 1.3;
/// Grains worth trying beside the usual one, as its multiples: 10 µs of work for a thread is a guess.
constexpr double kGrains[] = {0.25, 4, 1024};

/// The numbers of a schedule, to be changed one by one.
struct Numbers {
  int64_t vectorLoop, vector, block, rows, grain, tile;

  explicit Numbers(TileConfigAttr config)
      : vectorLoop(config.getVectorLoop()), vector(config.getVector()), block(config.getBlock()),
        rows(config.getRows()), grain(config.getGrain()), tile(config.getTile()) {}

  bool isLegal(bool isAttention) const {
    return vector >= 1 && llvm::isPowerOf2_64(vector) && block >= vector && block % vector == 0 && rows >= 1 &&
           grain >= 1 && tile >= 1 && rows % (isAttention ? vector : tile) == 0;
  }
  TileConfigAttr attribute(MLIRContext *context) const {
    return TileConfigAttr::get(context, vectorLoop, vector, block, rows, grain, tile);
  }
};

class Candidates {
public:
  Candidates(KernelOp kernel, TileConfigAttr chosen)
      : kernel(kernel), chosen(chosen), features(kernel.getTarget()->getFeatures()),
        registers(nativeVectorBits(features) == 512 ? 32 : 16) {}

  SmallVector<TileConfigAttr> best(unsigned limit) {
    if (attentionOf(kernel)) {
      addAttention();
    } else if (!kernel.ownOp()) {
      KernelLoops loops(kernel);
      if (std::optional<ContractionNest> nest = contractionNest(loops))
        addContraction(loops, *nest);
      else
        addLoops(loops);
    }
    for (double factor : kGrains) {
      Numbers n(chosen);
      n.grain = std::max<int64_t>(1, n.grain * factor);
      add(n, 1);
    }
    llvm::stable_sort(found, [](auto &a, auto &b) { return a.second < b.second; });
    SmallVector<TileConfigAttr> result;
    for (auto &[config, cost] : found)
      if (result.size() < limit && cost < kHopeless)
        result.push_back(config);
    return result;
  }

private:
  void add(const Numbers &n, Cost cost) {
    if (!n.isLegal(attentionOf(kernel) != nullptr))
      return;
    TileConfigAttr config = n.attribute(kernel.getContext());
    if (config != chosen && known.insert(config))
      found.push_back({config, cost});
  }

  //===-- Contractions
  //-----------------------------------------------------------------------------------------------------===//

  void addContraction(const KernelLoops &loops, const ContractionNest &nest) {
    unsigned bits = getElementTypeOrSelf(nest.op->getResult(0).getType()).getIntOrFloatBitWidth();
    int64_t lanes = nativeVectorBits(features) / bits;
    std::optional<int64_t> rows = 1, depth = 1;
    for (int64_t loop : nest.rows)
      rows = product(rows, loops.loops()[loop].constantSize());
    for (int64_t loop : nest.k)
      depth = product(depth, loops.loops()[loop].constantSize());
    SmallVector<int64_t> widths = {chosen.getVector()};
    if (!nest.panel && nest.n >= 0)
      widths = {chosen.getVector(), 2 * chosen.getVector(), chosen.getVector() / 2};
    Cost usual = contractionCost(Numbers(chosen), lanes, bits, rows, depth);
    for (int64_t width : widths) {
      int64_t perRow = llvm::divideCeil(std::max<int64_t>(width, 1), lanes);
      for (int64_t tile = 1; tile * perRow + perRow + 1 <= registers; ++tile) {
        // Of the heights that make as many tiles the least wastes least.
        if (rows && tile > 1 && tile != int64_t(llvm::divideCeil(*rows, llvm::divideCeil(*rows, tile))))
          continue;
        Numbers n(chosen);
        n.vector = n.block = width;
        n.tile = tile;
        int64_t most = rows ? llvm::divideCeil(*rows, tile) : 4 * llvm::divideCeil(chosen.getRows(), tile);
        int64_t usualTiles = std::min(most, std::max<int64_t>(1, chosen.getRows() / tile));
        for (int64_t tiles : {usualTiles, usualTiles / 2, usualTiles * 2, usualTiles / 4, usualTiles * 4, most}) {
          n.rows = std::clamp<int64_t>(tiles, 1, most) * tile;
          add(n, contractionCost(n, lanes, bits, rows, depth) / usual);
        }
      }
    }
  }

  static std::optional<int64_t> product(std::optional<int64_t> a, std::optional<int64_t> b) {
    return a && b ? std::optional(*a * *b) : std::nullopt;
  }

  /// Cycles for one row, one column and one term, up to a factor: what the tile's instructions take, and reading B once
  /// for each block of rows.
  Cost contractionCost(const Numbers &n, int64_t lanes, unsigned bits, std::optional<int64_t> rows,
                       std::optional<int64_t> depth) {
    // Sums that hide the latency of adding: 4 cycles on two units, on all x86 processors of the last ten years.
    constexpr double kSums = 8;
    // Bytes of B that arrive in the time of one instruction, an assumption: 24 GB/s at 3 GHz.
    constexpr double kBytes = 8;
    double perRow = llvm::divideCeil(n.vector, lanes), sums = perRow * n.tile;
    double loads = (perRow + n.tile) / 2, cycles = std::max({sums, loads, kSums});
    double made = n.tile;
    if (rows)
      made = double(*rows) / llvm::divideCeil(*rows, n.tile);
    double compute = cycles / (perRow * made);
    double readers = rows ? double(std::min(*rows, n.rows)) : double(n.rows);
    double memory = lanes * bits / 8.0 / kBytes / readers;
    return compute + memory;
  }

  //===-- Attention
  //--------------------------------------------------------------------------------------------------------===//

  void addAttention() {
    for (int64_t vector : {chosen.getVector(), chosen.getVector() * 2, chosen.getVector() / 2})
      for (double rows : {1.0, 0.5, 2.0, 4.0})
        for (double block : {1.0, 2.0, 0.5, 4.0}) {
          Numbers n(chosen);
          int64_t lanes = nativeVectorBits(features) / 32,
                  perRow = llvm::divideCeil(std::max<int64_t>(vector, 1), lanes);
          n.vector = vector;
          n.rows = llvm::alignTo(std::max<int64_t>(1, n.rows * rows), std::max<int64_t>(vector, 1));
          n.block = n.block * block;
          if (vector != chosen.getVector())
            n.tile = std::max<int64_t>(2, (registers - 1 - perRow) / perRow / 2 * 2);
          bool changesOne = (vector != chosen.getVector()) + (rows != 1) + (block != 1) == 1;
          add(n, changesOne ? 1 : 1.1);
        }
  }

  //===-- Loops
  //------------------------------------------------------------------------------------------------------------===//

  void addLoops(const KernelLoops &loops) {
    int64_t loop = chosen.getVectorLoop();
    if (loop < 0)
      return;
    bool isRow = loops.loops()[loop].isRow, reduces = loops.numParallel() < loops.loops().size();
    std::optional<int64_t> size = loops.loops()[loop].constantSize();
    int64_t native = nativeVectorBits(features) / 32;
    for (int64_t vector : {chosen.getVector(), chosen.getVector() / 2, chosen.getVector() * 2, native, 4 * native}) {
      if (vector < 1 || (size && vector > int64_t(llvm::PowerOf2Ceil(*size))))
        continue;
      bool isTiled = reduces && !isRow;
      for (double block : {1.0, 0.25, 4.0})
        for (double rows : {1.0, 0.25, 4.0, 16.0}) {
          Numbers n(chosen);
          n.vector = vector;
          n.block = isRow || isTiled ? vector : llvm::alignTo(std::max<int64_t>(1, n.block * block), vector);
          n.rows = llvm::alignTo(std::max<int64_t>(1, n.rows * rows), n.tile);
          int changes = (vector != chosen.getVector()) + (block != 1) + (rows != 1);
          add(n, changes <= 1 ? 1 : 1.1);
        }
    }
    if (chosen.getTile() > 1)
      for (int64_t tile : {chosen.getTile() / 2, chosen.getTile() * 2, chosen.getTile() + 1, chosen.getTile() - 1}) {
        Numbers n(chosen);
        n.tile = std::max<int64_t>(1, tile);
        n.rows = llvm::alignTo(n.rows, n.tile);
        add(n, 1);
      }
  }

  KernelOp kernel;
  TileConfigAttr chosen;
  StringRef features;
  int64_t registers;
  llvm::SetVector<TileConfigAttr> known;
  SmallVector<std::pair<TileConfigAttr, Cost>> found;
};

} // namespace

SmallVector<TileConfigAttr> candidateTileConfigs(KernelOp kernel, TileConfigAttr chosen, unsigned limit) {
  return Candidates(kernel, chosen).best(limit);
}

} // namespace accel
