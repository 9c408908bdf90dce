// RUN: accel-opt %s --accel-insert-copies | FileCheck %s --implicit-check-not=linalg.copy

// No copy where none is needed.

#plain = #accel.layout<affine_map<() -> (4, 8)>, affine_map<() -> (8, 1)>>
#swapped = #accel.layout<affine_map<() -> (8, 4)>, affine_map<() -> (1, 8)>>

// Dimensions that are one run in memory merge, others split.
// CHECK-LABEL: func.func @reshape_is_a_view
func.func @reshape_is_a_view(%x: tensor<4x8xf32>) -> (tensor<32xf32>, tensor<2x2x2x4xf32>) {
  %a = accel.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %b = accel.reshape %x : tensor<4x8xf32> -> tensor<2x2x2x4xf32>
  return %a, %b : tensor<32xf32>, tensor<2x2x2x4xf32>
}

// Splitting the dimensions of a transposed tensor keeps its strides.
// CHECK-LABEL: func.func @split_of_transposed
func.func @split_of_transposed(%x: tensor<4x8xf32>) -> tensor<2x4x4xf32> {
  %t = accel.view %x by affine_map<(i, j) -> (j, i)> : tensor<4x8xf32> -> tensor<8x4xf32>
  %r = accel.reshape %t : tensor<8x4xf32> -> tensor<2x4x4xf32>
  return %r : tensor<2x4x4xf32>
}

// The heads of a symbolic batch, split off.
// CHECK-LABEL: func.func @symbolic_split
func.func @symbolic_split(%n: index, %x: tensor<?x16x768xf32> {accel.layout =
    #accel.layout<affine_map<()[s0] -> (s0, 16, 768)>, affine_map<()[s0] -> (12288, 768, 1)>>}) -> tensor<?x16x12x64xf32> {
  %r = accel.reshape %x sizes(%n) : tensor<?x16x768xf32> -> tensor<?x16x12x64xf32>
  return %r : tensor<?x16x12x64xf32>
}

// A part that one kernel computes and nobody else reads is written in place.
// CHECK-LABEL: func.func @concat_in_place
func.func @concat_in_place(%x: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %c = accel.concat dim(0) %a, %b : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// A concatenation that is a part of another is put together in the other's memory: a tensor with a border is written once.
// CHECK-LABEL: func.func @concat_of_concat
func.func @concat_of_concat(%x: tensor<4x8xf32>) -> tensor<5x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %f = tensor.empty() : tensor<4x1xf32>
  %left = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%f : tensor<4x1xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<4x1xf32>
  %g = tensor.empty() : tensor<1x9xf32>
  %top = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%g : tensor<1x9xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<1x9xf32>
  %rows = accel.concat dim(1) %left, %a : tensor<4x1xf32>, tensor<4x8xf32> -> tensor<4x9xf32>
  %all = accel.concat dim(0) %top, %rows : tensor<1x9xf32>, tensor<4x9xf32> -> tensor<5x9xf32>
  return %all : tensor<5x9xf32>
}

// A view of an argument that is one in eager too, with the strides that it has.
// CHECK-LABEL: func.func @alias
func.func @alias(%x: tensor<4x8xf32> {accel.layout = #plain, accel.name = "x"})
    -> (tensor<8x4xf32> {accel.layout = #swapped, accel.name = "t", accel.owner = "x"}) {
  %t = accel.view %x by affine_map<(i, j) -> (j, i)> : tensor<4x8xf32> -> tensor<8x4xf32>
  return %t : tensor<8x4xf32>
}

// The strides of dimensions of size 1 mean nothing.
// CHECK-LABEL: func.func @unit_strides
func.func @unit_strides(%x: tensor<1x8xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 8)>, affine_map<() -> (8, 1)>>,
                                          accel.name = "x"})
    -> (tensor<1x8xf32> {accel.layout = #accel.layout<affine_map<() -> (1, 8)>, affine_map<() -> (99, 1)>>, accel.name = "x", accel.owner = "x"}) {
  return %x : tensor<1x8xf32>
}

// One node returned twice is one tensor.
// CHECK-LABEL: func.func @same_node_twice
func.func @same_node_twice(%x: tensor<8xf32>) ->
    (tensor<8xf32> {accel.layout = #accel.layout<affine_map<() -> (8)>, affine_map<() -> (1)>>, accel.name = "y", accel.owner = "y"},
     tensor<8xf32> {accel.layout = #accel.layout<affine_map<() -> (8)>, affine_map<() -> (1)>>, accel.name = "y", accel.owner = "y"}) {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %y, %y : tensor<8xf32>, tensor<8xf32>
}

// A kernel can write eager's layout directly, a permuted one included.
// CHECK-LABEL: func.func @permuted_result
func.func @permuted_result(%x: tensor<8x4xf32> {accel.layout = #swapped}) -> (tensor<8x4xf32> {accel.layout = #swapped, accel.name = "y", accel.owner = "y"}) {
  %e = tensor.empty() : tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// A call takes any strides that PyTorch knows.
// CHECK-LABEL: func.func @strided_operand
func.func @strided_operand(%x: tensor<4x8xf32>) -> tensor<4x4xf32> {
  %v = accel.view %x by affine_map<(i, j) -> (i, j * 2)> : tensor<4x8xf32> -> tensor<4x4xf32>
  %r = accel.aten_call "aten::cumsum" "default" "fallback"(%v) {args = [#accel.operand<0>, 0]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
