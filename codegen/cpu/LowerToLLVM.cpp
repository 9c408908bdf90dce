#include "codegen/cpu/LowerToLLVM.h"

#include "codegen/cpu/InlineMath.h"
#include "codegen/cpu/VectorMath.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace accel {

LogicalResult lowerToLLVM(ModuleOp module, unsigned registerBits, bool fma) {
  PassManager passes(module.getContext());
  passes.enableVerifier(false);
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  if (failed(passes.run(module)))
    return failure();
  if (fma)
    inlineVectorMath(module);
  callVectorMath(module, registerBits);
  PassManager lower(module.getContext());
  // bf16 in integer arithmetic: the instructions for it flush denormals.
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  lower.addPass(arith::createArithExpandOpsPass(expand));
  lower.addPass(createSCFToControlFlowPass());
  lower.addPass(createConvertVectorToLLVMPass());
  lower.addPass(createConvertMathToLLVMPass());
  lower.addPass(createConvertMathToLibmPass());
  lower.addPass(createArithToLLVMConversionPass());
  lower.addPass(createConvertControlFlowToLLVMPass());
  lower.addPass(createConvertFuncToLLVMPass());
  lower.addPass(createReconcileUnrealizedCastsPass());
  return lower.run(module);
}

} // namespace accel
