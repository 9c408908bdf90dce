// RUN: accel-opt %s --accel-split-reductions --split-input-file | FileCheck %s

// Pieces, and what is multiplied is read in pieces too.
// CHECK: #[[PIECES:.*]] = affine_map<(d0, d1) -> (d0 * 65536 + d1)>
// CHECK-LABEL: func.func @dot
// CHECK-SAME: (%[[X:.*]]: tensor<16777216xf32>, %[[Y:.*]]: tensor<16777216xf32>)
// CHECK-DAG: %[[A:.*]] = accel.view %[[X]] by #[[PIECES]] : {{.*}} -> tensor<256x65536xf32>
// CHECK-DAG: %[[B:.*]] = accel.view %[[Y]] by #[[PIECES]] : {{.*}} -> tensor<256x65536xf32>
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[B]] :
// CHECK: %[[S:.*]] = linalg.reduce {{.*}}ins(%[[P]] : {{.*}} outs({{.*}} : tensor<256xf32>) dimensions = [1]
// CHECK: %[[R:.*]] = linalg.reduce {{.*}}ins(%[[S]] : {{.*}} outs({{.*}} : tensor<f32>) dimensions = [0]
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]]
#id = affine_map<(i) -> (i)>
func.func @dot(%x: tensor<16777216xf32>, %y: tensor<16777216xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16777216xf32>
  %p = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<16777216xf32>, tensor<16777216xf32>) outs(%e : tensor<16777216xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<16777216xf32>
  %s = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce {arith.addf} ins(%p : tensor<16777216xf32>) outs(%init : tensor<f32>) dimensions = [0]
  return %r : tensor<f32>
}

// -----

// No number of pieces divides a prime: what is left over is one more partial result.
// CHECK-DAG: #[[PIECES:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 * 40000 + d2)>
// CHECK-DAG: #[[REST:.*]] = affine_map<(d0, d1, d2) -> (d0, d2 + 1000000)>
// CHECK-LABEL: func.func @rest
// CHECK: accel.view %{{.*}} by #[[PIECES]] : tensor<2x1000003xf32> -> tensor<2x25x40000xf32>
// CHECK: %[[A:.*]] = linalg.reduce {{.*}} outs({{.*}} : tensor<2x25xf32>) dimensions = [2]
// CHECK: accel.view %{{.*}} by #[[REST]] : tensor<2x1000003xf32> -> tensor<2x1x3xf32>
// CHECK: %[[B:.*]] = linalg.reduce {{.*}} outs({{.*}} : tensor<2x1xf32>) dimensions = [2]
// CHECK: %[[C:.*]] = accel.concat dim(1) %[[A]], %[[B]]
// CHECK: linalg.reduce {{.*}}ins(%[[C]] : {{.*}} outs({{.*}} : tensor<2xf32>) dimensions = [1]
func.func @rest(%x: tensor<2x1000003xf32>) -> tensor<2xf32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<2xf32>) -> tensor<2xf32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<2x1000003xf32>) outs(%init : tensor<2xf32>) dimensions = [1]
  return %r : tensor<2xf32>
}

// -----

// Of several dimensions the outermost stay whole as long as there are not enough pieces.
// CHECK: #[[PIECES:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 * 64 + d2, d3)>
// CHECK-LABEL: func.func @several
// CHECK: accel.view %{{.*}} by #[[PIECES]] : tensor<8x512x512xf32> -> tensor<8x8x64x512xf32>
// CHECK: linalg.reduce {{.*}} outs({{.*}} : tensor<8x8xf32>) dimensions = [2, 3]
// CHECK: linalg.reduce {{.*}} outs({{.*}} : tensor<f32>) dimensions = [0, 1]
func.func @several(%x: tensor<8x512x512xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<8x512x512xf32>) outs(%init : tensor<f32>) dimensions = [0, 1, 2]
  return %r : tensor<f32>
}

// -----

// A position in a piece is one in the whole.
// CHECK-LABEL: func.func @positions
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<8x32768xi64>)
// CHECK-DAG: %[[C:.*]] = linalg.index 1
// CHECK-DAG: %[[P:.*]] = linalg.index 0
// CHECK-DAG: %[[STEP:.*]] = arith.constant 32768
// CHECK: %[[START:.*]] = arith.muli %[[P]], %[[STEP]]
// CHECK: arith.addi %[[START]], %[[C]]
// CHECK: linalg.reduce {{.*}} outs({{.*}} : tensor<8xf32>, tensor<8xi64>) dimensions = [1]
// CHECK: linalg.reduce {{.*}} outs({{.*}} : tensor<f32>, tensor<i64>) dimensions = [0]
func.func @positions(%x: tensor<262144xf32>) -> tensor<i64> {
  %low = arith.constant 0xFF800000 : f32
  %last = arith.constant 9223372036854775807 : i64
  %e = tensor.empty() : tensor<262144xi64>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<262144xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %n : i64
  } -> tensor<262144xi64>
  %s = tensor.empty() : tensor<f32>
  %t = tensor.empty() : tensor<i64>
  %a = linalg.fill ins(%low : f32) outs(%s : tensor<f32>) -> tensor<f32>
  %b = linalg.fill ins(%last : i64) outs(%t : tensor<i64>) -> tensor<i64>
  %r:2 = linalg.reduce ins(%x, %p : tensor<262144xf32>, tensor<262144xi64>) outs(%a, %b : tensor<f32>, tensor<i64>)
      dimensions = [0] (%v: f32, %i: i64, %best: f32, %at: i64) {
    %better = arith.cmpf ogt, %v, %best : f32
    %first = arith.select %better, %v, %best : f32
    %second = arith.select %better, %i, %at : i64
    linalg.yield %first, %second : f32, i64
  }
  return %r#1 : tensor<i64>
}

// -----

// A symbolic size has pieces of a fixed length, and a rest.
// CHECK-DAG: #[[COUNT:.*]] = affine_map<()[s0] -> (s0 floordiv 32768)>
// CHECK-DAG: #[[LEFT:.*]] = affine_map<()[s0] -> (s0 mod 32768)>
// CHECK-DAG: #[[PIECES:.*]] = affine_map<(d0, d1) -> (d0 * 32768 + d1)>
// CHECK-DAG: #[[REST:.*]] = affine_map<(d0, d1)[s0] -> (d1 + s0)>
// CHECK-LABEL: func.func @symbolic
// CHECK: accel.view %{{.*}} by #[[PIECES]] {{.*}} -> tensor<?x32768xf32>
// CHECK: accel.view %{{.*}}[%{{.*}}] by #[[REST]] {{.*}} -> tensor<1x?xf32>
// CHECK: accel.concat dim(0)
func.func @symbolic(%x: tensor<?xf32> {accel.layout = #accel.layout<affine_map<()[s] -> (s)>, affine_map<()[s] -> (1)>>},
                    %n: index) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<?xf32>) outs(%init : tensor<f32>) dimensions = [0]
  return %r : tensor<f32>
}
