// RUN: accel-opt %s --accel-assign-tile-configs="cpu=x86-64-v3 features=+avx,+avx2" | FileCheck %s

#plain = #accel.layout<affine_map<() -> (64)>, affine_map<() -> (1)>>

// A target and a schedule that somebody chose are kept.
// CHECK-LABEL: accel.kernel @chosen
// CHECK-SAME: target = #accel.target<"cpu", "znver4", "+avx">
// CHECK-SAME: tile_config = #accel.tile_config<vector_loop = -1, vector = 1, block = 1, rows = 1, grain = 7>
accel.kernel @chosen(%x: tensor<64xf32> {accel.layout = #plain}) -> (tensor<64xf32> {accel.layout = #plain})
    attributes {parallel = 1 : i64, rows = 0 : i64, target = #accel.target<"cpu", "znver4", "+avx">,
                tile_config = #accel.tile_config<vector_loop = -1, vector = 1, block = 1, rows = 1, grain = 7>} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.copy {accel.loops = array<i64: 0>} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  accel.yield %r : tensor<64xf32>
}
