/// Loads and stores of scalars and vectors at addresses in elements. `bool` is i1 in values and a byte in memory.
#ifndef ACCEL_CODEGEN_CPU_MEMORYEMITTER_H
#define ACCEL_CODEGEN_CPU_MEMORYEMITTER_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"

namespace accel {

/// The lanes of the vector loop's current iteration.
struct Lanes {
  int64_t count = 1; // 1: no vector loop
  mlir::Value first; // i64 index of lane 0
  mlir::Value mask;  // vector<count x i1>, null where all lanes are in the loop
};

/// i64 arithmetic with constants folded on the spot.
class IndexEmitter {
public:
  explicit IndexEmitter(mlir::ImplicitLocOpBuilder &b) : b(b) {}
  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value c);
  mlir::Value mul(mlir::Value a, mlir::Value c);
  /// The expression's value, symbol k being symbols[k].
  mlir::Value expr(mlir::AffineExpr e, mlir::ValueRange symbols);
  static std::optional<int64_t> constantOf(mlir::Value v);

private:
  mlir::ImplicitLocOpBuilder &b;
};

/// Stores that pass the caches by where `isAligned` (i1; null: never) says that addresses are multiples of `alignment`
/// bytes, a register's size.
struct Stream {
  mlir::Value isAligned;
  unsigned alignment = 0;
};

class MemoryEmitter {
public:
  explicit MemoryEmitter(mlir::ImplicitLocOpBuilder &b) : b(b) {}

  /// Type of a value of `element` in `lanes` lanes; the element itself for one lane.
  static mlir::Type valueType(mlir::Type element, int64_t lanes);
  mlir::Value splat(mlir::Value scalar, int64_t lanes);
  /// vector<lanes x i64> of 0, 1, 2, …
  mlir::Value iota(int64_t lanes);
  /// index + l * stride for lane l.
  mlir::Value laneIndices(mlir::Value index, mlir::Value stride, int64_t lanes);
  /// Lanes whose number is below `n` (i64).
  mlir::Value maskBelow(mlir::Value n, int64_t lanes);

  mlir::Value loadScalar(mlir::Value base, mlir::Value index, mlir::Type element);
  void storeScalar(mlir::Value value, mlir::Value base, mlir::Value index);
  /// Lane l is element index + l * stride. Lanes outside of the mask are zero and not read.
  mlir::Value loadLanes(mlir::Value base, mlir::Value index, mlir::Value stride, mlir::Type element,
                        const Lanes &lanes);
  void storeLanes(mlir::Value value, mlir::Value base, mlir::Value index, mlir::Value stride, const Lanes &lanes,
                  const Stream &stream = {});
  /// Asks for the cache lines of `count` elements from `index` on; `hint` is LLVM's locality, 3 for the nearest cache.
  void prefetchLines(mlir::Value base, mlir::Value index, mlir::Type element, int64_t count, bool isStore,
                     unsigned hint);
  /// Lane l is element indices[l].
  mlir::Value gather(mlir::Value base, mlir::Value indices, mlir::Type element, mlir::Value mask, int64_t lanes);
  /// The other way round; of lanes with one index the last is written.
  void scatter(mlir::Value value, mlir::Value base, mlir::Value indices, mlir::Value mask, int64_t lanes);

private:
  mlir::Type memoryType(mlir::Type element) const;
  mlir::Value fromMemory(mlir::Value value, mlir::Type element);
  mlir::Value toMemory(mlir::Value value);
  mlir::Value address(mlir::Value base, mlir::Value index, mlir::Type memory);
  mlir::Value allLanes(int64_t lanes);
  /// Lane l is element index + l * step: what lies between is read too, and left out.
  mlir::Value loadEvery(int64_t step, mlir::Value base, mlir::Value index, mlir::Type element, const Lanes &lanes);

  mlir::ImplicitLocOpBuilder &b;
};

} // namespace accel

#endif
