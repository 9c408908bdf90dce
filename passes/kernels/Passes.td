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

#endif
