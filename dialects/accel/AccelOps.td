#ifndef ACCEL_OPS_TD
#define ACCEL_OPS_TD

include "dialects/accel/AccelAttributes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Accel_Op<string mnemonic, list<Trait> traits = []> : Op<Accel_Dialect, mnemonic, traits>;

def Accel_ViewOp : Accel_Op<"view", [Pure, AttrSizedOperandSegments]> {
  let summary = "a strided view of a tensor";
  let description = [{
    Element `i` of the result is element `map(i)` of the source. The map's dimensions are the result's, its symbols are
    `symbols`, and each of its results is linear in the dimensions: such a view has strides, so it costs nothing.
    `sizes` are the result's dynamic sizes.

    A `padded` view may leave the source, and is zero there, like a convolution's view of its input. It has no strides: the
    kernel that reads it looks at each position.

    ```mlir
    // x.transpose(0, 1)[1:]
    %v = accel.view %x by affine_map<(d0, d1) -> (d1, d0 + 1)> : tensor<8x4xf32> -> tensor<3x8xf32>
    // windows of three elements
    %w = accel.view %x by affine_map<(d0, d1) -> (d0 + d1 - 1)> padded : tensor<8xf32> -> tensor<8x3xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, Variadic<Index>:$symbols, Variadic<Index>:$sizes, AffineMapAttr:$map,
                       UnitAttr:$padded);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source (`[` $symbols^ `]`)? `by` $map (`padded` $padded^)? (`sizes` `(` $sizes^ `)`)? attr-dict `:`
    type($source) `->` type($result)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source, "::mlir::ValueRange":$symbols,
                   "::mlir::ValueRange":$sizes, "::mlir::AffineMapAttr":$map), [{
      build($_builder, $_state, result, source, symbols, sizes, map, ::mlir::UnitAttr());
    }]>,
  ];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Accel_ReshapeOp : Accel_Op<"reshape", [Pure]> {
  let summary = "the same elements in row-major order under other sizes";
  let description = [{
    `sizes` are the result's dynamic sizes. A view where the source's layout allows it, else a copy.

    ```mlir
    %r = accel.reshape %x sizes(%n) : tensor<?x12x64xf32> -> tensor<?x768xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, Variadic<Index>:$sizes);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source (`sizes` `(` $sizes^ `)`)? attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Accel_ConcatOp : Accel_Op<"concat", [Pure, AttrSizedOperandSegments]> {
  let summary = "tensors one behind the other along a dimension";
  let description = [{
    Kernels write their parts in place where they can. `sizes` are the result's dynamic sizes.

    ```mlir
    %c = accel.concat dim(1) %a, %b : tensor<4x2xf32>, tensor<4x3xf32> -> tensor<4x5xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$parts, Variadic<Index>:$sizes, I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `dim` `(` $dim `)` $parts (`sizes` `(` $sizes^ `)`)? attr-dict `:` type($parts) `->` type($result)
  }];
  let hasVerifier = 1;
}

/// A tensor op that no loop nest of linalg ops can hold: it makes a kernel of its own.
def OwnKernel : NativeOpTrait<"OwnKernel"> {
  let cppNamespace = "::accel";
}

def Accel_ScanOp : Accel_Op<"scan", [Pure, OwnKernel, AllTypesMatch<["source", "result"]>]> {
  let summary = "running sums and their like";
  let description = [{
    Element `i` along `dim` combines the source's elements up to and with `i`: by `add`, `mul`, or `logaddexp`, the logarithm of
    the sum of exponentials. f32 accumulates in f64 and low precision in f32, as in PyTorch. `sizes` are the result's dynamic
    sizes.

    ```mlir
    %s = accel.scan "add" dim(1) %x : tensor<4x1000xf32>
    ```
  }];
  let arguments = (ins StrAttr:$combine, AnyRankedTensor:$source, Variadic<Index>:$sizes, I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$combine `dim` `(` $dim `)` $source (`sizes` `(` $sizes^ `)`)? attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Accel_ScatterOp : Accel_Op<"scatter", [Pure, OwnKernel, AttrSizedOperandSegments]> {
  let summary = "a tensor with elements written or added where indices say";
  let description = [{
    The result is `into`, or zeros, into which each element of `updates` is written (`set`) or added (`add`) in row-major order, so
    that of several for one place the last stays. `map` takes an update's indices to its place: each dimension of the result is one of the
    updates' dimensions, or symbol `k`, the value of tensor `k` of `indices`, which `index_maps[k]` reads. With
    `wraps`, a negative value counts from the end; with `skips`, an update with one is left out. Another value out of range is an
    error. `sizes` are the result's dynamic sizes.

    ```mlir
    // rows.index_add(0, %i, %u)
    %r = accel.scatter "add" %u at(%i) by affine_map<(d0, d1)[s0] -> (s0, d1)> [affine_map<(d0, d1) -> (d0)>] into(%rows)
        : tensor<9x64xf32>, tensor<9xi64> into tensor<100x64xf32> -> tensor<100x64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$combine, AnyRankedTensor:$updates, Variadic<AnyRankedTensor>:$indices,
                       Optional<AnyRankedTensor>:$into, Variadic<Index>:$sizes, AffineMapAttr:$map,
                       AffineMapArrayAttr:$index_maps, UnitAttr:$wraps, UnitAttr:$skips);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $combine $updates `at` `(` $indices `)` `by` $map $index_maps (`into` `(` $into^ `)`)? (`sizes` `(` $sizes^ `)`)?
    attr-dict `:` type($updates) `,` type($indices) (`into` type($into)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def Accel_AttentionOp : Accel_Op<"attention", [Pure, OwnKernel]> {
  let summary = "softmax(query keyᵀ · scale + mask) value";
  let description = [{
    `query` is `[B, H, L, E]`, `key` `[B, G, S, E]` and `value` `[B, G, S, V]`, where G divides H: each key head serves H / G
    query heads. `mask`, `[B, H, L, S]`, is added to the scores or, if it is of i1, says which of them count: the others become
    `hidden`, -inf unless it says otherwise. `causal` leaves out
    columns behind the row's number. A row whose scores are all left out gives zeros or, if the softmax is `plain`, NaN. H, G, E
    and V are static.

    `out` is `[B, L, H, V]` and `logsumexp` `[B, L, H]`, as they lie in memory in eager where queries come from a linear layer;
    logarithms are in f64 for f64 and in f32 for all else.

    ```mlir
    %out, %logsumexp = accel.attention %q, %k, %v scale(1.250000e-01 : f64) causal
        : (tensor<2x12x128x64xf32>, tensor<2x12x128x64xf32>, tensor<2x12x128x64xf32>)
          -> (tensor<2x128x12x64xf32>, tensor<2x128x12xf32>)
    ```
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value,
                       Optional<AnyRankedTensor>:$mask, F64Attr:$scale, UnitAttr:$causal,
                       UnitAttr:$plain, OptionalAttr<F64Attr>:$hidden);
  let results = (outs AnyRankedTensor:$out, AnyRankedTensor:$logsumexp);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $mask^ `)`)? (`hidden` `(` $hidden^ `)`)? `scale` `(` $scale `)` (`causal` $causal^)? (`plain` $plain^)?
    attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Accel_AtenCallOp : Accel_Op<"aten_call", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a call of PyTorch's dispatcher";
  let description = [{
    `kind` is `library` (one of PyTorch's kernels, chosen; `reason` may say for what) or `fallback` (no lowering; `reason` says why). `args` and `kwargs`
    are the schema's arguments: numbers, strings, booleans, arrays, `unit` for None, dictionaries for dtypes and the like, and
    `#accel.operand<k>` for operand `k`. `dtypes` names the operands' PyTorch dtypes. `result_layouts` gives eager's layout of each
    result. An op that writes to an argument or draws random numbers has `effects`.

    ```mlir
    %r = accel.aten_call "aten::mm" "default" library(%a, %b) {args = [#accel.operand<0>, #accel.operand<1>]}
        : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$overload, StrAttr:$kind, Variadic<AnyType>:$operands, ArrayAttr:$args,
                       OptionalAttr<DictionaryAttr>:$kwargs, OptionalAttr<StrAttr>:$reason,
                       OptionalAttr<StrArrayAttr>:$dtypes, OptionalAttr<StrArrayAttr>:$result_dtypes,
                       OptionalAttr<ArrayAttr>:$result_layouts, UnitAttr:$effects);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$name $overload $kind `(` $operands `)` attr-dict `:` functional-type($operands, $results)";
  let hasVerifier = 1;
}

def Accel_FusionOp : Accel_Op<"fusion", [SingleBlock, RecursiveMemoryEffects, NoRegionArguments]> {
  let summary = "tensor ops that become one kernel";
  let description = [{
    The ops share one loop nest: `parallel` loops around `rows` loops that the reductions run over. Each op's `accel.loops` says
    which loop each of its dimensions is. Values from outside are read where they are.

    ```mlir
    %r = accel.fusion parallel(1) rows(1) {
      %m = linalg.reduce { arith.maximumf } ins(%x : …) outs(%i : …) dimensions = [1] {accel.loops = array<i64: 0, 1>}
      …
      accel.yield %d : tensor<8x128xf32>
    } -> tensor<8x128xf32>
    ```
  }];
  let arguments = (ins I64Attr:$parallel, I64Attr:$rows);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`parallel` `(` $parallel `)` `rows` `(` $rows `)` $body attr-dict (`->` type($results)^)?";
  let hasVerifier = 1;
}

def Accel_KernelOp : Accel_Op<"kernel", [IsolatedFromAbove, FunctionOpInterface, Symbol, SingleBlock]> {
  let summary = "one loop nest of device code";
  let description = [{
    Arguments are the tensors read, with their layouts, then the `index` values. The results are written to memory that the
    launch provides, with the layouts of the result attributes. `nodes` and `label` say where it comes from.

    ```mlir
    accel.kernel @softmax_3fa2(%x: tensor<8x128xf32> {accel.layout = …}) -> (tensor<8x128xf32> {accel.layout = …})
        attributes {parallel = 1 : i64, rows = 1 : i64} { … accel.yield %d : tensor<8x128xf32> }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs, I64Attr:$parallel, I64Attr:$rows,
                       OptionalAttr<Accel_TargetAttr>:$target, OptionalAttr<Accel_TileConfigAttr>:$tile_config);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::mlir::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// The layout of argument `i`; null for an index argument.
    ::accel::LayoutAttr argLayout(unsigned i);
    /// The layout of result `i`.
    ::accel::LayoutAttr resultLayout(unsigned i);
    /// The op that makes this kernel alone; null where the kernel is a loop nest of linalg ops.
    ::mlir::Operation *ownOp();
  }];
}

def Accel_LaunchOp : Accel_Op<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel";
  let description = [{
    ```mlir
    %r = accel.launch @softmax_3fa2(%x) : (tensor<8x128xf32>) -> tensor<8x128xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$operands);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$kernel `(` $operands `)` attr-dict `:` functional-type($operands, $results)";
}

def Accel_YieldOp : Accel_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["FusionOp", "KernelOp"]>]> {
  let summary = "the results of a fusion or kernel";
  let description = [{ `accel.yield %d : tensor<8x128xf32>` }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif
