// RUN: accel-compile --target=cpu:x86-64-v3 --compile-from=kernels --compile-to=codegen --dump-phases=%t.v3 -o %t.out %s
// RUN: FileCheck %s --check-prefixes=CHECK,YMM --input-file=%t.v3/06-codegen.s
// RUN: accel-compile --target=cpu:x86-64-v4 --compile-from=kernels --compile-to=codegen --dump-phases=%t.v4 -o %t.out %s
// RUN: FileCheck %s --check-prefixes=CHECK,ZMM --input-file=%t.v4/06-codegen.s

// Mathematics goes to libmvec by name, register by register, in the registers of the target.

#l = #accel.layout<affine_map<() -> (64)>, affine_map<() -> (1)>>
#l3 = #accel.layout<affine_map<() -> (3)>, affine_map<() -> (1)>>
#unary = {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
#binary = {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}

// CHECK-LABEL: {{^}}single:
// YMM: callq _ZGVdN8v_sinhf
// ZMM: callq _ZGVeN16v_sinhf
accel.kernel @single(%x: tensor<64xf32> {accel.layout = #l}) -> (tensor<64xf32> {accel.layout = #l})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic #unary ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    %n = math.sinh %v : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  accel.yield %r : tensor<64xf32>
}

// f64 has half the lanes, so a vector is two calls; a function of two arguments.
// CHECK-LABEL: {{^}}double:
// YMM-COUNT-2: callq _ZGVdN4vv_pow@
// ZMM-COUNT-2: callq _ZGVeN8vv_pow@
accel.kernel @double(%x: tensor<64xf64> {accel.layout = #l}, %y: tensor<64xf64> {accel.layout = #l}) -> (tensor<64xf64> {accel.layout = #l})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64xf64>
  %r = linalg.generic #binary ins(%x, %y : tensor<64xf64>, tensor<64xf64>) outs(%e : tensor<64xf64>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f64, %w: f64, %o: f64):
    %n = math.powf %v, %w : f64
    linalg.yield %n : f64
  } -> tensor<64xf64>
  accel.yield %r : tensor<64xf64>
}

// Three elements fill no register: one call for all, not three scalar ones.
// CHECK-LABEL: {{^}}short:
// YMM-COUNT-1: callq _ZGVdN8v_cbrtf
// ZMM-COUNT-1: callq _ZGVeN16v_cbrtf
// CHECK-NOT: callq
// CHECK: retq
accel.kernel @short(%x: tensor<3xf32> {accel.layout = #l3}) -> (tensor<3xf32> {accel.layout = #l3})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic #unary ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    %n = math.cbrt %v : f32
    linalg.yield %n : f32
  } -> tensor<3xf32>
  accel.yield %r : tensor<3xf32>
}

// The root is an instruction.
// CHECK-LABEL: {{^}}root:
// CHECK-NOT: callq
// YMM: vsqrtps {{.*}}%ymm
// ZMM: vsqrtps {{.*}}%zmm
// CHECK-NOT: callq
// CHECK: retq
accel.kernel @root(%x: tensor<64xf32> {accel.layout = #l}) -> (tensor<64xf32> {accel.layout = #l})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic #unary ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    %n = math.sqrt %v : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  accel.yield %r : tensor<64xf32>
}

// A product and a sum of the user's are two roundings; a fused multiply-add of the user's is one instruction.
// CHECK-LABEL: {{^}}fused:
// YMM: vfmadd{{.*}}%ymm
// ZMM: vfmadd{{.*}}%zmm
// CHECK: retq
accel.kernel @fused(%x: tensor<64xf32> {accel.layout = #l}, %y: tensor<64xf32> {accel.layout = #l}) -> (tensor<64xf32> {accel.layout = #l})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic #binary ins(%x, %y : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %n = math.fma %v, %w, %w : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  accel.yield %r : tensor<64xf32>
}

// CHECK-LABEL: {{^}}not_fused:
// CHECK-NOT: vfmadd
// CHECK: retq
accel.kernel @not_fused(%x: tensor<64xf32> {accel.layout = #l}, %y: tensor<64xf32> {accel.layout = #l}) -> (tensor<64xf32> {accel.layout = #l})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic #binary ins(%x, %y : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %m = arith.mulf %v, %w : f32
    %n = arith.addf %m, %w : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  accel.yield %r : tensor<64xf32>
}
