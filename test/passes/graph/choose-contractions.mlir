// RUN: accel-opt %s --accel-choose-contractions="features=+avx512f,+fma constant-weights" | FileCheck %s
// RUN: accel-opt %s --accel-choose-contractions="features=+avx2,+fma constant-weights" | FileCheck %s --check-prefix=AVX2

// CHECK-DAG: #[[PANELS:.*]] = affine_map<(d0, d1, d2) -> (d1 floordiv 32, d2, d1 mod 32)>
// AVX2-DAG: affine_map<(d0, d1, d2) -> (d1 floordiv 16, d2, d1 mod 16)>

// Constant weights are packed: 40 columns are one panel of 32 and one that is filled up with zeros.
// CHECK-LABEL: func.func @packed
// CHECK: linalg.copy {{.*}} -> tensor<1x64x32xf32>
// CHECK: linalg.copy {{.*}} -> tensor<1x64x8xf32>
// CHECK: accel.concat dim(2) {{.*}} -> tensor<1x64x32xf32>
// CHECK: %[[P:.*]] = accel.concat dim(0) {{.*}} -> tensor<2x64x32xf32>
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[PANELS]], {{.*}}]{{.*}} ins(%{{.*}}, %[[P]] :
// CHECK-SAME: accel.choice = "constant weights, packed into panels once"
func.func @packed(%x: tensor<30x64xf32> {accel.kind = "input", accel.layout = #accel.layout<affine_map<() -> (30, 64)>, affine_map<() -> (64, 1)>>},
                  %w: tensor<64x40xf32> {accel.kind = "parameter", accel.layout = #accel.layout<affine_map<() -> (64, 40)>, affine_map<() -> (40, 1)>>}) -> tensor<30x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<30x40xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<30x40xf32>) -> tensor<30x40xf32>
  %r = linalg.matmul ins(%x, %w : tensor<30x64xf32>, tensor<64x40xf32>) outs(%i : tensor<30x40xf32>) -> tensor<30x40xf32>
  return %r : tensor<30x40xf32>
}

// One row: eight registers of columns keep eight sums going.
// CHECK-LABEL: func.func @one_row
// CHECK: linalg.copy {{.*}} -> tensor<2x64x128xf32>
func.func @one_row(%x: tensor<1x64xf32> {accel.kind = "input"},
                   %w: tensor<64x256xf32> {accel.kind = "parameter", accel.layout = #accel.layout<affine_map<() -> (64, 256)>, affine_map<() -> (256, 1)>>}) -> tensor<1x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x256xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<1x256xf32>) -> tensor<1x256xf32>
  %r = linalg.matmul ins(%x, %w : tensor<1x64xf32>, tensor<64x256xf32>) outs(%i : tensor<1x256xf32>) -> tensor<1x256xf32>
  return %r : tensor<1x256xf32>
}

// Enough rows pay for copying the right operand within the kernel; a few don't.
// CHECK-LABEL: func.func @rows_that_pay
// CHECK: accel.choice = "operands lie as the tiles want them"
func.func @rows_that_pay(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @few_rows
// CHECK: accel.aten_call "aten::mm" {{.*}} reason = "contraction: too few rows to pay for copying the right operand"
func.func @few_rows(%a: tensor<8x64xf32>, %b: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %r = linalg.matmul ins(%a, %b : tensor<8x64xf32>, tensor<64x64xf32>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

// CHECK-LABEL: func.func @transposed
// CHECK: reason = "contraction: columns of the right operand don't lie side by side"
func.func @transposed(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %t = accel.view %b by affine_map<(d0, d1) -> (d1, d0)> : tensor<64x64xf32> -> tensor<64x64xf32>
  %r = linalg.matmul ins(%a, %t : tensor<64x64xf32>, tensor<64x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// A weight that the function writes to is no constant.
// CHECK-LABEL: func.func @written
// CHECK: accel.aten_call "aten::mm"
func.func @written(%x: tensor<8x64xf32>, %y: tensor<64x64xf32>,
                   %w: tensor<64x64xf32> {accel.kind = "buffer", accel.layout = #accel.layout<affine_map<() -> (64, 64)>, affine_map<() -> (64, 1)>>}) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %r = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32>) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  accel.aten_call "aten::copy_" "default" "fallback"(%w, %y) {args = [#accel.operand<0>, #accel.operand<1>], effects} : (tensor<64x64xf32>, tensor<64x64xf32>) -> ()
  return %r : tensor<8x64xf32>
}

// Without instructions for products of bf16 they are added up in f32.
// CHECK-LABEL: func.func @half
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK: } -> tensor<64x64xf32>
// CHECK: arith.truncf {{.*}} : f32 to bf16
func.func @half(%a: tensor<64x64xbf16>, %b: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<64x64xbf16>
  %i = linalg.fill ins(%zero : bf16) outs(%e : tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %r = linalg.matmul ins(%a, %b : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%i : tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %r : tensor<64x64xbf16>
}
