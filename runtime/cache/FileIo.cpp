#include "runtime/cache/FileIo.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <new>
#include <stdexcept>
#include <sys/random.h>
#include <unistd.h>

namespace accel::runtime {

Fd &Fd::operator=(Fd &&other) noexcept {
  if (this != &other) {
    close();
    number = std::exchange(other.number, -1);
  }
  return *this;
}

bool Fd::close() {
  // Linux frees the descriptor even if close is interrupted or reports an error.
  return number < 0 || ::close(std::exchange(number, -1)) == 0;
}

bool readAt(int fd, uint64_t offset, uint64_t size, std::string &out) {
  try {
    out.resize(size);
  } catch (const std::bad_alloc &) {
    errno = ENOMEM;
    return false;
  } catch (const std::length_error &) {
    errno = ENOMEM;
    return false;
  }
  size_t done = 0;
  while (done < size) {
    ssize_t got = ::pread(fd, out.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return false;
    if (got == 0)
      break;
    done += static_cast<size_t>(got);
  }
  out.resize(done);
  return true;
}

bool writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool namesIn(int fd, std::vector<std::string> &names) {
  names.clear();
  // A descriptor of its own: reading moves the position, which copies share.
  Fd own(::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own)
    return false;
  std::unique_ptr<DIR, int (*)(DIR *)> folder(::fdopendir(own.get()), &::closedir);
  if (!folder)
    return false;
  static_cast<void>(own.release());
  errno = 0;
  while (const dirent *item = ::readdir(folder.get())) {
    std::string_view name = item->d_name;
    if (name != "." && name != "..")
      names.emplace_back(name);
  }
  if (errno != 0)
    return false;
  std::sort(names.begin(), names.end());
  return true;
}

std::string randomName() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    number = (static_cast<uint64_t>(::getpid()) << 32) ^ static_cast<uint64_t>(now.tv_nsec);
  }
  std::string name;
  for (int i = 0; i < 16; ++i, number >>= 4)
    name.push_back("0123456789abcdef"[number & 15]);
  return name;
}

} // namespace accel::runtime
