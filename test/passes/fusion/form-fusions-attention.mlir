// RUN: accel-opt %s --accel-form-fusions --accel-verify-fusions | FileCheck %s

// An attention is a kernel of its own, which yields what is used; what comes before and behind it is not fused with it.
// CHECK-LABEL: func.func @layer
// CHECK-SAME: (%[[Q:.*]]: tensor<1x2x3x4xf32>, %[[K:.*]]: tensor<1x2x5x4xf32>, %[[V:.*]]: tensor<1x2x5x4xf32>)
// CHECK-NEXT: %[[C:.*]] = accel.fusion parallel(3) rows(0)
// CHECK: %[[A:.*]] = accel.fusion parallel(0) rows(0) {
// CHECK-NEXT: %[[OUT:.*]], %{{.*}} = accel.attention %[[C]], %[[K]], %[[V]]
// CHECK-NEXT: accel.yield %[[OUT]] : tensor<1x3x2x4xf32>
// CHECK-NEXT: } -> tensor<1x3x2x4xf32>
// CHECK-NEXT: accel.fusion
// CHECK: linalg.copy {{.*}} ins(%[[A]]
func.func @layer(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) -> tensor<1x3x2x4xf32> {
  %e = tensor.empty() : tensor<1x2x3x4xf32>
  %c = linalg.copy ins(%q : tensor<1x2x3x4xf32>) outs(%e : tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %out, %l = accel.attention %c, %k, %v scale(1.0)
      : (tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> (tensor<1x3x2x4xf32>, tensor<1x3x2xf32>)
  %e2 = tensor.empty() : tensor<1x3x2x4xf32>
  %r = linalg.copy ins(%out : tensor<1x3x2x4xf32>) outs(%e2 : tensor<1x3x2x4xf32>) -> tensor<1x3x2x4xf32>
  return %r : tensor<1x3x2x4xf32>
}
