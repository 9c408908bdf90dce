// RUN: accel-opt %s --accel-clone-cheap-producers | FileCheck %s

#vector = {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
#unary = {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}

// Each reader of an iota gets an iota of its own.
// CHECK-LABEL: func.func @two_readers
// CHECK: %[[A:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8xi64>)
// CHECK: linalg.index 0
// CHECK: %[[B:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8xi64>)
// CHECK: linalg.index 0
// CHECK-DAG: linalg.generic {{.*}} ins(%[[A]] :
// CHECK-DAG: linalg.generic {{.*}} ins(%[[B]] :
func.func @two_readers() -> (tensor<8xi64>, tensor<8xi64>) {
  %e = tensor.empty() : tensor<8xi64>
  %iota = linalg.generic #vector outs(%e : tensor<8xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %r = arith.index_cast %i : index to i64
    linalg.yield %r : i64
  } -> tensor<8xi64>
  %a = linalg.generic #unary ins(%iota : tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%v: i64, %o: i64):
    %r = arith.addi %v, %v : i64
    linalg.yield %r : i64
  } -> tensor<8xi64>
  %b = linalg.generic #unary ins(%iota : tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%v: i64, %o: i64):
    %r = arith.muli %v, %v : i64
    linalg.yield %r : i64
  } -> tensor<8xi64>
  return %a, %b : tensor<8xi64>, tensor<8xi64>
}
