#include "compiler/import/GraphImporter.h"
#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace accel {

std::optional<int64_t> Tensor::size(int64_t d) const {
  auto constant = dyn_cast_or_null<AffineConstantExpr>(sizes[d]);
  return constant ? std::optional<int64_t>(constant.getValue()) : std::nullopt;
}

//===-- Arguments
//---------------------------------------------------------------------------------------------------===//

const FxArg *NodeImporter::arg(unsigned index, StringRef keyword) const {
  const FxArg *found = index < node.args.size() ? &node.args[index] : nullptr;
  for (const auto &[name, value] : node.kwargs)
    if (name == keyword)
      found = &value;
  return found && found->kind != FxArg::None ? found : nullptr;
}

FailureOr<Tensor> NodeImporter::tensorOf(const FxArg &arg) {
  if (arg.kind == FxArg::Ref) {
    ArrayRef<Tensor> tensors = graph.tensorsOf(arg.text);
    if (!tensors.empty() && tensors[0].value) {
      if (tensors[0].dtype == DType::Other)
        return refuse("an argument's dtype has no lowering");
      return tensors[0];
    }
  }
  return refuse("expected a tensor argument");
}

FailureOr<Tensor> NodeImporter::tensor(unsigned index, StringRef keyword) {
  const FxArg *a = arg(index, keyword);
  if (!a)
    return refuse("argument '" + keyword + "' is absent");
  return tensorOf(*a);
}

std::optional<Tensor> NodeImporter::optionalTensor(unsigned index, StringRef keyword) {
  const FxArg *a = arg(index, keyword);
  if (!a)
    return std::nullopt;
  FailureOr<Tensor> tensor = tensorOf(*a);
  return succeeded(tensor) ? std::optional<Tensor>(*tensor) : std::nullopt;
}

FailureOr<SmallVector<Tensor>> NodeImporter::tensors(unsigned index, StringRef keyword) {
  const FxArg *a = arg(index, keyword);
  if (!a || a->kind != FxArg::List)
    return refuse("argument '" + keyword + "' is not a list");
  SmallVector<Tensor> result;
  for (const FxArg &item : a->list) {
    if (item.kind == FxArg::None) {
      result.emplace_back();
      continue;
    }
    FailureOr<Tensor> tensor = tensorOf(item);
    if (failed(tensor))
      return failure();
    result.push_back(*tensor);
  }
  return result;
}

FailureOr<int64_t> NodeImporter::integer(unsigned index, StringRef keyword, std::optional<int64_t> fallback) {
  const FxArg *a = arg(index, keyword);
  if (!a && fallback)
    return *fallback;
  if (!a || (a->kind != FxArg::Int && a->kind != FxArg::Bool))
    return refuse("argument '" + keyword + "' is not a constant integer");
  return a->integer;
}

FailureOr<double> NodeImporter::real(unsigned index, StringRef keyword, std::optional<double> fallback) {
  const FxArg *a = arg(index, keyword);
  if (!a && fallback)
    return *fallback;
  if (!a || (a->kind != FxArg::Int && a->kind != FxArg::Float && a->kind != FxArg::Bool))
    return refuse("argument '" + keyword + "' is not a constant number");
  return a->kind == FxArg::Float ? a->real : double(a->integer);
}

bool NodeImporter::boolean(unsigned index, StringRef keyword, bool fallback) {
  const FxArg *a = arg(index, keyword);
  return a ? a->integer != 0 : fallback;
}

std::string NodeImporter::text(unsigned index, StringRef keyword, StringRef fallback) {
  const FxArg *a = arg(index, keyword);
  return a ? a->text : fallback.str();
}

FailureOr<SmallVector<int64_t>> NodeImporter::integers(unsigned index, StringRef keyword) {
  const FxArg *a = arg(index, keyword);
  SmallVector<int64_t> result;
  if (!a)
    return result;
  if (a->kind == FxArg::Int)
    return SmallVector<int64_t>{a->integer};
  if (a->kind != FxArg::List)
    return refuse("argument '" + keyword + "' is not a list of integers");
  for (const FxArg &item : a->list) {
    if (item.kind != FxArg::Int)
      return refuse("argument '" + keyword + "' is not a list of constant integers");
    result.push_back(item.integer);
  }
  return result;
}

FailureOr<AffineExpr> NodeImporter::exprOf(const FxArg &arg) {
  if (arg.kind == FxArg::Int || arg.kind == FxArg::Bool)
    return constant(arg.integer);
  AffineExpr expr = arg.kind == FxArg::Symbol ? graph.affine(arg.symbol) : AffineExpr();
  if (!expr)
    return refuse("an argument is not an integer");
  return expr;
}

