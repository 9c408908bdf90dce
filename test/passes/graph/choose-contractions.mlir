// RUN: accel-opt %s --accel-choose-contractions="features=+avx2,+fma constant-weights=true" | FileCheck %s --check-prefixes=CHECK,AUTO,AVX2
// RUN: accel-opt %s --accel-choose-contractions="features=+avx2,+fma,+avx512f constant-weights=true" \
// RUN:   | FileCheck %s --check-prefixes=CHECK,AUTO,AVX512
// RUN: accel-opt %s --accel-choose-contractions="features=+avx2,+fma constant-weights=true contractions=own" \
// RUN:   | FileCheck %s --check-prefixes=CHECK,OWN
// RUN: accel-opt %s --accel-choose-contractions="features=+avx2,+fma,+avx512f,+avx512bf16" | FileCheck %s --check-prefix=BF16

// AVX2: #[[READ16:.*]] = affine_map<(d0, d1, d2) -> (d1 floordiv 16, d2, d1 mod 16)>

// Which products get a kernel of ours, and how B lies for it.

// Packed whatever the number of rows. The last panel is filled up with zeros.
// CHECK-LABEL: func.func @constant_weights
// CHECK-SAME: (%[[A:.*]]: tensor<15x33xf32>, %[[B:.*]]: tensor<33x100xf32>
// AVX2: accel.view %[[B]] {{.*}} : tensor<33x100xf32> -> tensor<6x33x16xf32>
// AVX2: %[[WHOLE:.*]] = linalg.copy {{.*}} -> tensor<6x33x16xf32>
// AVX2: accel.view %[[B]] {{.*}} : tensor<33x100xf32> -> tensor<1x33x4xf32>
// AVX2: %[[REST:.*]] = linalg.copy {{.*}} -> tensor<1x33x4xf32>
// AVX2: %[[ZERO:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<1x33x12xf32>)
// AVX2: %[[LAST:.*]] = accel.concat dim(2) %[[REST]], %[[ZERO]]
// AVX2: %[[PANELS:.*]] = accel.concat dim(0) %[[WHOLE]], %[[LAST]] : {{.*}} -> tensor<7x33x16xf32>
// AVX2: linalg.generic {indexing_maps = [#{{.*}}, #[[READ16]], #{{.*}}], iterator_types = ["parallel", "parallel", "reduction"]}
// AVX2-SAME: ins(%[[A]], %[[PANELS]] :
// AVX2-SAME: accel.choice = "constant weights, packed into panels once"
// AVX512: accel.concat dim(0) {{.*}} : tensor<3x33x32xf32>, tensor<1x33x32xf32> -> tensor<4x33x32xf32>
// AVX512: accel.choice = "constant weights, packed into panels once"
#weights = #accel.layout<affine_map<() -> (33, 100)>, affine_map<() -> (100, 1)>>
func.func @constant_weights(%a: tensor<15x33xf32>, %b: tensor<33x100xf32> {accel.kind = "parameter", accel.layout = #weights}) -> tensor<15x100xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x100xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<15x100xf32>) -> tensor<15x100xf32>
  %r = linalg.matmul ins(%a, %b : tensor<15x33xf32>, tensor<33x100xf32>) outs(%i : tensor<15x100xf32>) -> tensor<15x100xf32>
  return %r : tensor<15x100xf32>
}

// Rows enough to pack B for each call; two registers of columns make a panel.
// CHECK-LABEL: func.func @many_rows
// AVX2: linalg.copy {{.*}} -> tensor<4x33x16xf32>
// AVX512: linalg.copy {{.*}} -> tensor<2x33x32xf32>
// CHECK-NOT: accel.concat
// CHECK: accel.choice = "many rows, the right operand packed into panels first"
func.func @many_rows(%a: tensor<256x33xf32>, %b: tensor<33x64xf32>) -> tensor<256x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x33xf32>, tensor<33x64xf32>) outs(%i : tensor<256x64xf32>) -> tensor<256x64xf32>
  return %r : tensor<256x64xf32>
}

