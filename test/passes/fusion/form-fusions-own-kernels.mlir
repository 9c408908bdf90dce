// RUN: accel-opt %s --accel-form-fusions --accel-verify-fusions | FileCheck %s

// A scan is a fusion of its own, between what it needs and what needs it.
// CHECK-LABEL: func.func @scan
// CHECK: %[[A:.*]] = accel.fusion parallel(2) rows(0) {
// CHECK: math.exp
// CHECK: %[[B:.*]] = accel.fusion parallel(0) rows(0) {
// CHECK-NEXT: %[[S:.*]] = accel.scan "add" dim(1) %[[A]] : tensor<4x8xf32>
// CHECK-NEXT: accel.yield %[[S]]
// CHECK: accel.fusion parallel(2) rows(0) {
// CHECK: linalg.generic {{.*}} ins(%[[B]] :
#id = affine_map<(i, j) -> (i, j)>
#unary = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
func.func @scan(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %s = accel.scan "add" dim(1) %a : tensor<4x8xf32>
  %b = linalg.generic #unary ins(%s : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}
