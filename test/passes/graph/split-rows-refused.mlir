// RUN: accel-opt %s --accel-split-rows --canonicalize | FileCheck %s

// What stays as it is: the product has two loops for its result, and a view splits its rows.

#product = {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
            iterator_types = ["parallel", "parallel", "reduction"]}
#id = affine_map<(i, j) -> (i, j)>
#unary = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}

// Rows by columns: no row-major split.
// CHECK-LABEL: func.func @transposed(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<32x64xf32>)
// CHECK: accel.view
func.func @transposed(%a: tensor<32x33xf32>, %b: tensor<33x64xf32>) -> tensor<4x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %v = accel.view %p by affine_map<(i, j, n) -> (j * 4 + i, n)> : tensor<32x64xf32> -> tensor<4x8x64xf32>
  return %v : tensor<4x8x64xf32>
}

// The first 24 of 32 rows.
// CHECK-LABEL: func.func @part(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<32x64xf32>)
// CHECK: accel.view
func.func @part(%a: tensor<32x33xf32>, %b: tensor<33x64xf32>) -> tensor<3x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %v = accel.view %p by affine_map<(i, j, n) -> (i * 8 + j, n)> : tensor<32x64xf32> -> tensor<3x8x64xf32>
  return %v : tensor<3x8x64xf32>
}

// The last 24.
// CHECK-LABEL: func.func @shifted(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<32x64xf32>)
// CHECK: accel.view
func.func @shifted(%a: tensor<32x33xf32>, %b: tensor<33x64xf32>) -> tensor<3x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %v = accel.view %p by affine_map<(i, j, n) -> (i * 8 + j + 8, n)> : tensor<32x64xf32> -> tensor<3x8x64xf32>
  return %v : tensor<3x8x64xf32>
}

// Rows that overlap.
// CHECK-LABEL: func.func @windows(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<32x64xf32>)
// CHECK: accel.view
func.func @windows(%a: tensor<32x33xf32>, %b: tensor<33x64xf32>) -> tensor<7x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %v = accel.view %p by affine_map<(i, j, n) -> (i * 4 + j, n)> : tensor<32x64xf32> -> tensor<7x8x64xf32>
  return %v : tensor<7x8x64xf32>
}

// Each row twice.
// CHECK-LABEL: func.func @repeated(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<32x64xf32>)
// CHECK: accel.view
func.func @repeated(%a: tensor<32x33xf32>, %b: tensor<33x64xf32>) -> tensor<4x8x2x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %v = accel.view %p by affine_map<(i, j, r, n) -> (i * 8 + j, n)> : tensor<32x64xf32> -> tensor<4x8x2x64xf32>
  return %v : tensor<4x8x2x64xf32>
}

// Rows that may not exist.
// CHECK-LABEL: func.func @padded(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<32x64xf32>)
// CHECK: accel.view
func.func @padded(%a: tensor<32x33xf32>, %b: tensor<33x64xf32>) -> tensor<4x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %v = accel.view %p by affine_map<(i, j, n) -> (i * 8 + j, n)> padded : tensor<32x64xf32> -> tensor<4x8x64xf32>
  return %v : tensor<4x8x64xf32>
}

// Nothing is split.
// CHECK-LABEL: func.func @whole(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<32x64xf32>)
// CHECK: accel.view
func.func @whole(%a: tensor<32x33xf32>, %b: tensor<33x64xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %v = accel.view %p by affine_map<(n, m) -> (m, n)> : tensor<32x64xf32> -> tensor<64x32xf32>
  return %v : tensor<64x32xf32>
}

// The first s1 * 8 of s0 * 8 rows: the loops of the product are those of A.
// CHECK-LABEL: func.func @symbolic_part(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<?x64xf32>)
// CHECK: accel.view
func.func @symbolic_part(%s0: index, %s1: index, %x: tensor<?x8x33xf32>, %b: tensor<33x64xf32>) -> tensor<?x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c8 = arith.constant 8 : index
  %rows = arith.muli %s0, %c8 : index
  %a = accel.reshape %x sizes(%rows) : tensor<?x8x33xf32> -> tensor<?x33xf32>
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<?x33xf32>, tensor<33x64xf32>) outs(%i : tensor<?x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<?x64xf32>
  %v = accel.view %p by affine_map<(i, j, n) -> (i * 8 + j, n)> sizes(%s1) : tensor<?x64xf32> -> tensor<?x8x64xf32>
  return %v : tensor<?x8x64xf32>
}

// Pointwise work without a product.
// CHECK-LABEL: func.func @pointwise(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<32x64xf32>)
// CHECK: accel.view
func.func @pointwise(%x: tensor<32x64xf32>) -> tensor<4x8x64xf32> {
  %e = tensor.empty() : tensor<32x64xf32>
  %p = linalg.generic #unary ins(%x : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %v = accel.view %p by affine_map<(i, j, n) -> (i * 8 + j, n)> : tensor<32x64xf32> -> tensor<4x8x64xf32>
  return %v : tensor<4x8x64xf32>
}

// An op that asks for the numbers of its loops.
// CHECK-LABEL: func.func @asks_for_rows(
// CHECK: linalg.index
// CHECK: accel.view
func.func @asks_for_rows(%a: tensor<32x33xf32>, %b: tensor<33x64xf32>) -> tensor<4x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %q = linalg.generic #unary ins(%p : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %row = linalg.index 0 : index
    %number = arith.index_cast %row : index to i64
    %real = arith.sitofp %number : i64 to f32
    %r = arith.addf %v, %real : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %v = accel.view %q by affine_map<(i, j, n) -> (i * 8 + j, n)> : tensor<32x64xf32> -> tensor<4x8x64xf32>
  return %v : tensor<4x8x64xf32>
}