// CHECK-LABEL: func.func @less_than_a_panel
// CHECK: linalg.copy {{.*}} -> tensor<1x33x9xf32>
// CHECK-NOT: linalg.copy
// CHECK: accel.concat dim(2) %{{.*}}, %{{.*}} : tensor<1x33x9xf32>, tensor<1x33x7xf32> -> tensor<1x33x16xf32>
// CHECK-NOT: accel.concat
// CHECK: accel.choice
func.func @less_than_a_panel(%a: tensor<256x33xf32>, %b: tensor<33x9xf32>) -> tensor<256x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x9xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<256x9xf32>) -> tensor<256x9xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x33xf32>, tensor<33x9xf32>) outs(%i : tensor<256x9xf32>) -> tensor<256x9xf32>
  return %r : tensor<256x9xf32>
}

// Two products with one B share its panels.
// CHECK-LABEL: func.func @shared_panels
// CHECK: %[[PANELS:.*]] = linalg.copy
// CHECK-NOT: linalg.copy
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[PANELS]] :
// CHECK-NOT: linalg.copy
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[PANELS]] :
// CHECK: return
func.func @shared_panels(%a: tensor<256x33xf32>, %c: tensor<300x33xf32>, %b: tensor<33x64xf32>) -> (tensor<256x64xf32>, tensor<300x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x64xf32>
  %f = tensor.empty() : tensor<300x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<300x64xf32>) -> tensor<300x64xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x33xf32>, tensor<33x64xf32>) outs(%i : tensor<256x64xf32>) -> tensor<256x64xf32>
  %s = linalg.matmul ins(%c, %b : tensor<300x33xf32>, tensor<33x64xf32>) outs(%j : tensor<300x64xf32>) -> tensor<300x64xf32>
  return %r, %s : tensor<256x64xf32>, tensor<300x64xf32>
}

// CHECK-LABEL: func.func @batches
// CHECK-NOT: linalg.copy
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// AUTO-SAME: accel.choice = "operands lie as the tiles want them"
// OWN-SAME: accel.choice = "by option"
func.func @batches(%a: tensor<3x24x33xf32>, %b: tensor<3x33x17xf32>) -> tensor<3x24x17xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x24x17xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<3x24x17xf32>) -> tensor<3x24x17xf32>
  %r = linalg.batch_matmul ins(%a, %b : tensor<3x24x33xf32>, tensor<3x33x17xf32>) outs(%i : tensor<3x24x17xf32>) -> tensor<3x24x17xf32>
  return %r : tensor<3x24x17xf32>
}

// Half precision is converted, and added up in f32; what the processor multiplies itself is the library's.
// CHECK-LABEL: func.func @half
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<24x33xf32>, tensor<33x17xf32>) outs({{.*}} : tensor<24x17xf32>)
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// BF16-LABEL: func.func @half
// BF16: "library"{{.*}} reason = "contraction: the processor multiplies this type, and the library knows how"
func.func @half(%a: tensor<24x33xbf16>, %b: tensor<33x17xbf16>) -> tensor<24x17xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<24x17xbf16>
  %i = linalg.fill ins(%zero : bf16) outs(%e : tensor<24x17xbf16>) -> tensor<24x17xbf16>
  %r = linalg.matmul ins(%a, %b : tensor<24x33xbf16>, tensor<33x17xbf16>) outs(%i : tensor<24x17xbf16>) -> tensor<24x17xbf16>
  return %r : tensor<24x17xbf16>
}

// Symbolic sizes are asked of nobody: the bf16 zeros go.
// CHECK-LABEL: func.func @symbolic_half
// CHECK-NOT: tensor.dim
// CHECK: return
#half_left = #accel.layout<affine_map<()[s] -> (s * 8, 33)>, affine_map<()[s] -> (33, 1)>>
func.func @symbolic_half(%s: index, %a: tensor<?x33xbf16> {accel.layout = #half_left}, %b: tensor<33x17xbf16>) -> tensor<?x17xbf16> {
  %zero = arith.constant 0.0 : bf16
  %c8 = arith.constant 8 : index
  %rows = arith.muli %s, %c8 : index
  %e = tensor.empty(%rows) : tensor<?x17xbf16>
  %i = linalg.fill ins(%zero : bf16) outs(%e : tensor<?x17xbf16>) -> tensor<?x17xbf16>
  %r = linalg.matmul ins(%a, %b : tensor<?x33xbf16>, tensor<33x17xbf16>) outs(%i : tensor<?x17xbf16>) -> tensor<?x17xbf16>
  return %r : tensor<?x17xbf16>
}

// ---- What the library keeps, unless all are ours by option

// CHECK-LABEL: func.func @few_rows
// AUTO-NOT: accel.choice
// AUTO: reason = "contraction: too few rows to pay for copying the right operand"
// OWN-NOT: accel.aten_call
// OWN: accel.choice = "by option"
func.func @few_rows(%a: tensor<23x33xf32>, %b: tensor<33x17xf32>) -> tensor<23x17xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<23x17xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<23x17xf32>) -> tensor<23x17xf32>
  %r = linalg.matmul ins(%a, %b : tensor<23x33xf32>, tensor<33x17xf32>) outs(%i : tensor<23x17xf32>) -> tensor<23x17xf32>
  return %r : tensor<23x17xf32>
}

