// RUN: accel-opt %s --accel-form-fusions --accel-verify-fusions | FileCheck %s

// CHECK: #[[SWAP:.*]] = affine_map<(d0, d1) -> (d1, d0)>

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
#unary = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
#binary = {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
#by_row = {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
#by_col = {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}

// A chain is one kernel, and what it reads stays outside.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
// CHECK-NEXT: %[[F:.*]] = accel.fusion parallel(2) rows(0) {
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<4x8xf32>) {{.*}} attrs = {accel.loops = array<i64: 0, 1>}
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} attrs = {accel.loops = array<i64: 0, 1>}
// CHECK: arith.negf
// CHECK: accel.yield
// CHECK-NEXT: } -> tensor<4x8xf32>
// CHECK-NEXT: return %[[F]]
func.func @chain(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %b = linalg.generic #unary ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// A tree of which several values are used outside: one kernel with as many results, each in its own place.
// CHECK-LABEL: func.func @tree
// CHECK-NEXT: %[[F:.*]]:2 = accel.fusion parallel(2) rows(0) {
// CHECK: %[[EXP:.*]] = linalg.generic
// CHECK: %[[NEG:.*]] = linalg.generic
// CHECK: %[[SIN:.*]] = linalg.generic
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK: accel.yield %[[EXP]], %[[SUM]]
// CHECK: return %[[F]]#1, %[[F]]#0
func.func @tree(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %exp = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %neg = linalg.generic #unary ins(%exp : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %sin = linalg.generic #unary ins(%exp : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %sum = linalg.generic #binary ins(%neg, %sin : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.addf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %sum, %exp : tensor<4x8xf32>, tensor<4x8xf32>
}

// Pointwise work goes into the reduction that reads it; the reduced loop is the row loop, which comes last.
// CHECK-LABEL: func.func @into_reduction
// CHECK: accel.fusion parallel(1) rows(1) {
// CHECK: math.exp
// CHECK: linalg.reduce {{.*}} dimensions = [0] {accel.loops = array<i64: 1, 0>}
// CHECK: } -> tensor<8xf32>
// CHECK-NOT: accel.fusion
func.func @into_reduction(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<8xf32>) -> tensor<8xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %s = linalg.reduce {arith.addf} ins(%a : tensor<4x8xf32>) outs(%init : tensor<8xf32>) dimensions = [0]
  return %s : tensor<8xf32>
}

// What follows a reduction on the reduced tensor, and on the whole row, is the same kernel.
// CHECK-LABEL: func.func @out_of_reduction
// CHECK: accel.fusion parallel(1) rows(1) {
// CHECK: linalg.reduce {{.*}} {accel.loops = array<i64: 0, 1>}
// CHECK: linalg.generic {{.*}} attrs = {accel.loops = array<i64: 0>}
// CHECK: math.sqrt
// CHECK: linalg.generic {{.*}} attrs = {accel.loops = array<i64: 0, 1>}
// CHECK: arith.divf
// CHECK: } -> tensor<4x8xf32>
// CHECK-NOT: accel.fusion
func.func @out_of_reduction(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.reduce {arith.addf} ins(%x : tensor<4x8xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%s : tensor<4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sqrt %v : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %d = linalg.generic #by_row ins(%x, %q : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.divf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %d : tensor<4x8xf32>
}

// Dimensions of size 1 are no loops: they read along with any size.
// CHECK-LABEL: func.func @unit_dimensions
// CHECK: accel.fusion parallel(1) rows(1) {
// CHECK: linalg.reduce
// CHECK: linalg.generic {{.*}} attrs = {accel.loops = array<i64: 0, -1>}
// CHECK: linalg.generic {{.*}} attrs = {accel.loops = array<i64: 0, 1>}
// CHECK: } -> tensor<4x8xf32>
// CHECK-NOT: accel.fusion
func.func @unit_dimensions(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<4xf32>
  %u = tensor.empty() : tensor<4x1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.reduce {arith.addf} ins(%x : tensor<4x8xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %k = accel.view %s by affine_map<(i, j) -> (i)> : tensor<4xf32> -> tensor<4x1xf32>
  %q = linalg.generic #unary ins(%k : tensor<4x1xf32>) outs(%u : tensor<4x1xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sqrt %v : f32
    linalg.yield %r : f32
  } -> tensor<4x1xf32>
  %d = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i, 0)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %q : tensor<4x8xf32>, tensor<4x1xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.divf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %d : tensor<4x8xf32>
}

// A transposition between two ops costs nothing: the view is inside, and the reader runs over the same loops the other way round.
// CHECK-LABEL: func.func @view_between
// CHECK: accel.fusion parallel(2) rows(0) {
// CHECK: %[[A:.*]] = linalg.generic {{.*}} attrs = {accel.loops = array<i64: 0, 1>}
// CHECK: %[[V:.*]] = accel.view %[[A]] by #[[SWAP]]
// CHECK: linalg.generic {{.*}} ins(%[[V]] : tensor<8x4xf32>) {{.*}} attrs = {accel.loops = array<i64: 1, 0>}
// CHECK: } -> tensor<8x4xf32>
// CHECK-NOT: accel.view
func.func @view_between(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<8x4xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %t = accel.view %a by affine_map<(i, j) -> (j, i)> : tensor<4x8xf32> -> tensor<8x4xf32>
  %b = linalg.generic #unary ins(%t : tensor<8x4xf32>) outs(%f : tensor<8x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  return %b : tensor<8x4xf32>
}

