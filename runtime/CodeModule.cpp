#include "runtime/CodeModule.h"

#include "runtime/Bundle.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace accel::runtime {
namespace {

/// A file descriptor that closes itself.
class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;

  const int number;
};

bool writeAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

/// Returns a path to an open descriptor that no earlier call has returned. The loader takes a path
/// that it has seen for the library that it loaded from it, and the kernel reuses the numbers of
/// closed descriptors: so the path carries a count, one bit a slash ("/" or "/./").
std::string uniquePathOf(int descriptor) {
  static std::atomic<uint32_t> loaded{0};
  std::string path = "/proc/self/fd";
  for (uint32_t count = loaded.fetch_add(1); count != 0; count >>= 1)
    path += count & 1 ? "/." : "/";
  return path + "/" + std::to_string(descriptor);
}

/// Kernels call vector and scalar mathematics without naming the libraries, so that the same code
/// loads wherever they are found. Where libmvec is absent, code that needs it fails to load with
/// the loader's own message.
void loadMathematics() {
  static const bool done = [] {
    dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
    dlopen("libmvec.so.1", RTLD_NOW | RTLD_GLOBAL);
    return true;
  }();
  (void)done;
}

std::string loaderError() {
  const char *message = dlerror();
  return message ? message : "unknown error of the dynamic loader";
}

void *loadFromMemory(std::string_view elf, const std::string &name, std::string &reason) {
  Descriptor file(memfd_create(name.substr(0, 200).c_str(), MFD_CLOEXEC));
  if (file.number < 0 || !writeAll(file.number, elf)) {
    reason = std::string("memfd: ") + std::strerror(errno);
    return nullptr;
  }
  void *handle = dlopen(uniquePathOf(file.number).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    reason = loaderError();
  return handle;
}

/// For systems that forbid executable memory files.
void *loadFromFile(std::string_view elf, std::string &reason) {
  const char *folder = std::getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/accel-XXXXXX";
  Descriptor file(mkstemp(path.data()));
  if (file.number < 0) {
    reason += "; " + path + ": " + std::strerror(errno);
    return nullptr;
  }
  void *handle = nullptr;
  if (!writeAll(file.number, elf))
    reason += "; " + path + ": " + std::strerror(errno);
  else if (handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); !handle)
    reason += "; " + loaderError();
  unlink(path.c_str());
  return handle;
}

} // namespace

CodeModule::CodeModule(std::string_view elf, const std::string &name) {
  loadMathematics();
  std::string reason;
  handle = loadFromMemory(elf, "accel-" + name, reason);
  if (!handle)
    handle = loadFromFile(elf, reason);
  if (!handle)
    throw BundleError("code section of `" + name + "` does not load: " + reason);
}

CodeModule::~CodeModule() {
  if (handle)
    dlclose(handle);
}

CodeModule &CodeModule::operator=(CodeModule &&other) noexcept {
  std::swap(handle, other.handle);
  return *this;
}

KernelFunction CodeModule::kernel(const std::string &symbol) const {
  void *address = handle ? dlsym(handle, symbol.c_str()) : nullptr;
  if (!address)
    throw BundleError("code section has no kernel `" + symbol + "`");
  return reinterpret_cast<KernelFunction>(address);
}

} // namespace accel::runtime
