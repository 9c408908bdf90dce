#ifndef ACCEL_CODEGEN_CPU_LINKOBJECT_H
#define ACCEL_CODEGEN_CPU_LINKOBJECT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace accel {
/// Links ELF objects into one shared object, in this process. Undefined symbols are left to the loader.
llvm::Expected<std::string> linkSharedObject(llvm::ArrayRef<std::string> objects);
} // namespace accel

#endif
