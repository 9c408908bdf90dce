// RUN: accel-opt %s --accel-form-attention --canonicalize | FileCheck %s

// A product, a softmax and a product are one attention; the batch counts as such, with one head.
#all = affine_map<(b, m, n) -> (b, m, n)>
#row = affine_map<(b, m, n) -> (b, m)>
#unary = {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
#binary = {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
#by_row = {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}

// CHECK-LABEL: func.func @plain
// CHECK-SAME: (%[[Q:.*]]: tensor<6x10x8xf32>, %[[KT:.*]]: tensor<6x8x12xf32>, %[[V:.*]]: tensor<6x12x8xf32>)
// CHECK-DAG: %[[Q4:.*]] = accel.view %[[Q]] {{.*}} -> tensor<6x1x10x8xf32>
// CHECK-DAG: %[[K4:.*]] = accel.view %[[KT]] {{.*}} -> tensor<6x1x12x8xf32>
// CHECK-DAG: %[[V4:.*]] = accel.view %[[V]] {{.*}} -> tensor<6x1x12x8xf32>
// CHECK: %[[OUT:.*]], %{{.*}} = accel.attention %[[Q4]], %[[K4]], %[[V4]] scale(1.000000e+00) plain
// CHECK-NOT: linalg
// CHECK: accel.view %[[OUT]]
// CHECK: return
func.func @plain(%q: tensor<6x10x8xf32>, %kt: tensor<6x8x12xf32>, %v: tensor<6x12x8xf32>) -> (tensor<6x10x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<6x10x12xf32>
  %er = tensor.empty() : tensor<6x10xf32>
  %eo = tensor.empty() : tensor<6x10x8xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<6x10x12xf32>) -> tensor<6x10x12xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<6x10xf32>) -> tensor<6x10xf32>
  %lr = linalg.fill ins(%low : f32) outs(%er : tensor<6x10xf32>) -> tensor<6x10xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<6x10x8xf32>) -> tensor<6x10x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<6x10x8xf32>, tensor<6x8x12xf32>) outs(%zs : tensor<6x10x12xf32>) -> tensor<6x10x12xf32>
  %m = linalg.reduce { arith.maximumf } ins(%s : tensor<6x10x12xf32>) outs(%lr : tensor<6x10xf32>) dimensions = [2]
  %d = linalg.generic #by_row ins(%s, %m : tensor<6x10x12xf32>, tensor<6x10xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.subf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %e = linalg.generic #unary ins(%d : tensor<6x10x12xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %x = math.exp %a : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %t = linalg.reduce { arith.addf } ins(%e : tensor<6x10x12xf32>) outs(%zr : tensor<6x10xf32>) dimensions = [2]
  %p = linalg.generic #by_row ins(%e, %t : tensor<6x10x12xf32>, tensor<6x10xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.divf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %r = linalg.batch_matmul ins(%p, %v : tensor<6x10x12xf32>, tensor<6x12x8xf32>) outs(%zo : tensor<6x10x8xf32>) -> tensor<6x10x8xf32>
  return %r : tensor<6x10x8xf32>
}

// Scores are scaled, then a mask is added.
// CHECK-LABEL: func.func @masked
// CHECK: accel.attention {{.*}} mask(%{{.*}}) scale(2.500000e-01) plain
// CHECK-NOT: linalg
func.func @masked(%q: tensor<6x10x8xf32>, %kt: tensor<6x8x12xf32>, %v: tensor<6x12x8xf32>, %mask: tensor<6x10x12xf32>) -> (tensor<6x10x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<6x10x12xf32>
  %er = tensor.empty() : tensor<6x10xf32>
  %eo = tensor.empty() : tensor<6x10x8xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<6x10x12xf32>) -> tensor<6x10x12xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<6x10xf32>) -> tensor<6x10xf32>
  %lr = linalg.fill ins(%low : f32) outs(%er : tensor<6x10xf32>) -> tensor<6x10xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<6x10x8xf32>) -> tensor<6x10x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<6x10x8xf32>, tensor<6x8x12xf32>) outs(%zs : tensor<6x10x12xf32>) -> tensor<6x10x12xf32>
  %c = arith.constant 0.25 : f32
  %l = linalg.generic #unary ins(%s : tensor<6x10x12xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %x = arith.mulf %a, %c : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %k = linalg.generic #binary ins(%l, %mask : tensor<6x10x12xf32>, tensor<6x10x12xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.addf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %m = linalg.reduce { arith.maximumf } ins(%k : tensor<6x10x12xf32>) outs(%lr : tensor<6x10xf32>) dimensions = [2]
  %d = linalg.generic #by_row ins(%k, %m : tensor<6x10x12xf32>, tensor<6x10xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.subf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %e = linalg.generic #unary ins(%d : tensor<6x10x12xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %x = math.exp %a : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %t = linalg.reduce { arith.addf } ins(%e : tensor<6x10x12xf32>) outs(%zr : tensor<6x10xf32>) dimensions = [2]
  %p = linalg.generic #by_row ins(%e, %t : tensor<6x10x12xf32>, tensor<6x10xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.divf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %r = linalg.batch_matmul ins(%p, %v : tensor<6x10x12xf32>, tensor<6x12x8xf32>) outs(%zo : tensor<6x10x8xf32>) -> tensor<6x10x8xf32>
  return %r : tensor<6x10x8xf32>
}

