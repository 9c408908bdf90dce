/// What the tuner works on: the kernels of a graph, each by itself.
#ifndef ACCEL_COMPILER_TUNING_TUNINGTASKS_H
#define ACCEL_COMPILER_TUNING_TUNINGTASKS_H

#include "mlir/IR/BuiltinOps.h"
#include <cstdint>
#include <string>
#include <vector>

namespace accel {

/// The kernel's name in the modules of tuning tasks.
inline constexpr llvm::StringLiteral kTunedKernel = "kernel";

/// A tensor, or, without a dtype, the integer `value`.
struct TuningInput {
  std::string dtype; ///< docs/fx-json.md has the names
  std::vector<int64_t> sizes, strides;
  /// An input of the graph, weights first of all, which lies in memory rather than in a cache when the launch comes;
  /// other tensors have just been written.
  bool isCold = false;
  int64_t value = 0;
};

/// One kernel and the schedules worth trying.
struct TuningTask {
  /// The kernel's name in the graph.
  std::string kernel;
  /// Text of phase `kernels`: the kernel, called `kernel`, and a function that launches it on its inputs. Names, lines
  /// and the graph around are not in it, so equal kernels of different models give equal texts.
  std::string module;
  std::vector<TuningInput> inputs;
  /// How often a call of the graph launches it.
  int64_t launches = 0;
  /// Texts of #accel.tile_config: the chosen one, then candidates, the most promising first.
  std::vector<std::string> configs;
};

/// The tasks of a module behind phase `schedule`, in the order of the kernels. Kernels that only prepare weights have
/// none, nor those with a size that nothing tells, or with nothing to choose.
std::vector<TuningTask> tuningTasks(mlir::ModuleOp module, unsigned maxCandidates);

/// The tasks as docs/tuning.md describes them.
std::string tuningTasksJson(const std::vector<TuningTask> &tasks);

/// Gives kernels the schedules that were found for them: `configs` has pairs of kernel and text of #accel.tile_config.
/// Names that the module lacks are passed over. Fails on a text that is none, with a message at the kernel.
mlir::LogicalResult applyTileConfigs(mlir::ModuleOp module,
                                     llvm::ArrayRef<std::pair<std::string, std::string>> configs);

} // namespace accel

#endif
