// RUN: accel-opt %s --split-input-file | FileCheck %s
// RUN: accel-opt %s --split-input-file | accel-opt --split-input-file | FileCheck %s
// RUN: accel-opt %s --split-input-file --mlir-print-op-generic | accel-opt --split-input-file | FileCheck %s

// Every op keeps all that it says through printing and parsing, in its own form and in the generic one.

// CHECK-LABEL: func.func @view
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>, %[[Y:.*]]: tensor<?x?xf32>, %[[N:.*]]: index, %[[M:.*]]: index)
func.func @view(%x: tensor<8x4xf32>, %y: tensor<?x?xf32>, %n: index, %m: index) -> (tensor<3x8xf32>, tensor<?x?xf32>) {
  // CHECK: accel.view %[[X]] by #{{.*}} : tensor<8x4xf32> -> tensor<3x8xf32>
  %0 = accel.view %x by affine_map<(d0, d1) -> (d1, d0 + 1)> : tensor<8x4xf32> -> tensor<3x8xf32>
  // CHECK: accel.view %[[Y]][%[[N]]] by #{{.*}} sizes(%[[M]], %[[N]]) : tensor<?x?xf32> -> tensor<?x?xf32>
  %1 = accel.view %y[%n] by affine_map<(d0, d1)[s0] -> (d1 + s0, d0)> sizes(%m, %n) : tensor<?x?xf32> -> tensor<?x?xf32>
  return %0, %1 : tensor<3x8xf32>, tensor<?x?xf32>
}

// -----

// CHECK-LABEL: func.func @reshape
// CHECK-SAME: (%[[X:.*]]: tensor<?x12x64xf32>, %[[S:.*]]: tensor<f32>, %[[N:.*]]: index)
func.func @reshape(%x: tensor<?x12x64xf32>, %s: tensor<f32>, %n: index) -> (tensor<?x768xf32>, tensor<1x1xf32>) {
  // CHECK: accel.reshape %[[X]] sizes(%[[N]]) : tensor<?x12x64xf32> -> tensor<?x768xf32>
  %0 = accel.reshape %x sizes(%n) : tensor<?x12x64xf32> -> tensor<?x768xf32>
  // CHECK: accel.reshape %[[S]] : tensor<f32> -> tensor<1x1xf32>
  %1 = accel.reshape %s : tensor<f32> -> tensor<1x1xf32>
  return %0, %1 : tensor<?x768xf32>, tensor<1x1xf32>
}

// -----

// CHECK-LABEL: func.func @concat
func.func @concat(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>, %c: tensor<?x2xf32>, %n: index) -> (tensor<4x5xf32>, tensor<?x2xf32>) {
  // CHECK: accel.concat dim(1) %{{.*}}, %{{.*}} : tensor<4x2xf32>, tensor<4x3xf32> -> tensor<4x5xf32>
  %0 = accel.concat dim(1) %a, %b : tensor<4x2xf32>, tensor<4x3xf32> -> tensor<4x5xf32>
  // CHECK: accel.concat dim(0) %{{.*}}, %{{.*}} sizes(%{{.*}}) : tensor<?x2xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
  %1 = accel.concat dim(0) %c, %a sizes(%n) : tensor<?x2xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
  return %0, %1 : tensor<4x5xf32>, tensor<?x2xf32>
}

// -----

