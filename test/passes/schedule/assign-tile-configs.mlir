// RUN: accel-opt %s --accel-assign-tile-configs="cpu=x86-64-v3 features=+avx,+avx2,+fma" --accel-verify-tile-configs \
// RUN:   | FileCheck %s --check-prefixes=CHECK,AVX2
// RUN: accel-opt %s --accel-assign-tile-configs="cpu=x86-64-v4 features=+avx,+avx2,+avx512f,+fma" --accel-verify-tile-configs \
// RUN:   | FileCheck %s --check-prefixes=CHECK,AVX512
// RUN: accel-opt %s --accel-assign-tile-configs="cpu=x86-64" | FileCheck %s --check-prefixes=CHECK,SSE

#plain = #accel.layout<affine_map<() -> (64, 256)>, affine_map<() -> (256, 1)>>
#swapped = #accel.layout<affine_map<() -> (64, 256)>, affine_map<() -> (1, 64)>>
#rows = #accel.layout<affine_map<() -> (64)>, affine_map<() -> (1)>>
#columns = #accel.layout<affine_map<() -> (256)>, affine_map<() -> (1)>>
#unary = {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}

// Two registers a value for pointwise work; both loops run as one.
// CHECK-LABEL: accel.kernel @pointwise
// AVX2-SAME: target = #accel.target<"cpu", "x86-64-v3", "+avx,+avx2,+fma">
// AVX2-SAME: vector_loop = 0, vector = 16, block = 4096,
// AVX512-SAME: vector_loop = 0, vector = 32, block = 4096,
// SSE-SAME: vector_loop = 0, vector = 8, block = 4096,
accel.kernel @pointwise(%x: tensor<64x256xf32> {accel.layout = #plain}) -> (tensor<64x256xf32> {accel.layout = #plain})
    attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64x256xf32>
  %r = linalg.generic #unary ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<64x256xf32>
  accel.yield %r : tensor<64x256xf32>
}

// One where the vector mathematics library is called, for a call spills all registers.
// CHECK-LABEL: accel.kernel @mathematics
// AVX2-SAME: vector = 8,
// AVX512-SAME: vector = 16,
accel.kernel @mathematics(%x: tensor<64x256xf32> {accel.layout = #plain}) -> (tensor<64x256xf32> {accel.layout = #plain})
    attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64x256xf32>
  %r = linalg.generic #unary ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%v: f32, %o: f32):
    %n = math.log %v : f32
    linalg.yield %n : f32
  } -> tensor<64x256xf32>
  accel.yield %r : tensor<64x256xf32>
}

// exp is computed in place where multiply-adds fuse, and two of them hide each other's latency.
// CHECK-LABEL: accel.kernel @inline_mathematics
// AVX2-SAME: vector = 16,
// AVX512-SAME: vector = 32,
accel.kernel @inline_mathematics(%x: tensor<64x256xf32> {accel.layout = #plain}) -> (tensor<64x256xf32> {accel.layout = #plain})
    attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64x256xf32>
  %r = linalg.generic #unary ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%v: f32, %o: f32):
    %n = math.exp %v : f32
    linalg.yield %n : f32
  } -> tensor<64x256xf32>
  accel.yield %r : tensor<64x256xf32>
}

// Four for a reduction along the contiguous dimension: the lanes are along the row.
// CHECK-LABEL: accel.kernel @row_reduction
// AVX2-SAME: vector_loop = 1, vector = 32, block = 32,
// AVX512-SAME: vector_loop = 1, vector = 64, block = 64,
accel.kernel @row_reduction(%x: tensor<64x256xf32> {accel.layout = #plain}) -> (tensor<64xf32> {accel.layout = #rows})
    attributes {parallel = 1 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<64x256xf32>) outs(%i : tensor<64xf32>) dimensions = [1] {accel.loops = array<i64: 0, 1>}
  accel.yield %r : tensor<64xf32>
}

// However many results there are for a row: they are written once.
// CHECK-LABEL: accel.kernel @two_row_reductions
// AVX2-SAME: vector_loop = 1, vector = 32, block = 32,
// AVX512-SAME: vector_loop = 1, vector = 64, block = 64,
accel.kernel @two_row_reductions(%x: tensor<64x256xf32> {accel.layout = #plain})
    -> (tensor<64xf32> {accel.layout = #rows}, tensor<64xf32> {accel.layout = #rows})
    attributes {parallel = 1 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<64x256xf32>) outs(%i : tensor<64xf32>) dimensions = [1] {accel.loops = array<i64: 0, 1>}
  %s = linalg.reduce {arith.maximumf} ins(%x : tensor<64x256xf32>) outs(%i : tensor<64xf32>) dimensions = [1] {accel.loops = array<i64: 0, 1>}
  accel.yield %r, %s : tensor<64xf32>, tensor<64xf32>
}

// Over the other dimension the lanes are along the columns that stay, which is where memory is contiguous.
// CHECK-LABEL: accel.kernel @column_reduction
// AVX2-SAME: vector_loop = 0, vector = 32, block = 32,
accel.kernel @column_reduction(%x: tensor<64x256xf32> {accel.layout = #plain}) -> (tensor<256xf32> {accel.layout = #columns})
    attributes {parallel = 1 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<64x256xf32>) outs(%i : tensor<256xf32>) dimensions = [0] {accel.loops = array<i64: 1, 0>}
  accel.yield %r : tensor<256xf32>
}

// Transposed in and out: the loops are put in the order of memory, where they are one.
// CHECK-LABEL: accel.kernel @both_transposed
// AVX2-SAME: vector_loop = 0, vector = 16,
accel.kernel @both_transposed(%x: tensor<64x256xf32> {accel.layout = #swapped}) -> (tensor<64x256xf32> {accel.layout = #swapped})
    attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64x256xf32>
  %r = linalg.generic #unary ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<64x256xf32>
  accel.yield %r : tensor<64x256xf32>
}

// Where one tensor is transposed, the store decides, which counts twice; a unit is a tile, so that cache lines are used whole.
// CHECK-LABEL: accel.kernel @transposition
// AVX2-SAME: vector_loop = 1, vector = 16, block = 256, rows = 16,
accel.kernel @transposition(%x: tensor<64x256xf32> {accel.layout = #swapped}) -> (tensor<64x256xf32> {accel.layout = #plain})
    attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64x256xf32>
  %r = linalg.copy {accel.loops = array<i64: 0, 1>} ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) -> tensor<64x256xf32>
  accel.yield %r : tensor<64x256xf32>
}

// A short loop gets the next power of two, no more.
// CHECK-LABEL: accel.kernel @short
// CHECK-SAME: vector_loop = 0, vector = 4, block =
accel.kernel @short(%x: tensor<3xf32> {accel.layout = #accel.layout<affine_map<() -> (3)>, affine_map<() -> (1)>>})
    -> (tensor<3xf32> {accel.layout = #accel.layout<affine_map<() -> (3)>, affine_map<() -> (1)>>})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.copy {accel.loops = array<i64: 0>} ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  accel.yield %r : tensor<3xf32>
}

// A scalar has no loop.
// CHECK-LABEL: accel.kernel @scalar
// CHECK-SAME: vector_loop = -1, vector = 1,
accel.kernel @scalar(%x: tensor<f32> {accel.layout = #accel.layout<affine_map<() -> ()>, affine_map<() -> ()>>})
    -> (tensor<f32> {accel.layout = #accel.layout<affine_map<() -> ()>, affine_map<() -> ()>>})
    attributes {parallel = 0 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<f32>
  %r = linalg.copy {accel.loops = array<i64>} ins(%x : tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  accel.yield %r : tensor<f32>
}

// A window's weights are the same for all pixels of a row, so several are done together, in tiles of equal height.
// CHECK-LABEL: accel.kernel @depthwise
// AVX2-SAME: vector = 16, block = 16, rows = 12, grain = 16384, tile = 4>
// AVX512-SAME: vector = 32, block = 32, rows = 14, grain = 16384, tile = 7>
accel.kernel @depthwise(%x: tensor<9x16x64xf32> {accel.layout = #accel.layout<affine_map<() -> (9, 16, 64)>, affine_map<() -> (1024, 64, 1)>>},
                        %w: tensor<3x64xf32> {accel.layout = #accel.layout<affine_map<() -> (3, 64)>, affine_map<() -> (64, 1)>>})
    -> (tensor<9x14x64xf32> {accel.layout = #accel.layout<affine_map<() -> (9, 14, 64)>, affine_map<() -> (896, 64, 1)>>})
    attributes {parallel = 3 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %v = accel.view %x by affine_map<(h, w, k, c) -> (h, w + k, c)> : tensor<9x16x64xf32> -> tensor<9x14x3x64xf32>
  %e = tensor.empty() : tensor<9x14x3x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(h, w, k, c) -> (h, w, k, c)>, affine_map<(h, w, k, c) -> (k, c)>, affine_map<(h, w, k, c) -> (h, w, k, c)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v, %w : tensor<9x14x3x64xf32>, tensor<3x64xf32>) outs(%e : tensor<9x14x3x64xf32>) attrs = {accel.loops = array<i64: 0, 1, 3, 2>} {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    linalg.yield %m : f32
  } -> tensor<9x14x3x64xf32>
  %e2 = tensor.empty() : tensor<9x14x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e2 : tensor<9x14x64xf32>) -> tensor<9x14x64xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<9x14x3x64xf32>) outs(%f : tensor<9x14x64xf32>) dimensions = [2] {accel.loops = array<i64: 0, 1, 3, 2>}
  accel.yield %s : tensor<9x14x64xf32>
}
