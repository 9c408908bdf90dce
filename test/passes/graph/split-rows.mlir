// RUN: accel-opt %s --accel-split-rows --canonicalize | FileCheck %s

// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1, d2) -> (d0 * 8 + d1, d2)>
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1, d2) -> (d2)>
// CHECK-DAG: #[[HEADS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 * 16 + d2)>

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#product = {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#unary = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}

// What was flattened is read as it was, and the product has a loop for each dimension.
// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[X:.*]]: tensor<4x8x33xf32>, %[[W:.*]]: tensor<33x64xf32>)
// CHECK-NOT: accel.view
// CHECK-NOT: accel.reshape
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[C]]], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%[[X]], %[[W]] : {{.*}} outs(%{{.*}} : tensor<4x8x64xf32>) attrs = {accel.choice = "why"}
// CHECK: return %[[R]]
func.func @product(%x: tensor<4x8x33xf32>, %b: tensor<33x64xf32>) -> tensor<4x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %a = accel.reshape %x : tensor<4x8x33xf32> -> tensor<32x33xf32>
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) attrs = {accel.choice = "why"} {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %v = accel.view %p by affine_map<(i, j, n) -> (i * 8 + j, n)> : tensor<32x64xf32> -> tensor<4x8x64xf32>
  return %v : tensor<4x8x64xf32>
}

// Through pointwise ops; a row vector stays one, and rows that were never flattened are viewed as such.
// CHECK-LABEL: func.func @epilogue
// CHECK-SAME: (%[[X:.*]]: tensor<32x33xf32>, %[[W:.*]]: tensor<33x64xf32>, %[[BIAS:.*]]: tensor<64xf32>)
// CHECK: %[[V:.*]] = accel.view %[[X]] by #[[ROWS]] : tensor<32x33xf32> -> tensor<4x8x33xf32>
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[V]], %[[W]] : {{.*}} outs(%{{.*}} : tensor<4x8x64xf32>)
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[COLUMN]], #{{.*}}], {{.*}} ins(%[[P]], %[[BIAS]] :
// CHECK: return %[[R]] : tensor<4x8x64xf32>
func.func @epilogue(%a: tensor<32x33xf32>, %b: tensor<33x64xf32>, %bias: tensor<64xf32>) -> tensor<4x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %q = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %bias : tensor<32x64xf32>, tensor<64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %v = accel.view %q by affine_map<(i, j, n) -> (i * 8 + j, n)> : tensor<32x64xf32> -> tensor<4x8x64xf32>
  return %v : tensor<4x8x64xf32>
}

// Columns split into heads.
// CHECK-LABEL: func.func @columns
// CHECK: %[[V:.*]] = accel.view %{{.*}} by #[[HEADS]] : tensor<33x64xf32> -> tensor<33x4x16xf32>
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[V]] : {{.*}} outs(%{{.*}} : tensor<32x4x16xf32>)
// CHECK: return %[[R]]
func.func @columns(%a: tensor<32x33xf32>, %b: tensor<33x64xf32>) -> tensor<32x4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %v = accel.view %p by affine_map<(i, h, n) -> (i, h * 16 + n)> : tensor<32x64xf32> -> tensor<32x4x16xf32>
  return %v : tensor<32x4x16xf32>
}

// Other readers see the rows put together again.
// CHECK-LABEL: func.func @other_reader
// CHECK: %[[R:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4x8x64xf32>)
// CHECK: %[[WHOLE:.*]] = accel.reshape %[[R]] : tensor<4x8x64xf32> -> tensor<32x64xf32>
// CHECK: return %[[R]], %[[WHOLE]]
func.func @other_reader(%a: tensor<32x33xf32>, %b: tensor<33x64xf32>) -> (tensor<4x8x64xf32>, tensor<32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic #product ins(%a, %b : tensor<32x33xf32>, tensor<33x64xf32>) outs(%i : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %m = arith.mulf %l, %r : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %v = accel.view %p by affine_map<(i, j, n) -> (i * 8 + j, n)> : tensor<32x64xf32> -> tensor<4x8x64xf32>
  return %v, %p : tensor<4x8x64xf32>, tensor<32x64xf32>
}

// Sequences of symbolic number.
// CHECK-LABEL: func.func @symbolic(
// CHECK-SAME: %[[S:.*]]: index, %[[X:.*]]: tensor<?x8x33xf32>
// CHECK: tensor.empty(%[[S]]) : tensor<?x8x64xf32>
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[X]], %{{.*}} outs(%{{.*}} : tensor<?x8x64xf32>)
// CHECK: return %[[R]]
func.func @symbolic(%s0: index, %x: tensor<?x8x33xf32>, %b: tensor<33x64xf32>) -> tensor<?x8x64xf32> {
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
  %v = accel.view %p by affine_map<(i, j, n) -> (i * 8 + j, n)> sizes(%s0) : tensor<?x64xf32> -> tensor<?x8x64xf32>
  return %v : tensor<?x8x64xf32>
}
