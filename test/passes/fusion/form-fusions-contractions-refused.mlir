// RUN: accel-opt %s --accel-form-fusions --verify-diagnostics --remarks-filter-missed=accel-fusion --remark-format=emitRemark \
// RUN:   | FileCheck %s

// What a product does not share a kernel with.

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#unary = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
#binary = {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
#product = {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
            iterator_types = ["parallel", "parallel", "reduction"]}

// Two products one behind the other.
// CHECK-LABEL: func.func @two_products
// CHECK-COUNT-2: accel.fusion
func.func @two_products(%a: tensor<15x33xf32>, %b: tensor<33x64xf32>, %c: tensor<64x64xf32>) -> tensor<15x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<15x64xf32>) -> tensor<15x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<15x33xf32>, tensor<33x64xf32>) outs(%z : tensor<15x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<15x64xf32>
  // expected-remark @below {{a contraction and another reduction}}
  %q = linalg.generic #product ins(%p, %c : tensor<15x64xf32>, tensor<64x64xf32>) outs(%z : tensor<15x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<15x64xf32>
  return %q : tensor<15x64xf32>
}

// Two that read the same tensor, and of which neither reads the other.
// CHECK-LABEL: func.func @siblings
// CHECK-COUNT-2: accel.fusion
func.func @siblings(%a: tensor<15x33xf32>, %b: tensor<33x64xf32>, %c: tensor<33x64xf32>) -> (tensor<15x64xf32>, tensor<15x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<15x64xf32>) -> tensor<15x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<15x33xf32>, tensor<33x64xf32>) outs(%z : tensor<15x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<15x64xf32>
  %q = linalg.generic #product ins(%a, %c : tensor<15x33xf32>, tensor<33x64xf32>) outs(%z : tensor<15x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<15x64xf32>
  return %p, %q : tensor<15x64xf32>, tensor<15x64xf32>
}

// The sum of each row: a second reduction.
// CHECK-LABEL: func.func @sum
// CHECK-COUNT-2: accel.fusion
func.func @sum(%a: tensor<15x33xf32>, %b: tensor<33x64xf32>) -> tensor<15xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<15x64xf32>) -> tensor<15x64xf32>
  %f = tensor.empty() : tensor<15xf32>
  %y = linalg.fill ins(%zero : f32) outs(%f : tensor<15xf32>) -> tensor<15xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<15x33xf32>, tensor<33x64xf32>) outs(%z : tensor<15x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<15x64xf32>
  // expected-remark @below {{a contraction and another reduction}}
  %s = linalg.reduce {arith.addf} ins(%p : tensor<15x64xf32>) outs(%y : tensor<15xf32>) dimensions = [1]
  return %s : tensor<15xf32>
}

// Exponentials that each column of the result would compute again.
// CHECK-LABEL: func.func @expensive
// CHECK-COUNT-2: accel.fusion
func.func @expensive(%x: tensor<15x33xf32>, %b: tensor<33x64xf32>) -> tensor<15x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<15x64xf32>) -> tensor<15x64xf32>
  %e33 = tensor.empty() : tensor<15x33xf32>
  %a = linalg.generic #unary ins(%x : tensor<15x33xf32>) outs(%e33 : tensor<15x33xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<15x33xf32>
  // expected-remark @below {{an expensive value would be computed more than once}}
  %p = linalg.generic #product ins(%a, %b : tensor<15x33xf32>, tensor<33x64xf32>) outs(%z : tensor<15x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<15x64xf32>
  return %p : tensor<15x64xf32>
}

// Some of its columns.
// CHECK-LABEL: func.func @part
// CHECK-COUNT-2: accel.fusion
func.func @part(%a: tensor<15x33xf32>, %b: tensor<33x64xf32>) -> tensor<15x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<15x64xf32>) -> tensor<15x64xf32>
  %e32 = tensor.empty() : tensor<15x32xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<15x33xf32>, tensor<33x64xf32>) outs(%z : tensor<15x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<15x64xf32>
  %part = accel.view %p by affine_map<(i, j) -> (i, j + 32)> : tensor<15x64xf32> -> tensor<15x32xf32>
  // expected-remark @below {{it reads the value through a slice or a split dimension}}
  %g = linalg.generic #unary ins(%part : tensor<15x32xf32>) outs(%e32 : tensor<15x32xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  } -> tensor<15x32xf32>
  return %g : tensor<15x32xf32>
}