FailureOr<AffineExpr> NodeImporter::expr(unsigned index, StringRef keyword, std::optional<int64_t> fallback) {
  const FxArg *a = arg(index, keyword);
  if (!a && fallback)
    return constant(*fallback);
  if (!a)
    return refuse("argument '" + keyword + "' is absent");
  return exprOf(*a);
}

FailureOr<SmallVector<AffineExpr>> NodeImporter::exprs(unsigned index, StringRef keyword) {
  const FxArg *a = arg(index, keyword);
  SmallVector<AffineExpr> result;
  if (!a)
    return result;
  ArrayRef<FxArg> items = a->kind == FxArg::List ? ArrayRef<FxArg>(a->list) : ArrayRef<FxArg>(*a);
  for (const FxArg &item : items) {
    FailureOr<AffineExpr> expr = exprOf(item);
    if (failed(expr))
      return failure();
    result.push_back(*expr);
  }
  return result;
}

std::optional<int64_t> NodeImporter::lowerBound(AffineExpr expr) const { return graph.bound(expr, false); }
std::optional<int64_t> NodeImporter::upperBound(AffineExpr expr) const { return graph.bound(expr, true); }

FailureOr<NodeImporter::EagerLayout> NodeImporter::eagerLayout(unsigned index, StringRef keyword) {
  const FxArg *a = arg(index, keyword);
  const FxTensor *metadata = a && a->kind == FxArg::Ref ? graph.metadataOf(a->text) : nullptr;
  if (!metadata)
    return refuse("expected a tensor argument");
  EagerLayout layout{llvm::to_vector<6>(graph.affine(metadata->strides)), graph.affine(metadata->offset)};
  if (!layout.offset || llvm::is_contained(layout.strides, AffineExpr()))
    return refuse("an argument's layout is known at run time only");
  return layout;
}

FailureOr<int64_t> NodeImporter::wrapDim(int64_t dim, int64_t rank) {
  int64_t range = std::max<int64_t>(rank, 1);
  if (dim < -range || dim >= range)
    return refuse("dimension " + Twine(dim) + " is out of range for rank " + Twine(rank));
  return dim < 0 ? dim + range : dim;
}

//===-- What eager would yield
//--------------------------------------------------------------------------------------===//

bool NodeImporter::hasResult(unsigned k) const {
  return k < node.results.size() && node.results[k].kind == FxResult::Tensor;
}
DType NodeImporter::resultDType(unsigned k) const {
  return hasResult(k) ? node.results[k].tensor.dtype : node.results[0].tensor.dtype;
}
SmallVector<AffineExpr> NodeImporter::resultSizes(unsigned k) {
  if (!hasResult(k))
    return {};
  SmallVector<AffineExpr, 4> sizes = graph.affine(node.results[k].tensor.sizes);
  return {sizes.begin(), sizes.end()};
}

//===-- Building
//------------------------------------------------------------------------------------------------------===//

Type NodeImporter::type(DType dtype) const { return scalarType(graph.context(), dtype); }

RankedTensorType NodeImporter::type(DType dtype, ArrayRef<AffineExpr> sizes) const {
  SmallVector<int64_t> shape;
  for (AffineExpr size : sizes) {
    auto constant = dyn_cast<AffineConstantExpr>(size);
    shape.push_back(constant ? constant.getValue() : ShapedType::kDynamic);
  }
  return RankedTensorType::get(shape, type(dtype));
}

AffineExpr NodeImporter::constant(int64_t value) const { return getAffineConstantExpr(value, graph.context()); }

OpFoldResult NodeImporter::fold(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return b.getIndexAttr(constant.getValue());
  return index(expr);
}

Value NodeImporter::index(AffineExpr expr) { return graph.indexValue(b, b.getLoc(), expr); }

SmallVector<Value> NodeImporter::dynamicSizes(ArrayRef<AffineExpr> sizes) {
  SmallVector<Value> values;
  for (AffineExpr size : sizes)
    if (!isa<AffineConstantExpr>(size))
      values.push_back(index(size));
  return values;
}

Value NodeImporter::empty(DType dtype, ArrayRef<AffineExpr> sizes) {
  return tensor::EmptyOp::create(b, type(dtype, sizes), dynamicSizes(sizes));
}

Tensor NodeImporter::pointwise(ArrayRef<Tensor> inputs, ArrayRef<AffineExpr> sizes, DType dtype, Body body) {
  SmallVector<AffineMap> maps;
  unsigned rank = sizes.size();
  for (const Tensor &input : inputs) {
    SmallVector<AffineExpr> indices;
    for (int64_t d = 0; d < input.rank(); ++d) {
      unsigned out = d + rank - input.rank();
      bool broadcasts = input.isUnit(d) && sizes[out] != input.sizes[d];
      indices.push_back(broadcasts ? constant(0) : b.getAffineDimExpr(out));
    }
    maps.push_back(AffineMap::get(rank, 0, indices, b.getContext()));
  }
  return pointwise(inputs, maps, sizes, dtype, body);
}

