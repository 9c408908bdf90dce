// Files by descriptor, with errors as values.

#ifndef ACCEL_RUNTIME_CACHE_FILEIO_H
#define ACCEL_RUNTIME_CACHE_FILEIO_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace accel::runtime {

/// Owns a file descriptor; -1 is none.
class Fd {
public:
  Fd() = default;
  explicit Fd(int number) : number(number) {}
  Fd(Fd &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Fd &operator=(Fd &&other) noexcept;
  Fd(const Fd &) = delete;
  Fd &operator=(const Fd &) = delete;
  ~Fd() { close(); }

  int get() const { return number; }
  explicit operator bool() const { return number >= 0; }

  /// Gives the descriptor away.
  int release() { return std::exchange(number, -1); }

  /// Closes it; false, with errno set, if the system reports a late error of writing.
  bool close();

private:
  int number = -1;
};

/// Reads up to `size` bytes at `offset`, fewer only at the end of the file. False with errno set if
/// reading fails or there is no memory for it.
bool readAt(int fd, uint64_t offset, uint64_t size, std::string &out);

/// Writes all of `bytes` at the file's position; false with errno set.
bool writeAll(int fd, std::string_view bytes);

/// The names in the folder `fd`, sorted, without `.` and `..`; false with errno set.
bool namesIn(int fd, std::vector<std::string> &names);

/// 16 hexadecimal digits that no other process or call gets, for names of temporary files.
std::string randomName();

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CACHE_FILEIO_H