// A view of a fused value that leaves the function comes after the kernel, and is no reason to compute anything twice.
// CHECK-LABEL: func.func @view_after
// CHECK: %[[F:.*]]:2 = accel.fusion parallel(2) rows(0) {
// CHECK: %[[V:.*]] = accel.view %[[F]]#0
// CHECK: return %[[V]], %[[F]]#1
func.func @view_after(%x: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %t = accel.view %a by affine_map<(i, j) -> (j, i)> : tensor<4x8xf32> -> tensor<8x4xf32>
  %b = linalg.generic #unary ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %t, %b : tensor<8x4xf32>, tensor<4x8xf32>
}

// A cheap value of fewer loops is computed in each iteration of those it lacks, rather than stored.
// CHECK-LABEL: func.func @cheap_broadcast
// CHECK: accel.fusion parallel(2) rows(0) {
// CHECK: linalg.generic {{.*}} attrs = {accel.loops = array<i64: 0>}
// CHECK: linalg.generic {{.*}} attrs = {accel.loops = array<i64: 1, 0>}
// CHECK-NOT: accel.fusion
func.func @cheap_broadcast(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%b : tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  %s = linalg.generic #by_col ins(%x, %n : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.addf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// Two ops that read the same large tensor become one kernel, so that it is read once.
// CHECK-LABEL: func.func @siblings
// CHECK: accel.fusion parallel(2) rows(0) {
// CHECK: math.exp
// CHECK: math.sin
// CHECK: } -> tensor<64x128xf32>, tensor<64x128xf32>
// CHECK-NOT: accel.fusion
func.func @siblings(%x: tensor<64x128xf32>) -> (tensor<64x128xf32>, tensor<64x128xf32>) {
  %e = tensor.empty() : tensor<64x128xf32>
  %a = linalg.generic #unary ins(%x : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<64x128xf32>
  %b = linalg.generic #unary ins(%x : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<64x128xf32>
  return %a, %b : tensor<64x128xf32>, tensor<64x128xf32>
}

// Equal symbols are known to be equal: loops of size s0 are one loop.
// CHECK-LABEL: func.func @symbolic
// CHECK: accel.fusion parallel(1) rows(1) {
// CHECK: linalg.reduce
// CHECK: arith.divf
// CHECK: } -> tensor<?x8xf32>
// CHECK-NOT: accel.fusion
func.func @symbolic(%n: index,
    %x: tensor<?x8xf32> {accel.layout = #accel.layout<affine_map<()[s0] -> (s0, 8)>, affine_map<()[s0] -> (8, 1)>>})
    -> tensor<?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %f = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce {arith.addf} ins(%x : tensor<?x8xf32>) outs(%init : tensor<?xf32>) dimensions = [1]
  %d = linalg.generic #by_row ins(%x, %s : tensor<?x8xf32>, tensor<?xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.divf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  return %d : tensor<?x8xf32>
}

// A gather from an argument is fused like any other pointwise op.
// CHECK-LABEL: func.func @gather
// CHECK: accel.fusion parallel(2) rows(0) {
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<100x8xf32>
// CHECK: arith.negf
// CHECK-NOT: accel.fusion
func.func @gather(%table: tensor<100x8xf32>, %ids: tensor<4xi64>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<4xi64>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %r = tensor.extract %table[%i, %j] : tensor<100x8xf32>
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %b = linalg.generic #unary ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// Independent kernels and calls keep their order of need; ops with effects keep their own order too.
// CHECK-LABEL: func.func @order
// CHECK: %[[A:.*]] = accel.fusion
// CHECK: accel.aten_call "aten::copy_"
// CHECK: %[[B:.*]] = accel.aten_call "aten::cumsum" "default" "fallback"(%[[A]])
// CHECK: accel.aten_call "aten::fill_"
// CHECK: accel.fusion
func.func @order(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic #unary ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  accel.aten_call "aten::copy_" "default" "fallback"(%y, %a) {args = [#accel.operand<0>, #accel.operand<1>], effects}
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> ()
  %b = accel.aten_call "aten::cumsum" "default" "fallback"(%a) {args = [#accel.operand<0>, 0]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  accel.aten_call "aten::fill_" "Scalar" "fallback"(%x) {args = [#accel.operand<0>, 1.0], effects} : (tensor<4x8xf32>) -> ()
  %c = linalg.generic #unary ins(%b : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.sin %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// Two reductions of pieces of one tensor: the pieces are the same, so it is read once.
// CHECK-LABEL: func.func @pieces
// CHECK: accel.fusion parallel(1) rows(1) {
// CHECK: linalg.reduce { arith.addf }
// CHECK: linalg.reduce { arith.maximumf }
// CHECK: accel.yield
// CHECK-NOT: accel.fusion
func.func @pieces(%x: tensor<262144xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %a = accel.view %x by affine_map<(d0, d1) -> (d0 * 32768 + d1)> : tensor<262144xf32> -> tensor<8x32768xf32>
  %s = linalg.reduce {arith.addf} ins(%a : tensor<8x32768xf32>) outs(%init : tensor<8xf32>) dimensions = [1]
  %b = accel.view %x by affine_map<(d0, d1) -> (d0 * 32768 + d1)> : tensor<262144xf32> -> tensor<8x32768xf32>
  %m = linalg.reduce {arith.maximumf} ins(%b : tensor<8x32768xf32>) outs(%init : tensor<8xf32>) dimensions = [1]
  return %s, %m : tensor<8xf32>, tensor<8xf32>
}
