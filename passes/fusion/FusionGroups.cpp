#include "passes/fusion/FusionGroups.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/fusion/Contractions.h"

using namespace mlir;

namespace accel {
namespace {

/// A kernel with more ops or tensors than this gains little and costs compile time and registers.
constexpr unsigned kMaxOps = 96, kMaxTensors = 40;

bool isUnit(AffineExpr size) {
  auto constant = dyn_cast_or_null<AffineConstantExpr>(size);
  return constant && constant.getValue() == 1;
}

/// Tensors that a body gathers from: they have to be in memory.
bool gathersFrom(Operation *op, Operation *producer) {
  bool found = false;
  op->walk([&](tensor::ExtractOp extract) {
    Value source = extract.getTensor();
    while (auto view = source.getDefiningOp<ViewOp>())
      source = view.getSource();
    found |= source.getDefiningOp() == producer;
  });
  return found;
}

/// Loops of the group that a result of `op` runs over, by the result's dimensions.
SmallVector<int> resultLoops(Operation *op, ArrayRef<int> loops) {
  SmallVector<unsigned> reduced = reductionDims(op);
  SmallVector<int> result;
  for (auto [d, loop] : llvm::enumerate(loops))
    if (!llvm::is_contained(reduced, d))
      result.push_back(loop);
  return result;
}

bool reduces(Operation *op) { return cast<linalg::LinalgOp>(op).getNumReductionLoops() > 0; }
bool reducesByProducts(Operation *op) { return matchContraction(op).has_value(); }

std::string describe(AffineExpr size) {
  std::string text;
  llvm::raw_string_ostream(text) << size;
  return text;
}

} // namespace

bool isFusable(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || !isa<linalg::GenericOp, linalg::CopyOp, linalg::ReduceOp>(op))
    return false;
  for (Value operand : op->getOperands())
    if (!getElementTypeOrSelf(operand.getType()).isIntOrIndexOrFloat())
      return false;
  if (isa<linalg::ReduceOp>(op) || matchContraction(op))
    return true;
  return linalgOp.getNumReductionLoops() == 0 && linalgOp.getNumDpsInits() == 1 &&
         linalgOp.getMatchingIndexingMap(linalgOp.getDpsInitOperand(0)).isIdentity();
}

bool isCheap(Operation *op) {
  if (cast<linalg::LinalgOp>(op).getNumReductionLoops())
    return false;
  return !op->walk([](Operation *inner) {
              if (isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp,
                      math::CopySignOp>(inner))
                return WalkResult::advance();
              bool expensive = isa_and_nonnull<math::MathDialect>(inner->getDialect()) ||
                               isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemFOp, arith::RemSIOp,
                                   arith::RemUIOp, tensor::ExtractOp>(inner);
              return expensive ? WalkResult::interrupt() : WalkResult::advance();
            }).wasInterrupted();
}

SmallVector<unsigned> reductionDims(Operation *op) {
  SmallVector<unsigned> dims;
  cast<linalg::LinalgOp>(op).getReductionDims(dims);
  return dims;
}

Read readOf(Operation *op, unsigned index) {
  auto linalgOp = cast<linalg::LinalgOp>(op);
  OpOperand &operand = op->getOpOperand(index);
  Read read{operand.get(), linalgOp.getMatchingIndexingMap(&operand)};
  while (auto view = read.value.getDefiningOp<ViewOp>()) {
    if (read.map)
      read.map = view.getSymbols().empty() ? view.getMap().compose(read.map) : AffineMap();
    read.value = view.getSource();
    read.padded |= view.getPadded();
    // Where a padded view leaves its source is counted in that source's indices.
    if (read.padded)
      break;
  }
  if (read.map)
    read.map = simplifyAffineMap(read.map);
  return read;
}

