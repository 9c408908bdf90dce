// RUN: accel-opt %s --split-input-file | accel-opt --split-input-file | FileCheck %s
// RUN: accel-opt %s --split-input-file --mlir-print-op-generic | accel-opt --split-input-file | FileCheck %s

// Attention keeps its scale, its mask and what it leaves out through printing and parsing.

// CHECK-LABEL: func.func @plain
// CHECK-SAME: (%[[Q:.*]]: tensor<1x2x3x4xf32>, %[[K:.*]]: tensor<1x1x5x4xf32>, %[[V:.*]]: tensor<1x1x5x6xf32>)
// CHECK-NEXT: %[[OUT:.*]], %[[L:.*]] = accel.attention %[[Q]], %[[K]], %[[V]] scale(5.000000e-01) :
// CHECK-SAME: -> (tensor<1x3x2x6xf32>, tensor<1x3x2xf32>)
func.func @plain(%q: tensor<1x2x3x4xf32>, %k: tensor<1x1x5x4xf32>, %v: tensor<1x1x5x6xf32>) -> tensor<1x3x2x6xf32> {
  %out, %l = accel.attention %q, %k, %v scale(5.000000e-01)
      : (tensor<1x2x3x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x6xf32>) -> (tensor<1x3x2x6xf32>, tensor<1x3x2xf32>)
  return %out : tensor<1x3x2x6xf32>
}

// -----

// CHECK-LABEL: func.func @masked
// CHECK: accel.attention %{{.*}}, %{{.*}}, %{{.*}} mask(%{{.*}}) hidden(-1.000000e+04) scale(1.000000e+00) causal plain :
func.func @masked(%q: tensor<?x2x?x4xbf16>, %k: tensor<?x2x?x4xbf16>, %v: tensor<?x2x?x4xbf16>, %m: tensor<?x2x?x?xi1>) -> tensor<?x?x2x4xbf16> {
  %out, %l = accel.attention %q, %k, %v mask(%m) hidden(-1.0e4) scale(1.0) causal plain
      : (tensor<?x2x?x4xbf16>, tensor<?x2x?x4xbf16>, tensor<?x2x?x4xbf16>, tensor<?x2x?x?xi1>) -> (tensor<?x?x2x4xbf16>, tensor<?x?x2xf32>)
  return %out : tensor<?x?x2x4xbf16>
}
