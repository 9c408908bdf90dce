// Integers in files: little endian, of their type's size.

#ifndef ACCEL_RUNTIME_LITTLEENDIAN_H
#define ACCEL_RUNTIME_LITTLEENDIAN_H

#include <cstddef>
#include <string>
#include <string_view>

namespace accel::runtime {

template <typename T> void appendInteger(std::string &out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

/// `bytes` has at least `offset + sizeof(T)` of them.
template <typename T> T integerAt(std::string_view bytes, size_t offset) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
  return value;
}

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_LITTLEENDIAN_H
