// RUN: accel-compile --target=cpu:x86-64-v3 --compile-from=kernels --compile-to=codegen --dump-phases=%t -o %t.out %s
// RUN: FileCheck %s --input-file=%t/06-codegen.vector.mlir

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#table = #accel.layout<affine_map<() -> (100, 64)>, affine_map<() -> (64, 1)>>
#plain = #accel.layout<affine_map<() -> (4, 64)>, affine_map<() -> (64, 1)>>
#ids = #accel.layout<affine_map<() -> (4)>, affine_map<() -> (1)>>

// Rows of an embedding: the number of the row is one for all lanes, which read along it. So the range is checked once, as a scalar,
// and the row is loaded by whole vectors; a row out of range is reported and not read.
// CHECK-LABEL: func.func @embedding
// CHECK-SAME: %[[ERROR:[a-z0-9]+]]: !llvm.ptr) {
// CHECK: %[[ID:.*]] = llvm.load {{.*}} -> i64
// CHECK: %[[BAD:.*]] = arith.cmpi uge, %[[ID]], %{{.*}} : i64
// CHECK: scf.if %[[BAD]] -> (vector<16xf32>) {
// CHECK: llvm.store %{{.*}}, %[[ERROR]]
// CHECK: } else {
// CHECK: llvm.load {{.*}} -> vector<16xf32>
// CHECK-NOT: gather
// CHECK: llvm.store {{.*}} vector<16xf32>
// CHECK: return
accel.kernel @embedding(%t: tensor<100x64xf32> {accel.layout = #table}, %ids: tensor<4xi64> {accel.layout = #ids})
    -> (tensor<4x64xf32> {accel.layout = #plain}) attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<4x64xf32>
  %r = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<4xi64>) outs(%e : tensor<4x64xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%i, %j] : tensor<100x64xf32>
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  accel.yield %r : tensor<4x64xf32>
}

// Columns that an index names: each lane has its own, so each is checked, those out of range aren't read, and the others are gathered.
// CHECK-LABEL: func.func @columns
// CHECK-SAME: %[[ERROR:[a-z0-9]+]]: !llvm.ptr) {
// CHECK: %[[BAD:.*]] = arith.cmpi uge, %{{.*}}, %{{.*}} : vector<16xi64>
// CHECK: %[[ANY:.*]] = vector.reduction <or>, %[[BAD]]
// CHECK: scf.if %[[ANY]] {
// CHECK: llvm.store %{{.*}}, %[[ERROR]]
// CHECK: %[[GOOD:.*]] = arith.xori %[[BAD]]
// CHECK: llvm.intr.masked.gather %{{.*}}, %[[GOOD]]
// CHECK: return
accel.kernel @columns(%t: tensor<4x64xf32> {accel.layout = #plain}, %ids: tensor<64xi64> {accel.layout = #accel.layout<affine_map<() -> (64)>, affine_map<() -> (1)>>})
    -> (tensor<4x64xf32> {accel.layout = #plain}) attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<4x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<64xi64>) outs(%e : tensor<4x64xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%id: i64, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %id : i64 to index
    %v = tensor.extract %t[%i, %j] : tensor<4x64xf32>
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  accel.yield %r : tensor<4x64xf32>
}

// Positions that are the loops' own are in range: no check, no mask, a plain load.
// CHECK-LABEL: func.func @own_position
// CHECK-NOT: arith.cmpi uge
// CHECK: llvm.load {{.*}} -> vector<16xf32>
// CHECK-NOT: gather
// CHECK: return
accel.kernel @own_position(%t: tensor<4x64xf32> {accel.layout = #plain}) -> (tensor<4x64xf32> {accel.layout = #plain})
    attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<4x64xf32>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<4x64xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%i, %j] : tensor<4x64xf32>
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  accel.yield %r : tensor<4x64xf32>
}

// Every second element: all elements from the first lane's to the last lane's are read, and every other one is kept. The
// second load ends with the last lane, so that nothing behind it is read.
// CHECK-LABEL: func.func @every_second
// CHECK: %[[LOW:.*]] = llvm.load {{.*}} -> vector<16xf32>
// CHECK: arith.constant 15 : i64
// CHECK: %[[HIGH:.*]] = llvm.load {{.*}} -> vector<16xf32>
// CHECK: vector.shuffle %{{.*}}, %[[HIGH]] [0, {{.*}}, 31]
// CHECK-NOT: gather
// CHECK: llvm.store {{.*}} vector<16xf32>
// CHECK: return
accel.kernel @every_second(%x: tensor<4x64xf32> {accel.layout = #accel.layout<affine_map<() -> (4, 64)>, affine_map<() -> (128, 2)>>})
    -> (tensor<4x64xf32> {accel.layout = #plain}) attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<4x64xf32>
  %r = linalg.copy {accel.loops = array<i64: 0, 1>} ins(%x : tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  accel.yield %r : tensor<4x64xf32>
}

// Elements further apart are a gather with a stride, the store stays contiguous.
// CHECK-LABEL: func.func @strided
// CHECK: arith.constant dense<[0, 1, 2, 3,
// CHECK: llvm.intr.masked.gather
// CHECK: llvm.store {{.*}} vector<16xf32>
// CHECK: return
accel.kernel @strided(%x: tensor<4x64xf32> {accel.layout = #accel.layout<affine_map<() -> (4, 64)>, affine_map<() -> (320, 5)>>})
    -> (tensor<4x64xf32> {accel.layout = #plain}) attributes {parallel = 2 : i64, rows = 0 : i64} {
  %e = tensor.empty() : tensor<4x64xf32>
  %r = linalg.copy {accel.loops = array<i64: 0, 1>} ins(%x : tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  accel.yield %r : tensor<4x64xf32>
}
