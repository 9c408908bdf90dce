#include "compiler/Compiler.h"

#include "codegen/cpu/CompileCpu.h"
#include "compiler/Registration.h"
#include "compiler/executable/PlanBuilder.h"
#include "compiler/executable/Report.h"
#include "compiler/import/Importer.h"
#include "compiler/tuning/TuningTasks.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/Bundle.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <chrono>

using namespace mlir;

namespace accel {

char GraphError::ID = 0;
char UnsupportedOpError::ID = 0;
char InternalError::ID = 0;

namespace {

/// Writes a file; a problem with a dump never fails a compile, so it is dropped.
void writeFile(const Twine &path, StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path.str(), error);
  if (error)
    return;
  stream << text;
  stream.flush();
  if (stream.has_error())
    stream.clear_error();
}

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

/// One compile.
class Compilation {
public:
  Compilation(StringRef text, const CompileOptions &options, const ProgressCallback &progress)
      : text(text), options(options), progress(progress), context(registry(), MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
  }

  llvm::Expected<CompileResult> run() {
    if (llvm::Error error = runPhases())
      return std::move(error);
    if (options.compileTo != Phase::Executable)
      result.output = print(*module);
    else
      finish();
    return std::move(result);
  }

  /// Of a compile to phase `schedule`.
  llvm::Expected<std::string> tasks(unsigned maxCandidates) {
    if (llvm::Error error = runPhases())
      return std::move(error);
    return tuningTasksJson(tuningTasks(*module, maxCandidates));
  }

private:
  llvm::Error runPhases() {
    llvm::Expected<TargetDescription> found = describeTarget(options.target);
    if (!found)
      return llvm::make_error<GraphError>(llvm::toString(found.takeError()));
    target = *found;
    if (llvm::Error error = begin())
      return error;
    for (const PhaseInfo &info : phases()) {
      if (info.phase > options.compileTo || (options.compileFrom && info.phase <= *options.compileFrom) ||
          info.phase == Phase::Import)
        continue;
      current = info.phase;
      if (progress)
        progress(info.name, double(info.phase) / phases().size());
      auto start = std::chrono::steady_clock::now();
      if (llvm::Error error = runPhase(info.phase))
        return error;
      seconds[info.name.str()] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    return llvm::Error::success();
  }

  static const DialectRegistry &registry() {
    static const DialectRegistry shared = [] {
      DialectRegistry r;
      registerDialects(r);
      return r;
    }();
    return shared;
  }

  /// Reads what was given: FX JSON, or the text of a phase.
  llvm::Error begin() {
    auto start = std::chrono::steady_clock::now();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) { return keep(d); });
    if (options.compileFrom) {
      if (*options.compileFrom >= Phase::Codegen)
        return llvm::make_error<GraphError>("phase " + phaseName(*options.compileFrom).str() +
                                            " makes machine code, which no phase reads");
      if (*options.compileFrom > options.compileTo)
        return llvm::make_error<GraphError>("phase " + phaseName(options.compileTo).str() + " comes before phase " +
                                            phaseName(*options.compileFrom).str());
      module = parseSourceString<ModuleOp>(text, &context);
      if (!module)
        return llvm::make_error<GraphError>("not MLIR of phase " + phaseName(*options.compileFrom).str() + ": " +
                                            diagnostics);
      if (options.compileTo == Phase::Executable)
        if (llvm::Error error = checkHostFunctions(*module))
          return llvm::make_error<GraphError>(llvm::toString(std::move(error)));
      return llvm::Error::success();
    }
    if (progress)
      progress("import", 0);
    llvm::Expected<FxGraph> graph = parseFxJson(text);
    if (!graph)
      return llvm::make_error<GraphError>(llvm::toString(graph.takeError()));
    graphName = graph->name;
    auto imported = importFxGraph(*graph, &context, options.fallback, statistics);
    if (!imported) {
      std::string message = llvm::toString(imported.takeError());
      if (StringRef(message).starts_with("unsupported op"))
        return llvm::make_error<UnsupportedOpError>(message);
      return llvm::make_error<GraphError>(message);
    }
    module = std::move(*imported);
    current = Phase::Import;
    if (failed(verify(*module)))
      return broken();
    dump("mlir", print(*module));
    seconds["import"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return llvm::Error::success();
  }

