// Edited text that lacks what the plan is made from is an error that names what is missing.
//
// RUN: split-file %s %t
// RUN: not accel-compile --compile-from=kernels %t/empty.mlir 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: accel-compile: expected one func.func, or one and @constants, got 0
// RUN: not accel-compile --compile-from=kernels %t/inputs.mlir 2>&1 | FileCheck %s --check-prefix=INPUTS
// INPUTS: accel-compile: function @main: it has no 'accel.num_inputs'
// RUN: not accel-compile --compile-from=kernels %t/argument.mlir 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// ARGUMENT: accel-compile: function @main: argument 0 has no 'accel.name'
// RUN: not accel-compile --compile-from=kernels %t/symbol.mlir 2>&1 | FileCheck %s --check-prefix=SYMBOL
// SYMBOL: accel-compile: function @main: argument 0 has no 'accel.binding'
// RUN: not accel-compile --compile-from=kernels %t/result.mlir 2>&1 | FileCheck %s --check-prefix=RESULT
// RESULT: accel-compile: function @main: result 0 has no 'accel.dtype'
// RUN: not accel-compile --compile-from=kernels %t/origins.mlir 2>&1 | FileCheck %s --check-prefix=ORIGINS
// ORIGINS: accel-compile: kernel @k has no 'accel.origins'
// RUN: not accel-compile --compile-from=schedule %t/syntax.mlir 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: accel-compile: not MLIR of phase schedule: custom op 'accel.nothing' is unknown

//--- empty.mlir
module {}
//--- inputs.mlir
func.func @main() { return }
//--- argument.mlir
func.func @main(%x: tensor<4xf32>) attributes {accel.num_inputs = 1 : i64} { return }
//--- symbol.mlir
func.func @main(%n: index {accel.name = "s0"}) attributes {accel.num_inputs = 1 : i64} { return }
//--- result.mlir
#l = #accel.layout<affine_map<() -> (4)>, affine_map<() -> (1)>>
func.func @main(%x: tensor<4xf32> {accel.name = "x", accel.input = 0 : i64, accel.dtype = "f32", accel.layout = #l}) -> tensor<4xf32>
    attributes {accel.num_inputs = 1 : i64} { return %x : tensor<4xf32> }
//--- origins.mlir
accel.kernel @k() attributes {parallel = 0 : i64, rows = 0 : i64} { accel.yield }
func.func @main() attributes {accel.num_inputs = 0 : i64} { return }
//--- syntax.mlir
func.func @main() { accel.nothing }