FusionGroups::FusionGroups(Operation *function)
    : block(&function->getRegion(0).front()), sizes(function), constants(function) {
  Operation *lastEffect = nullptr;
  for (auto [i, op] : llvm::enumerate(*block)) {
    order[&op] = i;
    if (auto call = dyn_cast<AtenCallOp>(op); call && call.getEffectsAttr()) {
      previousEffect[&op] = lastEffect;
      lastEffect = &op;
    }
    if (!isFusable(&op))
      continue;
    auto linalgOp = cast<linalg::LinalgOp>(op);
    auto group = std::make_unique<FusionGroup>();
    SmallVector<unsigned> reduced = reductionDims(&op);
    // A dimension's size is that of any operand that a plain dimension indexes.
    SmallVector<AffineExpr> dims(linalgOp.getNumLoops());
    for (OpOperand &operand : op.getOpOperands()) {
      AffineMap map = linalgOp.getMatchingIndexingMap(&operand);
      for (auto [r, expr] : llvm::enumerate(map.getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && !dims[dim.getPosition()])
          dims[dim.getPosition()] = sizes.sizeOf(operand.get(), r);
    }
    SmallVector<int> loops;
    for (auto [d, size] : llvm::enumerate(dims)) {
      if (isUnit(size)) {
        loops.push_back(-1);
        continue;
      }
      loops.push_back(group->sizes.size());
      group->sizes.push_back(size);
      group->isRow.push_back(llvm::is_contained(reduced, d));
    }
    group->ops.insert(&op);
    group->loops[&op] = loops;
    groups[&op] = group.get();
    owned.push_back(std::move(group));
  }
}

FusionVerdict FusionGroups::checkMerged(const FusionGroup &group) {
  if (group.ops.size() > kMaxOps)
    return FusionVerdict::no("the kernel would have more than " + Twine(kMaxOps) + " ops");
  if (llvm::count_if(group.ops, reducesByProducts) > 0 && llvm::count_if(group.ops, reduces) > 1)
    return FusionVerdict::no("a contraction and another reduction");
  llvm::SmallDenseSet<Value> tensors;
  unsigned numRows = llvm::count(group.isRow, true), numLoops = group.sizes.size();
  for (Operation *op : group.ops) {
    ArrayRef<int> loops = group.loops.find(op)->second;
    SmallVector<unsigned> reduced = reductionDims(op);
    unsigned reducedRows = llvm::count_if(reduced, [&](unsigned d) { return loops[d] >= 0; });
    for (unsigned d : reduced)
      if (loops[d] >= 0 && !group.isRow[loops[d]])
        return FusionVerdict::no("it reduces over a loop that is parallel for others");
    if (reducedRows && reducedRows != numRows)
      return FusionVerdict::no("reductions over different dimensions");
    llvm::SmallDenseSet<int> seen;
    unsigned parallelLoops = 0, rowLoops = 0;
    for (int loop : resultLoops(op, loops))
      if (loop >= 0 && seen.insert(loop).second)
        ++(group.isRow[loop] ? rowLoops : parallelLoops);
    bool complete = parallelLoops == numLoops - numRows && (rowLoops == 0 || rowLoops == numRows);
    bool leaves = false;
    for (Operation *user : op->getUsers()) {
      // Through views to the op that reads.
      SmallVector<Operation *> pending = {user};
      while (!pending.empty() && !leaves) {
        Operation *reader = pending.pop_back_val();
        if (isa<ViewOp>(reader))
          llvm::append_range(pending, reader->getUsers());
        else
          leaves = !group.ops.contains(block->findAncestorOpInBlock(*reader));
      }
    }
    if (leaves)
      for (Value result : op->getResults())
        tensors.insert(result);
    if (!complete && leaves)
      return FusionVerdict::no("a value that others need would be written more than once");
    if (!complete && !isCheap(op))
      return FusionVerdict::no("an expensive value would be computed more than once");
    for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands()) {
      Read read = readOf(op, input->getOperandNumber());
      if (!read.value.getDefiningOp() || !group.ops.contains(read.value.getDefiningOp()))
        tensors.insert(read.value);
    }
    for (Operation *producer : group.ops)
      if (producer != op && gathersFrom(op, producer))
        return FusionVerdict::no("it gathers from a value that has to be in memory first");
  }
  if (tensors.size() > kMaxTensors)
    return FusionVerdict::no("the kernel would read and write more than " + Twine(kMaxTensors) + " tensors");
  return FusionVerdict::yes();
}