/// A guard may hold a symbolic size equal to a number that another operand has. Calls `use(input dimension, loop)` for
/// each pair.
static void forEachLoop(const Tensor &input, AffineMap map, llvm::function_ref<void(int64_t, unsigned)> use) {
  for (auto [d, index] : llvm::enumerate(map.getResults()))
    if (auto loop = dyn_cast<AffineDimExpr>(index))
      use(d, loop.getPosition());
}

Tensor NodeImporter::pointwise(ArrayRef<Tensor> inputs, ArrayRef<AffineMap> maps, ArrayRef<AffineExpr> resultSizes,
                               DType dtype, Body body) {
  unsigned rank = resultSizes.size();
  SmallVector<AffineMap> allMaps(maps);
  allMaps.push_back(b.getMultiDimIdentityMap(rank));
  // All operands get the sizes that any of them knows as a number: types that differ would only bring casts later.
  SmallVector<AffineExpr> sizes(resultSizes);
  for (auto [input, map] : llvm::zip(inputs, maps))
    forEachLoop(input, map, [&, &input = input](int64_t d, unsigned loop) {
      if (input.size(d) && !isa<AffineConstantExpr>(sizes[loop]))
        sizes[loop] = input.sizes[d];
    });
  SmallVector<Value> values;
  for (auto [input, map] : llvm::zip(inputs, maps)) {
    SmallVector<AffineExpr> known(input.sizes.begin(), input.sizes.end());
    forEachLoop(input, map, [&](int64_t d, unsigned loop) {
      if (!input.size(d) && isa<AffineConstantExpr>(sizes[loop]))
        known[d] = sizes[loop];
    });
    bool isKnown = ArrayRef<AffineExpr>(known) == ArrayRef<AffineExpr>(input.sizes);
    values.push_back(isKnown ? input.value
                             : view(input, known, b.getMultiDimIdentityMap(input.rank()).getResults()).value);
  }
  Value init = empty(dtype, sizes);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(b, TypeRange(init.getType()), values, ValueRange(init), allMaps, iterators,
                                           [&](OpBuilder &nested, Location loc, ValueRange args) {
                                             ImplicitLocOpBuilder nestedB(loc, nested);
                                             Value result = body(nestedB, args.drop_back());
                                             linalg::YieldOp::create(nestedB, result);
                                           });
  return {generic.getResult(0), dtype, llvm::to_vector<4>(sizes)};
}

SmallVector<Tensor> NodeImporter::reduce(ArrayRef<Tensor> inputs, ArrayRef<int64_t> dims, ArrayRef<TypedAttr> init,
                                         MultiBody combine) {
  SmallVector<AffineExpr, 4> sizes;
  for (int64_t d = 0; d < inputs[0].rank(); ++d)
    if (!llvm::is_contained(dims, d))
      sizes.push_back(inputs[0].sizes[d]);
  SmallVector<Value> values, inits;
  for (auto [input, attr] : llvm::zip(inputs, init)) {
    values.push_back(input.value);
    Value value = arith::ConstantOp::create(b, attr);
    inits.push_back(linalg::FillOp::create(b, value, empty(input.dtype, sizes)).getResult(0));
  }
  SmallVector<int64_t> sorted(dims);
  llvm::sort(sorted);
  auto op = linalg::ReduceOp::create(b, values, inits, sorted, [&](OpBuilder &nested, Location loc, ValueRange args) {
    ImplicitLocOpBuilder nestedB(loc, nested);
    linalg::YieldOp::create(nestedB, combine(nestedB, args));
  });
  SmallVector<Tensor> results;
  for (auto [result, input] : llvm::zip(op->getResults(), inputs))
    results.push_back({result, input.dtype, sizes});
  return results;
}

Tensor NodeImporter::view(const Tensor &source, ArrayRef<AffineExpr> sizes, ArrayRef<AffineExpr> indices) {
  // Keep only the symbols that the map uses.
  SmallVector<Value> symbols;
  SmallVector<AffineExpr> replacements;
  for (auto [i, symbol] : llvm::enumerate(graph.symbols())) {
    replacements.push_back(b.getAffineSymbolExpr(symbols.size()));
    if (llvm::any_of(indices, [&](AffineExpr e) { return e.isFunctionOfSymbol(i); }))
      symbols.push_back(symbol);
  }
  SmallVector<AffineExpr> mapped;
  for (AffineExpr e : indices)
    mapped.push_back(e.replaceSymbols(replacements));
  AffineMap map = AffineMap::get(sizes.size(), symbols.size(), mapped, b.getContext());
  Value result =
      ViewOp::create(b, type(source.dtype, sizes), source.value, symbols, dynamicSizes(sizes), AffineMapAttr::get(map));
  return {result, source.dtype, SmallVector<AffineExpr, 4>(sizes)};
}

