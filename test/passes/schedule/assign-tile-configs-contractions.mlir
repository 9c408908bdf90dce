// RUN: accel-opt %s --accel-assign-tile-configs="cpu=x86-64-v3 features=+avx,+avx2,+fma" --accel-verify-tile-configs \
// RUN:   | FileCheck %s --check-prefixes=CHECK,AVX2
// RUN: accel-opt %s --accel-assign-tile-configs="cpu=x86-64-v4 features=+avx,+avx2,+fma,+avx512f" --accel-verify-tile-configs \
// RUN:   | FileCheck %s --check-prefixes=CHECK,AVX512

// Tiles of registers for products: columns in the vector, rows in the tile, a block of rows for each unit of work.

// Two registers of columns, and as many rows as leave one for A and two for B: 6 of 16, 14 of 32.
// CHECK-LABEL: accel.kernel @many
// AVX2-SAME: vector_loop = 1, vector = 16, block = 16, rows = 1500, grain = 16384, tile = 6
// AVX512-SAME: vector_loop = 1, vector = 32, block = 32, rows = 602, grain = 16384, tile = 14
accel.kernel @many(%a: tensor<3000x64xf32> {accel.layout = #accel.layout<affine_map<() -> (3000, 64)>, affine_map<() -> (64, 1)>>}, %b: tensor<64x128xf32> {accel.layout = #accel.layout<affine_map<() -> (64, 128)>, affine_map<() -> (128, 1)>>})
    -> (tensor<3000x128xf32> {accel.layout = #accel.layout<affine_map<() -> (3000, 128)>, affine_map<() -> (128, 1)>>}) attributes {parallel = 2 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3000x128xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<3000x128xf32>) -> tensor<3000x128xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<3000x64xf32>, tensor<64x128xf32>) outs(%i : tensor<3000x128xf32>) attrs = {accel.loops = array<i64: 0, 1, 2>} {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %x = arith.mulf %l, %r : f32
    %y = arith.addf %s, %x : f32
    linalg.yield %y : f32
  } -> tensor<3000x128xf32>
  accel.yield %p : tensor<3000x128xf32>
}

// 15 rows are three tiles of 5, or two of 8 and 7.
// CHECK-LABEL: accel.kernel @equal_heights
// AVX2-SAME: vector = 16, block = 16, rows = 5, grain = 16384, tile = 5>
// AVX512-SAME: vector = 32, block = 32, rows = 8, grain = 16384, tile = 8>
accel.kernel @equal_heights(%a: tensor<15x64xf32> {accel.layout = #accel.layout<affine_map<() -> (15, 64)>, affine_map<() -> (64, 1)>>}, %b: tensor<64x128xf32> {accel.layout = #accel.layout<affine_map<() -> (64, 128)>, affine_map<() -> (128, 1)>>})
    -> (tensor<15x128xf32> {accel.layout = #accel.layout<affine_map<() -> (15, 128)>, affine_map<() -> (128, 1)>>}) attributes {parallel = 2 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x128xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<15x128xf32>) -> tensor<15x128xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<15x64xf32>, tensor<64x128xf32>) outs(%i : tensor<15x128xf32>) attrs = {accel.loops = array<i64: 0, 1, 2>} {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %x = arith.mulf %l, %r : f32
    %y = arith.addf %s, %x : f32
    linalg.yield %y : f32
  } -> tensor<15x128xf32>
  accel.yield %p : tensor<15x128xf32>
}

// One row: eight registers of columns.
// CHECK-LABEL: accel.kernel @one_row
// AVX2-SAME: vector = 64, block = 64, rows = 1, grain = 16384>
// AVX512-SAME: vector = 128, block = 128, rows = 1, grain = 16384>
accel.kernel @one_row(%a: tensor<1x64xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 64)>, affine_map<() -> (64, 1)>>}, %b: tensor<64x512xf32> {accel.layout = #accel.layout<affine_map<() -> (64, 512)>, affine_map<() -> (512, 1)>>})
    -> (tensor<1x512xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 512)>, affine_map<() -> (512, 1)>>}) attributes {parallel = 2 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x512xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<1x512xf32>) -> tensor<1x512xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1x64xf32>, tensor<64x512xf32>) outs(%i : tensor<1x512xf32>) attrs = {accel.loops = array<i64: 0, 1, 2>} {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %x = arith.mulf %l, %r : f32
    %y = arith.addf %s, %x : f32
    linalg.yield %y : f32
  } -> tensor<1x512xf32>
  accel.yield %p : tensor<1x512xf32>
}

