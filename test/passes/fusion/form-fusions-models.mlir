// RUN: accel-opt %s --accel-form-fusions --accel-verify-fusions | FileCheck %s

// The composites that everything is made of are one kernel each.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
#unary = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
#binary = {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
#by_row = {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}

// CHECK-LABEL: func.func @softmax
// CHECK: accel.fusion parallel(1) rows(1)
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK-NOT: accel.fusion
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<4xf32>
  %minus = linalg.fill ins(%lowest : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.reduce {arith.maximumf} ins(%x : tensor<4x8xf32>) outs(%minus : tensor<4xf32>) dimensions = [1]
  %exp = linalg.generic #by_row ins(%x, %max : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %m: f32, %o: f32):
    %d = arith.subf %v, %m : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %sum = linalg.reduce {arith.addf} ins(%exp : tensor<4x8xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %div = linalg.generic #by_row ins(%exp, %sum : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %r = arith.divf %v, %s : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %div : tensor<4x8xf32>
}

// The mask is one for each row of each of the batch's heads, and reaches the scores through a broadcasting view.
// CHECK-LABEL: func.func @masked_scaled_softmax
// CHECK: accel.fusion parallel(2) rows(1)
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.divf
// CHECK-NOT: accel.fusion
func.func @masked_scaled_softmax(%x: tensor<2x4x8xf32>, %mask: tensor<1x4x8xf32>) -> tensor<2x4x8xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %e = tensor.empty() : tensor<2x4x8xf32>
  %f = tensor.empty() : tensor<2x4xf32>
  %minus = linalg.fill ins(%lowest : f32) outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32>
  %scaled = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
                            iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x4x8xf32>) outs(%e : tensor<2x4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.mulf %v, %scale : f32
    linalg.yield %r : f32
  } -> tensor<2x4x8xf32>
  %all = accel.view %mask by affine_map<(b, i, j) -> (0, i, j)> : tensor<1x4x8xf32> -> tensor<2x4x8xf32>
  %masked = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>,
                                             affine_map<(b, i, j) -> (b, i, j)>],
                            iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scaled, %all : tensor<2x4x8xf32>, tensor<2x4x8xf32>) outs(%e : tensor<2x4x8xf32>) {
  ^bb0(%v: f32, %m: f32, %o: f32):
    %r = arith.addf %v, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x4x8xf32>
  %max = linalg.reduce {arith.maximumf} ins(%masked : tensor<2x4x8xf32>) outs(%minus : tensor<2x4xf32>) dimensions = [2]
  %exp = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i)>,
                                          affine_map<(b, i, j) -> (b, i, j)>],
                         iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%masked, %max : tensor<2x4x8xf32>, tensor<2x4xf32>) outs(%e : tensor<2x4x8xf32>) {
  ^bb0(%v: f32, %m: f32, %o: f32):
    %d = arith.subf %v, %m : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<2x4x8xf32>
  %sum = linalg.reduce {arith.addf} ins(%exp : tensor<2x4x8xf32>) outs(%init : tensor<2x4xf32>) dimensions = [2]
  %div = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i)>,
                                          affine_map<(b, i, j) -> (b, i, j)>],
                         iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<2x4x8xf32>, tensor<2x4xf32>) outs(%e : tensor<2x4x8xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %r = arith.divf %v, %s : f32
    linalg.yield %r : f32
  } -> tensor<2x4x8xf32>
  return %div : tensor<2x4x8xf32>
}

// Two reductions, the second over what the first gave, the residual before and the affine part after; the residual sum leaves too.
// CHECK-LABEL: func.func @layer_norm
// CHECK: accel.fusion parallel(1) rows(1)
// CHECK-COUNT-2: linalg.reduce
// CHECK: math.rsqrt
// CHECK: } -> tensor<4x8xf32>, tensor<4x8xf32>
// CHECK-NOT: accel.fusion
func.func @layer_norm(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %n = arith.constant 0.125 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %res = linalg.generic #binary ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %u: f32, %o: f32):
    %r = arith.addf %v, %u : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %sum = linalg.reduce {arith.addf} ins(%res : tensor<4x8xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %centred = linalg.generic #by_row ins(%res, %sum : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %m = arith.mulf %s, %n : f32
    %r = arith.subf %v, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %square = linalg.generic #unary ins(%centred : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.mulf %v, %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %squares = linalg.reduce {arith.addf} ins(%square : tensor<4x8xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %inverse = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%squares : tensor<4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %m = arith.mulf %v, %n : f32
    %p = arith.addf %m, %eps : f32
    %r = math.rsqrt %p : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %out = linalg.generic {indexing_maps = [#id, #row, #col, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%centred, %inverse, %w, %b : tensor<4x8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>)
      outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %i: f32, %g: f32, %c: f32, %o: f32):
    %p = arith.mulf %v, %i : f32
    %q = arith.mulf %p, %g : f32
    %r = arith.addf %q, %c : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %out, %res : tensor<4x8xf32>, tensor<4x8xf32>
}
