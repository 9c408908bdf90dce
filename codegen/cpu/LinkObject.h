#ifndef ACCEL_CODEGEN_CPU_LINKOBJECT_H
#define ACCEL_CODEGEN_CPU_LINKOBJECT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace accel {
/// Links one ELF object into a shared object, in this process. Undefined symbols are left to the loader.
llvm::Expected<std::string> linkSharedObject(llvm::StringRef object);
} // namespace accel

#endif
