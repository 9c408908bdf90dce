#ifndef ACCEL_PASSES_FUSION_PASSES_TD
#define ACCEL_PASSES_FUSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def SplitReductionsPass : Pass<"accel-split-reductions", "mlir::func::FuncOp"> {
  let summary = "makes a long reduction with few results two, of which the first has parallel work";
  let description = [{
    The first reduction yields partial results over pieces of a dimension, the second combines them. The pieces are views, and the
    pointwise ops that computed the operand are computed in pieces too. Where they don't divide the dimension, a reduction of
    the rest yields one more partial result. How many there are follows from sizes alone, never from the number of threads.

    ```mlir
    %r = linalg.reduce … ins(%x : tensor<1048576xf32>) … dimensions = [0]
    // becomes
    %v = accel.view %x by affine_map<(d0, d1) -> (d0 * 32768 + d1)> : tensor<1048576xf32> -> tensor<32x32768xf32>
    %p = linalg.reduce … ins(%v : tensor<32x32768xf32>) … dimensions = [1]
    %r = linalg.reduce … ins(%p : tensor<32xf32>) … dimensions = [0]
    ```
  }];
  let dependentDialects = ["accel::AccelDialect", "mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect",
                           "mlir::affine::AffineDialect", "mlir::arith::ArithDialect"];
}

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
