#include "compiler/import/Families.h"
#include "compiler/import/Importer.h"
#include "compiler/import/ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace accel {
namespace {

/// beta * bias + alpha * product, in the compute type; eager doesn't read `bias` when beta is 0.
Tensor scaleAndAdd(NodeImporter &n, const Tensor &bias, const Tensor &product, double beta, double alpha) {
  DType dtype = product.dtype, compute = computeDType(dtype);
  SmallVector<Tensor> inputs = {product};
  if (beta != 0)
    inputs.push_back(bias);
  return n.pointwise(inputs, product.sizes, dtype, [&](ImplicitLocOpBuilder &b, ValueRange args) {
    bool real = isFloat(compute);
    auto scaled = [&](Value v, double factor) -> Value {
      v = convertScalar(b, v, dtype, compute);
      if (factor == 1)
        return v;
      Value constant = scalarConstant(b, factor, compute);
      return real ? arith::MulFOp::create(b, v, constant).getResult() : arith::MulIOp::create(b, v, constant);
    };
    Value result = scaled(args[0], alpha);
    if (beta != 0) {
      Value other = scaled(args[1], beta);
      result = real ? arith::AddFOp::create(b, other, result).getResult() : arith::AddIOp::create(b, other, result);
    }
    return convertScalar(b, result, compute, dtype);
  });
}

/// Both operands of one dtype, as eager demands.
LogicalResult sameDType(NodeImporter &n, const Tensor &a, const Tensor &b) {
  if (a.dtype != b.dtype)
    return n.refuse("operands have dtypes " + dtypeName(a.dtype) + " and " + dtypeName(b.dtype));
  if (a.dtype == DType::Bool)
    return n.refuse("bool contraction");
  return success();
}

LogicalResult lowerMatmul(NodeImporter &n) {
  FailureOr<Tensor> a = n.tensor(0, "self"), b = n.tensor(1, "mat2");
  if (failed(a) || failed(b) || failed(sameDType(n, *a, *b)))
    return failure();
  return n.yield(n.matmul(*a, *b));
}

LogicalResult lowerAddmm(NodeImporter &n) {
  FailureOr<Tensor> bias = n.tensor(0, "self"), a = n.tensor(1, "mat1"), b = n.tensor(2, "mat2");
  FailureOr<double> beta = n.real(3, "beta", 1), alpha = n.real(4, "alpha", 1);
  if (failed(bias) || failed(a) || failed(b) || failed(beta) || failed(alpha) || failed(sameDType(n, *a, *b)) ||
      failed(sameDType(n, *bias, *a)))
    return failure();
  return n.yield(scaleAndAdd(n, *bias, n.matmul(*a, *b), *beta, *alpha));
}

/// x[..., K] times weight[N, K] transposed, plus bias.
LogicalResult lowerLinear(NodeImporter &n) {
  FailureOr<Tensor> x = n.tensor(0, "input"), weight = n.tensor(1, "weight");
  std::optional<Tensor> bias = n.optionalTensor(2, "bias");
  if (failed(x) || failed(weight) || failed(sameDType(n, *x, *weight)))
    return failure();
  if (x->rank() < 2 || weight->rank() != 2)
    return n.refuse("linear of a vector");
  AffineExpr rows = n.constant(1);
  for (AffineExpr size : ArrayRef(x->sizes).drop_back())
    rows = normalize(rows * size);
  Tensor flat = n.reshape(*x, {rows, x->sizes.back()});
  Tensor product = n.matmul(flat, n.permute(*weight, {1, 0}));
  SmallVector<AffineExpr> sizes(x->sizes.begin(), x->sizes.end());
  sizes.back() = weight->sizes[0];
  if (bias)
    product = scaleAndAdd(n, *bias, product, 1, 1);
  return n.yield(n.reshape(product, sizes));
}

/// Matrix times vector, and vector times vector, as products of matrices with a unit dimension.
LogicalResult lowerVectorProduct(NodeImporter &n) {
  FailureOr<Tensor> a = n.tensor(0, "self"), b = n.tensor(1, "vec");
  if (failed(a) || failed(b) || failed(sameDType(n, *a, *b)))
    return failure();
  Tensor left = a->rank() == 1 ? n.unsqueeze(*a, 0) : *a;
  Tensor product = n.matmul(left, n.unsqueeze(*b, 1));
  SmallVector<AffineExpr> sizes(a->sizes.begin(), a->sizes.end());
  sizes.pop_back();
  return n.yield(n.reshape(product, sizes));
}

} // namespace

void populateContraction(LoweringTable &table) {
  table.add({"aten.mm.default", "aten.bmm.default"}, lowerMatmul);
  table.add({"aten.addmm.default", "aten.baddbmm.default"}, lowerAddmm);
  table.add("aten.linear.default", lowerLinear);
  table.add({"aten.mv.default", "aten.dot.default"}, lowerVectorProduct);
}

} // namespace accel
