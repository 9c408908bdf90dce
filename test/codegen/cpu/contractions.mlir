// RUN: accel-compile --target=cpu:x86-64-v3 --compile-from=kernels --compile-to=codegen --dump-phases=%t -o %t.out %s
// RUN: FileCheck %s --input-file=%t/06-codegen.vector.mlir

// A panel of B is copied, columns that don't exist as zeros. Then tiles of five rows: one register of columns is loaded
// and multiplied with an element of each row, which is read where it lies. Nothing in that loop is masked; stores are.
// CHECK-LABEL: func.func @tiles
// CHECK: scf.for
// CHECK: scf.for %{{.*}} = %{{.*}} to %c33
// CHECK: %[[B:.*]] = llvm.intr.masked.load
// CHECK: llvm.store %[[B]], {{.*}} : vector<16xf32>
// CHECK: scf.for {{.*}} step %c5
// CHECK: %[[SUMS:.*]]:5 = scf.for %{{.*}} = %{{.*}} to %c33{{.*}} iter_args
// CHECK-NOT: masked
// CHECK: %[[LANES:.*]] = llvm.load {{.*}} -> vector<16xf32>
// CHECK-COUNT-5: math.fma %{{.*}}, %[[LANES]], %{{.*}} : vector<16xf32>
// CHECK-NOT: math.fma
// CHECK: scf.yield
// CHECK: llvm.intr.masked.store %[[SUMS]]#0
// CHECK: llvm.intr.masked.store %[[SUMS]]#4
// CHECK-NOT: store
// CHECK: return
accel.kernel @tiles(%a: tensor<15x33xf32> {accel.layout = #accel.layout<affine_map<() -> (15, 33)>, affine_map<() -> (33, 1)>>}, %b: tensor<33x40xf32> {accel.layout = #accel.layout<affine_map<() -> (33, 40)>, affine_map<() -> (40, 1)>>})
    -> (tensor<15x40xf32> {accel.layout = #accel.layout<affine_map<() -> (15, 40)>, affine_map<() -> (40, 1)>>}) attributes {parallel = 2 : i64, rows = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15x40xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<15x40xf32>) -> tensor<15x40xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<15x33xf32>, tensor<33x40xf32>) outs(%i : tensor<15x40xf32>) attrs = {accel.loops = array<i64: 0, 1, 2>} {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %x = arith.mulf %l, %r : f32
    %y = arith.addf %s, %x : f32
    linalg.yield %y : f32
  } -> tensor<15x40xf32>
  accel.yield %p : tensor<15x40xf32>
}
