// RUN: accel-opt %s --accel-verify-fusions | FileCheck %s

// Inside of a fusion, destinations that nobody reads any more, and what is no tensor arithmetic: all fine.
// CHECK-LABEL: func.func @fine
func.func @fine(%x: tensor<4xf32>) -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %unused = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %0 = accel.fusion parallel(1) rows(0) {
    %f = tensor.empty() : tensor<4xf32>
    %c = linalg.copy {accel.loops = array<i64: 0>} ins(%x : tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
    accel.yield %c : tensor<4xf32>
  } -> tensor<4xf32>
  %1 = accel.reshape %0 : tensor<4xf32> -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}
