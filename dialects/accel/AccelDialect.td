#ifndef ACCEL_DIALECT_TD
#define ACCEL_DIALECT_TD

include "mlir/IR/OpBase.td"

def Accel_Dialect : Dialect {
  let name = "accel";
  let cppNamespace = "::accel";
  let summary = "What upstream dialects lack between an FX graph and a device's code";
  let description = [{
    Tensors hold PyTorch's values: `bool` is `i1` (a byte in memory), unsigned integers are signless and the ops that read
    them know. Symbolic sizes are `index` values; symbol `k` of an attribute's affine map is the `k`-th `index` argument of
    the function or kernel around it.

    Discardable attributes: `accel.loops` on a linalg op inside a fusion or kernel (which loop of the kernel each of its
    dimensions runs over), `accel.layout` and `accel.dtype` on arguments and results.
  }];
  let useDefaultAttributePrinterParser = 1;
}

#endif