// CHECK-LABEL: func.func @few_terms
// AUTO-NOT: accel.choice
// AUTO: reason = "contraction: too few columns or terms for a tile of registers"
// OWN-NOT: accel.aten_call
// OWN: accel.choice = "by option"
func.func @few_terms(%a: tensor<64x7xf32>, %b: tensor<7x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x7xf32>, tensor<7x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @few_columns
// AUTO-NOT: accel.choice
// AUTO: reason = "contraction: too few columns or terms for a tile of registers"
// OWN-NOT: accel.aten_call
// OWN: accel.choice = "by option"
func.func @few_columns(%a: tensor<64x33xf32>, %b: tensor<33x7xf32>) -> tensor<64x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x7xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x7xf32>) -> tensor<64x7xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x33xf32>, tensor<33x7xf32>) outs(%i : tensor<64x7xf32>) -> tensor<64x7xf32>
  return %r : tensor<64x7xf32>
}

// CHECK-LABEL: func.func @symbolic_terms
// AUTO-NOT: accel.choice
// AUTO: reason = "contraction: symbolically many terms"
// OWN-NOT: accel.aten_call
// OWN: accel.choice = "by option"
#left = #accel.layout<affine_map<()[k] -> (64, k)>, affine_map<()[k] -> (k, 1)>>
#right = #accel.layout<affine_map<()[k] -> (k, 64)>, affine_map<()[k] -> (64, 1)>>
func.func @symbolic_terms(%k: index, %a: tensor<64x?xf32> {accel.layout = #left}, %b: tensor<?x64xf32> {accel.layout = #right}) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x?xf32>, tensor<?x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @right_by_columns
// AUTO-NOT: accel.choice
// AUTO: reason = "contraction: columns of the right operand don't lie side by side"
// OWN-NOT: accel.aten_call
// OWN: accel.choice = "by option"
func.func @right_by_columns(%a: tensor<64x33xf32>, %t: tensor<17x33xf32>) -> tensor<64x17xf32> {
  %zero = arith.constant 0.0 : f32
  %b = accel.view %t by affine_map<(i, j) -> (j, i)> : tensor<17x33xf32> -> tensor<33x17xf32>
  %e = tensor.empty() : tensor<64x17xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x17xf32>) -> tensor<64x17xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x33xf32>, tensor<33x17xf32>) outs(%i : tensor<64x17xf32>) -> tensor<64x17xf32>
  return %r : tensor<64x17xf32>
}

// CHECK-LABEL: func.func @left_by_columns
// AUTO-NOT: accel.choice
// AUTO: reason = "contraction: terms of the left operand don't lie side by side"
// OWN-NOT: accel.aten_call
// OWN: accel.choice = "by option"
func.func @left_by_columns(%t: tensor<33x64xf32>, %b: tensor<33x17xf32>) -> tensor<64x17xf32> {
  %zero = arith.constant 0.0 : f32
  %a = accel.view %t by affine_map<(i, j) -> (j, i)> : tensor<33x64xf32> -> tensor<64x33xf32>
  %e = tensor.empty() : tensor<64x17xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x17xf32>) -> tensor<64x17xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x33xf32>, tensor<33x17xf32>) outs(%i : tensor<64x17xf32>) -> tensor<64x17xf32>
  return %r : tensor<64x17xf32>
}

