/// Runs passes and phases on MLIR text: `accel-opt --accel-form-fusions x.mlir`.
#include "compiler/Phases.h"
#include "compiler/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  accel::registerDialects(registry);
  accel::registerPassesAndPhases();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "accel optimizer driver\n", registry));
}
