// RUN: accel-opt %s --canonicalize --cse | FileCheck %s

// A view of a view is one view, its symbols in the order of the two.
// CHECK-DAG: #[[SUM:.*]] = affine_map<(d0)[s0, s1] -> (d0 + s0 + s1)>
// CHECK-DAG: #[[MIXED:.*]] = affine_map<(d0)[s0, s1] -> (d0 + s1, s0)>
// CHECK-LABEL: func.func @view_of_view
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>, %[[N:.*]]: index, %[[M:.*]]: index)
func.func @view_of_view(%x: tensor<8xf32>, %n: index, %m: index) -> tensor<2xf32> {
  // CHECK-NEXT: %[[V:.*]] = accel.view %[[X]][%[[N]], %[[M]]] by #[[SUM]]
  // CHECK-NEXT: return %[[V]]
  %0 = accel.view %x[%n] by affine_map<(d0)[s0] -> (d0 + s0)> : tensor<8xf32> -> tensor<4xf32>
  %1 = accel.view %0[%m] by affine_map<(d0)[s0] -> (d0 + s0)> : tensor<4xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @symbols_stay_with_their_view
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf32>, %[[N:.*]]: index, %[[M:.*]]: index)
func.func @symbols_stay_with_their_view(%x: tensor<8x8xf32>, %n: index, %m: index) -> tensor<2xf32> {
  // CHECK-NEXT: accel.view %[[X]][%[[N]], %[[M]]] by #[[MIXED]]
  %0 = accel.view %x[%n] by affine_map<(d0)[s0] -> (d0, s0)> : tensor<8x8xf32> -> tensor<8xf32>
  %1 = accel.view %0[%m] by affine_map<(d0)[s0] -> (d0 + s0)> : tensor<8xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// Two transpositions are nothing.
// CHECK-LABEL: func.func @identity_view
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @identity_view(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = accel.view %x by affine_map<(d0, d1) -> (d1, d0)> : tensor<4x8xf32> -> tensor<8x4xf32>
  %1 = accel.view %0 by affine_map<(d0, d1) -> (d1, d0)> : tensor<8x4xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// A slice from the start has the identity as its map, and is no identity.
// CHECK-LABEL: func.func @slice_is_no_identity
func.func @slice_is_no_identity(%x: tensor<8xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: accel.view
  %0 = accel.view %x by affine_map<(d0) -> (d0)> : tensor<8xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A slice along a dynamic dimension has the identity's map and its source's type, but other sizes.
// CHECK-LABEL: func.func @dynamic_slice_stays
func.func @dynamic_slice_stays(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // CHECK-NEXT: accel.view
  %0 = accel.view %x by affine_map<(d0) -> (d0)> sizes(%n) : tensor<?xf32> -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// A reshape of a reshape is one reshape; back to the same static type it is nothing.
// CHECK-LABEL: func.func @reshapes
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @reshapes(%x: tensor<4x8xf32>) -> (tensor<2x16xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[R:.*]] = accel.reshape %[[X]] : tensor<4x8xf32> -> tensor<2x16xf32>
  // CHECK-NEXT: return %[[R]], %[[X]]
  %0 = accel.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %1 = accel.reshape %0 : tensor<32xf32> -> tensor<2x16xf32>
  %2 = accel.reshape %1 : tensor<2x16xf32> -> tensor<4x8xf32>
  return %1, %2 : tensor<2x16xf32>, tensor<4x8xf32>
}

// With two dynamic dimensions the same type says nothing about the sizes.
// CHECK-LABEL: func.func @dynamic_reshape_stays
func.func @dynamic_reshape_stays(%x: tensor<?x?xf32>, %n: index, %m: index) -> tensor<?x?xf32> {
  // CHECK-NEXT: accel.reshape
  %0 = accel.reshape %x sizes(%n, %m) : tensor<?x?xf32> -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// A call without effects that nobody reads goes; one with effects stays, and isn't merged with its like.
// CHECK-LABEL: func.func @effects
func.func @effects(%x: tensor<4xf32>) {
  // CHECK-NEXT: accel.aten_call "aten::fill_"
  // CHECK-NEXT: accel.aten_call "aten::fill_"
  // CHECK-NEXT: return
  %0 = accel.aten_call "aten::cumsum" "default" "fallback"(%x) {args = [#accel.operand<0>, 0]} : (tensor<4xf32>) -> tensor<4xf32>
  accel.aten_call "aten::fill_" "Scalar" "fallback"(%x) {args = [#accel.operand<0>, 1.0], effects} : (tensor<4xf32>) -> ()
  accel.aten_call "aten::fill_" "Scalar" "fallback"(%x) {args = [#accel.operand<0>, 1.0], effects} : (tensor<4xf32>) -> ()
  return
}