ConstantInputs::Kind FusionGroups::constness(const FusionGroup &group) {
  using Kind = ConstantInputs::Kind;
  Kind kind = Kind::Nothing;
  for (Operation *op : group.ops) {
    Kind other = constants.kindOf(op->getResult(0));
    if (other == Kind::Varies)
      return other;
    kind = std::max(kind, other);
  }
  return kind;
}

FusionVerdict FusionGroups::canFuse(FusionGroup &producer, FusionGroup &consumer, FusionGroup &merged) {
  ConstantInputs::Kind kinds[] = {constness(producer), constness(consumer)};
  if (llvm::is_contained(kinds, ConstantInputs::Kind::Constant) &&
      llvm::is_contained(kinds, ConstantInputs::Kind::Varies))
    return FusionVerdict::no("weights alone give it, so it is computed once for all calls");
  // Loops of the consumer as loops of the producer, bound by every value that passes between them.
  SmallVector<int> toProducer(consumer.sizes.size(), -1), toConsumer(producer.sizes.size(), -1);
  auto bind = [&](int c, int p) -> FusionVerdict {
    if (toProducer[c] == p && toConsumer[p] == c)
      return FusionVerdict::yes();
    if (toProducer[c] >= 0 || toConsumer[p] >= 0)
      return FusionVerdict::no("it reads the value at two positions");
    if (consumer.sizes[c] != producer.sizes[p])
      return FusionVerdict::no("iteration spaces differ: " + describe(producer.sizes[p]) + " against " +
                               describe(consumer.sizes[c]));
    toProducer[c] = p, toConsumer[p] = c;
    return FusionVerdict::yes();
  };
  auto bindReads = [&](ArrayRef<int> valueLoops, AffineMap map, ArrayRef<int> readerLoops) -> FusionVerdict {
    for (auto [expr, p] : llvm::zip(map.getResults(), valueLoops)) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      int c = dim ? readerLoops[dim.getPosition()] : -1;
      if (!dim && !isa<AffineConstantExpr>(expr))
        return FusionVerdict::no("it reads the value through a slice or a split dimension");
      if ((c < 0) != (p < 0))
        return FusionVerdict::no("it reads a part of the value");
      if (c < 0 && !dim && cast<AffineConstantExpr>(expr).getValue() != 0)
        return FusionVerdict::no("it reads a part of the value");
      if (c >= 0)
        if (FusionVerdict verdict = bind(c, p); !verdict)
          return verdict;
    }
    return FusionVerdict::yes();
  };

  llvm::SmallDenseMap<Value, std::pair<Operation *, AffineMap>> producerReads;
  for (Operation *op : producer.ops)
    for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands()) {
      Read read = readOf(op, input->getOperandNumber());
      if (read.map)
        producerReads.try_emplace(read.value, op, read.map);
    }
  bool direct = false;
  for (Operation *op : consumer.ops)
    for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands()) {
      Read read = readOf(op, input->getOperandNumber());
      Operation *def = read.value.getDefiningOp();
      if (!def || !producer.ops.contains(def))
        continue;
      direct = true;
      if (!read.map)
        return FusionVerdict::no("it reads the value through a view with symbolic offsets");
      if (read.padded)
        return FusionVerdict::no("it reads the value through a padded view");
      if (FusionVerdict verdict = bindReads(resultLoops(def, producer.loops[def]), read.map, consumer.loops[op]);
          !verdict)
        return verdict;
    }
  if (!direct && (llvm::any_of(producer.ops, reducesByProducts) || llvm::any_of(consumer.ops, reducesByProducts)))
    return FusionVerdict::no("a contraction takes in only what it reads and what reads it");
  // Both read the same tensor: loops that index it alike are the same.
  for (Operation *op : consumer.ops)
    for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands()) {
      Read read = readOf(op, input->getOperandNumber());
      auto it = producerReads.find(read.value);
      if (!read.map || it == producerReads.end())
        continue;
      auto &[other, otherMap] = it->second;
      // Through the same map, a split dimension for example, all dimensions are the same.
      AffineMap all = AffineMap::getMultiDimIdentityMap(read.map.getNumDims(), read.map.getContext());
      bool isSame = read.map == otherMap;
      for (auto [mine, theirs] :
           llvm::zip((isSame ? all : read.map).getResults(), (isSame ? all : otherMap).getResults())) {
        auto c = dyn_cast<AffineDimExpr>(mine), p = dyn_cast<AffineDimExpr>(theirs);
        if (!c || !p)
          continue;
        int cl = consumer.loops[op][c.getPosition()], pl = producer.loops[other][p.getPosition()];
        if (cl >= 0 && pl >= 0 && toProducer[cl] < 0 && toConsumer[pl] < 0 && consumer.sizes[cl] == producer.sizes[pl])
          toProducer[cl] = pl, toConsumer[pl] = cl;
      }
      if (!direct && llvm::is_contained(toProducer, -1))
        return FusionVerdict::no("iteration spaces differ");
    }
  // Loops that nothing binds: the same size is the same loop.
  for (int c = int(toProducer.size()) - 1; c >= 0; --c)
    for (int p = int(toConsumer.size()) - 1; p >= 0 && toProducer[c] < 0; --p)
      if (toConsumer[p] < 0 && consumer.sizes[c] == producer.sizes[p])
        toProducer[c] = p, toConsumer[p] = c;
  if (!direct && (llvm::is_contained(toProducer, -1) || llvm::is_contained(toConsumer, -1)))
    return FusionVerdict::no("iteration spaces differ");

  merged = producer;
  for (auto [c, p] : llvm::enumerate(toProducer)) {
    if (p < 0) {
      toProducer[c] = merged.sizes.size();
      merged.sizes.push_back(consumer.sizes[c]);
      merged.isRow.push_back(consumer.isRow[c]);
    } else if (consumer.isRow[c]) {
      merged.isRow[p] = true;
    }
  }
  for (Operation *op : consumer.ops) {
    merged.ops.insert(op);
    SmallVector<int> loops;
    for (int loop : consumer.loops[op])
      loops.push_back(loop < 0 ? -1 : toProducer[loop]);
    merged.loops[op] = loops;
  }
  if (FusionVerdict verdict = checkMerged(merged); !verdict)
    return verdict;
  if (wouldCycle(producer, consumer))
    return FusionVerdict::no("another op runs between the two");
  return FusionVerdict::yes();
}

