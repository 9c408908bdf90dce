// RUN: accel-opt %s --accel-choose-contractions=contractions=library --canonicalize | FileCheck %s

// A product with zeros as its destination goes to the library, which writes to memory of ours.
// CHECK-LABEL: func.func @mm
// CHECK-SAME: (%[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8x2xf32>)
// CHECK-NEXT: %[[R:.*]] = accel.aten_call "aten::mm" "out" "library"(%[[A]], %[[B]])
// CHECK-SAME: {args = [#accel.operand<0>, #accel.operand<1>], reason = "contraction: contractions are the library's by option"} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: return %[[R]]
func.func @mm(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x2xf32>) outs(%i : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// Integers too; the result's dynamic sizes come last among the operands.
// CHECK-LABEL: func.func @bmm
// CHECK-SAME: (%[[N:.*]]: index, %[[M:.*]]: index, %[[A:.*]]: tensor<?x4x8xi64>, %[[B:.*]]: tensor<?x8x?xi64>)
// CHECK-NEXT: accel.aten_call "aten::bmm" "out" "library"(%[[A]], %[[B]], %[[N]], %[[M]])
func.func @bmm(%n: index, %m: index, %a: tensor<?x4x8xi64>, %b: tensor<?x8x?xi64>) -> tensor<?x4x?xi64> {
  %zero = arith.constant 0 : i64
  %e = tensor.empty(%n, %m) : tensor<?x4x?xi64>
  %i = linalg.fill ins(%zero : i64) outs(%e : tensor<?x4x?xi64>) -> tensor<?x4x?xi64>
  %r = linalg.batch_matmul ins(%a, %b : tensor<?x4x8xi64>, tensor<?x8x?xi64>) outs(%i : tensor<?x4x?xi64>) -> tensor<?x4x?xi64>
  return %r : tensor<?x4x?xi64>
}