  llvm::Error runPhase(Phase phase) {
    diagnostics.clear();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) { return keep(d); });
    if (phase == Phase::Codegen)
      return generate();
    if (phase == Phase::Executable)
      return llvm::Error::success();
    if (phase == Phase::Schedule && failed(applyTileConfigs(*module, options.tileConfigs)))
      return broken();
    PassManager passes(&context);
    buildPhase(phase, passes, target, options.graph);
    if (failed(passes.run(*module)))
      return broken();
    dump("mlir", print(*module));
    return llvm::Error::success();
  }

  llvm::Error generate() {
    CpuDump dumpCode;
    if (!options.dumpDir.empty())
      dumpCode = [&](StringRef kind, StringRef code) { dump(kind, code); };
    llvm::Expected<CpuCode> compiled = compileCpu(*module, dumpCode);
    if (!compiled) {
      diagnostics = llvm::toString(compiled.takeError()) + (diagnostics.empty() ? "" : ": " + diagnostics);
      return broken();
    }
    code = std::move(*compiled);
    return llvm::Error::success();
  }

  void finish() {
    auto start = std::chrono::steady_clock::now();
    Plans plans = buildPlans(*module, code, target);
    seconds["executable"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.report = buildReport(*module, statistics, seconds);
    // Times differ from run to run, bundles don't.
    std::string timeless = buildReport(*module, statistics, {});
    SmallVector<runtime::BundleSection> sections = {{"plan", plans.main}, {"report", timeless}};
    if (!plans.constants.empty())
      sections.push_back({"constants", plans.constants});
    if (!code.object.empty())
      sections.push_back({"code", code.object});
    result.output = runtime::writeBundle({sections.data(), sections.size()});
    current = Phase::Executable;
    dump("plan.json", plans.main);
    if (!plans.constants.empty())
      dump("constants.json", plans.constants);
    dump("bundle", result.output);
  }

  LogicalResult keep(Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    llvm::raw_string_ostream stream(diagnostics);
    if (!diagnostics.empty())
      stream << "; ";
    stream << diagnostic << " at " << diagnostic.getLocation();
    return success();
  }

  /// The error for a broken invariant, with the document kept where the command can find it.
  llvm::Error broken() {
    llvm::SmallString<128> path(options.dumpDir);
    if (path.empty())
      llvm::sys::path::system_temp_directory(true, path);
    llvm::sys::path::append(path, llvm::formatv("accel-failed-{0:x-}.json", llvm::xxh3_64bits(text)).str());
    // The name is the content's: what is there may be the very file being read.
    if (!llvm::sys::fs::exists(path))
      writeFile(path, text);
    std::string from = options.compileFrom ? " --compile-from=" + phaseName(*options.compileFrom).str() : "";
    return llvm::make_error<InternalError>(
        (Twine("phase ") + phaseName(current) + " failed on graph " + graphName + ": " + diagnostics +
         "\nthis is an error of the compiler; to see it again: accel-compile --target=" + options.target + from +
         " --compile-to=" + phaseName(current) + " " + path)
            .str());
  }

  void dump(StringRef kind, StringRef content) {
    if (options.dumpDir.empty())
      return;
    if (llvm::sys::fs::create_directories(options.dumpDir))
      return;
    writeFile(llvm::formatv("{0}/0{1}-{2}.{3}", options.dumpDir, int(current) + 1, phaseName(current), kind).str(),
              content);
  }

  StringRef text;
  const CompileOptions &options;
  const ProgressCallback &progress;
  MLIRContext context;
  TargetDescription target;
  OwningOpRef<ModuleOp> module;
  ImportStatistics statistics;
  CpuCode code;
  CompileResult result;
  std::string graphName = "main", diagnostics;
  std::map<std::string, double> seconds;
  Phase current = Phase::Import;
};

} // namespace

llvm::Expected<TargetDescription> describeTarget(StringRef name) {
  auto [kind, cpu] = name.split(':');
  if (kind != "cpu")
    return llvm::createStringError("there is no target \"" + name.str() + "\"; known targets: cpu, cpu:PROCESSOR");
  if (cpu.empty())
    return TargetDescription{"cpu", hostCpuName(), hostCpuFeatures()};
  std::optional<std::string> features = featuresOfCpu(cpu);
  if (!features)
    return llvm::createStringError("there is no processor \"" + cpu.str() + "\" for target cpu");
  return TargetDescription{"cpu", cpu.str(), *features};
}

llvm::Expected<CompileResult> compileGraph(StringRef text, const CompileOptions &options,
                                           const ProgressCallback &progress) {
  return Compilation(text, options, progress).run();
}

llvm::Expected<std::string> listTuningTasks(StringRef text, const CompileOptions &options, unsigned maxCandidates) {
  CompileOptions toSchedule = options;
  toSchedule.compileTo = Phase::Schedule;
  return Compilation(text, toSchedule, nullptr).tasks(maxCandidates);
}

} // namespace accel
