#ifndef ACCEL_PASSES_GRAPH_PASSES_TD
#define ACCEL_PASSES_GRAPH_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormAttentionPass : Pass<"accel-form-attention", "mlir::func::FuncOp"> {
  let summary = "makes a product, a softmax and another product one accel.attention";
  let description = [{
    The scores may be scaled, then one mask added to them or a number chosen where a Boolean one says so. Nothing else may read
    them or the softmax. Casts in between are left out: the kernel computes in f32 at least.

    ```mlir
    %s = linalg.batch_matmul ins(%q, %kt : …) …
    %x = linalg.generic … { arith.mulf %in, %scale }
    %m = linalg.reduce { arith.maximumf } ins(%x : …) … dimensions = [2]
    %d = linalg.generic … ins(%x, %m : …) { arith.subf }
    %e = linalg.generic … ins(%d : …) { math.exp }
    %t = linalg.reduce { arith.addf } ins(%e : …) … dimensions = [2]
    %p = linalg.generic … ins(%e, %t : …) { arith.divf }
    %r = linalg.batch_matmul ins(%p, %v : …) …
    // becomes
    %out, %logsumexp = accel.attention %q4, %k4, %v4 scale(…) plain
    ```
  }];
  let dependentDialects = ["accel::AccelDialect", "mlir::affine::AffineDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def ChooseContractionsPass : Pass<"accel-choose-contractions", "mlir::func::FuncOp"> {
  let summary = "gives each contraction a kernel of ours or PyTorch's library";
  let description = [{
    A kernel of ours is a linalg.generic; constant weights are packed for it into panels of as many columns as a tile of
    registers has. `accel.choice`, or the call's `reason`, says why.

    ```mlir
    %r = linalg.matmul ins(%a, %w : …) outs(%zero : …) -> tensor<4x64xf32>
    // becomes
    %v = accel.view %w by affine_map<(d0, d1, d2) -> (d1, d0 * 32 + d2)> : tensor<8x64xf32> -> tensor<2x8x32xf32>
    %p = linalg.copy ins(%v : …) outs(%empty : …) -> tensor<2x8x32xf32>
    %r = linalg.generic {indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (n floordiv 32, k, n mod 32), (m, n, k) -> (m, n)], …}
    // or
    %r = accel.aten_call "aten::mm" "out" "library"(%a, %b) {args = [#accel.operand<0>, #accel.operand<1>], …}
    ```
  }];
  let options = [
    Option<"features", "features", "std::string", "", "the target's features, which give the registers' width">,
    Option<"contractions", "contractions", "std::string", "\"auto\"", "auto, own or library">,
    Option<"constantWeights", "constant-weights", "bool", "false", "parameters and buffers count as constants">,
  ];
  let dependentDialects = ["accel::AccelDialect", "mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
                           "mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect"];
}

def ChooseConvolutionsPass : Pass<"accel-choose-convolutions", "mlir::func::FuncOp"> {
  let summary = "gives convolutions kernels of ours, and keeps their channels last";
  let description = [{
    A convolution with constant weights becomes a contraction over a view of windows (a depthwise one a multiplication and a sum
    over the window), which yields [N, pixels..., C]. Ops that follow take over that order of memory.

    ```mlir
    %r = accel.aten_call "aten::convolution" "default" "library"(%x, %w) … : (tensor<1x16x8x8xf32>, tensor<32x16x3x3xf32>) -> …
    // becomes
    %p = linalg.copy ins(view of %w) … -> tensor<1x3x3x16x32xf32>
    %v = accel.view %x by (n, y, x, i, j, c) -> (n, c, y + i - 1, x + j - 1) padded : … -> tensor<1x8x8x3x3x16xf32>
    %s = linalg.generic … ins(%v, %p) … -> tensor<1x8x8x32xf32>
    %r = accel.view %s by (n, c, y, x) -> (n, y, x, c) : … -> tensor<1x32x8x8xf32>
    ```
  }];
  let options = [
    Option<"features", "features", "std::string", "", "the target's features, which give the registers' width">,
    Option<"contractions", "contractions", "std::string", "\"auto\"", "auto, own or library">,
    Option<"constantWeights", "constant-weights", "bool", "false", "parameters and buffers count as constants">,
  ];
  let dependentDialects = ["accel::AccelDialect", "mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def SplitRowsPass : Pass<"accel-split-rows", "mlir::func::FuncOp"> {
  let summary = "lets contractions run over the dimensions that a view splits their rows into";
  let description = [{
    PyTorch flattens `[batch, sequence]` to rows before a product and splits the rows again behind it. A view that splits
    keeps what follows out of the product's kernel, so the product and the ops in between take the split dimensions.

    ```mlir
    %r = linalg.generic … -> tensor<32x64xf32>
    %v = accel.view %r by affine_map<(d0, d1, d2) -> (d0 * 8 + d1, d2)> : tensor<32x64xf32> -> tensor<4x8x64xf32>
    // becomes
    %v = linalg.generic … -> tensor<4x8x64xf32>
    ```
  }];
  let dependentDialects = ["accel::AccelDialect", "mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect"];
}

#endif
