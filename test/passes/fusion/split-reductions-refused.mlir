// RUN: accel-opt %s --accel-split-reductions | FileCheck %s

// What has enough rows, is short, has few elements in all, or rows of which nobody knows how many there are stays one
// reduction.

// CHECK-LABEL: func.func @many_rows
// CHECK-COUNT-1: linalg.reduce
// CHECK-NOT: linalg.reduce
func.func @many_rows(%x: tensor<16x100000xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<16xf32>) -> tensor<16xf32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<16x100000xf32>) outs(%init : tensor<16xf32>) dimensions = [1]
  return %r : tensor<16xf32>
}

// CHECK-LABEL: func.func @many_columns
// CHECK-COUNT-1: linalg.reduce
// CHECK-NOT: linalg.reduce
func.func @many_columns(%x: tensor<10000x1024xf32>) -> tensor<1024xf32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<1024xf32>) -> tensor<1024xf32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<10000x1024xf32>) outs(%init : tensor<1024xf32>) dimensions = [0]
  return %r : tensor<1024xf32>
}

// CHECK-LABEL: func.func @short
// CHECK-COUNT-1: linalg.reduce
// CHECK-NOT: linalg.reduce
func.func @short(%x: tensor<100000xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<100000xf32>) outs(%init : tensor<f32>) dimensions = [0]
  return %r : tensor<f32>
}

// CHECK-LABEL: func.func @nothing
// CHECK-COUNT-1: linalg.reduce
// CHECK-NOT: linalg.reduce
func.func @nothing(%x: tensor<0x1000000xf32>) -> tensor<0xf32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<0xf32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<0xf32>) -> tensor<0xf32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<0x1000000xf32>) outs(%init : tensor<0xf32>) dimensions = [1]
  return %r : tensor<0xf32>
}

// CHECK-LABEL: func.func @symbolic_rows
// CHECK-COUNT-1: linalg.reduce
// CHECK-NOT: linalg.reduce
func.func @symbolic_rows(%x: tensor<?x1000000xf32> {accel.layout = #accel.layout<affine_map<()[s] -> (s, 1000000)>, affine_map<()[s] -> (1000000, 1)>>},
                         %n: index) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<?x1000000xf32>) outs(%init : tensor<?xf32>) dimensions = [1]
  return %r : tensor<?xf32>
}

// A costly value that something else needs too is not computed twice: the pieces are views of it.
// CHECK-LABEL: func.func @needed_elsewhere
// CHECK-COUNT-1: math.exp
// CHECK: accel.view
// CHECK-NOT: math.exp
func.func @needed_elsewhere(%x: tensor<1048576xf32>) -> (tensor<f32>, tensor<1048576xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1048576xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<1048576xf32>) outs(%e : tensor<1048576xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<1048576xf32>
  %s = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce {arith.addf} ins(%p : tensor<1048576xf32>) outs(%init : tensor<f32>) dimensions = [0]
  return %r, %p : tensor<f32>, tensor<1048576xf32>
}
