// RUN: accel-opt %s --split-input-file --verify-diagnostics

// Every message of the verifiers. The smallest op that is wrong in one way, one block each.

// == attributes

// expected-error @below {{layout maps take symbols only, got affine_map<(d0) -> (d0)>}}
func.func private @layout_dims(tensor<4xf32> {accel.layout = #accel.layout<affine_map<(d0) -> (d0)>, affine_map<() -> (1)>>})

// -----

// expected-error @below {{layout has 1 sizes over 0 symbols but 2 strides over 0}}
func.func private @layout_ranks(tensor<4xf32> {accel.layout = #accel.layout<affine_map<() -> (4)>, affine_map<() -> (1, 1)>>})

// -----

// expected-error @below {{layout has 1 sizes over 1 symbols but 1 strides over 0}}
func.func private @layout_symbols(tensor<?xf32> {accel.layout = #accel.layout<affine_map<()[s0] -> (s0)>, affine_map<() -> (1)>>})

// -----

// expected-error @below {{vector_loop is -2, expected a loop's number or -1}}
#config = #accel.tile_config<vector_loop = -2, vector = 1, block = 1, rows = 1, grain = 1>

// -----

// expected-error @below {{vector is 24, expected a power of two}}
#config = #accel.tile_config<vector_loop = 0, vector = 24, block = 24, rows = 1, grain = 1>

// -----

// expected-error @below {{vector is 0, expected a power of two}}
#config = #accel.tile_config<vector_loop = 0, vector = 0, block = 1, rows = 1, grain = 1>

// -----

// expected-error @below {{block 20 is not a multiple of vector 16}}
#config = #accel.tile_config<vector_loop = 0, vector = 16, block = 20, rows = 1, grain = 1>

// -----

// expected-error @below {{block 0 is not a multiple of vector 16}}
#config = #accel.tile_config<vector_loop = 0, vector = 16, block = 0, rows = 1, grain = 1>

// -----

// expected-error @below {{rows is 0, expected at least 1}}
#config = #accel.tile_config<vector_loop = 0, vector = 16, block = 16, rows = 0, grain = 1>

// -----

// expected-error @below {{grain is 0, expected at least 1}}
#config = #accel.tile_config<vector_loop = 0, vector = 16, block = 16, rows = 1, grain = 0>

// -----

// == accel.view

func.func @view_element_type(%x: tensor<4xf32>) {
  // expected-error @below {{changes the element type from 'f32' to 'i32'}}
  %0 = accel.view %x by affine_map<(d0) -> (d0)> : tensor<4xf32> -> tensor<4xi32>
  return
}

// -----

func.func @view_ranks(%x: tensor<4xf32>) {
  // expected-error @below {{map affine_map<(d0) -> (d0)> does not take 2 dimensions to 1}}
  %0 = accel.view %x by affine_map<(d0) -> (d0)> : tensor<4xf32> -> tensor<4x1xf32>
  return
}

// -----

func.func @view_symbols(%x: tensor<4xf32>) {
  // expected-error @below {{map has 1 symbols but 0 are given}}
  %0 = accel.view %x by affine_map<(d0)[s0] -> (d0 + s0)> : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

// A view has strides, so no floor division of a dimension.
func.func @view_linear(%x: tensor<4xf32>) {
  // expected-error @below {{result 0 of affine_map<(d0) -> (d0 floordiv 2)> is not linear in the dimensions}}
  %0 = accel.view %x by affine_map<(d0) -> (d0 floordiv 2)> : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

func.func @view_sizes(%x: tensor<4xf32>) {
  // expected-error @below {{has 0 sizes for 1 dynamic dimensions of 'tensor<?xf32>'}}
  %0 = accel.view %x by affine_map<(d0) -> (d0)> : tensor<4xf32> -> tensor<?xf32>
  return
}

// -----

// == accel.reshape, accel.concat

func.func @reshape_element_type(%x: tensor<4xf32>) {
  // expected-error @below {{changes the element type from 'f32' to 'f16'}}
  %0 = accel.reshape %x : tensor<4xf32> -> tensor<2x2xf16>
  return
}

// -----

func.func @reshape_elements(%x: tensor<4xf32>) {
  // expected-error @below {{takes 4 elements to 6}}
  %0 = accel.reshape %x : tensor<4xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @reshape_sizes(%x: tensor<4xf32>, %n: index) {
  // expected-error @below {{has 1 sizes for 2 dynamic dimensions of 'tensor<?x?xf32>'}}
  %0 = accel.reshape %x sizes(%n) : tensor<4xf32> -> tensor<?x?xf32>
  return
}

// -----

func.func @concat_empty() {
  // expected-error @below {{has no parts}}
  %0 = "accel.concat"() <{dim = 0 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> tensor<4xf32>
  return
}

// -----

func.func @concat_dim(%a: tensor<4xf32>) {
  // expected-error @below {{dimension 1 is not in [0, 1)}}
  %0 = accel.concat dim(1) %a, %a : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

func.func @concat_rank(%a: tensor<4xf32>, %b: tensor<4x1xf32>) {
  // expected-error @below {{part 'tensor<4x1xf32>' does not fit 'tensor<8xf32>'}}
  %0 = accel.concat dim(0) %a, %b : tensor<4xf32>, tensor<4x1xf32> -> tensor<8xf32>
  return
}

// -----

func.func @concat_element_type(%a: tensor<4xf32>, %b: tensor<4xi32>) {
  // expected-error @below {{part 'tensor<4xi32>' does not fit 'tensor<8xf32>'}}
  %0 = accel.concat dim(0) %a, %b : tensor<4xf32>, tensor<4xi32> -> tensor<8xf32>
  return
}

// -----

func.func @concat_sizes(%a: tensor<?xf32>) {
  // expected-error @below {{has 0 sizes for 1 dynamic dimensions of 'tensor<?xf32>'}}
  %0 = accel.concat dim(0) %a, %a : tensor<?xf32>, tensor<?xf32> -> tensor<?xf32>
  return
}

// -----

// == accel.aten_call

func.func @call_kind(%a: tensor<4xf32>) {
  // expected-error @below {{kind is "fast", expected "library" or "fallback"}}
  %0 = accel.aten_call "aten::relu" "default" "fast"(%a) {args = [#accel.operand<0>]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @call_layouts(%a: tensor<4xf32>) {
  // expected-error @below {{has 0 result layouts for 1 results}}
  %0 = accel.aten_call "aten::relu" "default" "fallback"(%a) {args = [#accel.operand<0>], result_layouts = []}
      : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @call_operand(%a: tensor<4xf32>) {
  // expected-error @below {{argument names operand 1 of 1}}
  %0 = accel.aten_call "aten::relu" "default" "fallback"(%a) {args = [#accel.operand<1>]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @call_operand_in_kwargs(%a: tensor<4xf32>) {
  // expected-error @below {{argument names operand -1 of 1}}
  %0 = accel.aten_call "aten::relu" "default" "fallback"(%a) {args = [], kwargs = {out = [#accel.operand<-1>]}}
      : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// == accel.fusion

func.func @fusion_yield(%a: tensor<4xf32>) {
  // expected-error @below {{yields other types than its results}}
  %0 = accel.fusion parallel(0) rows(0) {
    accel.yield %a : tensor<4xf32>
  } -> tensor<8xf32>
  return
}

// -----

func.func @loops_missing(%a: tensor<4xf32>) {
  %0 = accel.fusion parallel(1) rows(0) {
    %e = tensor.empty() : tensor<4xf32>
    // expected-error @below {{in a kernel has no 'accel.loops'}}
    %c = linalg.copy ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    accel.yield %c : tensor<4xf32>
  } -> tensor<4xf32>
  return
}

// -----

func.func @loops_count(%a: tensor<4xf32>) {
  %0 = accel.fusion parallel(1) rows(0) {
    %e = tensor.empty() : tensor<4xf32>
    // expected-error @below {{has 1 dimensions but 'accel.loops' names 2}}
    %c = linalg.copy {accel.loops = array<i64: 0, 0>} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    accel.yield %c : tensor<4xf32>
  } -> tensor<4xf32>
  return
}

// -----

func.func @loops_range(%a: tensor<4xf32>) {
  %0 = accel.fusion parallel(1) rows(1) {
    %e = tensor.empty() : tensor<4xf32>
    // expected-error @below {{runs over loop 2 of 2}}
    %c = linalg.copy {accel.loops = array<i64: 2>} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    accel.yield %c : tensor<4xf32>
  } -> tensor<4xf32>
  return
}

// -----

func.func @yield_parent(%a: tensor<4xf32>) {
  // expected-error @below {{expects parent op to be one of 'accel.fusion, accel.kernel'}}
  accel.yield %a : tensor<4xf32>
}

// -----

// == accel.kernel, accel.launch

// expected-error @below {{argument 0 has no 'accel.layout'}}
accel.kernel @argument_layout(%x: tensor<4xf32>) attributes {parallel = 0 : i64, rows = 0 : i64} {
  accel.yield
}

// -----

// expected-error @below {{argument 0 is 'f32', expected a tensor or an index}}
accel.kernel @argument_type(%x: f32) attributes {parallel = 0 : i64, rows = 0 : i64} {
  accel.yield
}

// -----

// expected-error @below {{tensor argument 1 comes after an index argument}}
accel.kernel @argument_order(%n: index, %x: tensor<4xf32>) attributes {parallel = 0 : i64, rows = 0 : i64} {
  accel.yield
}

// -----

#scalar = #accel.layout<affine_map<() -> ()>, affine_map<() -> ()>>
// expected-error @below {{argument 0 of type 'tensor<4xf32>' has layout}}
accel.kernel @layout_rank(%x: tensor<4xf32> {accel.layout = #scalar}) attributes {parallel = 0 : i64, rows = 0 : i64} {
  accel.yield
}

// -----

// The layout's symbols are the kernel's index arguments.
#vector = #accel.layout<affine_map<()[s0] -> (s0)>, affine_map<()[s0] -> (1)>>
// expected-error @below {{argument 0 of type 'tensor<?xf32>' has layout}}
accel.kernel @layout_symbols(%x: tensor<?xf32> {accel.layout = #vector}) attributes {parallel = 0 : i64, rows = 0 : i64} {
  accel.yield
}

// -----

#vector = #accel.layout<affine_map<() -> (4)>, affine_map<() -> (1)>>
// expected-error @below {{result 0 has no 'accel.layout'}}
accel.kernel @result_layout(%x: tensor<4xf32> {accel.layout = #vector}) -> tensor<4xf32>
    attributes {parallel = 1 : i64, rows = 0 : i64} {
  accel.yield %x : tensor<4xf32>
}

// -----

#vector = #accel.layout<affine_map<() -> (4)>, affine_map<() -> (1)>>
// expected-error @below {{yields other types than its results}}
accel.kernel @yield(%x: tensor<4xf32> {accel.layout = #vector}) attributes {parallel = 1 : i64, rows = 0 : i64} {
  accel.yield %x : tensor<4xf32>
}

// -----

// A kernel sees nothing but its arguments.
%x = tensor.empty() : tensor<4xf32>
// expected-note @below {{required by region isolation constraints}}
accel.kernel @isolated() attributes {parallel = 0 : i64, rows = 0 : i64} {
  // expected-error @below {{using value defined outside the region}}
  %0 = accel.reshape %x : tensor<4xf32> -> tensor<2x2xf32>
  accel.yield
}

// -----

func.func @launch_unknown(%x: tensor<4xf32>) {
  // expected-error @below {{there is no kernel 'nothing'}}
  accel.launch @nothing(%x) : (tensor<4xf32>) -> ()
  return
}

// -----

#vector = #accel.layout<affine_map<() -> (4)>, affine_map<() -> (1)>>
accel.kernel @kernel(%x: tensor<4xf32> {accel.layout = #vector}) attributes {parallel = 1 : i64, rows = 0 : i64} {
  accel.yield
}
func.func @launch_type(%x: tensor<8xf32>) {
  // expected-error @below {{does not fit kernel 'kernel' of type '(tensor<4xf32>) -> ()'}}
  accel.launch @kernel(%x) : (tensor<8xf32>) -> ()
  return
}

// -----

// == accel.scan, accel.scatter

// -----

func.func @scan_dim(%x: tensor<4xf32>) {
  // expected-error @below {{'accel.scan' op dimension 1 is not in [0, 1)}}
  %0 = accel.scan "add" dim(1) %x : tensor<4xf32>
  return
}

// -----

func.func @scan_combine(%x: tensor<4xf32>) {
  // expected-error @below {{'accel.scan' op combines by "sub", expected "add", "mul" or "logaddexp"}}
  %0 = accel.scan "sub" dim(0) %x : tensor<4xf32>
  return
}

// -----

func.func @scatter_combine(%u: tensor<9xf32>, %i: tensor<9xi64>) {
  // expected-error @below {{'accel.scatter' op combines by "mul", expected "add" or "set"}}
  %0 = accel.scatter "mul" %u at(%i) by affine_map<(d0)[s0] -> (s0)> [affine_map<(d0) -> (d0)>] : tensor<9xf32>, tensor<9xi64> -> tensor<4xf32>
  return
}

// -----

func.func @scatter_into(%u: tensor<9xf32>, %i: tensor<9xi64>, %x: tensor<5xf32>) {
  // expected-error @below {{'accel.scatter' op writes into 'tensor<5xf32>' but yields 'tensor<4xf32>'}}
  %0 = accel.scatter "add" %u at(%i) by affine_map<(d0)[s0] -> (s0)> [affine_map<(d0) -> (d0)>] into(%x) : tensor<9xf32>, tensor<9xi64> into tensor<5xf32> -> tensor<4xf32>
  return
}

// -----

func.func @scatter_element(%u: tensor<9xf16>, %i: tensor<9xi64>) {
  // expected-error @below {{'accel.scatter' op writes elements of 'f16' into 'tensor<4xf32>'}}
  %0 = accel.scatter "add" %u at(%i) by affine_map<(d0)[s0] -> (s0)> [affine_map<(d0) -> (d0)>] : tensor<9xf16>, tensor<9xi64> -> tensor<4xf32>
  return
}

// -----

func.func @scatter_map(%u: tensor<9xf32>, %i: tensor<9xi64>) {
  // expected-error @below {{does not take 1 dimensions and 1 indices to 1}}
  %0 = accel.scatter "add" %u at(%i) by affine_map<(d0, d1)[s0] -> (s0)> [affine_map<(d0) -> (d0)>] : tensor<9xf32>, tensor<9xi64> -> tensor<4xf32>
  return
}

// -----

func.func @scatter_expr(%u: tensor<9xf32>, %i: tensor<9xi64>) {
  // expected-error @below {{has a result that is neither a dimension nor an index}}
  %0 = accel.scatter "add" %u at(%i) by affine_map<(d0)[s0] -> (s0 + 1)> [affine_map<(d0) -> (d0)>] : tensor<9xf32>, tensor<9xi64> -> tensor<4xf32>
  return
}

// -----

func.func @scatter_twice(%u: tensor<9xf32>, %i: tensor<9xi64>) {
  // expected-error @below {{names a dimension twice}}
  %0 = accel.scatter "add" %u at(%i) by affine_map<(d0)[s0] -> (d0, d0)> [affine_map<(d0) -> (d0)>] : tensor<9xf32>, tensor<9xi64> -> tensor<9x9xf32>
  return
}

// -----

func.func @scatter_maps(%u: tensor<9xf32>, %i: tensor<9xi64>) {
  // expected-error @below {{'accel.scatter' op has 0 index maps for 1 indices}}
  %0 = accel.scatter "add" %u at(%i) by affine_map<(d0)[s0] -> (s0)> [] : tensor<9xf32>, tensor<9xi64> -> tensor<4xf32>
  return
}

// -----

func.func @scatter_index(%u: tensor<9xf32>, %i: tensor<9xf32>) {
  // expected-error @below {{does not read 'tensor<9xf32>'}}
  %0 = accel.scatter "add" %u at(%i) by affine_map<(d0)[s0] -> (s0)> [affine_map<(d0) -> (d0)>] : tensor<9xf32>, tensor<9xf32> -> tensor<4xf32>
  return
}
