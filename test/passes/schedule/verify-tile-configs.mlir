// RUN: accel-opt %s --accel-verify-tile-configs | FileCheck %s

#plain = #accel.layout<affine_map<() -> (64)>, affine_map<() -> (1)>>

// A target, and a schedule within the kernel's loops.
// CHECK-LABEL: accel.kernel @fine
accel.kernel @fine(%x: tensor<64xf32> {accel.layout = #plain}) -> (tensor<64xf32> {accel.layout = #plain})
    attributes {parallel = 1 : i64, rows = 0 : i64, target = #accel.target<"cpu", "znver4", "+avx">,
                tile_config = #accel.tile_config<vector_loop = 0, vector = 8, block = 64, rows = 1, grain = 1>} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.copy {accel.loops = array<i64: 0>} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  accel.yield %r : tensor<64xf32>
}
