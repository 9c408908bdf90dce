// Why the persistent cache did not do what was asked of it. Trouble with the cache is a value that
// callers report and go on from, not an exception: compiling works without a cache.

#ifndef ACCEL_RUNTIME_CACHE_CACHEPROBLEM_H
#define ACCEL_RUNTIME_CACHE_CACHEPROBLEM_H

#include <stdexcept>
#include <string>
#include <string_view>

namespace accel::runtime {

enum class CacheStatus {
  Ok,
  Absent,       ///< there is no such entry, or no folder yet
  Truncated,    ///< the file ends before the entry does
  BadChecksum,  ///< the bytes are not those that were written
  ForeignMagic, ///< the file is something else
  OtherVersion, ///< written in an older or newer format
  Malformed,    ///< the right version, but at odds with itself or with its name
  OtherKey,     ///< an entry of another key that has the same hash
  Refused,      ///< somebody else could have written it, or could replace it
  Unreadable,   ///< the system would not let us read
  Unwritable,   ///< the system would not let us write: a full disk, a read-only folder
};

/// The word for a status that reports and Python see, such as `bad_checksum`.
std::string_view statusName(CacheStatus status);

/// What went wrong, and with which file. True as a condition if something did.
struct CacheProblem {
  CacheStatus status = CacheStatus::Ok;
  std::string message;

  explicit operator bool() const { return status != CacheStatus::Ok; }
};

/// The problem `what: <text of errno>`; call it before anything else can change errno.
CacheProblem systemProblem(CacheStatus status, const std::string &what);

/// What exporting and importing throw: they are commands of a user's, who has to be told.
class CacheError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CACHE_CACHEPROBLEM_H
