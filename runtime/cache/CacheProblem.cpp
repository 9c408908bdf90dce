#include "runtime/cache/CacheProblem.h"

#include <cerrno>
#include <system_error>

namespace accel::runtime {

std::string_view statusName(CacheStatus status) {
  switch (status) {
  case CacheStatus::Ok:
    return "ok";
  case CacheStatus::Absent:
    return "absent";
  case CacheStatus::Truncated:
    return "truncated";
  case CacheStatus::BadChecksum:
    return "bad_checksum";
  case CacheStatus::ForeignMagic:
    return "foreign_magic";
  case CacheStatus::OtherVersion:
    return "other_version";
  case CacheStatus::Malformed:
    return "malformed";
  case CacheStatus::OtherKey:
    return "other_key";
  case CacheStatus::Refused:
    return "refused";
  case CacheStatus::Unreadable:
    return "unreadable";
  case CacheStatus::Unwritable:
    return "unwritable";
  }
  return "unknown";
}

CacheProblem systemProblem(CacheStatus status, const std::string &what) {
  return {status, what + ": " + std::generic_category().message(errno)};
}

} // namespace accel::runtime
