// A broken invariant names the phase and what was found, keeps the text, and gives the command that shows it again: which does.
//
// RUN: rm -rf %t && mkdir %t
// RUN: not accel-compile --compile-from=graph --compile-to=fusion --dump-phases=%t %s 2>&1 | FileCheck %s
// CHECK: accel-compile: phase fusion failed on graph main: 'linalg.matmul' is left outside of every fusion at
// CHECK-NEXT: this is an error of the compiler; to see it again: accel-compile --target=cpu --compile-from=graph --compile-to=fusion {{.*}}accel-failed-[[HASH:[0-9a-f]+]].json
// RUN: not accel-compile --target=cpu --compile-from=graph --compile-to=fusion %t/accel-failed-*.json 2>&1 | FileCheck %s

func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x2xf32>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}