void FusionGroups::forEachDependency(Operation *op, llvm::function_ref<void(Operation *)> visit) const {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && !op->isAncestor(def) && def->getBlock() == block)
        visit(def);
    }
  });
  if (Operation *previous = previousEffect.lookup(op))
    visit(previous);
}

bool FusionGroups::wouldCycle(FusionGroup &producer, FusionGroup &consumer) {
  // Is there a way from one group to the other through an op that is in neither? Views are looked through, for a fusion
  // has its own copies of them. Siblings need both directions.
  auto reaches = [&](FusionGroup &target, FusionGroup &from) {
    unsigned first = ~0u;
    for (Operation *op : target.ops)
      first = std::min(first, order.lookup(op));
    llvm::DenseSet<Operation *> seen;
    SmallVector<Operation *> pending;
    bool found = false;
    std::function<void(Operation *, bool)> push = [&](Operation *dep, bool direct) {
      if (isa<ViewOp>(dep))
        return forEachDependency(dep, [&](Operation *inner) { push(inner, direct); });
      FusionGroup *group = groups.lookup(dep);
      if (group == &target) {
        found |= !direct;
        return;
      }
      if (group == &from || !seen.insert(dep).second)
        return;
      if (group) {
        for (Operation *member : group->ops) {
          seen.insert(member);
          pending.push_back(member);
        }
      } else if (order.lookup(dep) > first) {
        pending.push_back(dep);
      }
    };
    for (Operation *op : from.ops)
      forEachDependency(op, [&](Operation *dep) { push(dep, true); });
    while (!pending.empty() && !found)
      forEachDependency(pending.pop_back_val(), [&](Operation *dep) { push(dep, false); });
    return found;
  };
  return reaches(producer, consumer) || reaches(consumer, producer);
}

