// RUN: accel-compile --target=cpu:x86-64-v2 --compile-from=kernels --compile-to=codegen --dump-phases=%t.v2 -o %t.out %s
// RUN: FileCheck %s --check-prefixes=CHECK,XMM --input-file=%t.v2/06-codegen.s
// RUN: accel-compile --target=cpu:x86-64-v3 --compile-from=kernels --compile-to=codegen --dump-phases=%t.v3 -o %t.out %s
// RUN: FileCheck %s --check-prefixes=CHECK,INLINE,YMM --input-file=%t.v3/06-codegen.s
// RUN: accel-compile --target=cpu:x86-64-v4 --compile-from=kernels --compile-to=codegen --dump-phases=%t.v4 -o %t.out %s
// RUN: FileCheck %s --check-prefixes=CHECK,INLINE,ZMM --input-file=%t.v4/06-codegen.s

// Exponentials and what is made of them are instructions where the target fuses multiply-adds, for f32.

#l = #accel.layout<affine_map<() -> (64)>, affine_map<() -> (1)>>
#unary = {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}

// CHECK-LABEL: {{^}}exp:
// XMM: callq _ZGVbN4v_expf
// INLINE-NOT: callq
// YMM: vfmadd{{.*}}%ymm
// ZMM: vfmadd{{.*}}%zmm
// INLINE-NOT: callq
// CHECK: retq
accel.kernel @exp(%x: tensor<64xf32> {accel.layout = #l}) -> (tensor<64xf32> {accel.layout = #l})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic #unary ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    %n = math.exp %v : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  accel.yield %r : tensor<64xf32>
}

// CHECK-LABEL: {{^}}tanh:
// XMM: callq _ZGVbN4v_tanhf
// INLINE-NOT: callq
// YMM: vfmadd{{.*}}%ymm
// ZMM: vfmadd{{.*}}%zmm
// INLINE-NOT: callq
// CHECK: retq
accel.kernel @tanh(%x: tensor<64xf32> {accel.layout = #l}) -> (tensor<64xf32> {accel.layout = #l})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic #unary ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    %n = math.tanh %v : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  accel.yield %r : tensor<64xf32>
}

// CHECK-LABEL: {{^}}erf:
// XMM: callq _ZGVbN4v_erff
// INLINE-NOT: callq
// YMM: vfmadd{{.*}}%ymm
// ZMM: vfmadd{{.*}}%zmm
// INLINE-NOT: callq
// CHECK: retq
accel.kernel @erf(%x: tensor<64xf32> {accel.layout = #l}) -> (tensor<64xf32> {accel.layout = #l})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic #unary ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    %n = math.erf %v : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  accel.yield %r : tensor<64xf32>
}

// CHECK-LABEL: {{^}}double:
// CHECK: callq _ZGV{{.*}}v_exp@
accel.kernel @double(%x: tensor<64xf64> {accel.layout = #l}) -> (tensor<64xf64> {accel.layout = #l})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64xf64>
  %r = linalg.generic #unary ins(%x : tensor<64xf64>) outs(%e : tensor<64xf64>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f64, %o: f64):
    %n = math.exp %v : f64
    linalg.yield %n : f64
  } -> tensor<64xf64>
  accel.yield %r : tensor<64xf64>
}
