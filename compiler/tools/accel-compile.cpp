/// FX JSON -> bundle, or the text of any phase on the way.
#include "compiler/Compiler.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {

cl::OptionCategory category("accel-compile");
cl::opt<std::string> input(cl::Positional, cl::desc("<FX JSON, or MLIR with --compile-from>"), cl::init("-"),
                           cl::cat(category));
cl::opt<std::string> output("o", cl::desc("file to write, - for the terminal"), cl::init("-"), cl::cat(category));
cl::opt<std::string> target("target", cl::desc("cpu, or cpu:PROCESSOR"), cl::init("cpu"), cl::cat(category));
cl::opt<std::string> compileTo("compile-to", cl::desc("last phase to run"), cl::init("executable"), cl::cat(category));
cl::opt<std::string> compileFrom("compile-from", cl::desc("phase whose text the input is"), cl::cat(category));
cl::opt<std::string> dumpPhases("dump-phases", cl::desc("folder for the text of each phase"), cl::cat(category));
cl::opt<std::string> fallback("fallback", cl::desc("allow, or error: what an op without a lowering is"),
                              cl::init("allow"), cl::cat(category));
cl::opt<std::string> contractions("contractions", cl::desc("auto, own or library: whose kernels products get"),
                                  cl::init("auto"), cl::cat(category));
cl::opt<bool> constantWeights("constant-weights", cl::desc("parameters and buffers are constants"), cl::cat(category));
cl::opt<bool> report("report", cl::desc("print the report as JSON to stderr"), cl::cat(category));

int fail(const Twine &message) {
  errs() << "accel-compile: " << message << "\n";
  return 1;
}

std::string phaseNames() {
  std::string names;
  for (const accel::PhaseInfo &info : accel::phases())
    names += (names.empty() ? "" : ", ") + info.name.str();
  return names;
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "FX JSON -> bundle\n");
  accel::CompileOptions options;
  options.target = target;
  options.dumpDir = dumpPhases;
  if (fallback != "allow" && fallback != "error")
    return fail("--fallback is \"" + fallback + "\", expected allow or error");
  options.fallback = fallback == "allow";
  if (contractions != "auto" && contractions != "own" && contractions != "library")
    return fail("--contractions is \"" + contractions + "\", expected auto, own or library");
  options.graph = {contractions, constantWeights};
  std::optional<accel::Phase> to = accel::parsePhase(compileTo);
  if (!to)
    return fail("there is no phase \"" + compileTo + "\"; phases: " + phaseNames());
  options.compileTo = *to;
  if (!compileFrom.empty()) {
    options.compileFrom = accel::parsePhase(compileFrom);
    if (!options.compileFrom)
      return fail("there is no phase \"" + compileFrom + "\"; phases: " + phaseNames());
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFileOrSTDIN(input);
  if (!file)
    return fail(input + ": " + file.getError().message());
  // The linker inside the compiler sets all options of the command line back.
  std::string path = output;
  bool printReport = report;
  Expected<accel::CompileResult> result = accel::compileGraph((*file)->getBuffer(), options);
  if (!result)
    return fail(toString(result.takeError()));
  std::error_code error;
  ToolOutputFile out(path, error, sys::fs::OF_None);
  if (error)
    return fail(path + ": " + error.message());
  out.os() << result->output;
  out.keep();
  if (printReport)
    errs() << result->report << "\n";
  return 0;
}
