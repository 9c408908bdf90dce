#ifndef ACCEL_ATTRIBUTES_TD
#define ACCEL_ATTRIBUTES_TD

include "dialects/accel/AccelDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Accel_Attr<string name, string attrMnemonic> : AttrDef<Accel_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Accel_LayoutAttr : Accel_Attr<"Layout", "layout"> {
  let summary = "sizes and strides of a tensor argument, in elements";
  let description = [{
    Both maps have no dimensions and one result per dimension of the tensor. Their symbols are the `index` arguments of the
    function or kernel, in order.

    ```mlir
    %x: tensor<?x768xf32> {accel.layout = #accel.layout<affine_map<()[s0] -> (s0, 768)>, affine_map<()[s0] -> (768, 1)>>}
    ```
  }];
  let parameters = (ins "::mlir::AffineMapAttr":$sizes, "::mlir::AffineMapAttr":$strides);
  let assemblyFormat = "`<` $sizes `,` $strides `>`";
  let genVerifyDecl = 1;
}

def Accel_TargetAttr : Accel_Attr<"Target", "target"> {
  let summary = "the device that a kernel is compiled for, with all that changes its code";
  let description = [{
    ```mlir
    #accel.target<"cpu", "znver4", "+avx2,+fma">
    ```
  }];
  let parameters = (ins StringRefParameter<"target's name">:$name, StringRefParameter<"processor">:$cpu,
                        StringRefParameter<"features, as the code generator takes them">:$features);
  let assemblyFormat = "`<` $name `,` $cpu `,` $features `>`";
}

def Accel_TileConfigAttr : Accel_Attr<"TileConfig", "tile_config"> {
  let summary = "the schedule of one kernel";
  let description = [{
    `vector_loop` is the kernel loop that runs over vector lanes (-1: none), `vector` the number of its elements that one
    iteration takes, `block` how many elements of it one unit of parallel work takes when the loop is parallel (a multiple of
    `vector`), `rows` how many iterations of the innermost other parallel loop a unit takes, and `grain` the least number of
    elements worth a thread of its own. Where a reduction's lanes are not along the row, `tile` is the number of iterations of
    that other loop which are done together, to read once what is the same for all of them; `rows` is a multiple of it.

    A contraction's `vector_loop` is its columns' and `vector` the columns of a tile of registers, `tile` that tile's rows,
    and `rows`, a multiple of `tile`, the rows that share a copy of A in the cache.

    An attention has no loops to choose from: `vector` is the query rows that lie side by side in lanes, `rows`, a multiple of it,
    those of a unit, `block` the keys that a step takes, and `tile` the keys, or columns of the values, of a tile of registers.

    ```mlir
    #accel.tile_config<vector_loop = 1, vector = 64, block = 4096, rows = 1, grain = 32768>
    #accel.tile_config<vector_loop = 1, vector = 32, block = 32, rows = 112, grain = 32768, tile = 14>
    ```
  }];
  let parameters = (ins "int64_t":$vector_loop, "int64_t":$vector, "int64_t":$block, "int64_t":$rows, "int64_t":$grain,
                        DefaultValuedParameter<"int64_t", "1">:$tile);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Accel_OperandAttr : Accel_Attr<"Operand", "operand"> {
  let summary = "in the arguments of accel.aten_call: the operand of that number";
  let description = [{ `#accel.operand<0>` }];
  let parameters = (ins "int64_t":$index);
  let assemblyFormat = "`<` $index `>`";
}

#endif
