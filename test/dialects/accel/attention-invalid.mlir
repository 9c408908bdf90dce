// RUN: accel-opt %s --split-input-file --verify-diagnostics

func.func @rank(%q: tensor<2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) {
  // expected-error @below {{takes tensors of rank 4 of one float type}}
  %out, %l = accel.attention %q, %k, %v scale(1.0) : (tensor<2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> (tensor<1x3x2x4xf32>, tensor<1x3x2xf32>)
  return
}

// -----

func.func @type(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf16>) {
  // expected-error @below {{takes tensors of rank 4 of one float type}}
  %out, %l = accel.attention %q, %k, %v scale(1.0) : (tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf16>) -> (tensor<1x3x2x4xf32>, tensor<1x3x2xf32>)
  return
}

// -----

func.func @heads(%q: tensor<1x?x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) {
  // expected-error @below {{takes static numbers of heads and head sizes above zero}}
  %out, %l = accel.attention %q, %k, %v scale(1.0) : (tensor<1x?x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> (tensor<1x3x2x4xf32>, tensor<1x3x2xf32>)
  return
}

// -----

func.func @groups(%q: tensor<1x3x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) {
  // expected-error @below {{2 key heads don't divide 3 query heads}}
  %out, %l = accel.attention %q, %k, %v scale(1.0) : (tensor<1x3x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> (tensor<1x3x3x4xf32>, tensor<1x3x3xf32>)
  return
}

// -----

func.func @keys(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x4xf32>) {
  // expected-error @below {{keys 'tensor<1x2x5x8xf32>' don't fit queries 'tensor<1x2x3x4xf32>'}}
  %out, %l = accel.attention %q, %k, %v scale(1.0) : (tensor<1x2x3x4xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x4xf32>) -> (tensor<1x3x2x4xf32>, tensor<1x3x2xf32>)
  return
}

// -----

func.func @values(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x6x4xf32>) {
  // expected-error @below {{values 'tensor<1x2x6x4xf32>' don't fit keys}}
  %out, %l = accel.attention %q, %k, %v scale(1.0) : (tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x6x4xf32>) -> (tensor<1x3x2x4xf32>, tensor<1x3x2xf32>)
  return
}

// -----

func.func @mask(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>, %m: tensor<1x1x3x5xi1>) {
  // expected-error @below {{mask 'tensor<1x1x3x5xi1>' doesn't fit queries}}
  %out, %l = accel.attention %q, %k, %v mask(%m) scale(1.0) : (tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x1x3x5xi1>) -> (tensor<1x3x2x4xf32>, tensor<1x3x2xf32>)
  return
}

// -----

func.func @out(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) {
  // expected-error @below {{yields 'tensor<1x2x3x4xf32>' for queries}}
  %out, %l = accel.attention %q, %k, %v scale(1.0) : (tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x3x2xf32>)
  return
}

// -----

func.func @logsumexp(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) {
  // expected-error @below {{yields logarithms 'tensor<1x2x3xf32>' for queries}}
  %out, %l = accel.attention %q, %k, %v scale(1.0) : (tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> (tensor<1x3x2x4xf32>, tensor<1x2x3xf32>)
  return
}
