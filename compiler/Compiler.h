/// The whole compile: FX JSON in, bundle out.
#ifndef ACCEL_COMPILER_COMPILER_H
#define ACCEL_COMPILER_COMPILER_H

#include "compiler/Phases.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace accel {

struct CompileOptions {
  /// `cpu` (the host), or `cpu:NAME` for another x86 processor that LLVM knows.
  std::string target = "cpu";
  /// A folder for the text of every phase (`01-import.mlir` … `07-executable.bundle`); empty: none.
  std::string dumpDir;
  /// False: an op without a lowering is an UnsupportedOpError.
  bool fallback = true;
  GraphOptions graph;
  /// Schedules found by tuning: pairs of kernel and text of #accel.tile_config. Other kernels get what heuristics
  /// choose.
  std::vector<std::pair<std::string, std::string>> tileConfigs;
  /// Last phase to run.
  Phase compileTo = Phase::Executable;
  /// Last phase that the given text has behind it; nothing for FX JSON.
  std::optional<Phase> compileFrom;
};

struct CompileResult {
  /// The bundle's bytes, or the text of the last phase where that came before.
  std::string output;
  /// The report (docs/report.md) as JSON text.
  std::string report;
};

/// The document, or the edited IR given in its place, is wrong: the user's to mend.
struct GraphError : llvm::ErrorInfo<GraphError> {
  static char ID;
  std::string message;
  explicit GraphError(std::string message) : message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
};

/// An op has no lowering, and falling back was forbidden.
struct UnsupportedOpError : llvm::ErrorInfo<UnsupportedOpError> {
  static char ID;
  std::string message;
  explicit UnsupportedOpError(std::string message) : message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
};

/// An invariant of the compiler is broken: names the phase, what was found, and the command that shows it again.
struct InternalError : llvm::ErrorInfo<InternalError> {
  static char ID;
  std::string message;
  explicit InternalError(std::string message) : message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
};

/// Called when a phase begins with its name and the share of the work that is done, in [0, 1].
using ProgressCallback = std::function<void(llvm::StringRef phase, double done)>;

/// Compiles one document. Thread-safe: each call has a context of its own.
llvm::Expected<CompileResult> compileGraph(llvm::StringRef text, const CompileOptions &options,
                                           const ProgressCallback &progress = nullptr);

/// What the tuner may try for the kernels of a document, at most so many schedules for each: a JSON list, one object
/// for each task (docs/tuning.md).
llvm::Expected<std::string> listTuningTasks(llvm::StringRef text, const CompileOptions &options,
                                            unsigned maxCandidates);

/// The target that a name stands for on this machine; an error lists what there is.
llvm::Expected<TargetDescription> describeTarget(llvm::StringRef name);

} // namespace accel

#endif
