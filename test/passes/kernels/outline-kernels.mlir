// RUN: accel-opt %s --accel-outline-kernels --split-input-file | FileCheck %s
// RUN: accel-opt %s --accel-outline-kernels --split-input-file -o %t.1
// RUN: accel-opt %s --accel-outline-kernels --split-input-file -o %t.2
// RUN: cmp %t.1 %t.2

// Equal fusions are one kernel with several launches; the module keeps the number there would have been.
// CHECK: module attributes {accel.kernels_before = 3 : i64}
// CHECK-COUNT-1: accel.kernel @kernel_[[HASH:[0-9a-f]+]](
// CHECK-NOT: accel.kernel
// CHECK-LABEL: func.func @equal
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[A:.*]] = accel.launch @kernel_[[HASH]](%[[X]]) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[B:.*]] = accel.launch @kernel_[[HASH]](%[[A]])
// CHECK-NEXT: %[[C:.*]] = accel.launch @kernel_[[HASH]](%[[B]])
// CHECK-NEXT: return %[[C]]
func.func @equal(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = accel.fusion parallel(1) rows(0) {
    %e = tensor.empty() : tensor<8xf32>
    %c = linalg.copy {accel.loops = array<i64: 0>} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    accel.yield %c : tensor<8xf32>
  } -> tensor<8xf32>
  %b = accel.fusion parallel(1) rows(0) {
    %e = tensor.empty() : tensor<8xf32>
    %c = linalg.copy {accel.loops = array<i64: 0>} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    accel.yield %c : tensor<8xf32>
  } -> tensor<8xf32>
  %c = accel.fusion parallel(1) rows(0) {
    %e = tensor.empty() : tensor<8xf32>
    %d = linalg.copy {accel.loops = array<i64: 0>} ins(%b : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    accel.yield %d : tensor<8xf32>
  } -> tensor<8xf32>
  return %c : tensor<8xf32>
}

// -----

// The name says what the kernel holds, up to three ops, and what its text hashes to: it is the same in each run and on each machine.
// CHECK: accel.kernel @add_native_layer_norm_gelu_{{[0-9a-f]+}}(
// CHECK-SAME: accel.origins =
// CHECK-SAME: ["add", "aten.add.Tensor", "model.py:3"]
// CHECK-SAME: ["norm", "aten.native_layer_norm.default", ""]
// CHECK-SAME: ["gelu", "aten.gelu.default", ""]
// CHECK-SAME: ["neg", "aten.neg.default", ""]
func.func @named(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = accel.fusion parallel(1) rows(0) {
    %e = tensor.empty() : tensor<8xf32>
    %0 = linalg.copy {accel.loops = array<i64: 0>} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
        loc("add"("aten.add.Tensor"("model.py":3:0)))
    %1 = linalg.copy {accel.loops = array<i64: 0>} ins(%0 : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
        loc("norm"("aten.native_layer_norm.default"))
    %2 = linalg.copy {accel.loops = array<i64: 0>} ins(%1 : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
        loc("gelu"("aten.gelu.default"))
    %3 = linalg.copy {accel.loops = array<i64: 0>} ins(%2 : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
        loc("neg"("aten.neg.default"))
    accel.yield %3 : tensor<8xf32>
  } -> tensor<8xf32>
  return %a : tensor<8xf32>
}

// -----

// Another layout is another kernel: the first reads rows, the second columns.
// CHECK-COUNT-2: accel.kernel @
// CHECK-NOT: accel.kernel @
// CHECK-LABEL: func.func @layouts_differ
func.func @layouts_differ(%x: tensor<4x8xf32> {accel.layout = #accel.layout<affine_map<() -> (4, 8)>, affine_map<() -> (8, 1)>>},
                          %y: tensor<4x8xf32> {accel.layout = #accel.layout<affine_map<() -> (4, 8)>, affine_map<() -> (1, 4)>>})
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %a = accel.fusion parallel(2) rows(0) {
    %e = tensor.empty() : tensor<4x8xf32>
    %c = linalg.copy {accel.loops = array<i64: 0, 1>} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    accel.yield %c : tensor<4x8xf32>
  } -> tensor<4x8xf32>
  %b = accel.fusion parallel(2) rows(0) {
    %e = tensor.empty() : tensor<4x8xf32>
    %c = linalg.copy {accel.loops = array<i64: 0, 1>} ins(%y : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    accel.yield %c : tensor<4x8xf32>
  } -> tensor<4x8xf32>
  return %a, %b : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Kernels know the symbols that their layouts need, numbered from 0; two of other symbols of the function are the same kernel.
// CHECK-DAG: #[[SIZES:.*]] = affine_map<()[s0] -> (s0, 4)>
// CHECK-DAG: #[[STRIDES:.*]] = affine_map<()[s0] -> (4, 1)>
// CHECK: accel.kernel @[[K:.*]](%{{.*}}: tensor<?x4xf32> {accel.layout = #accel.layout<#[[SIZES]], #[[STRIDES]]>}, %[[S:.*]]: index)
// CHECK-SAME: -> (tensor<?x4xf32> {accel.layout = #accel.layout<#[[SIZES]], #[[STRIDES]]>})
// CHECK: tensor.empty(%[[S]])
// CHECK-NOT: accel.kernel
// CHECK-LABEL: func.func @symbols
// CHECK-SAME: (%[[N:.*]]: index, %[[M:.*]]: index, %[[X:[a-z0-9]+]]: tensor<?x4xf32> {{{.*}}}, %[[Y:[a-z0-9]+]]: tensor<?x4xf32>
// CHECK: accel.launch @[[K]](%[[X]], %[[N]])
// CHECK: accel.launch @[[K]](%[[Y]], %[[M]])
#n = #accel.layout<affine_map<()[s0, s1] -> (s0, 4)>, affine_map<()[s0, s1] -> (4, 1)>>
#m = #accel.layout<affine_map<()[s0, s1] -> (s1, 4)>, affine_map<()[s0, s1] -> (4, 1)>>
func.func @symbols(%n: index, %m: index, %x: tensor<?x4xf32> {accel.layout = #n}, %y: tensor<?x4xf32> {accel.layout = #m})
    -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %a = accel.fusion parallel(2) rows(0) {
    %e = tensor.empty(%n) : tensor<?x4xf32>
    %c = linalg.copy {accel.loops = array<i64: 0, 1>} ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    accel.yield %c : tensor<?x4xf32>
  } -> tensor<?x4xf32>
  %b = accel.fusion parallel(2) rows(0) {
    %e = tensor.empty(%m) : tensor<?x4xf32>
    %c = linalg.copy {accel.loops = array<i64: 0, 1>} ins(%y : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    accel.yield %c : tensor<?x4xf32>
  } -> tensor<?x4xf32>
  return %a, %b : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// The strides of a contiguous tensor are products of its symbolic sizes.
// CHECK-DAG: #[[STRIDES:.*]] = affine_map<()[s0, s1] -> (s0 * s1, s1, 1)>
// CHECK: accel.kernel @{{.*}} -> (tensor<2x?x?xf32> {accel.layout = #accel.layout<#{{.*}}, #[[STRIDES]]>})
#nm = #accel.layout<affine_map<()[s0, s1] -> (2, s0, s1)>, affine_map<()[s0, s1] -> (s0 * s1, s1, 1)>>
func.func @products(%n: index, %m: index, %x: tensor<2x?x?xf32> {accel.layout = #nm}) -> tensor<2x?x?xf32> {
  %a = accel.fusion parallel(3) rows(0) {
    %e = tensor.empty(%n, %m) : tensor<2x?x?xf32>
    %c = linalg.copy {accel.loops = array<i64: 0, 1, 2>} ins(%x : tensor<2x?x?xf32>) outs(%e : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
    accel.yield %c : tensor<2x?x?xf32>
  } -> tensor<2x?x?xf32>
  return %a : tensor<2x?x?xf32>
}

// -----

// A part of a concatenation is written where it belongs: the kernel's result has the whole's strides.
// CHECK-DAG: #[[SIZES:.*]] = affine_map<() -> (4, 8)>
// CHECK-DAG: #[[WIDE:.*]] = affine_map<() -> (16, 1)>
// CHECK: accel.kernel @[[K:.*]](%{{.*}}: tensor<4x8xf32> {accel.layout = #accel.layout<#[[SIZES]], affine_map<() -> (8, 1)>>})
// CHECK-SAME: -> (tensor<4x8xf32> {accel.layout = #accel.layout<#[[SIZES]], #[[WIDE]]>})
// CHECK-LABEL: func.func @concat
// CHECK: %[[A:.*]] = accel.launch @[[K]]
// CHECK: %[[B:.*]] = accel.launch @[[K]]
// CHECK: accel.concat dim(1) %[[A]], %[[B]]
func.func @concat(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %a = accel.fusion parallel(2) rows(0) {
    %e = tensor.empty() : tensor<4x8xf32>
    %c = linalg.copy {accel.loops = array<i64: 0, 1>} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    accel.yield %c : tensor<4x8xf32>
  } -> tensor<4x8xf32>
  %b = accel.fusion parallel(2) rows(0) {
    %e = tensor.empty() : tensor<4x8xf32>
    %c = linalg.copy {accel.loops = array<i64: 0, 1>} ins(%y : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    accel.yield %c : tensor<4x8xf32>
  } -> tensor<4x8xf32>
  %c = accel.concat dim(1) %a, %b : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x16xf32>
  return %c : tensor<4x16xf32>
}

// -----

// A view from outside becomes a layout of the kernel's argument; a constant comes along; an index that is no symbol is an argument.
// CHECK: accel.kernel @{{.*}}(%{{.*}}: tensor<8x4xf32> {accel.layout = #accel.layout<#{{.*}}, affine_map<()[s0] -> (1, 8)>>}, %[[P:.*]]: index)
// CHECK: %[[ONE:.*]] = arith.constant 1.0
// CHECK: arith.addf %{{.*}}, %[[ONE]]
// CHECK: arith.index_cast %[[P]]
// CHECK-LABEL: func.func @captures
// CHECK: %[[Q:.*]] = arith.divui
// CHECK: %[[V:.*]] = accel.view
// CHECK: accel.launch @{{.*}}(%[[V]], %[[Q]])
func.func @captures(%n: index, %x: tensor<4x8xf32> {accel.layout = #accel.layout<affine_map<()[s0] -> (4, 8)>, affine_map<()[s0] -> (8, 1)>>})
    -> tensor<8x4xf32> {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2 : index
  %p = arith.divui %n, %two : index
  %t = accel.view %x by affine_map<(i, j) -> (j, i)> : tensor<4x8xf32> -> tensor<8x4xf32>
  %a = accel.fusion parallel(2) rows(0) {
    %e = tensor.empty() : tensor<8x4xf32>
    %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%t : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
    ^bb0(%v: f32, %o: f32):
      %r = arith.addf %v, %one : f32
      %i = arith.index_cast %p : index to i32
      %f = arith.sitofp %i : i32 to f32
      %s = arith.addf %r, %f : f32
      linalg.yield %s : f32
    } -> tensor<8x4xf32>
    accel.yield %c : tensor<8x4xf32>
  } -> tensor<8x4xf32>
  return %a : tensor<8x4xf32>
}
