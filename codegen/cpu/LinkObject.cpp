#include "codegen/cpu/LinkObject.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

namespace accel {
namespace {

/// A file that goes away with the object.
struct TemporaryFile {
  llvm::SmallString<128> path;
  int fd = -1;
  std::error_code create(llvm::StringRef suffix) {
    return llvm::sys::fs::createTemporaryFile("accel", suffix, fd, path);
  }
  ~TemporaryFile() {
    if (fd >= 0)
      (void)llvm::sys::fs::closeFile(fd);
    if (!path.empty())
      (void)llvm::sys::fs::remove(path);
  }
};

} // namespace

llvm::Expected<std::string> linkSharedObject(llvm::ArrayRef<std::string> objects) {
  std::vector<TemporaryFile> inputs(objects.size());
  TemporaryFile output;
  if (std::error_code error = output.create("so"))
    return llvm::createStringError(error, "no temporary file for the linker");
  for (auto [input, object] : llvm::zip(inputs, objects)) {
    if (std::error_code error = input.create("o"))
      return llvm::createStringError(error, "no temporary file for the linker");
    llvm::raw_fd_ostream stream(input.fd, false);
    stream << object;
    stream.flush();
    if (stream.has_error()) {
      std::error_code error = stream.error();
      stream.clear_error();
      return llvm::createStringError(error, "writing the linker's input");
    }
  }
  // lld keeps its state in globals: one link at a time.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  std::vector<const char *> args = {"ld.lld",      "-shared", "--build-id=none",  "--threads=1", "-z",
                                    "noexecstack", "-o",      output.path.c_str()};
  for (TemporaryFile &input : inputs)
    args.push_back(input.path.c_str());
  lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return llvm::createStringError("the linker failed: " + messages);
  auto linked = llvm::MemoryBuffer::getFile(output.path, false, false);
  if (!linked)
    return llvm::createStringError(linked.getError(), "reading the linker's output");
  return (*linked)->getBuffer().str();
}

} // namespace accel
