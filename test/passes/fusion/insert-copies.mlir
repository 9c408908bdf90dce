// RUN: accel-opt %s --accel-insert-copies | FileCheck %s

#plain = #accel.layout<affine_map<() -> (4, 8)>, affine_map<() -> (8, 1)>>
#swapped = #accel.layout<affine_map<() -> (4, 8)>, affine_map<() -> (1, 4)>>

// The reshape of a transposed tensor takes a copy, since no strides give its elements in that order.
// CHECK-LABEL: func.func @reshape_of_transposed
// CHECK: %[[T:.*]] = accel.view
// CHECK: %[[C:.*]] = linalg.copy ins(%[[T]] : tensor<8x4xf32>)
// CHECK: accel.reshape %[[C]]
func.func @reshape_of_transposed(%x: tensor<4x8xf32>) -> tensor<32xf32> {
  %t = accel.view %x by affine_map<(i, j) -> (j, i)> : tensor<4x8xf32> -> tensor<8x4xf32>
  %r = accel.reshape %t : tensor<8x4xf32> -> tensor<32xf32>
  return %r : tensor<32xf32>
}

// A concatenation's part that no kernel of ours computes is copied in: an argument, a call's result, what others read too.
// CHECK-LABEL: func.func @concat
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
// CHECK-DAG: %[[CALL:.*]] = accel.aten_call
// CHECK-DAG: %[[TWICE:.*]] = linalg.generic
// CHECK-DAG: %[[C0:.*]] = linalg.copy ins(%[[X]] :
// CHECK-DAG: %[[C1:.*]] = linalg.copy ins(%[[CALL]] :
// CHECK-DAG: %[[C2:.*]] = linalg.copy ins(%[[TWICE]] :
// CHECK: accel.concat dim(0) %[[C0]], %[[C1]], %[[C2]]
func.func @concat(%x: tensor<4x8xf32>) -> (tensor<12x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %call = accel.aten_call "aten::cumsum" "default" "fallback"(%x) {args = [#accel.operand<0>, 0]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %twice = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                           iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %c = accel.concat dim(0) %x, %call, %twice : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<12x8xf32>
  return %c, %twice : tensor<12x8xf32>, tensor<4x8xf32>
}

// A result that eager gives other strides than it has.
// CHECK-LABEL: func.func @other_strides
// CHECK: %[[V:.*]] = accel.view
// CHECK: %[[C:.*]] = linalg.copy ins(%[[V]] :
// CHECK: return %[[C]]
func.func @other_strides(%x: tensor<8x4xf32> {accel.layout = #accel.layout<affine_map<() -> (8, 4)>, affine_map<() -> (4, 1)>>,
                                           accel.name = "x"})
    -> (tensor<4x8xf32> {accel.layout = #plain, accel.name = "y", accel.owner = "x"}) {
  %v = accel.view %x by affine_map<(i, j) -> (j, i)> : tensor<8x4xf32> -> tensor<4x8xf32>
  return %v : tensor<4x8xf32>
}

// A result that is an argument here but not in eager has memory of its own.
// CHECK-LABEL: func.func @argument_returned
// CHECK: %[[C:.*]] = linalg.copy ins(%{{.*}} :
// CHECK: return %[[C]]
func.func @argument_returned(%x: tensor<4x8xf32> {accel.layout = #plain, accel.name = "x"})
    -> (tensor<4x8xf32> {accel.layout = #plain, accel.name = "y", accel.owner = "y"}) {
  return %x : tensor<4x8xf32>
}

// Two results of two nodes that became one value: two tensors, as in eager.
// CHECK-LABEL: func.func @two_results
// CHECK: %[[A:.*]] = linalg.copy
// CHECK: %[[B:.*]] = linalg.copy ins(%[[A]] :
// CHECK: return %[[A]], %[[B]]
func.func @two_results(%x: tensor<4x8xf32> {accel.layout = #plain})
    -> (tensor<4x8xf32> {accel.layout = #plain, accel.name = "y", accel.owner = "y"},
        tensor<4x8xf32> {accel.layout = #plain, accel.name = "z", accel.owner = "z"}) {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.copy ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %a, %a : tensor<4x8xf32>, tensor<4x8xf32>
}

// A view of a result that is a result too shares its memory, as in eager; the same node twice is one tensor.
// CHECK-LABEL: func.func @view_of_a_result
// CHECK: %[[A:.*]] = linalg.copy
// CHECK-NEXT: %[[V:.*]] = accel.reshape %[[A]]
// CHECK-NEXT: return %[[A]], %[[V]], %[[A]]
func.func @view_of_a_result(%x: tensor<4x8xf32> {accel.layout = #plain})
    -> (tensor<4x8xf32> {accel.layout = #plain, accel.name = "y", accel.owner = "y"},
        tensor<32xf32> {accel.layout = #accel.layout<affine_map<() -> (32)>, affine_map<() -> (1)>>, accel.name = "v",
                        accel.owner = "y"},
        tensor<4x8xf32> {accel.layout = #plain, accel.name = "y", accel.owner = "y"}) {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.copy ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = accel.reshape %a : tensor<4x8xf32> -> tensor<32xf32>
  return %a, %v, %a : tensor<4x8xf32>, tensor<32xf32>, tensor<4x8xf32>
}

// What an argument held before the function wrote to it is copied before the write, wherever it is used.
// CHECK-LABEL: func.func @read_before_written
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK: %[[C:.*]] = linalg.copy ins(%[[X]] :
// CHECK: accel.aten_call "aten::copy_"
// CHECK: return %[[C]]
func.func @read_before_written(%x: tensor<4x8xf32> {accel.layout = #plain, accel.name = "x"}, %y: tensor<4x8xf32> {accel.layout = #plain, accel.name = "y"})
    -> (tensor<4x8xf32> {accel.layout = #plain, accel.name = "old", accel.owner = "old"}) {
  accel.aten_call "aten::copy_" "default" "fallback"(%x, %y) {args = [#accel.operand<0>, #accel.operand<1>], effects}
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> ()
  return %x : tensor<4x8xf32>
}

// PyTorch has no negative strides.
// CHECK-LABEL: func.func @flipped_operand
// CHECK: %[[V:.*]] = accel.view
// CHECK: %[[C:.*]] = linalg.copy ins(%[[V]] :
// CHECK: accel.aten_call "aten::cumsum" "default" "fallback"(%[[C]])
func.func @flipped_operand(%x: tensor<8xf32>) -> tensor<8xf32> {
  %v = accel.view %x by affine_map<(i) -> (-i + 7)> : tensor<8xf32> -> tensor<8xf32>
  %r = accel.aten_call "aten::cumsum" "default" "fallback"(%v) {args = [#accel.operand<0>, 0]} : (tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// Heads times features of a symbolic batch: the strides don't line up, whatever the batch is.
// CHECK-LABEL: func.func @symbolic_reshape
// CHECK: %[[V:.*]] = accel.view
// CHECK: %[[C:.*]] = linalg.copy ins(%[[V]] : tensor<?x16x12x64xf32>)
// CHECK: accel.reshape %[[C]]
func.func @symbolic_reshape(%n: index, %x: tensor<?x12x16x64xf32> {accel.layout =
    #accel.layout<affine_map<()[s0] -> (s0, 12, 16, 64)>, affine_map<()[s0] -> (12288, 1024, 64, 1)>>}) -> tensor<?x16x768xf32> {
  %v = accel.view %x by affine_map<(b, i, h, d) -> (b, h, i, d)> sizes(%n) : tensor<?x12x16x64xf32> -> tensor<?x16x12x64xf32>
  %r = accel.reshape %v sizes(%n) : tensor<?x16x12x64xf32> -> tensor<?x16x768xf32>
  return %r : tensor<?x16x768xf32>
}
