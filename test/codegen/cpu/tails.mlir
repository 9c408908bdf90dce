// RUN: accel-compile --target=cpu:x86-64-v3 --compile-from=kernels --compile-to=codegen --dump-phases=%t -o %t.out %s
// RUN: FileCheck %s --input-file=%t/06-codegen.vector.mlir

// Masks are for the end of a loop that is no multiple of the vector, and for nothing else.

#unary = {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}

// 64 is two vectors of 16 and more: whole vectors only.
// CHECK-LABEL: func.func @whole
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: mask
// CHECK: llvm.load %{{.*}} -> vector<16xf32>
// CHECK: llvm.store {{.*}} vector<16xf32>
// CHECK-NOT: mask
// CHECK: return
#l64 = #accel.layout<affine_map<() -> (64)>, affine_map<() -> (1)>>
accel.kernel @whole(%x: tensor<64xf32> {accel.layout = #l64}) -> (tensor<64xf32> {accel.layout = #l64})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic #unary ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  accel.yield %r : tensor<64xf32>
}

// 63 has a tail whose length is known: no branch decides whether it runs, and no lane of the whole vectors is masked.
// CHECK-LABEL: func.func @known_tail
// CHECK: scf.for
// CHECK: scf.for
// CHECK: llvm.load %{{.*}} -> vector<16xf32>
// CHECK: llvm.store {{.*}} vector<16xf32>
// CHECK-NOT: scf.if
// CHECK: llvm.intr.masked.load
// CHECK: llvm.intr.masked.store
// CHECK: return
#l63 = #accel.layout<affine_map<() -> (63)>, affine_map<() -> (1)>>
accel.kernel @known_tail(%x: tensor<63xf32> {accel.layout = #l63}) -> (tensor<63xf32> {accel.layout = #l63})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<63xf32>
  %r = linalg.generic #unary ins(%x : tensor<63xf32>) outs(%e : tensor<63xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<63xf32>
  accel.yield %r : tensor<63xf32>
}

// 3 is nothing but a tail, in a vector of 4.
// CHECK-LABEL: func.func @only_a_tail
// CHECK-NOT: llvm.load {{.*}} -> vector
// CHECK: llvm.intr.masked.load {{.*}} -> vector<4xf32>
// CHECK-NOT: llvm.store {{.*}} vector
// CHECK: return
#l3 = #accel.layout<affine_map<() -> (3)>, affine_map<() -> (1)>>
accel.kernel @only_a_tail(%x: tensor<3xf32> {accel.layout = #l3}) -> (tensor<3xf32> {accel.layout = #l3})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic #unary ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<3xf32>
  accel.yield %r : tensor<3xf32>
}

// A symbolic size has a loop of whole vectors, and a tail behind a branch.
// CHECK-LABEL: func.func @unknown_tail
// CHECK: scf.for
// CHECK: scf.for
// CHECK: llvm.load %{{.*}} -> vector<16xf32>
// CHECK: llvm.store {{.*}} vector<16xf32>
// CHECK: scf.if
// CHECK: llvm.intr.masked.load
// CHECK: llvm.intr.masked.store
// CHECK: return
#ls = #accel.layout<affine_map<()[s0] -> (s0)>, affine_map<()[s0] -> (1)>>
accel.kernel @unknown_tail(%x: tensor<?xf32> {accel.layout = #ls}, %n: index) -> (tensor<?xf32> {accel.layout = #ls})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic #unary ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    %m = arith.negf %v : f32
    linalg.yield %m : f32
  } -> tensor<?xf32>
  accel.yield %r : tensor<?xf32>
}

// The lanes behind the end of a row that is reduced keep what they have, so that no value of theirs enters the result.
// CHECK-LABEL: func.func @reduction_tail
// CHECK: %[[LOADED:.*]] = llvm.intr.masked.load
// CHECK: %[[SUM:.*]] = arith.addf %[[ACC:.*]], %[[LOADED]] : vector<32xf32>
// CHECK: arith.select %{{.*}}, %[[SUM]], %[[ACC]]
// CHECK-COUNT-10: vector.extract
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr
// CHECK: return
#row = #accel.layout<affine_map<() -> (4, 50)>, affine_map<() -> (50, 1)>>
#l4 = #accel.layout<affine_map<() -> (4)>, affine_map<() -> (1)>>
accel.kernel @reduction_tail(%x: tensor<4x50xf32> {accel.layout = #row}) -> (tensor<4xf32> {accel.layout = #l4})
    attributes {parallel = 1 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<4x50xf32>) outs(%i : tensor<4xf32>) dimensions = [1] {accel.loops = array<i64: 0, 1>}
  accel.yield %r : tensor<4xf32>
}
