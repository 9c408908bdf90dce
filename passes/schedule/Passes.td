#ifndef ACCEL_PASSES_SCHEDULE_PASSES_TD
#define ACCEL_PASSES_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignTileConfigsPass : Pass<"accel-assign-tile-configs", "mlir::ModuleOp"> {
  let summary = "gives each kernel its target and schedule";
  let description = [{
    The vector loop is the one along which most tensors are contiguous; the vector's length follows from the target's registers
    and from what the kernel computes.

    ```mlir
    accel.kernel @relu_0a1b2c3d(…) attributes {…}
    // becomes
    accel.kernel @relu_0a1b2c3d(…) attributes {…, target = #accel.target<…>,
        tile_config = #accel.tile_config<vector_loop = 0, vector = 32, block = 4096, grain = 16384>}
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "name of the target">,
    Option<"cpu", "cpu", "std::string", "\"\"", "the target's processor">,
    Option<"features", "features", "std::string", "\"\"", "the target's features, as LLVM writes them">
  ];
  let dependentDialects = ["accel::AccelDialect"];
}

def VerifyTileConfigsPass : Pass<"accel-verify-tile-configs", "mlir::ModuleOp"> {
  let summary = "checks that each kernel has a target and a schedule that fits its loops";
  let description = [{
    ```mlir
    accel.kernel @k(…) … // error: kernel 'k' has no tile_config
    ```
  }];
}

#endif
