// RUN: accel-opt %s --accel-outline-kernels --verify-diagnostics --split-input-file

// A reshape that no strides can express is not in memory, and the pass that copies was not run.
func.func @reshape_without_copy(%x: tensor<4x8xf32>) -> tensor<32xf32> {
  %t = accel.view %x by affine_map<(i, j) -> (j, i)> : tensor<4x8xf32> -> tensor<8x4xf32>
  %r = accel.reshape %t : tensor<8x4xf32> -> tensor<32xf32>
  // expected-error @below {{reads a tensor that is not in memory in the layout it needs}}
  %a = accel.fusion parallel(1) rows(0) {
    %e = tensor.empty() : tensor<32xf32>
    %c = linalg.copy {accel.loops = array<i64: 0>} ins(%r : tensor<32xf32>) outs(%e : tensor<32xf32>) -> tensor<32xf32>
    accel.yield %c : tensor<32xf32>
  } -> tensor<32xf32>
  return %a : tensor<32xf32>
}

// -----

// A size that is known only from a tensor without a layout is no expression over index arguments.
func.func @unknown_size(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  // expected-error @below {{has a tensor of a size that no index argument gives}}
  %a = accel.fusion parallel(1) rows(0) {
    %e = tensor.empty(%n) : tensor<?xf32>
    %c = linalg.copy {accel.loops = array<i64: 0>} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    accel.yield %c : tensor<?xf32>
  } -> tensor<?xf32>
  return %a : tensor<?xf32>
}