// A number for scores that a mask hides: the mask says the opposite for the kernel.
// CHECK-LABEL: func.func @hidden
// CHECK: %[[YES:.*]] = linalg.generic
// CHECK: arith.xori
// CHECK: accel.attention {{.*}} mask(%{{.*}}) hidden(-1.000000e+04) scale(1.000000e+00) plain
// CHECK-NOT: linalg
func.func @hidden(%q: tensor<6x10x8xf32>, %kt: tensor<6x8x12xf32>, %v: tensor<6x12x8xf32>, %mask: tensor<6x10x12xi1>) -> (tensor<6x10x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<6x10x12xf32>
  %er = tensor.empty() : tensor<6x10xf32>
  %eo = tensor.empty() : tensor<6x10x8xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<6x10x12xf32>) -> tensor<6x10x12xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<6x10xf32>) -> tensor<6x10xf32>
  %lr = linalg.fill ins(%low : f32) outs(%er : tensor<6x10xf32>) -> tensor<6x10xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<6x10x8xf32>) -> tensor<6x10x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<6x10x8xf32>, tensor<6x8x12xf32>) outs(%zs : tensor<6x10x12xf32>) -> tensor<6x10x12xf32>
  %c = arith.constant -1.0e4 : f32
  %l = linalg.generic #binary ins(%s, %mask : tensor<6x10x12xf32>, tensor<6x10x12xi1>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: i1, %o: f32):
    %x = arith.select %b, %c, %a : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %m = linalg.reduce { arith.maximumf } ins(%l : tensor<6x10x12xf32>) outs(%lr : tensor<6x10xf32>) dimensions = [2]
  %d = linalg.generic #by_row ins(%l, %m : tensor<6x10x12xf32>, tensor<6x10xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.subf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %e = linalg.generic #unary ins(%d : tensor<6x10x12xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %x = math.exp %a : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %t = linalg.reduce { arith.addf } ins(%e : tensor<6x10x12xf32>) outs(%zr : tensor<6x10xf32>) dimensions = [2]
  %p = linalg.generic #by_row ins(%e, %t : tensor<6x10x12xf32>, tensor<6x10xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.divf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %r = linalg.batch_matmul ins(%p, %v : tensor<6x10x12xf32>, tensor<6x12x8xf32>) outs(%zo : tensor<6x10x8xf32>) -> tensor<6x10x8xf32>
  return %r : tensor<6x10x8xf32>
}

// A view that splits heads behind the product reads the result where it lies.
// CHECK-LABEL: func.func @split
// CHECK: %[[OUT:.*]], %{{.*}} = accel.attention
// CHECK-NEXT: %[[R:.*]] = accel.view %[[OUT]] by #{{.*}} : tensor<6x10x1x8xf32> -> tensor<2x10x3x8xf32>
// CHECK-NEXT: return %[[R]]
func.func @split(%q: tensor<6x10x8xf32>, %kt: tensor<6x8x12xf32>, %v: tensor<6x12x8xf32>) -> (tensor<2x10x3x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<6x10x12xf32>
  %er = tensor.empty() : tensor<6x10xf32>
  %eo = tensor.empty() : tensor<6x10x8xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<6x10x12xf32>) -> tensor<6x10x12xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<6x10xf32>) -> tensor<6x10xf32>
  %lr = linalg.fill ins(%low : f32) outs(%er : tensor<6x10xf32>) -> tensor<6x10xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<6x10x8xf32>) -> tensor<6x10x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<6x10x8xf32>, tensor<6x8x12xf32>) outs(%zs : tensor<6x10x12xf32>) -> tensor<6x10x12xf32>
  %m = linalg.reduce { arith.maximumf } ins(%s : tensor<6x10x12xf32>) outs(%lr : tensor<6x10xf32>) dimensions = [2]
  %d = linalg.generic #by_row ins(%s, %m : tensor<6x10x12xf32>, tensor<6x10xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.subf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %e = linalg.generic #unary ins(%d : tensor<6x10x12xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %x = math.exp %a : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %t = linalg.reduce { arith.addf } ins(%e : tensor<6x10x12xf32>) outs(%zr : tensor<6x10xf32>) dimensions = [2]
  %p = linalg.generic #by_row ins(%e, %t : tensor<6x10x12xf32>, tensor<6x10xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.divf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %r = linalg.batch_matmul ins(%p, %v : tensor<6x10x12xf32>, tensor<6x12x8xf32>) outs(%zo : tensor<6x10x8xf32>) -> tensor<6x10x8xf32>
  %w = accel.view %r by affine_map<(b, m, h, n) -> (b * 3 + h, m, n)> : tensor<6x10x8xf32> -> tensor<2x10x3x8xf32>
  return %w : tensor<2x10x3x8xf32>
}
