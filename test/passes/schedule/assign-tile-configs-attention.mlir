// RUN: accel-opt %s --accel-assign-tile-configs="cpu=x86-64-v3 features=+avx,+avx2,+fma" --accel-verify-tile-configs \
// RUN:   | FileCheck %s --check-prefixes=CHECK,AVX2
// RUN: accel-opt %s --accel-assign-tile-configs="cpu=x86-64-v4 features=+avx,+avx2,+avx512f" --accel-verify-tile-configs \
// RUN:   | FileCheck %s --check-prefixes=CHECK,AVX512

// Two registers of query rows, and a tile that fills the others.
// CHECK-LABEL: accel.kernel @long
// AVX2-SAME: vector_loop = -1, vector = 16, block = 128, rows = 64, grain = 16384, tile = 6
// AVX512-SAME: vector_loop = -1, vector = 32, block = 128, rows = 64, grain = 16384, tile = 14
accel.kernel @long(%q: tensor<1x2x512x8xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 2, 512, 8)>, affine_map<() -> (8192, 4096, 8, 1)>>},
    %k: tensor<1x2x512x8xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 2, 512, 8)>, affine_map<() -> (8192, 4096, 8, 1)>>})
    -> (tensor<1x512x2x8xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 512, 2, 8)>, affine_map<() -> (8192, 16, 8, 1)>>}) attributes {parallel = 0 : i64, rows = 0 : i64} {
  %o, %l = accel.attention %q, %k, %k scale(1.0) : (tensor<1x2x512x8xf32>, tensor<1x2x512x8xf32>, tensor<1x2x512x8xf32>) -> (tensor<1x512x2x8xf32>, tensor<1x512x2xf32>)
  accel.yield %o : tensor<1x512x2x8xf32>
}

// Sizes that nobody knows count as long.
// CHECK-LABEL: accel.kernel @symbolic
// AVX2-SAME: vector = 16, block = 128, rows = 64,
// AVX512-SAME: vector = 32, block = 128, rows = 64,
accel.kernel @symbolic(%q: tensor<1x2x?x8xf32> {accel.layout = #accel.layout<affine_map<()[s] -> (1, 2, s, 8)>, affine_map<()[s] -> (s * 16, s * 8, 8, 1)>>},
    %k: tensor<1x2x?x8xf32> {accel.layout = #accel.layout<affine_map<()[s] -> (1, 2, s, 8)>, affine_map<()[s] -> (s * 16, s * 8, 8, 1)>>}, %s: index)
    -> (tensor<1x?x2x8xf32> {accel.layout = #accel.layout<affine_map<()[s] -> (1, s, 2, 8)>, affine_map<()[s] -> (s * 16, 16, 8, 1)>>}) attributes {parallel = 0 : i64, rows = 0 : i64} {
  %o, %l = accel.attention %q, %k, %k scale(1.0) : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>) -> (tensor<1x?x2x8xf32>, tensor<1x?x2xf32>)
  accel.yield %o : tensor<1x?x2x8xf32>
}

// Blocks of equal height, no higher than there are rows; no more keys in a step than there are.
// CHECK-LABEL: accel.kernel @uneven
// AVX2-SAME: vector = 16, block = 48, rows = 48,
// AVX512-SAME: vector = 32, block = 64, rows = 64,
accel.kernel @uneven(%q: tensor<1x2x66x8xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 2, 66, 8)>, affine_map<() -> (1056, 528, 8, 1)>>},
    %k: tensor<1x2x40x8xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 2, 40, 8)>, affine_map<() -> (640, 320, 8, 1)>>})
    -> (tensor<1x66x2x8xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 66, 2, 8)>, affine_map<() -> (1056, 16, 8, 1)>>}) attributes {parallel = 0 : i64, rows = 0 : i64} {
  %o, %l = accel.attention %q, %k, %k scale(1.0) : (tensor<1x2x66x8xf32>, tensor<1x2x40x8xf32>, tensor<1x2x40x8xf32>) -> (tensor<1x66x2x8xf32>, tensor<1x66x2xf32>)
  accel.yield %o : tensor<1x66x2x8xf32>
}

// A few rows fill one register, or half of one, and leave room for a higher tile.
// CHECK-LABEL: accel.kernel @short
// AVX2-SAME: vector = 4, block = 128, rows = 4, grain = 16384, tile = 14
// AVX512-SAME: vector = 8, block = 128, rows = 8, grain = 16384, tile = 30
accel.kernel @short(%q: tensor<1x2x4x8xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 2, 4, 8)>, affine_map<() -> (64, 32, 8, 1)>>},
    %k: tensor<1x2x512x8xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 2, 512, 8)>, affine_map<() -> (8192, 4096, 8, 1)>>})
    -> (tensor<1x4x2x8xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 4, 2, 8)>, affine_map<() -> (64, 16, 8, 1)>>}) attributes {parallel = 0 : i64, rows = 0 : i64} {
  %o, %l = accel.attention %q, %k, %k scale(1.0) : (tensor<1x2x4x8xf32>, tensor<1x2x512x8xf32>, tensor<1x2x512x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x4x2xf32>)
  accel.yield %o : tensor<1x4x2x8xf32>
}

// Half as many lanes of twice the size.
// CHECK-LABEL: accel.kernel @double
// AVX2-SAME: vector = 8, block = 128, rows = 64,
// AVX512-SAME: vector = 16, block = 128, rows = 64,
accel.kernel @double(%q: tensor<1x2x512x8xf64> {accel.layout = #accel.layout<affine_map<() -> (1, 2, 512, 8)>, affine_map<() -> (8192, 4096, 8, 1)>>},
    %k: tensor<1x2x512x8xf64> {accel.layout = #accel.layout<affine_map<() -> (1, 2, 512, 8)>, affine_map<() -> (8192, 4096, 8, 1)>>})
    -> (tensor<1x512x2x8xf64> {accel.layout = #accel.layout<affine_map<() -> (1, 512, 2, 8)>, affine_map<() -> (8192, 16, 8, 1)>>}) attributes {parallel = 0 : i64, rows = 0 : i64} {
  %o, %l = accel.attention %q, %k, %k scale(1.0) : (tensor<1x2x512x8xf64>, tensor<1x2x512x8xf64>, tensor<1x2x512x8xf64>) -> (tensor<1x512x2x8xf64>, tensor<1x512x2xf64>)
  accel.yield %o : tensor<1x512x2x8xf64>
}