void FusionGroups::merge(FusionGroup &into, FusionGroup &from, FusionGroup merged) {
  for (Operation *op : from.ops)
    groups[op] = &into;
  into = std::move(merged);
  from.ops.clear();
}

bool FusionGroups::fuseProducers() {
  bool changed = false;
  SmallVector<Operation *> ops;
  for (Operation &op : *block)
    if (groups.contains(&op))
      ops.push_back(&op);
  for (Operation *op : ops)
    for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands()) {
      Operation *def = readOf(op, input->getOperandNumber()).value.getDefiningOp();
      FusionGroup *producer = def ? groups.lookup(def) : nullptr, *consumer = groups.lookup(op);
      if (!producer || producer == consumer)
        continue;
      FusionGroup merged;
      if (FusionVerdict verdict = canFuse(*producer, *consumer, merged)) {
        merge(*producer, *consumer, std::move(merged));
        changed = true;
      } else {
        refused.push_back({def, op, verdict.reason});
      }
    }
  return changed;
}

/// Whether an op of the reader's reads a value of the other group, directly or through views.
static bool readsFrom(const FusionGroup &reader, const FusionGroup &other) {
  return llvm::any_of(reader.ops, [&](Operation *op) {
    return llvm::any_of(cast<linalg::LinalgOp>(op).getDpsInputOperands(), [&](OpOperand *input) {
      Operation *def = readOf(op, input->getOperandNumber()).value.getDefiningOp();
      return def && other.ops.contains(def);
    });
  });
}

bool FusionGroups::fuseSiblings() {
  bool changed = false;
  llvm::MapVector<Value, SmallVector<Operation *>> readers;
  for (Operation &op : *block)
    if (groups.contains(&op))
      for (OpOperand *input : cast<linalg::LinalgOp>(op).getDpsInputOperands())
        readers[readOf(&op, input->getOperandNumber()).value].push_back(&op);
  for (auto &[value, ops] : readers) {
    auto type = cast<RankedTensorType>(value.getType());
    // Reading a small tensor twice costs nothing.
    if (ops.size() > 16 || (type.hasStaticShape() && type.getNumElements() < 4096))
      continue;
    for (size_t i = 1; i < ops.size(); ++i) {
      FusionGroup *first = groups.lookup(ops[i - 1]), *second = groups.lookup(ops[i]), merged;
      if (first == second)
        continue;
      // canFuse looks at what its second group reads of its first.
      if (readsFrom(*first, *second))
        std::swap(first, second);
      if (canFuse(*first, *second, merged)) {
        merge(*first, *second, std::move(merged));
        changed = true;
      }
    }
  }
  return changed;
}

void FusionGroups::run() {
  do
    refused.clear();
  while (fuseProducers());
  fuseSiblings();
}

SmallVector<FusionGroups::Step> FusionGroups::schedule() const {
  // Depth first from each op in program order, a group counting as one op: every step comes after what it needs.
  SmallVector<Step> steps;
  llvm::DenseSet<const void *> done;
  std::function<void(Operation *)> visit = [&](Operation *op) {
    FusionGroup *group = groups.lookup(op);
    const void *key = group ? static_cast<const void *>(group) : op;
    if (!done.insert(key).second)
      return;
    if (!group) {
      forEachDependency(op, visit);
      steps.push_back({op, nullptr});
      return;
    }
    SmallVector<Operation *> members(group->ops.begin(), group->ops.end());
    llvm::sort(members, [&](Operation *a, Operation *b) { return order.lookup(a) < order.lookup(b); });
    // A view of what the group itself computes is cloned into it; others that read it come after the group.
    auto isOwnView = [&](Operation *dep) {
      while (auto view = dyn_cast_or_null<ViewOp>(dep))
        dep = view.getSource().getDefiningOp();
      return dep && groups.lookup(dep) == group;
    };
    for (Operation *member : members)
      forEachDependency(member, [&](Operation *dep) {
        if (!isOwnView(dep))
          visit(dep);
      });
    steps.push_back({nullptr, group});
  };
  for (Operation &op : *block)
    visit(&op);
  return steps;
}

} // namespace accel
