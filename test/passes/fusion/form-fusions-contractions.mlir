// RUN: accel-opt %s --accel-form-fusions --accel-verify-fusions | FileCheck %s

// What shares a kernel with a product.

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#unary = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
#binary = {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
#product = {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
            iterator_types = ["parallel", "parallel", "reduction"]}

// What reads it, as bias, activation and residual do. The terms are the row loop.
// CHECK-LABEL: func.func @epilogue
// CHECK: %[[F:.*]] = accel.fusion parallel(2) rows(1) {
// CHECK: arith.mulf
// CHECK: attrs = {accel.loops = array<i64: 0, 1>}
// CHECK: math.erf
// CHECK: accel.yield
// CHECK-NEXT: } -> tensor<15x64xf32>
// CHECK-NEXT: return %[[F]]
func.func @epilogue(%a: tensor<15x33xf32>, %b: tensor<33x64xf32>, %bias: tensor<64xf32>, %x: tensor<15x64xf32>) -> tensor<15x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<15x64xf32>) -> tensor<15x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<15x33xf32>, tensor<33x64xf32>) outs(%z : tensor<15x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<15x64xf32>
  %q = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %bias : tensor<15x64xf32>, tensor<64xf32>) outs(%e : tensor<15x64xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.addf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<15x64xf32>
  %g = linalg.generic #unary ins(%q : tensor<15x64xf32>) outs(%e : tensor<15x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.erf %v : f32
    linalg.yield %r : f32
  } -> tensor<15x64xf32>
  %y = linalg.generic #binary ins(%g, %x : tensor<15x64xf32>, tensor<15x64xf32>) outs(%e : tensor<15x64xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.addf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<15x64xf32>
  return %y : tensor<15x64xf32>
}

// The product itself is returned, too.
// CHECK-LABEL: func.func @two_results
// CHECK: accel.fusion parallel(2) rows(1) {
// CHECK: } -> tensor<15x64xf32>, tensor<15x64xf32>
// CHECK-NOT: accel.fusion
// CHECK: return
func.func @two_results(%a: tensor<15x33xf32>, %b: tensor<33x64xf32>) -> (tensor<15x64xf32>, tensor<15x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<15x64xf32>) -> tensor<15x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<15x33xf32>, tensor<33x64xf32>) outs(%z : tensor<15x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<15x64xf32>
  %g = linalg.generic #unary ins(%p : tensor<15x64xf32>) outs(%e : tensor<15x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.erf %v : f32
    linalg.yield %r : f32
  } -> tensor<15x64xf32>
  return %p, %g : tensor<15x64xf32>, tensor<15x64xf32>
}

// What is cheap goes into the product that reads it.
// CHECK-LABEL: func.func @prologue
// CHECK: accel.fusion parallel(2) rows(1) {
// CHECK: arith.negf
// CHECK: arith.mulf
// CHECK: accel.yield
// CHECK-NOT: accel.fusion
// CHECK: return
func.func @prologue(%x: tensor<15x33xf32>, %b: tensor<33x64xf32>) -> tensor<15x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<15x64xf32>) -> tensor<15x64xf32>
  %e33 = tensor.empty() : tensor<15x33xf32>
  %a = linalg.generic #unary ins(%x : tensor<15x33xf32>) outs(%e33 : tensor<15x33xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  } -> tensor<15x33xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<15x33xf32>, tensor<33x64xf32>) outs(%z : tensor<15x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<15x64xf32>
  return %p : tensor<15x64xf32>
}
