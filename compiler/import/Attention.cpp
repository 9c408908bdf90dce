#include "compiler/import/Families.h"
#include "compiler/import/Importer.h"
#include "dialects/accel/AccelDialect.h"

using namespace mlir;

namespace accel {
namespace {

/// The mask as [B, H, L, S]; a dimension that it broadcasts over has stride 0.
Tensor expandMask(NodeImporter &n, const Tensor &mask, ArrayRef<AffineExpr> sizes) {
  SmallVector<AffineExpr> indices;
  for (int64_t d = 0; d < mask.rank(); ++d) {
    unsigned out = d + sizes.size() - mask.rank();
    bool broadcasts = mask.isUnit(d) && sizes[out] != mask.sizes[d];
    indices.push_back(broadcasts ? n.constant(0) : n.b.getAffineDimExpr(out));
  }
  return n.view(mask, sizes, indices);
}

/// Why there is no kernel for the operands; empty if there is one.
std::string whyNoKernel(const Tensor &q, const Tensor &k, const Tensor &v) {
  for (const Tensor *operand : {&q, &k, &v})
    if (operand->rank() != 4)
      return "attention of rank " + std::to_string(operand->rank());
  std::optional<int64_t> heads = q.size(1), keyHeads = k.size(1), valueHeads = v.size(1);
  for (std::optional<int64_t> size : {heads, keyHeads, valueHeads, q.size(3), v.size(3)})
    if (!size || !*size)
      return "attention with symbolic or no heads or head sizes";
  if (keyHeads != valueHeads || *heads % *keyHeads)
    return "attention with different numbers of key and value heads";
  // Different symbols are equal by a guard: what broadcasts is the constant 1.
  auto differ = [](const Tensor &a, const Tensor &b, int64_t d) {
    return a.isUnit(d) != b.isUnit(d) || (a.size(d) && b.size(d) && a.size(d) != b.size(d));
  };
  if (differ(q, k, 0) || differ(q, v, 0) || differ(k, v, 2))
    return "attention that broadcasts";
  return {};
}

/// accel.attention, with eager's second result, the logarithm of the sum of exponentials.
LogicalResult lowerAttention(NodeImporter &n, const Tensor &q, const Tensor &k, const Tensor &v, bool causal,
                             std::optional<Tensor> mask) {
  FailureOr<double> scale = n.real(6, "scale", 1.0 / std::sqrt(double(*q.size(3))));
  if (failed(scale))
    return failure();
  Value maskValue;
  if (mask)
    maskValue = expandMask(n, *mask, {q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2]}).value;
  DType compute = q.dtype == DType::F64 ? DType::F64 : DType::F32;
  SmallVector<AffineExpr, 4> outSizes = {q.sizes[0], q.sizes[2], q.sizes[1], v.sizes[3]};
  SmallVector<AffineExpr, 4> rowSizes = {q.sizes[0], q.sizes[2], q.sizes[1]};
  auto op = AttentionOp::create(n.b, n.type(q.dtype, outSizes), n.type(compute, rowSizes), q.value, k.value, v.value,
                                maskValue, n.b.getF64FloatAttr(*scale), causal ? n.b.getUnitAttr() : UnitAttr(),
                                UnitAttr(), FloatAttr());
  Tensor out{op.getOut(), q.dtype, outSizes};
  SmallVector<Tensor> results = {n.permute(out, {0, 2, 1, 3})};
  if (n.hasResult(1))
    results.push_back(n.permute({op.getLogsumexp(), compute, rowSizes}, {0, 2, 1}));
  return n.yield(results);
}

/// (query, key, value, dropout_p, is_causal, *, attn_mask, scale) -> (output, logsumexp [B, H, L])
LogicalResult lowerFlashForCpu(NodeImporter &n) {
  FailureOr<Tensor> q = n.tensor(0, "query"), k = n.tensor(1, "key"), v = n.tensor(2, "value");
  FailureOr<double> dropout = n.real(3, "dropout_p", 0);
  std::optional<Tensor> mask = n.optionalTensor(5, "attn_mask");
  if (failed(q) || failed(k) || failed(v) || failed(dropout) || (n.arg(5, "attn_mask") && !mask))
    return failure();
  std::string why = *dropout != 0 ? "attention with dropout" : whyNoKernel(*q, *k, *v);
  if (!why.empty())
    return n.callLibrary(why);
  return lowerAttention(n, *q, *k, *v, n.boolean(4, "is_causal", false), mask);
}

/// (query, key, value, attn_mask, dropout_p, is_causal, *, scale, enable_gqa)
LogicalResult lowerScaledDotProduct(NodeImporter &n) {
  FailureOr<Tensor> q = n.tensor(0, "query"), k = n.tensor(1, "key"), v = n.tensor(2, "value");
  FailureOr<double> dropout = n.real(4, "dropout_p", 0);
  std::optional<Tensor> mask = n.optionalTensor(3, "attn_mask");
  if (failed(q) || failed(k) || failed(v) || failed(dropout) || (n.arg(3, "attn_mask") && !mask))
    return failure();
  std::string why = *dropout != 0 ? "attention with dropout" : whyNoKernel(*q, *k, *v);
  if (!why.empty())
    return n.refuse(why);
  return lowerAttention(n, *q, *k, *v, n.boolean(5, "is_causal", false), mask);
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