// CHECK-LABEL: func.func @aten_call
// CHECK-SAME: (%[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8x2xf32>, %[[N:.*]]: index)
func.func @aten_call(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %n: index) -> tensor<4x2xf32> {
  // CHECK: accel.aten_call "aten::mm" "out" "library"(%[[A]], %[[B]]) {args = [#accel.operand<0>, #accel.operand<1>]}
  // CHECK-SAME: : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %0 = accel.aten_call "aten::mm" "out" "library"(%a, %b) {args = [#accel.operand<0>, #accel.operand<1>]}
      : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  // CHECK: accel.aten_call "aten::fill_" "Scalar" "fallback"(%[[A]], %[[N]])
  // CHECK-SAME: args = [#accel.operand<0>, 1.500000e+00, [true, "tanh", unit, #accel.operand<1>]]
  // CHECK-SAME: dtypes = ["u16", "index"], effects, kwargs = {dtype = {dtype = "f32"}}, reason = "no lowering"
  // CHECK-SAME: : (tensor<4x8xf32>, index) -> ()
  accel.aten_call "aten::fill_" "Scalar" "fallback"(%a, %n)
      {args = [#accel.operand<0>, 1.5, [true, "tanh", unit, #accel.operand<1>]], kwargs = {dtype = {dtype = "f32"}},
       dtypes = ["u16", "index"], reason = "no lowering", effects} : (tensor<4x8xf32>, index) -> ()
  return %0 : tensor<4x2xf32>
}

// -----

// CHECK-LABEL: func.func @fusion
func.func @fusion(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  // CHECK: accel.fusion parallel(1) rows(1) {
  // CHECK: linalg.reduce {{.*}} dimensions = [1] {accel.loops = array<i64: 0, 1>}
  // CHECK: accel.yield %{{.*}} : tensor<8xf32>
  // CHECK: } -> tensor<8xf32>
  %0 = accel.fusion parallel(1) rows(1) {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %s = linalg.reduce {arith.addf} ins(%x : tensor<8x16xf32>) outs(%i : tensor<8xf32>) dimensions = [1]
        {accel.loops = array<i64: 0, 1>}
    accel.yield %s : tensor<8xf32>
  } -> tensor<8xf32>
  // CHECK: accel.fusion parallel(0) rows(0) {
  // CHECK-NEXT: accel.yield
  // CHECK-NEXT: }{{$}}
  accel.fusion parallel(0) rows(0) {
    accel.yield
  }
  return %0 : tensor<8xf32>
}

// -----

#sizes = affine_map<()[s0] -> (s0, 4)>
#strides = affine_map<()[s0] -> (4, 1)>

// CHECK-LABEL: accel.kernel @relu
// CHECK-SAME: (%{{.*}}: tensor<?x4xf32> {accel.layout = #accel.layout<#{{.*}}, #{{.*}}>}, %{{.*}}: index)
// CHECK-SAME: -> (tensor<?x4xf32> {accel.layout = #accel.layout<#{{.*}}, #{{.*}}>})
// CHECK-SAME: parallel = 2 : i64, rows = 0 : i64
// CHECK-SAME: target = #accel.target<"cpu", "znver4", "+avx2,+fma">
// CHECK-SAME: tile_config = #accel.tile_config<vector_loop = 1, vector = 4, block = 64, rows = 2, grain = 1024>
accel.kernel @relu(%x: tensor<?x4xf32> {accel.layout = #accel.layout<#sizes, #strides>}, %n: index)
    -> (tensor<?x4xf32> {accel.layout = #accel.layout<#sizes, #strides>})
    attributes {parallel = 2 : i64, rows = 0 : i64, target = #accel.target<"cpu", "znver4", "+avx2,+fma">,
                tile_config = #accel.tile_config<vector_loop = 1, vector = 4, block = 64, rows = 2, grain = 1024>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%v: f32, %out: f32):
    %m = arith.maximumf %v, %zero : f32
    linalg.yield %m : f32
  } -> tensor<?x4xf32>
  accel.yield %r : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x4xf32>, %n: index) -> tensor<?x4xf32> {
  // CHECK: accel.launch @relu(%{{.*}}, %{{.*}}) : (tensor<?x4xf32>, index) -> tensor<?x4xf32>
  %0 = accel.launch @relu(%x, %n) : (tensor<?x4xf32>, index) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func.func @scan
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<?x8xi64>, %[[N:.*]]: index)
func.func @scan(%x: tensor<4x8xf32>, %y: tensor<?x8xi64>, %n: index) -> (tensor<4x8xf32>, tensor<?x8xi64>) {
  // CHECK: accel.scan "logaddexp" dim(1) %[[X]] : tensor<4x8xf32>
  %0 = accel.scan "logaddexp" dim(1) %x : tensor<4x8xf32>
  // CHECK: accel.scan "add" dim(0) %[[Y]] sizes(%[[N]]) : tensor<?x8xi64>
  %1 = accel.scan "add" dim(0) %y sizes(%n) : tensor<?x8xi64>
  return %0, %1 : tensor<4x8xf32>, tensor<?x8xi64>
}

// -----

// CHECK-LABEL: func.func @scatter
// CHECK-SAME: (%[[U:.*]]: tensor<9x64xf32>, %[[I:.*]]: tensor<9xi64>, %[[ROWS:.*]]: tensor<100x64xf32>, %[[N:.*]]: index)
func.func @scatter(%u: tensor<9x64xf32>, %i: tensor<9xi64>, %rows: tensor<100x64xf32>, %n: index)
    -> (tensor<100x64xf32>, tensor<?x64xf32>) {
  // CHECK: accel.scatter "set" %[[U]] at(%[[I]]) by #{{.*}} [#{{.*}}] into(%[[ROWS]]) {wraps} : tensor<9x64xf32>, tensor<9xi64> into tensor<100x64xf32> -> tensor<100x64xf32>
  %0 = accel.scatter "set" %u at(%i) by affine_map<(d0, d1)[s0] -> (s0, d1)> [affine_map<(d0, d1) -> (d0)>] into(%rows) {wraps}
      : tensor<9x64xf32>, tensor<9xi64> into tensor<100x64xf32> -> tensor<100x64xf32>
  // CHECK: accel.scatter "add" %[[U]] at(%[[I]]) by #{{.*}} [#{{.*}}] sizes(%[[N]]) {skips} : tensor<9x64xf32>, tensor<9xi64> -> tensor<?x64xf32>
  %1 = accel.scatter "add" %u at(%i) by affine_map<(d0, d1)[s0] -> (s0, d1)> [affine_map<(d0, d1) -> (d0)>] sizes(%n) {skips}
      : tensor<9x64xf32>, tensor<9xi64> -> tensor<?x64xf32>
  return %0, %1 : tensor<100x64xf32>, tensor<?x64xf32>
}
