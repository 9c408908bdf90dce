// Where the values of a plan lie, for one set of symbol values.

#ifndef ACCEL_RUNTIME_LAYOUT_H
#define ACCEL_RUNTIME_LAYOUT_H

#include "runtime/Program.h"

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <vector>

namespace accel::runtime {

/// Shape and place of a value. `sizes` and `strides` point into the Layout that made it.
struct Placement {
  c10::IntArrayRef sizes;
  c10::IntArrayRef strides;
  c10::ScalarType dtype;
  int64_t itemBytes;
  int64_t bytes;   ///< from the first element to behind the last one; 0 if there is none
  int64_t offset;  ///< bytes from the root's first element to this value's
  int64_t reach;   ///< of a root: bytes from its first element that it and its views touch
  int64_t inArena; ///< of a root in the arena: its offset there, in bytes
  int root;
};

/// All placements of a plan, and the size of its arena.
class Layout {
public:
  /// Evaluates the plan for these symbol values. Throws PlanError if a size is negative or a view
  /// leaves an allocation.
  Layout(const Program &program, const int64_t *symbols);
  Layout(const Layout &) = delete;
  Layout &operator=(const Layout &) = delete;

  const Placement &operator[](int value) const { return placements[value]; }
  int64_t arenaBytes() const { return arena; }

private:
  void place(const Program &program, int value, const int64_t *symbols);
  void placeArena(const Program &program);

  std::vector<int64_t> dims; ///< sizes and strides of all values, one after the other
  std::vector<Placement> placements;
  int64_t arena = 0;
};

/// True if the strides address the same elements: those of dimensions of size 1 don't matter, and
/// none does where there are no elements.
bool stridesAgree(c10::IntArrayRef sizes, c10::IntArrayRef a, c10::IntArrayRef b);

/// Makes a tensor of that shape on `storage`, `byteOffset` bytes after its start.
at::Tensor makeTensor(const c10::Storage &storage, const Placement &place, int64_t byteOffset);

/// Makes an uninitialised CPU tensor of that shape that owns its memory: from the process's block
/// pool where it is large.
at::Tensor allocateTensor(const Placement &place);

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_LAYOUT_H
