// RUN: accel-opt %s --accel-verify-tile-configs --verify-diagnostics --split-input-file

#plain = #accel.layout<affine_map<() -> (64)>, affine_map<() -> (1)>>
// expected-error @below {{kernel 'unscheduled' has no tile_config}}
accel.kernel @unscheduled(%x: tensor<64xf32> {accel.layout = #plain}) attributes {parallel = 1 : i64, rows = 0 : i64} {
  accel.yield
}

// -----

#plain = #accel.layout<affine_map<() -> (64)>, affine_map<() -> (1)>>
// expected-error @below {{kernel 'untargeted' has no target}}
accel.kernel @untargeted(%x: tensor<64xf32> {accel.layout = #plain})
    attributes {parallel = 1 : i64, rows = 0 : i64,
                tile_config = #accel.tile_config<vector_loop = 0, vector = 8, block = 64, rows = 1, grain = 1>} {
  accel.yield
}

// -----

// The kernel's two loops run as one, so there is no loop 1.
#plain = #accel.layout<affine_map<() -> (4, 8)>, affine_map<() -> (8, 1)>>
// expected-error @below {{kernel 'no_such_loop' has 1 loops, its vector_loop is 1}}
accel.kernel @no_such_loop(%x: tensor<4x8xf32> {accel.layout = #plain}) -> (tensor<4x8xf32> {accel.layout = #plain})
    attributes {parallel = 2 : i64, rows = 0 : i64, target = #accel.target<"cpu", "znver4", "+avx">,
                tile_config = #accel.tile_config<vector_loop = 1, vector = 8, block = 64, rows = 1, grain = 1>} {
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.copy {accel.loops = array<i64: 0, 1>} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  accel.yield %r : tensor<4x8xf32>
}