// CHECK-LABEL: func.func @integers
// AUTO-NOT: accel.choice
// AUTO: reason = "contraction: the type is the library's"
// OWN-NOT: accel.aten_call
// OWN: accel.choice = "by option"
func.func @integers(%a: tensor<64x33xi32>, %b: tensor<33x17xi32>) -> tensor<64x17xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<64x17xi32>
  %i = linalg.fill ins(%zero : i32) outs(%e : tensor<64x17xi32>) -> tensor<64x17xi32>
  %r = linalg.matmul ins(%a, %b : tensor<64x33xi32>, tensor<33x17xi32>) outs(%i : tensor<64x17xi32>) -> tensor<64x17xi32>
  return %r : tensor<64x17xi32>
}

// ---- What the library keeps in any case

// CHECK-LABEL: func.func @vector
// CHECK-NOT: accel.choice
// CHECK: reason = "contraction: a vector or nothing"
func.func @vector(%a: tensor<64x33xf32>, %b: tensor<33x1xf32>) -> tensor<64x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x1xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x1xf32>) -> tensor<64x1xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x33xf32>, tensor<33x1xf32>) outs(%i : tensor<64x1xf32>) -> tensor<64x1xf32>
  return %r : tensor<64x1xf32>
}

// CHECK-LABEL: func.func @no_terms
// CHECK-NOT: accel.choice
// CHECK: reason = "contraction: a vector or nothing"
func.func @no_terms(%a: tensor<64x0xf32>, %b: tensor<0x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x0xf32>, tensor<0x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// Where an operand lies is not known yet.
// CHECK-LABEL: func.func @without_a_layout
// CHECK: reason = "contraction: an operand is copied first"
func.func @without_a_layout(%a: tensor<64x?xf32>, %b: tensor<?x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x?xf32>, tensor<?x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// A weight that the function writes to is no constant.
// AUTO-LABEL: func.func @written
// AUTO: accel.aten_call "aten::mm"
func.func @written(%x: tensor<8x64xf32>, %y: tensor<64x64xf32>,
                   %w: tensor<64x64xf32> {accel.kind = "buffer", accel.layout = #accel.layout<affine_map<() -> (64, 64)>, affine_map<() -> (64, 1)>>}) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %r = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  accel.aten_call "aten::copy_" "default" "fallback"(%w, %y) {args = [#accel.operand<0>, #accel.operand<1>], effects} : (tensor<64x64xf32>, tensor<64x64xf32>) -> ()
  return %r : tensor<8x64xf32>
}

// A node that adds to its product adds before the sum is rounded to bf16; another node sees what was rounded.
// OWN-LABEL: func.func @half_and_bias
// OWN: %[[P:.*]] = linalg.generic {{.*}}"reduction"]} ins
// OWN: %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<64x64xf32>)
// OWN: arith.truncf
// OWN: linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<64x64xf32>, tensor<64xbf16>)
// OWN: linalg.generic {{.*}} ins(%[[ROUNDED]], %{{.*}} : tensor<64x64xbf16>, tensor<64xbf16>)
#mn = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
func.func @half_and_bias(%a: tensor<64x64xbf16>, %b: tensor<64x64xbf16>, %c: tensor<64xbf16>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<64x64xbf16>
  %i = linalg.fill ins(%zero : bf16) outs(%e : tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %p = linalg.matmul ins(%a, %b : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%i : tensor<64x64xbf16>) -> tensor<64x64xbf16> loc("addmm")
  %r = linalg.generic {indexing_maps = [#mn, #row, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p, %c : tensor<64x64xbf16>, tensor<64xbf16>) outs(%e : tensor<64x64xbf16>) {
  ^bb0(%x: bf16, %y: bf16, %o: bf16):
    %xf = arith.extf %x : bf16 to f32
    %yf = arith.extf %y : bf16 to f32
    %s = arith.addf %xf, %yf : f32
    %t = arith.truncf %s : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64x64xbf16> loc("addmm")
  %q = linalg.generic {indexing_maps = [#mn, #row, #mn], iterator_types = ["parallel", "parallel"]}
      ins(%p, %c : tensor<64x64xbf16>, tensor<64xbf16>) outs(%e : tensor<64x64xbf16>) {
  ^bb0(%x: bf16, %y: bf16, %o: bf16):
    %xf = arith.extf %x : bf16 to f32
    %yf = arith.extf %y : bf16 to f32
    %s = arith.addf %xf, %yf : f32
    %t = arith.truncf %s : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64x64xbf16> loc("add")
  return %r, %q : tensor<64x64xbf16>, tensor<64x64xbf16>
}
