#include "runtime/Layout.h"

#include "runtime/ArenaLayout.h"
#include "runtime/BlockPool.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>

namespace accel::runtime {
namespace {

/// From this size on a tensor's memory comes from the pool: below, PyTorch's allocator is as fast,
/// and the C library keeps the pages.
constexpr int64_t kPooledBytes = int64_t(1) << 20;

std::string nameValue(int value) { return "plan: values[" + std::to_string(value) + "]"; }

int64_t measureBytes(const Placement &place) {
  return static_cast<int64_t>(
      at::detail::computeStorageNbytes(place.sizes, place.strides, static_cast<size_t>(place.itemBytes)));
}

} // namespace

Layout::Layout(const Program &program, const int64_t *symbols) {
  const std::vector<ValueSpec> &values = program.plan.values;
  size_t numDims = 0;
  for (const ValueSpec &value : values)
    numDims += value.tensor.sizes.size();
  dims.reserve(2 * numDims); // placements point into it
  placements.reserve(values.size());
  for (size_t v = 0; v < values.size(); ++v)
    place(program, static_cast<int>(v), symbols);
  placeArena(program);
}

void Layout::place(const Program &program, int value, const int64_t *symbols) {
  const ValueSpec &spec = program.plan.values[value];
  size_t rank = spec.tensor.sizes.size();
  const int64_t *begin = dims.data() + dims.size();
  for (const auto *list : {&spec.tensor.sizes, &spec.tensor.strides})
    for (const SizeExpr &expr : *list) {
      dims.push_back(expr.evaluate(symbols));
      if (dims.back() < 0)
        throw PlanError(nameValue(value) + ": a size or stride is " + std::to_string(dims.back()));
    }

  Placement place{};
  place.sizes = {begin, rank};
  place.strides = {begin + rank, rank};
  place.dtype = spec.tensor.dtype;
  place.itemBytes = static_cast<int64_t>(c10::elementSize(spec.tensor.dtype));
  place.bytes = measureBytes(place);
  place.root = program.live.root[value];
  if (spec.kind != ValueSpec::Kind::View) {
    place.reach = place.bytes;
    placements.push_back(place);
    return;
  }

  int64_t elements = spec.offset.evaluate(symbols), shift = 0;
  bool overflow = __builtin_mul_overflow(elements, place.itemBytes, &shift) ||
                  __builtin_add_overflow(placements[spec.source].offset, shift, &place.offset);
  Placement &root = placements[place.root];
  bool owned = program.plan.values[place.root].kind == ValueSpec::Kind::Arena ||
               program.plan.values[place.root].kind == ValueSpec::Kind::Output;
  // An input or a result may be a window on a larger storage, so its views are checked in the call.
  bool leaves = place.bytes > 0 && owned && place.offset + place.bytes > root.bytes;
  if (overflow || place.offset < 0 || leaves)
    throw PlanError(nameValue(value) + ": a view of " + std::to_string(place.bytes) + " bytes at byte " +
                    std::to_string(place.offset) + " leaves value " + std::to_string(place.root) + ", which has " +
                    std::to_string(root.bytes));
  if (place.bytes > 0)
    root.reach = std::max(root.reach, place.offset + place.bytes);
  placements.push_back(place);
}

void Layout::placeArena(const Program &program) {
  std::vector<int> values;
  std::vector<ArenaBuffer> buffers;
  for (size_t v = 0; v < placements.size(); ++v) {
    bool isUsed = program.live.firstUse[v] != Liveness::kNever;
    if (program.plan.values[v].kind != ValueSpec::Kind::Arena || !isUsed)
      continue;
    values.push_back(static_cast<int>(v));
    buffers.push_back({placements[v].bytes, program.live.firstUse[v], program.live.lastUse[v]});
  }
  ArenaLayout layout = layoutArena(buffers);
  arena = layout.bytes;
  for (size_t i = 0; i < values.size(); ++i)
    placements[values[i]].inArena = layout.offsets[i];
}

bool stridesAgree(c10::IntArrayRef sizes, c10::IntArrayRef a, c10::IntArrayRef b) {
  if (a == b)
    return true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0)
      return true;
  }
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 && a[i] != b[i])
      return false;
  return true;
}

at::Tensor makeTensor(const c10::Storage &storage, const Placement &place, int64_t byteOffset) {
  if (byteOffset % place.itemBytes != 0)
    throw PlanError("plan: a view of " + std::string(c10::toString(place.dtype)) + " starts at byte " +
                    std::to_string(byteOffset));
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(place.dtype));
  c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(place.sizes, place.strides);
  impl->set_storage_offset(byteOffset / place.itemBytes);
  return tensor;
}

at::Tensor allocateTensor(const Placement &place) {
  if (place.bytes < kPooledBytes)
    return at::Tensor(at::detail::empty_strided_cpu(place.sizes, place.strides, place.dtype));
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), place.bytes,
                                                       BlockPool::process().allocate(static_cast<size_t>(place.bytes)),
                                                       c10::GetCPUAllocator(),
                                                       /*resizable=*/true);
  return makeTensor(c10::Storage(std::move(storage)), place, 0);
}

} // namespace accel::runtime