Tensor NodeImporter::reshape(const Tensor &source, ArrayRef<AffineExpr> sizes) {
  if (ArrayRef<AffineExpr>(source.sizes) == sizes)
    return source;
  Value result = ReshapeOp::create(b, type(source.dtype, sizes), source.value, dynamicSizes(sizes));
  return {result, source.dtype, SmallVector<AffineExpr, 4>(sizes)};
}

Tensor NodeImporter::permute(const Tensor &source, ArrayRef<int64_t> order) {
  SmallVector<AffineExpr> sizes, indices(order.size());
  for (auto [i, d] : llvm::enumerate(order)) {
    sizes.push_back(source.sizes[d]);
    indices[d] = b.getAffineDimExpr(i);
  }
  return view(source, sizes, indices);
}

Tensor NodeImporter::unsqueeze(const Tensor &source, int64_t dim) {
  SmallVector<AffineExpr> sizes(source.sizes.begin(), source.sizes.end()), indices;
  sizes.insert(sizes.begin() + dim, constant(1));
  for (int64_t d = 0; d < source.rank(); ++d)
    indices.push_back(b.getAffineDimExpr(d < dim ? d : d + 1));
  return view(source, sizes, indices);
}

Tensor NodeImporter::concat(ArrayRef<Tensor> parts, int64_t dim) {
  SmallVector<AffineExpr, 4> sizes(parts[0].sizes);
  SmallVector<Value> values = {parts[0].value};
  for (const Tensor &part : parts.drop_front()) {
    sizes[dim] = normalize(sizes[dim] + part.sizes[dim]);
    values.push_back(part.value);
  }
  Value result = ConcatOp::create(b, type(parts[0].dtype, sizes), values, dynamicSizes(sizes), dim);
  return {result, parts[0].dtype, sizes};
}

Tensor NodeImporter::fill(double value, ArrayRef<AffineExpr> sizes, DType dtype) {
  return pointwise({}, sizes, dtype,
                   [&](ImplicitLocOpBuilder &nested, ValueRange) { return scalarConstant(nested, value, dtype); });
}

Tensor NodeImporter::cast(const Tensor &source, DType dtype) {
  if (source.dtype == dtype)
    return source;
  return pointwise(source, source.sizes, dtype, [&](ImplicitLocOpBuilder &nested, ValueRange args) {
    return convertScalar(nested, args[0], source.dtype, dtype);
  });
}

Tensor NodeImporter::matmul(const Tensor &a, const Tensor &c) {
  SmallVector<AffineExpr, 4> sizes(a.sizes);
  sizes.back() = c.sizes.back();
  Value zero = scalarConstant(b, 0.0, a.dtype);
  Value init = linalg::FillOp::create(b, zero, empty(a.dtype, sizes)).getResult(0);
  Operation *op = a.rank() == 2
                      ? linalg::MatmulOp::create(b, ValueRange{a.value, c.value}, ValueRange{init}).getOperation()
                      : linalg::BatchMatmulOp::create(b, ValueRange{a.value, c.value}, ValueRange{init});
  return {op->getResult(0), a.dtype, sizes};
}

//===-- Ending ----------------------------------------------------------------------------------------------------===//

LogicalResult NodeImporter::yield(ArrayRef<Tensor> tensors) {
  if (tensors.size() > node.results.size())
    return refuse("the op has " + Twine(tensors.size()) + " results, the document " + Twine(node.results.size()));
  results.assign(tensors.begin(), tensors.end());
  for (auto [k, tensor] : llvm::enumerate(results)) {
    if (!tensor.value || !hasResult(k))
      continue;
    SmallVector<AffineExpr> expected = resultSizes(k);
    bool fits = expected.size() == tensor.sizes.size();
    for (size_t d = 0; fits && d < expected.size(); ++d) {
      auto want = dyn_cast<AffineConstantExpr>(expected[d]), have = dyn_cast<AffineConstantExpr>(tensor.sizes[d]);
      fits = !want || !have || want == have;
    }
    if (!fits)
      return refuse("the lowering yields " + Twine(tensor.rank()) + " dimensions or sizes that eager's result has not");
    tensor = cast(tensor, resultDType(k));
  }
  results.resize(std::max<size_t>(results.size(), node.results.size()));
  return success();
}

LogicalResult NodeImporter::callLibrary(const Twine &why) {
  results.assign(graph.makeAtenCall(node, "library", why.str(), b.getLoc()));
  return success();
}

LogicalResult NodeImporter::refuse(const Twine &why) {
  if (reason.empty())
    reason = why.str();
  return failure();
}

} // namespace accel
