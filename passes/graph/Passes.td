#ifndef ACCEL_PASSES_GRAPH_PASSES_TD
#define ACCEL_PASSES_GRAPH_PASSES_TD

include "mlir/Pass/PassBase.td"

def SelectLibraryPass : Pass<"accel-select-library", "mlir::func::FuncOp"> {
  let summary = "gives contractions to PyTorch's library";
  let description = [{
    ```mlir
    %r = linalg.matmul ins(%a, %b : …) outs(%zero : …) -> tensor<4x2xf32>
    // becomes
    %r = accel.aten_call "aten::mm" "out" "library"(%a, %b) {args = [#accel.operand<0>, #accel.operand<1>], …}
    ```
  }];
  let dependentDialects = ["accel::AccelDialect"];
}

#endif