// Columns that fit into one register leave room for more rows.
// CHECK-LABEL: accel.kernel @few_columns
// AVX2-SAME: vector = 8, block = 8, rows = 14, grain = 16384, tile = 14>
// AVX512-SAME: vector = 16, block = 16, rows = 30, grain = 16384, tile = 30>
accel.kernel @few_columns(%a: tensor<300x64xf32> {accel.layout = #accel.layout<affine_map<() -> (300, 64)>, affine_map<() -> (64, 1)>>}, %b: tensor<64x8xf32> {accel.layout = #accel.layout<affine_map<() -> (64, 8)>, affine_map<() -> (8, 1)>>})
    -> (tensor<300x8xf32> {accel.layout = #accel.layout<affine_map<() -> (300, 8)>, affine_map<() -> (8, 1)>>}) attributes {parallel = 2 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<300x8xf32>) -> tensor<300x8xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<300x64xf32>, tensor<64x8xf32>) outs(%i : tensor<300x8xf32>) attrs = {accel.loops = array<i64: 0, 1, 2>} {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %x = arith.mulf %l, %r : f32
    %y = arith.addf %s, %x : f32
    linalg.yield %y : f32
  } -> tensor<300x8xf32>
  accel.yield %p : tensor<300x8xf32>
}

// Half as many lanes.
// CHECK-LABEL: accel.kernel @doubles
// AVX2-SAME: vector = 8, block = 8, rows = 300, grain = 16384, tile = 6>
// AVX512-SAME: vector = 16, block = 16, rows = 154, grain = 16384, tile = 14>
accel.kernel @doubles(%a: tensor<300x64xf64> {accel.layout = #accel.layout<affine_map<() -> (300, 64)>, affine_map<() -> (64, 1)>>}, %b: tensor<64x128xf64> {accel.layout = #accel.layout<affine_map<() -> (64, 128)>, affine_map<() -> (128, 1)>>})
    -> (tensor<300x128xf64> {accel.layout = #accel.layout<affine_map<() -> (300, 128)>, affine_map<() -> (128, 1)>>}) attributes {parallel = 2 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<300x128xf64>
  %i = linalg.fill ins(%zero : f64) outs(%e : tensor<300x128xf64>) -> tensor<300x128xf64>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<300x64xf64>, tensor<64x128xf64>) outs(%i : tensor<300x128xf64>) attrs = {accel.loops = array<i64: 0, 1, 2>} {
  ^bb0(%l: f64, %r: f64, %s: f64):
    %x = arith.mulf %l, %r : f64
    %y = arith.addf %s, %x : f64
    linalg.yield %y : f64
  } -> tensor<300x128xf64>
  accel.yield %p : tensor<300x128xf64>
}

// Packed panels say how many columns a tile has.
// CHECK-LABEL: accel.kernel @panels
// AVX2-SAME: vector = 16, block = 16, rows = 60, grain = 16384, tile = 6>
// AVX512-SAME: vector = 16, block = 16, rows = 60, grain = 16384, tile = 30>
accel.kernel @panels(%a: tensor<300x64xf32> {accel.layout = #accel.layout<affine_map<() -> (300, 64)>, affine_map<() -> (64, 1)>>}, %b: tensor<7x64x16xf32> {accel.layout = #accel.layout<affine_map<() -> (7, 64, 16)>, affine_map<() -> (1024, 16, 1)>>})
    -> (tensor<300x100xf32> {accel.layout = #accel.layout<affine_map<() -> (300, 100)>, affine_map<() -> (100, 1)>>}) attributes {parallel = 2 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300x100xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<300x100xf32>) -> tensor<300x100xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n floordiv 16, k, n mod 16)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<300x64xf32>, tensor<7x64x16xf32>) outs(%i : tensor<300x100xf32>) attrs = {accel.loops = array<i64: 0, 1, 2>} {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %x = arith.mulf %l, %r : f32
    %y = arith.addf %s, %x : f32
    linalg.yield %y : f32
  } -> tensor<300x100xf32>
  accel.yield %p : tensor<300x100xf32>
}

// The deeper, the fewer rows share a unit: their part of A has a bound.
// CHECK-LABEL: accel.kernel @deep
// AVX2-SAME: rows = 150, grain = 16384, tile = 6>
// AVX512-SAME: rows = 252, grain = 16384, tile = 14>
accel.kernel @deep(%a: tensor<3000x4096xf32> {accel.layout = #accel.layout<affine_map<() -> (3000, 4096)>, affine_map<() -> (4096, 1)>>}, %b: tensor<4096x128xf32> {accel.layout = #accel.layout<affine_map<() -> (4096, 128)>, affine_map<() -> (128, 1)>>})
    -> (tensor<3000x128xf32> {accel.layout = #accel.layout<affine_map<() -> (3000, 128)>, affine_map<() -> (128, 1)>>}) attributes {parallel = 2 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3000x128xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<3000x128xf32>) -> tensor<3000x128xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<3000x4096xf32>, tensor<4096x128xf32>) outs(%i : tensor<3000x128xf32>) attrs = {accel.loops = array<i64: 0, 1, 2>} {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %x = arith.mulf %l, %r : f32
    %y = arith.addf %s, %x : f32
    linalg.yield %y : f32
  } -> tensor<3000x128xf32>
  accel.yield %p : tensor<3000x128xf32>
}
