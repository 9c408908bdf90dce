// RUN: accel-opt %s --accel-form-attention | FileCheck %s

#all = affine_map<(b, m, n) -> (b, m, n)>
#row = affine_map<(b, m, n) -> (b, m)>
#unary = {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
#binary = {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
#by_row = {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}

// The weights are a result too, as they are where gradients need them.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: accel.attention
// CHECK: return
func.func @kept(%q: tensor<6x10x8xf32>, %kt: tensor<6x8x12xf32>, %v: tensor<6x12x8xf32>) -> (tensor<6x10x8xf32>, tensor<6x10x12xf32>) {
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
  return %r, %p : tensor<6x10x8xf32>, tensor<6x10x12xf32>
}

// The scale applies to the mask.
// CHECK-LABEL: func.func @scaled_mask
// CHECK-NOT: accel.attention
// CHECK: return
func.func @scaled_mask(%q: tensor<6x10x8xf32>, %kt: tensor<6x8x12xf32>, %v: tensor<6x12x8xf32>, %mask: tensor<6x10x12xf32>) -> (tensor<6x10x8xf32>) {
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
  %k = linalg.generic #binary ins(%s, %mask : tensor<6x10x12xf32>, tensor<6x10x12xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.addf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %c = arith.constant 0.25 : f32
  %l = linalg.generic #unary ins(%k : tensor<6x10x12xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %x = arith.mulf %a, %c : f32
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

// Two masks.
// CHECK-LABEL: func.func @two_masks
// CHECK-NOT: accel.attention
// CHECK: return
func.func @two_masks(%q: tensor<6x10x8xf32>, %kt: tensor<6x8x12xf32>, %v: tensor<6x12x8xf32>, %mask: tensor<6x10x12xf32>) -> (tensor<6x10x8xf32>) {
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
  %k = linalg.generic #binary ins(%s, %mask : tensor<6x10x12xf32>, tensor<6x10x12xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.addf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<6x10x12xf32>
  %l = linalg.generic #binary ins(%k, %mask : tensor<6x10x12xf32>, tensor<6x10x12xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.addf %a, %b : f32
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

// The shift is not the maximum.
// CHECK-LABEL: func.func @minimum
// CHECK-NOT: accel.attention
// CHECK: return
func.func @minimum(%q: tensor<6x10x8xf32>, %kt: tensor<6x8x12xf32>, %v: tensor<6x12x8xf32>) -> (tensor<6x10x8xf32>) {
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
  %m = linalg.reduce { arith.minimumf } ins(%s : tensor<6x10x12xf32>) outs(%lr : tensor<6x10xf32>) dimensions = [2]
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

// Something other than a scale or a mask happens to the scores.
// CHECK-LABEL: func.func @capped
// CHECK-NOT: accel.attention
// CHECK: return
func.func @capped(%q: tensor<6x10x8xf32>, %kt: tensor<6x8x12xf32>, %v: tensor<6x12x8xf32>) -> (tensor<6x10x8xf32>) {
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
  %l = linalg.generic #unary ins(%s : tensor<6x10x12xf32>) outs(%es : tensor<6x10x12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %x = math.tanh %a : f32
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
