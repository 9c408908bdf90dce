// RUN: accel-opt %s --accel-split-rows --split-input-file | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// The product and the ops behind it take the view's dimensions; what was flattened before is not flattened any more.
// CHECK-LABEL: func.func @product_and_bias
// CHECK-SAME: (%[[X:.*]]: tensor<4x8x16xf32>, %[[W:.*]]: tensor<16x32xf32>, %[[B:.*]]: tensor<32xf32>)
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[W]] :
// CHECK: } -> tensor<4x8x32xf32>
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[B]] :
// CHECK: } -> tensor<4x8x32xf32>
// CHECK: return %[[R]]
func.func @product_and_bias(%x: tensor<4x8x16xf32>, %w: tensor<16x32xf32>, %b: tensor<32xf32>) -> tensor<4x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %flat = accel.reshape %x : tensor<4x8x16xf32> -> tensor<32x16xf32>
  %e = tensor.empty() : tensor<32x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %p = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%flat, %w : tensor<32x16xf32>, tensor<16x32xf32>) outs(%i : tensor<32x32xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %m = arith.mulf %in, %in_0 : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%p, %b : tensor<32x32xf32>, tensor<32xf32>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %s = arith.addf %in, %in_0 : f32
    linalg.yield %s : f32
  } -> tensor<32x32xf32>
  %v = accel.view %r by affine_map<(d0, d1, d2) -> (d0 * 8 + d1, d2)> : tensor<32x32xf32> -> tensor<4x8x32xf32>
  return %v : tensor<4x8x32xf32>
}

// -----

// No product, no change.
// CHECK-LABEL: func.func @pointwise_alone
// CHECK: } -> tensor<32x16xf32>
// CHECK: accel.view
func.func @pointwise_alone(%x: tensor<32x16xf32>) -> tensor<4x8x16xf32> {
  %e = tensor.empty() : tensor<32x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<32x16xf32>) outs(%e : tensor<32x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %in : f32
    linalg.yield %s : f32
  } -> tensor<32x16xf32>
  %v = accel.view %r by affine_map<(d0, d1, d2) -> (d0 * 8 + d1, d2)> : tensor<32x16xf32> -> tensor<4x8x16xf32>
  return %v : tensor<4x8x16xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A view that takes every other row splits nothing.
// CHECK-LABEL: func.func @slice
// CHECK: } -> tensor<32x32xf32>
// CHECK: accel.view
func.func @slice(%x: tensor<32x16xf32>, %w: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %p = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x16xf32>, tensor<16x32xf32>) outs(%i : tensor<32x32xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %m = arith.mulf %in, %in_0 : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x32xf32>
  %v = accel.view %p by affine_map<(d0, d1) -> (d0 * 2, d1)> : tensor<32x32xf32> -> tensor<16x32xf32>
  return %v : tensor<16x32xf32>
}
