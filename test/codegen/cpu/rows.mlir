// RUN: accel-compile --target=cpu:x86-64-v3 --compile-from=kernels --compile-to=codegen --dump-phases=%t -o %t.out %s
// RUN: FileCheck %s --input-file=%t/06-codegen.vector.mlir

// Runs over rows: what is computed in which, and what is kept between them.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#unary = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
#by_row = {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
#plain = #accel.layout<affine_map<() -> (64, 256)>, affine_map<() -> (256, 1)>>
#rows = #accel.layout<affine_map<() -> (64)>, affine_map<() -> (1)>>

// A costly value that two runs need goes to scratch memory in the first and comes from there in the second.
// CHECK-LABEL: func.func @kept
// CHECK-SAME: %[[SCRATCH:[a-z0-9]+]]: !llvm.ptr, %{{[a-z0-9]+}}: !llvm.ptr) {
// CHECK: math.exp
// CHECK: llvm.getelementptr %[[SCRATCH]]
// CHECK: llvm.store
// CHECK-NOT: math.exp
// CHECK: llvm.getelementptr %[[SCRATCH]]
// CHECK: llvm.load
// CHECK: arith.divf
accel.kernel @kept(%x: tensor<64x256xf32> {accel.layout = #plain}) -> (tensor<64x256xf32> {accel.layout = #plain})
    attributes {parallel = 1 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x256xf32>
  %f = tensor.empty() : tensor<64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %exp = linalg.generic #unary ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<64x256xf32>
  %s = linalg.reduce {arith.addf} ins(%exp : tensor<64x256xf32>) outs(%i : tensor<64xf32>) dimensions = [1] {accel.loops = array<i64: 0, 1>}
  %d = linalg.generic #by_row ins(%exp, %s : tensor<64x256xf32>, tensor<64xf32>) outs(%e : tensor<64x256xf32>)
      attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.divf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<64x256xf32>
  accel.yield %d : tensor<64x256xf32>
}

// A cheap one is computed again, which costs less than to store and load it. What doesn't change along the row is computed once.
// CHECK-LABEL: func.func @computed_again
// CHECK-SAME: %[[SCRATCH:[a-z0-9]+]]: !llvm.ptr, %{{[a-z0-9]+}}: !llvm.ptr) {
// CHECK-NOT: llvm.getelementptr %[[SCRATCH]]
// CHECK: arith.negf
// CHECK: math.sqrt %{{.*}} : f32
// CHECK: scf.for
// CHECK-NOT: math.sqrt
// CHECK: arith.negf
// CHECK: arith.divf
// CHECK: return
accel.kernel @computed_again(%x: tensor<64x256xf32> {accel.layout = #plain}) -> (tensor<64x256xf32> {accel.layout = #plain})
    attributes {parallel = 1 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x256xf32>
  %f = tensor.empty() : tensor<64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %neg = linalg.generic #unary ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%v: f32, %o: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  } -> tensor<64x256xf32>
  %s = linalg.reduce {arith.addf} ins(%neg : tensor<64x256xf32>) outs(%i : tensor<64xf32>) dimensions = [1] {accel.loops = array<i64: 0, 1>}
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%s : tensor<64xf32>) outs(%f : tensor<64xf32>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: f32, %o: f32):
    %r = math.sqrt %v : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  %d = linalg.generic #by_row ins(%neg, %q : tensor<64x256xf32>, tensor<64xf32>) outs(%e : tensor<64x256xf32>)
      attrs = {accel.loops = array<i64: 0, 1>} {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.divf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<64x256xf32>
  accel.yield %d : tensor<64x256xf32>
}

// A reduction over the first dimension: the lanes are columns, the accumulator stays in registers over all rows, and no lanes are
// combined at the end.
// CHECK-LABEL: func.func @columns
// CHECK: scf.for
// CHECK: scf.for {{.*}} -> (vector<32xf32>)
// CHECK: llvm.load {{.*}} -> vector<32xf32>
// CHECK: scf.yield
// CHECK-NOT: vector.extract
// CHECK: llvm.store {{.*}} vector<32xf32>
// CHECK: return
accel.kernel @columns(%x: tensor<64x256xf32> {accel.layout = #plain})
    -> (tensor<256xf32> {accel.layout = #accel.layout<affine_map<() -> (256)>, affine_map<() -> (1)>>})
    attributes {parallel = 1 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<64x256xf32>) outs(%i : tensor<256xf32>) dimensions = [0] {accel.loops = array<i64: 1, 0>}
  accel.yield %r : tensor<256xf32>
}

// A bool is a byte in memory: loaded as one and compared, stored as 0 or 1.
// CHECK-LABEL: func.func @bytes
// CHECK: %[[BYTES:.*]] = llvm.load {{.*}} -> vector<16xi8>
// CHECK: arith.cmpi ne, %[[BYTES]]
// CHECK: %[[STORED:.*]] = arith.extui %{{.*}} : vector<16xi1> to vector<16xi8>
// CHECK: llvm.store %[[STORED]]
accel.kernel @bytes(%x: tensor<64xi1> {accel.layout = #rows}) -> (tensor<64xi1> {accel.layout = #rows})
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  %true = arith.constant true
  %e = tensor.empty() : tensor<64xi1>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<64xi1>) outs(%e : tensor<64xi1>) attrs = {accel.loops = array<i64: 0>} {
  ^bb0(%v: i1, %o: i1):
    %n = arith.xori %v, %true : i1
    linalg.yield %n : i1
  } -> tensor<64xi1>
  accel.yield %r : tensor<64xi1>
}
