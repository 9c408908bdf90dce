// RUN: accel-opt %s --accel-choose-convolutions="features=+avx512f,+fma constant-weights" | FileCheck %s

// CHECK-DAG: #[[WINDOWS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d5, d1 + d3 - 1, d2 + d4 - 1)>
// CHECK-DAG: #[[LAST:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>

// An input with its channels last is read through a padded view of windows; what follows keeps that order.
// CHECK-LABEL: func.func @dense
// CHECK: linalg.copy {{.*}} -> tensor<1x3x3x16x32xf32>
// CHECK: %[[V:.*]] = accel.view %{{.*}} by #[[WINDOWS]] padded : tensor<1x16x8x8xf32> -> tensor<1x8x8x3x3x16xf32>
// CHECK: linalg.generic {{.*}} ins(%[[V]], %
// CHECK: } -> tensor<1x8x8x32xf32>
// CHECK: } -> tensor<1x8x8x32xf32>
// CHECK: accel.view %{{.*}} by #[[LAST]] : tensor<1x8x8x32xf32> -> tensor<1x32x8x8xf32>
func.func @dense(%x: tensor<1x16x8x8xf32> {accel.kind = "input", accel.layout = #accel.layout<affine_map<() -> (1, 16, 8, 8)>, affine_map<() -> (1024, 1, 128, 16)>>},
                 %w: tensor<32x16x3x3xf32> {accel.kind = "parameter", accel.layout = #accel.layout<affine_map<() -> (32, 16, 3, 3)>, affine_map<() -> (144, 9, 3, 1)>>}) -> tensor<1x32x8x8xf32> {
  %c = accel.aten_call "aten::convolution" "default" "library"(%x, %w) {args = [#accel.operand<0>, #accel.operand<1>, unit, [1, 1], [1, 1], [1, 1], false, [0, 0], 1]} : (tensor<1x16x8x8xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x8x8xf32>
  %e = tensor.empty() : tensor<1x32x8x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c : tensor<1x32x8x8xf32>) outs(%e : tensor<1x32x8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %in : f32
    linalg.yield %s : f32
  } -> tensor<1x32x8x8xf32>
  return %r : tensor<1x32x8x8xf32>
}

// A depthwise one is a multiplication and a sum over the window.
// CHECK-LABEL: func.func @depthwise
// CHECK: } -> tensor<1x8x8x3x3x16xf32>
// CHECK: linalg.reduce {{.*}} dimensions = [3, 4]
func.func @depthwise(%x: tensor<1x16x8x8xf32> {accel.kind = "input", accel.layout = #accel.layout<affine_map<() -> (1, 16, 8, 8)>, affine_map<() -> (1024, 1, 128, 16)>>},
                     %w: tensor<16x1x3x3xf32> {accel.kind = "parameter", accel.layout = #accel.layout<affine_map<() -> (16, 1, 3, 3)>, affine_map<() -> (9, 9, 3, 1)>>}) -> tensor<1x16x8x8xf32> {
  %c = accel.aten_call "aten::convolution" "default" "library"(%x, %w) {args = [#accel.operand<0>, #accel.operand<1>, unit, [1, 1], [1, 1], [1, 1], false, [0, 0], 16]} : (tensor<1x16x8x8xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x8x8xf32>
  return %c : tensor<1x16x8x8xf32>
}

// CHECK-LABEL: func.func @refused
// CHECK: reason = "convolution: weights that may change with every call"
// CHECK: reason = "convolution: several groups of several channels"
// CHECK: reason = "convolution: it is transposed"
func.func @refused(%x: tensor<1x16x8x8xf32>, %v: tensor<16x16x3x3xf32>,
                   %g: tensor<16x8x3x3xf32> {accel.kind = "parameter", accel.layout = #accel.layout<affine_map<() -> (16, 8, 3, 3)>, affine_map<() -> (72, 9, 3, 1)>>}) -> tensor<1x16x8x8xf32> {
  %a = accel.aten_call "aten::convolution" "default" "library"(%x, %v) {args = [#accel.operand<0>, #accel.operand<1>, unit, [1, 1], [1, 1], [1, 1], false, [0, 0], 1]} : (tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32>
  %b = accel.aten_call "aten::convolution" "default" "library"(%a, %g) {args = [#accel.operand<0>, #accel.operand<1>, unit, [1, 1], [1, 1], [1, 1], false, [0, 0], 2]} : (tensor<1x16x8x8xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x8x8xf32>
  %c = accel.aten_call "aten::convolution" "default" "library"(%b, %v) {args = [#accel.operand<0>, #accel.operand<1>, unit, [1, 1], [1, 1], [1, 1], true, [0, 0], 1]} : (tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32>
  return %c : tensor<1x16x8x8xf32>
}
