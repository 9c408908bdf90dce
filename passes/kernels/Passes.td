#ifndef ACCEL_PASSES_KERNELS_PASSES_TD
#define ACCEL_PASSES_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def OutlineKernelsPass : Pass<"accel-outline-kernels", "mlir::ModuleOp"> {
  let summary = "makes each accel.fusion a kernel of the module, equal ones once";
  let description = [{
    A kernel is named after the ops it holds and the hash of its text. Its arguments carry the layouts that the tensors have in
    memory, so kernels are equal only if they read and write alike.

    ```mlir
    %r = accel.fusion … { … } -> tensor<8xf32>
    // becomes
    accel.kernel @relu_0a1b2c3d(%x: tensor<8xf32> {…}) -> (tensor<8xf32> {…}) { … }
    %r = accel.launch @relu_0a1b2c3d(%x) : (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let dependentDialects = ["accel::AccelDialect", "mlir::affine::AffineDialect"];
}

def HoistConstantsPass : Pass<"accel-hoist-constants", "mlir::ModuleOp"> {
  let summary = "moves launches that depend on weights alone into a function of their own";
  let description = [{
    The function `@constants` takes the weights and returns what `@main` needs of them, which `@main` takes as further inputs
    behind its own. The runtime runs it when a weight has changed since it last did.

    ```mlir
    func.func @main(%x: …, %w: …) { %p = accel.launch @pack(%w) … %r = accel.launch @product(%x, %p) … }
    // becomes
    func.func @main(%x: …, %w: …, %p: …) { %r = accel.launch @product(%x, %p) … }
    func.func @constants(%w: …) { %p = accel.launch @pack(%w) … return %p }
    ```
  }];
  let dependentDialects = ["accel::AccelDialect"];
}

#endif
