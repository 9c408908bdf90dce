// RUN: accel-opt %s --accel-hoist-constants --split-input-file | FileCheck %s

accel.kernel @double(%x: tensor<8xf32> {accel.layout = #accel.layout<affine_map<() -> (8)>, affine_map<() -> (1)>>})
    -> (tensor<8xf32> {accel.layout = #accel.layout<affine_map<() -> (8)>, affine_map<() -> (1)>>}) attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %in : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  accel.yield %r : tensor<8xf32>
}

// Launches that depend on a weight alone move, one that others need becomes the last input.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8xf32> {accel.input = 0
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<8xf32> {accel.dtype = "f32", accel.input = 2 : i64, {{.*}}accel.name = "constant0"}
// CHECK-SAME: accel.num_inputs = 3
// CHECK-NEXT: %[[S:.*]] = accel.launch @double(%[[X]])
// CHECK-NEXT: %[[A:.*]] = accel.aten_call "aten::add" "Tensor" "library"(%[[S]], %[[P]])
// CHECK-NEXT: return %[[A]]
// CHECK: func.func @constants(%[[W:.*]]: tensor<8xf32>
// CHECK-SAME: accel.inputs = array<i64: 1>, accel.num_inputs = 1
// CHECK-NEXT: %[[Q:.*]] = accel.launch @double(%[[W]])
// CHECK-NEXT: %[[R:.*]] = accel.launch @double(%[[Q]])
// CHECK-NEXT: return %[[R]]
func.func @main(%x: tensor<8xf32> {accel.kind = "input", accel.input = 0 : i64},
                %w: tensor<8xf32> {accel.kind = "parameter", accel.input = 1 : i64, accel.layout = #accel.layout<affine_map<() -> (8)>, affine_map<() -> (1)>>})
    -> tensor<8xf32> attributes {accel.constant_weights, accel.num_inputs = 2 : i64} {
  %p = accel.launch @double(%w) : (tensor<8xf32>) -> tensor<8xf32>
  %r = accel.launch @double(%p) : (tensor<8xf32>) -> tensor<8xf32>
  %s = accel.launch @double(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %a = accel.aten_call "aten::add" "Tensor" "library"(%s, %r) {args = [#accel.operand<0>, #accel.operand<1>]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %a : tensor<8xf32>
}

// -----

accel.kernel @double(%x: tensor<8xf32> {accel.layout = #accel.layout<affine_map<() -> (8)>, affine_map<() -> (1)>>})
    -> (tensor<8xf32> {accel.layout = #accel.layout<affine_map<() -> (8)>, affine_map<() -> (1)>>}) attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %in : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  accel.yield %r : tensor<8xf32>
}

// What the caller gets is the caller's, made anew in every call.
// CHECK-LABEL: func.func @main
// CHECK: accel.launch @double
// CHECK-NOT: func.func @constants
func.func @main(%w: tensor<8xf32> {accel.kind = "parameter", accel.input = 0 : i64, accel.layout = #accel.layout<affine_map<() -> (8)>, affine_map<() -> (1)>>})
    -> tensor<8xf32> attributes {accel.constant_weights, accel.num_inputs = 1 : i64} {
  %p = accel.launch @double(%w) : (tensor<8xf32>) -> tensor<8xf32>
  return %p : tensor<8xf32>
}

// -----

accel.kernel @double(%x: tensor<8xf32> {accel.layout = #accel.layout<affine_map<() -> (8)>, affine_map<() -> (1)>>})
    -> (tensor<8xf32> {accel.layout = #accel.layout<affine_map<() -> (8)>, affine_map<() -> (1)>>}) attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %in : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  accel.yield %r : tensor<8xf32>
}

// Without the attribute nothing is constant: gradients may be wanted.
// CHECK-LABEL: func.func @main
// CHECK: accel.launch @double
// CHECK-NOT: func.func @constants
func.func @main(%x: tensor<8xf32> {accel.kind = "input", accel.input = 0 : i64},
                %w: tensor<8xf32> {accel.kind = "parameter", accel.input = 1 : i64, accel.layout = #accel.layout<affine_map<() -> (8)>, affine_map<() -> (1)>>})
    -> tensor<8xf32> attributes {accel.num_inputs = 2 : i64} {
  %p = accel.launch @double(%w) : (tensor<8xf32>) -> tensor<8xf32>
  %a = accel.aten_call "aten::add" "Tensor" "library"(%x, %p) {args = [#accel.operand<0>, #accel.operand<1>]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %a : tensor<8xf32>
}
