#ifndef ACCEL_PASSES_FUSION_PASSES_TD
#define ACCEL_PASSES_FUSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def InsertCopiesPass : Pass<"accel-insert-copies", "mlir::func::FuncOp"> {
  let summary = "makes each copy that memory layouts demand an op, so that it can be fused";
  let description = [{
    A reshape whose source's strides don't allow it, a part of a concatenation that no kernel writes in place, a result whose
    layout is not eager's, and an operand of an ATen call with negative strides get a `linalg.copy`.

    ```mlir
    %t = accel.view %x by affine_map<(d0, d1) -> (d1, d0)> : tensor<2x3xf32> -> tensor<3x2xf32>
    %r = accel.reshape %t : tensor<3x2xf32> -> tensor<6xf32>
    // becomes
    %c = linalg.copy ins(%t : tensor<3x2xf32>) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
    %r = accel.reshape %c : tensor<3x2xf32> -> tensor<6xf32>
    ```
  }];
  let dependentDialects = ["mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect", "mlir::affine::AffineDialect"];
}

def CloneCheapProducersPass : Pass<"accel-clone-cheap-producers", "mlir::func::FuncOp"> {
  let summary = "gives each reader its own copy of a constant or iota";
  let description = [{
    A pointwise op that reads no tensor and costs next to nothing is computed where it is used instead of being stored: masks made
    from positions, filled tensors.

    ```mlir
    %f = linalg.generic … outs(%e : tensor<8xf32>) { linalg.yield %one : f32 }
    %a = linalg.generic … ins(%f, %x …)
    %b = linalg.generic … ins(%f, %y …)
    // becomes: %b reads a clone of %f
    ```
  }];
}

def FormFusionsPass : Pass<"accel-form-fusions", "mlir::func::FuncOp"> {
  let summary = "puts the ops of each kernel into an accel.fusion";
  let description = [{
    Decides by `FusionGroups::canFuse`; each refusal is a missed remark (`-Rpass-missed`, `explain`).

    ```mlir
    %a = linalg.generic … ins(%x …)
    %b = linalg.reduce … ins(%a …)
    // becomes
    %b = accel.fusion parallel(1) rows(1) { %a = … %b = … accel.yield %b } -> tensor<8xf32>
    ```
  }];
  let dependentDialects = ["accel::AccelDialect"];
}

def VerifyFusionsPass : Pass<"accel-verify-fusions", "mlir::func::FuncOp"> {
  let summary = "checks that all tensor arithmetic is inside fusions";
  let description = [{
    ```mlir
    %a = linalg.generic … // error: left outside of every fusion
    ```
  }];
}

#endif
