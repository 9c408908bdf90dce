#include "compiler/Registration.h"
#include "compiler/import/Importer.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
using namespace llvm;
static cl::opt<std::string> input(cl::Positional, cl::init("-"));
static cl::opt<std::string> compileTo("compile-to", cl::init("executable"));
int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv);
  auto file = MemoryBuffer::getFileOrSTDIN(input);
  mlir::DialectRegistry registry;
  accel::registerDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto graph = accel::parseFxJson((*file)->getBuffer());
  if (!graph) { errs() << "error: " << toString(graph.takeError()) << "\n"; return 1; }
  accel::ImportStatistics statistics;
  auto module = accel::importFxGraph(*graph, &context, true, statistics);
  if (!module) { errs() << "error: " << toString(module.takeError()) << "\n"; return 1; }
  if (failed(mlir::verify(**module))) return 1;
  mlir::OpPrintingFlags flags;
  (*module)->print(outs(), flags);
  for (auto &f : statistics.fallbacks) errs() << "fallback: " << f.node << " " << f.target << ": " << f.reason << "\n";
}
