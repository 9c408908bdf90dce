#include "passes/fusion/Passes.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace accel {
#define GEN_PASS_DEF_VERIFYFUSIONSPASS
#include "passes/fusion/Passes.h.inc"

namespace {

struct VerifyFusions : impl::VerifyFusionsPassBase<VerifyFusions> {
  void runOnOperation() override {
    for (Operation &op : getOperation().getBody().front())
      if ((isa<linalg::LinalgOp>(op) || op.hasTrait<OwnKernel>()) && !isOpTriviallyDead(&op)) {
        op.emitError() << "'" << op.getName() << "' is left outside of every fusion";
        signalPassFailure();
      }
  }
};

} // namespace
} // namespace accel
