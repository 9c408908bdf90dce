// RUN: accel-opt %s --accel-form-fusions --verify-diagnostics --remarks-filter-missed=accel-fusion --remark-format=emitRemark \
// RUN:   | FileCheck %s

// Each refusal is a missed remark at the op that reads, and says why.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#unary = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
#binary = {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}

// The sum over rows of what the sum over columns gave: two loop nests.
// CHECK-LABEL: func.func @different_reductions
// CHECK-SAME: accel.refusals = {{\[\[}}"?", "?", "reductions over different dimensions"]]
// CHECK-COUNT-2: accel.fusion
func.func @different_reductions(%x: tensor<4x8xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<4xf32>
  %g = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %last = linalg.fill ins(%zero : f32) outs(%g : tensor<f32>) -> tensor<f32>
  %s = linalg.reduce {arith.addf} ins(%x : tensor<4x8xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  // expected-remark @below {{not fused with ?: reductions over different dimensions}}
  %t = linalg.reduce {arith.maximumf} ins(%s : tensor<4xf32>) outs(%last : tensor<f32>) dimensions = [0]
  return %t : tensor<f32>
}

// One reduction runs over two dimensions, the other over one of them.
// CHECK-LABEL: func.func @different_dimensions
// CHECK-COUNT-2: accel.fusion
func.func @different_dimensions(%x: tensor<4x8x16xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8x16xf32>
  %f = tensor.empty() : tensor<4x8xf32>
  %g = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  %last = linalg.fill ins(%zero : f32) outs(%g : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.reduce {arith.addf} ins(%x : tensor<4x8x16xf32>) outs(%init : tensor<4x8xf32>) dimensions = [2]
  %d = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>,
                                        affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : tensor<4x8x16xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8x16xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.subf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<4x8x16xf32>
  // expected-remark @below {{reductions over different dimensions}}
  %t = linalg.reduce {arith.addf} ins(%d : tensor<4x8x16xf32>) outs(%last : tensor<4xf32>) dimensions = [1, 2]
  return %t : tensor<4xf32>
}

// The front half of a value: the map is the identity, the sizes differ.
// CHECK-LABEL: func.func @front_half
// CHECK-COUNT-2: accel.fusion
func.func @front_half(%x: tensor<4x8xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<4x4xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %s = accel.view %a by affine_map<(i, j) -> (i, j)> : tensor<4x8xf32> -> tensor<4x4xf32>
  // expected-remark @below {{iteration spaces differ: 8 against 4}}
  %b = linalg.generic #unary ins(%s : tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}

// The back half.
// CHECK-LABEL: func.func @slice
// CHECK-COUNT-2: accel.fusion
func.func @slice(%x: tensor<4x8xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<4x4xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %s = accel.view %a by affine_map<(i, j) -> (i, j + 4)> : tensor<4x8xf32> -> tensor<4x4xf32>
  // expected-remark @below {{it reads the value through a slice or a split dimension}}
  %b = linalg.generic #unary ins(%s : tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}

// One row of a value.
// CHECK-LABEL: func.func @select
// CHECK-COUNT-2: accel.fusion
func.func @select(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %s = accel.view %a by affine_map<(j) -> (0, j)> : tensor<4x8xf32> -> tensor<8xf32>
  // expected-remark @below {{it reads a part of the value}}
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%s : tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %b : tensor<8xf32>
}

// Which part it is only shows at run time.
// CHECK-LABEL: func.func @symbolic_offset
// CHECK-COUNT-2: accel.fusion
func.func @symbolic_offset(%n: index, %x: tensor<4x8xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<4x4xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %s = accel.view %a[%n] by affine_map<(i, j)[s0] -> (i, j + s0)> : tensor<4x8xf32> -> tensor<4x4xf32>
  // expected-remark @below {{it reads the value through a view with symbolic offsets}}
  %b = linalg.generic #unary ins(%s : tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}

// x + x.T of a computed x: each element is needed in two iterations.
// CHECK-LABEL: func.func @two_positions
// CHECK-COUNT-2: accel.fusion
func.func @two_positions(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %a = linalg.generic #unary ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %t = accel.view %a by affine_map<(i, j) -> (j, i)> : tensor<8x8xf32> -> tensor<8x8xf32>
  // expected-remark @below {{it reads the value at two positions}}
  %b = linalg.generic #binary ins(%a, %t : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.addf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  return %b : tensor<8x8xf32>
}

// A gather reads anywhere, so what it reads has to be in memory.
// CHECK-LABEL: func.func @gather_source
// CHECK-COUNT-2: accel.fusion
func.func @gather_source(%x: tensor<4x8xf32>, %ids: tensor<4x8xi64>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  // expected-remark @below {{it gathers from a value that has to be in memory first}}
  %b = linalg.generic #binary ins(%a, %ids : tensor<4x8xf32>, tensor<4x8xi64>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %id: i64, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %id : i64 to index
    %g = tensor.extract %a[%i, %j] : tensor<4x8xf32>
    %r = arith.addf %v, %g : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// A row of exponentials that every row of the result needs.
// CHECK-LABEL: func.func @computed_twice
// CHECK-COUNT-2: accel.fusion
func.func @computed_twice(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%b : tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  // expected-remark @below {{an expensive value would be computed more than once}}
  %s = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %n : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.addf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// The same with a cheap row that leaves the function.
// CHECK-LABEL: func.func @written_twice
// CHECK-COUNT-2: accel.fusion
func.func @written_twice(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%b : tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  // expected-remark @below {{a value that others need would be written more than once}}
  %s = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %n : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.addf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %s, %n : tensor<4x8xf32>, tensor<8xf32>
}

// %b needs what the call makes of %a: one kernel would have to run both before and after the call.
// CHECK-LABEL: func.func @cycle
// CHECK: accel.fusion
// CHECK: accel.aten_call
// CHECK: accel.fusion
func.func @cycle(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %c = accel.aten_call "aten::cumsum" "default" "fallback"(%a) {args = [#accel.operand<0>, 0]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark @below {{another op runs between the two}}
  %b = linalg.generic #binary ins(%a, %c : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.addf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// Two readers of %x, the later of which one reads flipped from within the other's kernel: they stay two, whichever comes first.
// CHECK-LABEL: func.func @siblings_with_a_flip
// CHECK: accel.fusion
// CHECK: math.sin
// CHECK: accel.fusion
// CHECK: math.exp
func.func @siblings_with_a_flip(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %e = tensor.empty() : tensor<64x128xf32>
  %a = linalg.generic #unary ins(%x : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<64x128xf32>
  %s = linalg.generic #unary ins(%x : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<64x128xf32>
  %f = accel.view %s by affine_map<(i, j) -> (i, -j + 127)> : tensor<64x128xf32> -> tensor<64x128xf32>
  // expected-remark @below {{it reads the value through a slice or a split dimension}}
  %b = linalg.generic #binary ins(%a, %f : tensor<64x128xf32>, tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.addf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<64x128xf32>
  return %b : tensor<64x128xf32>
}

// Reading a small tensor twice costs less than what a larger kernel does: no siblings, and no remark, for nothing was asked.
// CHECK-LABEL: func.func @small_siblings
// CHECK-COUNT-2: accel.fusion
func.func @small_siblings(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %b = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %a, %b : tensor<4x8xf32>, tensor<4x8xf32>
}
