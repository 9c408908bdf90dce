// RUN: accel-opt %s --accel-clone-cheap-producers | FileCheck %s

#vector = {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
#unary = {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}

// One reader: nothing to clone.
// CHECK-LABEL: func.func @one_reader
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
func.func @one_reader(%one: f32) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %fill = linalg.generic #vector outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    linalg.yield %one : f32
  } -> tensor<8xf32>
  return %fill : tensor<8xf32>
}

// What reads a tensor is stored once rather than computed twice.
// CHECK-LABEL: func.func @reads_a_tensor
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
func.func @reads_a_tensor(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %neg = linalg.generic #unary ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %neg, %neg : tensor<8xf32>, tensor<8xf32>
}

// So is what is expensive.
// CHECK-LABEL: func.func @expensive
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
func.func @expensive(%one: f32) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %exp = linalg.generic #vector outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %r = math.exp %one : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %exp, %exp : tensor<8xf32>, tensor<8xf32>
}
