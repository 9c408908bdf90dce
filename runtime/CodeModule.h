// Machine code of a bundle, loaded into the process.

#ifndef ACCEL_RUNTIME_CODEMODULE_H
#define ACCEL_RUNTIME_CODEMODULE_H

#include <cstdint>
#include <string>
#include <string_view>

namespace accel::runtime {

/// A kernel: `args` are the first elements' addresses, `[begin, end)` a part of the launch's units,
/// `scratch` memory of the calling thread alone; `*error` receives 1 for an index out of range.
using KernelFunction = void (*)(void *const *args, const int64_t *symbols, int64_t begin, int64_t end, void *scratch,
                                int64_t *error);

/// An ELF shared object that was loaded from memory. It is unloaded with this object, so no kernel
/// may be running then.
class CodeModule {
public:
  CodeModule() = default;

  /// Loads `elf`; `name` is what debuggers and profilers show for it. The C and vector mathematics
  /// libraries are there for it to call. Throws BundleError with the loader's reason.
  CodeModule(std::string_view elf, const std::string &name);
  ~CodeModule();
  CodeModule(CodeModule &&other) noexcept : handle(other.handle) { other.handle = nullptr; }
  CodeModule &operator=(CodeModule &&other) noexcept;

  /// Returns the kernel of that name. Throws BundleError if there is none.
  KernelFunction kernel(const std::string &symbol) const;

private:
  void *handle = nullptr;
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CODEMODULE_H
