#include "compiler/import/Families.h"
#include "compiler/import/Importer.h"
#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace accel {
namespace {

using B = ImplicitLocOpBuilder;

/// Written-out attention stores its scores: up to this many (256 KiB of f32, a share of a usual L2 cache) it costs no
/// more than PyTorch's blockwise kernel, which reads them from cache too. Beyond it, and where the sizes are symbolic,
/// that kernel is taken.
constexpr int64_t kMaxScores = 1 << 16;

/// [B, H, L, E] as [B * H, L, E].
Tensor mergeHeads(NodeImporter &n, const Tensor &x) {
  return n.reshape(x, {normalize(x.sizes[0] * x.sizes[1]), x.sizes[2], x.sizes[3]});
}

/// Keys or values repeated so that there is one head for each query head.
Tensor repeatHeads(NodeImporter &n, const Tensor &x, AffineExpr heads) {
  if (x.sizes[1] == heads)
    return x;
  AffineExpr groups = heads.floorDiv(x.sizes[1]);
  AffineExpr d[5];
  for (int i = 0; i < 5; ++i)
    d[i] = n.b.getAffineDimExpr(i);
  Tensor wide = n.view(x, {x.sizes[0], x.sizes[1], groups, x.sizes[2], x.sizes[3]}, {d[0], d[1], d[3], d[4]});
  return n.reshape(wide, {x.sizes[0], heads, x.sizes[2], x.sizes[3]});
}

/// softmax(q kᵀ · scale + mask) v, written out. Also eager's second result, the logarithm of the sum of exponentials.
LogicalResult lowerAttention(NodeImporter &n, double dropout, bool causal, std::optional<Tensor> mask) {
  FailureOr<Tensor> q = n.tensor(0, "query"), k = n.tensor(1, "key"), v = n.tensor(2, "value");
  if (failed(q) || failed(k) || failed(v))
    return failure();
  if (dropout != 0)
    return n.refuse("attention with dropout");
  if (q->rank() != 4 || k->rank() != 4 || v->rank() != 4)
    return n.refuse("attention of rank " + Twine(q->rank()));
  std::optional<int64_t> width = q->size(3);
  const FxArg *scaleArg = n.arg(6, "scale");
  double scale = 0;
  if (scaleArg) {
    FailureOr<double> given = n.real(6, "scale");
    if (failed(given))
      return failure();
    scale = *given;
  } else if (width) {
    scale = 1.0 / std::sqrt(double(*width));
  } else {
    return n.refuse("symbolic head size without a scale");
  }
  DType dtype = q->dtype, compute = computeDType(dtype);
  AffineExpr heads = q->sizes[1];
  Tensor keys = mergeHeads(n, repeatHeads(n, *k, heads)), values = mergeHeads(n, repeatHeads(n, *v, heads));
  Tensor product = n.matmul(mergeHeads(n, *q), n.permute(keys, {0, 2, 1}));
  Tensor scores = n.reshape(product, {q->sizes[0], heads, q->sizes[2], k->sizes[2]});

  SmallVector<Tensor> inputs = {scores};
  if (mask)
    inputs.push_back(*mask);
  Tensor logits = n.pointwise(inputs, scores.sizes, compute, [&](B &b, ValueRange args) {
    Value x = convertScalar(b, args[0], dtype, compute);
    x = arith::MulFOp::create(b, x, scalarConstant(b, scale, compute));
    Value minusInfinity = scalarConstant(b, -INFINITY, compute);
    if (causal) {
      Value row = linalg::IndexOp::create(b, 2), column = linalg::IndexOp::create(b, 3);
      Value visible = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, column, row);
      x = arith::SelectOp::create(b, visible, x, minusInfinity);
    }
    if (mask && mask->dtype == DType::Bool)
      x = arith::SelectOp::create(b, args[1], x, minusInfinity);
    else if (mask)
      x = arith::AddFOp::create(b, x, convertScalar(b, args[1], mask->dtype, compute));
    return x;
  });
  Tensor most = n.reduce(logits, {3}, {scalarAttribute(n.b, -INFINITY, compute)}, [](B &b, ValueRange args) {
    return SmallVector<Value>{arith::MaximumFOp::create(b, args[0], args[1])};
  })[0];
  // A row that is masked everywhere has a maximum of -inf; eager yields zeros there, not NaN.
  Tensor weights = n.pointwise({logits, n.unsqueeze(most, 3)}, logits.sizes, compute, [&](B &b, ValueRange args) {
    Value isInfinite =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, args[1], scalarConstant(b, -INFINITY, compute));
    Value shift = arith::SelectOp::create(b, isInfinite, scalarConstant(b, 0, compute), args[1]);
    return math::ExpOp::create(b, arith::SubFOp::create(b, args[0], shift)).getResult();
  });
  Tensor sum = n.reduce(weights, {3}, {scalarAttribute(n.b, 0.0, compute)}, [](B &b, ValueRange args) {
    return SmallVector<Value>{arith::AddFOp::create(b, args[0], args[1])};
  })[0];
  Tensor attention = n.pointwise({weights, n.unsqueeze(sum, 3)}, logits.sizes, dtype, [&](B &b, ValueRange args) {
    Value zero = scalarConstant(b, 0, compute);
    Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, args[1], zero);
    Value total = arith::SelectOp::create(b, isZero, scalarConstant(b, 1, compute), args[1]);
    return convertScalar(b, arith::DivFOp::create(b, args[0], total), compute, dtype);
  });
  Tensor out = n.matmul(mergeHeads(n, attention), values);
  out = n.reshape(out, {q->sizes[0], heads, q->sizes[2], v->sizes[3]});
  SmallVector<Tensor> results = {out};
  if (n.hasResult(1))
    results.push_back(n.pointwise({most, sum}, most.sizes, compute, [&](B &b, ValueRange args) {
      return arith::AddFOp::create(b, args[0], math::LogOp::create(b, args[1])).getResult();
    }));
  return n.yield(results);
}

