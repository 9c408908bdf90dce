// RUN: accel-opt %s --accel-verify-fusions --verify-diagnostics --split-input-file

func.func @pointwise(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @below {{'linalg.copy' is left outside of every fusion}}
  %c = linalg.copy ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

// A contraction that nobody gave to the library.
func.func @contraction(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // expected-error @below {{'linalg.matmul' is left outside of every fusion}}
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x2xf32>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// -----

func.func @attention(%q: tensor<1x2x3x4xf32>) -> tensor<1x3x2x4xf32> {
  // expected-error @below {{'accel.attention' is left outside of every fusion}}
  %out, %l = accel.attention %q, %q, %q scale(1.0)
      : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> (tensor<1x3x2x4xf32>, tensor<1x3x2xf32>)
  return %out : tensor<1x3x2x4xf32>
}
