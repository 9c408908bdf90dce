// Who could have written a file of the cache. An entry is machine code: whoever can write one can
// run code as its readers.
//
// A folder is trusted if root or this user owns it and neither group nor others may write to it, and
// if the same holds for each of its parents up to `/` and for the owner of each symbolic link on the
// way. A parent that others may write to is all right if it is sticky, as `/tmp` is, and what lies in
// it on the way to the folder is root's or this user's. With the policy `group`, folders and files
// may also belong to others and be writable by the group, where that group is one of this user's.
//
// Once a path is trusted, nobody else can exchange any part of it, so that what follows can use the
// path without races. Access control lists show in the mode: their mask is its group part.
//
// Limit: in a user namespace that does not map root, `/` belongs to nobody and everything is refused.

#ifndef ACCEL_RUNTIME_CACHE_FOLDERTRUST_H
#define ACCEL_RUNTIME_CACHE_FOLDERTRUST_H

#include <string>
#include <sys/stat.h>
#include <vector>

namespace accel::runtime {

enum class TrustPolicy { Owner, Group };

/// What `judgeFolder` found.
struct TrustVerdict {
  /// Which path, its owner and its mode, and what they should be; empty if trusted.
  std::string refusal;
  /// The path without symbolic links, as far as it exists.
  std::string resolved;
  /// The names of folders below `resolved` that don't exist yet.
  std::vector<std::string> missing;
};

/// Judges `folder` (an absolute path) and all its parents. If it doesn't exist, what exists of its
/// path is judged.
TrustVerdict judgeFolder(const std::string &folder, TrustPolicy policy);

/// Why one folder, by itself, is not trusted; empty if it is. `path` is for the message.
std::string distrustOfFolder(const struct stat &status, const std::string &path, TrustPolicy policy);

/// Why a file in a trusted folder is not trusted; empty if it is. It has to be a regular file.
std::string distrustOfFile(const struct stat &status, const std::string &path, TrustPolicy policy);

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CACHE_FOLDERTRUST_H