/// (query, key, value, dropout_p, is_causal, *, attn_mask, scale) -> (output, logsumexp [B, H, L])
LogicalResult lowerFlashForCpu(NodeImporter &n) {
  FailureOr<Tensor> q = n.tensor(0, "query"), k = n.tensor(1, "key");
  if (failed(q) || failed(k))
    return failure();
  int64_t scores = 1;
  for (std::optional<int64_t> size : {q->size(0), q->size(1), q->size(2), k->size(2)})
    scores = size ? scores * *size : kMaxScores + 1;
  if (scores > kMaxScores)
    return n.callLibrary("attention with more than " + Twine(kMaxScores) + " or symbolically many scores");
  FailureOr<double> dropout = n.real(3, "dropout_p", 0);
  std::optional<Tensor> mask = n.optionalTensor(5, "attn_mask");
  if (failed(dropout) || (n.arg(5, "attn_mask") && !mask))
    return failure();
  return lowerAttention(n, *dropout, n.boolean(4, "is_causal", false), mask);
}

/// (query, key, value, attn_mask, dropout_p, is_causal, *, scale, enable_gqa)
LogicalResult lowerScaledDotProduct(NodeImporter &n) {
  FailureOr<double> dropout = n.real(4, "dropout_p", 0);
  std::optional<Tensor> mask = n.optionalTensor(3, "attn_mask");
  if (failed(dropout) || (n.arg(3, "attn_mask") && !mask))
    return failure();
  return lowerAttention(n, *dropout, n.boolean(5, "is_causal", false), mask);
}

} // namespace

void populateAttention(LoweringTable &table) {
  table.add(
      "aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
      +[](NodeImporter &n) { return n.callLibrary("backward of attention"); });
  table.add("aten._scaled_dot_product_flash_attention_for_cpu.default", lowerFlashForCpu);
  table.add("aten.scaled_dot_product_attention.default", lowerScaledDotProduct);
}

} // namespace accel
