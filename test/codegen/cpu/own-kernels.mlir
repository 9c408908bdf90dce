// RUN: accel-compile --target=cpu:x86-64-v3 --compile-from=kernels --compile-to=codegen --dump-phases=%t -o %t.out %s
// RUN: FileCheck %s --input-file=%t/06-codegen.vector.mlir

#plain = #accel.layout<affine_map<() -> (4, 64)>, affine_map<() -> (64, 1)>>
#table = #accel.layout<affine_map<() -> (100, 64)>, affine_map<() -> (64, 1)>>
#ids = #accel.layout<affine_map<() -> (9)>, affine_map<() -> (1)>>
#rows = #accel.layout<affine_map<() -> (9, 64)>, affine_map<() -> (64, 1)>>

// Along a contiguous row the lanes are added up in a register, in f64; from one register to the next goes one number.
// CHECK-LABEL: func.func @row
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (f64)
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: arith.extf {{.*}} : vector<4xf32> to vector<4xf64>
// CHECK: vector.shuffle {{.*}} [0, 4, 5, 6]
// CHECK: vector.shuffle {{.*}} [0, 1, 4, 5]
// CHECK: vector.extract {{.*}}[3]
// CHECK: llvm.store {{.*}} : vector<4xf32>
accel.kernel @row(%x: tensor<4x64xf32> {accel.layout = #plain}) -> (tensor<4x64xf32> {accel.layout = #plain})
    attributes {parallel = 0 : i64, rows = 0 : i64} {
  %r = accel.scan "add" dim(1) %x : tensor<4x64xf32>
  accel.yield %r : tensor<4x64xf32>
}

// Over the other dimension the lanes are columns.
// CHECK-LABEL: func.func @columns
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf64>)
// CHECK-NOT: vector.shuffle
// CHECK: return
accel.kernel @columns(%x: tensor<4x64xf32> {accel.layout = #plain}) -> (tensor<4x64xf32> {accel.layout = #plain})
    attributes {parallel = 0 : i64, rows = 0 : i64} {
  %r = accel.scan "add" dim(0) %x : tensor<4x64xf32>
  accel.yield %r : tensor<4x64xf32>
}

// A unit owns columns: it sets them to zero in all rows, then adds the updates one after the other. A row out of range is reported and
// not written.
// CHECK-LABEL: func.func @scatter
// CHECK-SAME: %[[ERROR:[a-z0-9]+]]: !llvm.ptr) {
// CHECK: scf.for
// CHECK: scf.for
// CHECK: llvm.store {{.*}} : vector<32xf32>
// CHECK: scf.for
// CHECK: %[[ID:.*]] = llvm.load {{.*}} -> i64
// CHECK: %[[BAD:.*]] = arith.cmpi uge, %[[ID]], %{{.*}} : i64
// CHECK: scf.if %[[BAD]] {
// CHECK: llvm.store %{{.*}}, %[[ERROR]]
// CHECK: scf.if
// CHECK: arith.addf {{.*}} : vector<32xf32>
// CHECK: llvm.store {{.*}} : vector<32xf32>
accel.kernel @scatter(%u: tensor<9x64xf32> {accel.layout = #rows}, %i: tensor<9xi64> {accel.layout = #ids})
    -> (tensor<100x64xf32> {accel.layout = #table}) attributes {parallel = 0 : i64, rows = 0 : i64} {
  %r = accel.scatter "add" %u at(%i) by affine_map<(d0, d1)[s0] -> (s0, d1)> [affine_map<(d0, d1) -> (d0)>]
      : tensor<9x64xf32>, tensor<9xi64> -> tensor<100x64xf32>
  accel.yield %r : tensor<100x64xf32>
}
