// The folder of the persistent cache, opened anew for each operation and judged each time:
//
//   DIR/v1/ab/HASH.KIND   entries; `ab` is the beginning of HASH
//   DIR/tmp/              entries that are being written; nobody reads here
//   DIR/locks/HASH.KIND   empty files that CacheLock locks
//
// Folders and files below DIR get its mode, without what would let others write; with the policy
// `group` also its group, and the group may write. DIR itself is made with mode 0700.

#ifndef ACCEL_RUNTIME_CACHE_CACHEFOLDER_H
#define ACCEL_RUNTIME_CACHE_CACHEFOLDER_H

#include "runtime/cache/CacheProblem.h"
#include "runtime/cache/FileIo.h"
#include "runtime/cache/FolderTrust.h"

#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace accel::runtime {

inline constexpr std::string_view kEntriesFolder = "v1";
inline constexpr std::string_view kTemporaryFolder = "tmp";
inline constexpr std::string_view kLocksFolder = "locks";

/// An open folder, and what new things in it look like.
struct OpenFolder {
  Fd fd;
  std::string path;
  mode_t folderMode = 0;
  mode_t fileMode = 0;
  gid_t group = 0;
};

class CacheFolder {
public:
  enum class Access { Read, Create };

  /// A relative path is one below the current folder of now.
  CacheFolder(std::string_view path, TrustPolicy policy);

  const std::string &path() const { return root; }

  /// Opens DIR and then `names` below it. With `Create` makes what is missing. Absent, Refused,
  /// Unreadable, or, with `Create`, Unwritable.
  CacheProblem open(const std::vector<std::string_view> &names, Access access, OpenFolder &out) const;

  /// Opens a file for reading. Absent, Refused (also a link, a folder, a pipe), or Unreadable.
  CacheProblem openFile(const OpenFolder &folder, const std::string &name, Fd &out, struct stat &status) const;

  /// Makes a file that isn't there yet, with the mode and group that it should have, for reading and
  /// writing. Unwritable; errno is EEXIST if it is there already.
  CacheProblem createFile(const OpenFolder &folder, const std::string &name, Fd &out) const;

private:
  CacheProblem openRoot(Access access, OpenFolder &out) const;
  CacheProblem openBelow(OpenFolder &folder, std::string_view name, Access access) const;
  void giveGroup(int fd, const OpenFolder &folder) const;

  std::string root;
  TrustPolicy policy;
};

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CACHE_CACHEFOLDER_H
