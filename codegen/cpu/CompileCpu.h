/// The kernels of a module -> one ELF shared object for a CPU.
#ifndef ACCEL_CODEGEN_CPU_COMPILECPU_H
#define ACCEL_CODEGEN_CPU_COMPILECPU_H

#include "codegen/cpu/KernelEmitter.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>

namespace accel {

struct CpuCode {
  std::string object;                           // the shared object's bytes; empty if there are no kernels
  llvm::StringMap<KernelLaunchInfo> launchInfo; // by kernel
};

/// Called with what each step made: a file name's ending ("mlir", "ll", "s") and the text.
using CpuDump = std::function<void(llvm::StringRef kind, llvm::StringRef text)>;

/// Compiles all accel.kernel ops of the module, which all have the same target and keep their schedules. `dump` may be
/// null.
llvm::Expected<CpuCode> compileCpu(mlir::ModuleOp module, const CpuDump &dump);

/// The host's processor and features, as LLVM names them ("znver4", "+avx2,-avx512f,…").
std::string hostCpuName();
std::string hostCpuFeatures();
/// The features of a processor by its LLVM name; nothing if there is no such x86 processor.
std::optional<std::string> featuresOfCpu(llvm::StringRef cpu);

} // namespace accel

#endif
