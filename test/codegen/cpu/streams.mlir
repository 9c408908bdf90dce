// RUN: accel-compile --target=cpu:x86-64-v3 --compile-from=kernels --compile-to=codegen --dump-phases=%t -o %t.out %s
// RUN: FileCheck %s --input-file=%t/06-codegen.vector.mlir
// RUN: FileCheck %s --input-file=%t/06-codegen.s --check-prefix=ASM

// A result of 64 MiB is written past the caches, where the registers' addresses are aligned, and is complete in memory
// when the kernel returns.
// CHECK-LABEL: func.func @large
// CHECK: %[[ADDRESS:.*]] = llvm.ptrtoint
// CHECK: %[[REST:.*]] = arith.andi %[[ADDRESS]], %c31
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[REST]], %c0
// CHECK: scf.if %[[ALIGNED]]
// CHECK: llvm.store {{.*}} {alignment = 32 : i64, nontemporal} : vector<16xf32>
// CHECK: llvm.store {{.*}} {alignment = 4 : i64} : vector<16xf32>
// CHECK: llvm.x86.sse.sfence
// ASM-LABEL: large:
// ASM-DAG: vmovntps
// ASM-DAG: sfence
#plain = #accel.layout<affine_map<() -> (4096, 4096)>, affine_map<() -> (4096, 1)>>
accel.kernel @large(%x: tensor<4096x4096xf32> {accel.layout = #plain}) -> (tensor<4096x4096xf32> {accel.layout = #plain})
    attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<4096x4096xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<4096x4096xf32>
  accel.yield %r : tensor<4096x4096xf32>
}

// Not one that a cache holds.
// CHECK-LABEL: func.func @small
// CHECK-NOT: nontemporal
// ASM-LABEL: small:
// ASM-NOT: sfence
#small = #accel.layout<affine_map<() -> (64, 4096)>, affine_map<() -> (4096, 1)>>
accel.kernel @small(%x: tensor<64x4096xf32> {accel.layout = #small}) -> (tensor<64x4096xf32> {accel.layout = #small})
    attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64x4096xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x4096xf32>) outs(%e : tensor<64x4096xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<64x4096xf32>
  accel.yield %r : tensor<64x4096xf32>
}
