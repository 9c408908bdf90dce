// RUN: accel-opt %s --accel-choose-contractions=contractions=library | FileCheck %s
// RUN: accel-opt %s --accel-phase-graph | FileCheck %s

// The library's kernel writes its product over the destination, so a product that is added to something stays.
// CHECK-LABEL: func.func @accumulates
// CHECK-NOT: accel.aten_call
// CHECK: linalg.matmul
func.func @accumulates(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x2xf32>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @filled_with_ones
// CHECK-NOT: accel.aten_call
// CHECK: linalg.matmul
func.func @filled_with_ones(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %i = linalg.fill ins(%one : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x2xf32>) outs(%i : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// Pointwise work is ours.
// CHECK-LABEL: func.func @pointwise
// CHECK-NOT: accel.aten_call
// CHECK: linalg.copy
func.func @pointwise(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.copy ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
