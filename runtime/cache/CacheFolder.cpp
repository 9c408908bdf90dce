#include "runtime/cache/CacheFolder.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <system_error>
#include <unistd.h>

namespace accel::runtime {
namespace {

constexpr mode_t kRootMode = 0700;
constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

CacheStatus failureOf(CacheFolder::Access access) {
  return access == CacheFolder::Access::Create ? CacheStatus::Unwritable : CacheStatus::Unreadable;
}

/// The problem of a folder or file that could not be opened, from errno.
CacheProblem openingProblem(const std::string &path, CacheStatus otherwise) {
  if (errno == ENOENT)
    return {CacheStatus::Absent, path + " does not exist"};
  if (errno == ELOOP)
    return {CacheStatus::Refused, path + " is a symbolic link"};
  if (errno == ENOTDIR)
    return {CacheStatus::Refused, path + " is not a folder"};
  return systemProblem(otherwise, path);
}

/// Makes the folders of a trusted path that are missing.
CacheProblem makeMissing(const TrustVerdict &verdict) {
  std::string path = verdict.resolved;
  for (const std::string &name : verdict.missing) {
    path += (path.ends_with('/') ? "" : "/") + name;
    if (::mkdir(path.c_str(), kRootMode) != 0 && errno != EEXIST)
      return systemProblem(CacheStatus::Unwritable, path);
  }
  return {};
}

} // namespace

CacheFolder::CacheFolder(std::string_view path, TrustPolicy policy) : policy(policy) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (!path.empty() && !error)
    root = absolute.lexically_normal().string();
  while (root.size() > 1 && root.back() == '/')
    root.pop_back();
}

CacheProblem CacheFolder::openRoot(Access access, OpenFolder &out) const {
  if (root.empty())
    return {CacheStatus::Refused, "the cache has no folder"};
  TrustVerdict verdict = judgeFolder(root, policy);
  if (verdict.refusal.empty() && !verdict.missing.empty()) {
    if (access == Access::Read)
      return {CacheStatus::Absent, root + " does not exist"};
    if (CacheProblem problem = makeMissing(verdict))
      return problem;
    verdict = judgeFolder(root, policy);
  }
  if (!verdict.refusal.empty())
    return {CacheStatus::Refused, verdict.refusal};
  out.fd = Fd(::open(verdict.resolved.c_str(), kOpenFolder));
  struct stat status;
  if (!out.fd || ::fstat(out.fd.get(), &status) != 0)
    return openingProblem(root, failureOf(access));
  bool isGroups = policy == TrustPolicy::Group;
  out.path = root;
  out.folderMode = status.st_mode & (isGroups ? 02775 : 0755);
  out.fileMode = status.st_mode & (isGroups ? 0664 : 0644);
  out.group = status.st_gid;
  return {};
}

void CacheFolder::giveGroup(int fd, const OpenFolder &folder) const {
  // If it fails, members of the group are refused what they could have shared; nothing worse.
  if (policy == TrustPolicy::Group)
    static_cast<void>(::fchown(fd, static_cast<uid_t>(-1), folder.group) == 0);
}

CacheProblem CacheFolder::openBelow(OpenFolder &folder, std::string_view name, Access access) const {
  std::string text(name);
  bool isNew = access == Access::Create && ::mkdirat(folder.fd.get(), text.c_str(), kRootMode) == 0;
  if (access == Access::Create && !isNew && errno != EEXIST)
    return systemProblem(CacheStatus::Unwritable, folder.path + "/" + text);
  folder.path += "/" + text;
  Fd below(::openat(folder.fd.get(), text.c_str(), kOpenFolder));
  if (!below)
    return openingProblem(folder.path, failureOf(access));
  if (isNew) {
    giveGroup(below.get(), folder);
    if (::fchmod(below.get(), folder.folderMode) != 0)
      return systemProblem(CacheStatus::Unwritable, folder.path);
  }
  struct stat status;
  if (::fstat(below.get(), &status) != 0)
    return systemProblem(failureOf(access), folder.path);
  if (std::string why = distrustOfFolder(status, folder.path, policy); !why.empty())
    return {CacheStatus::Refused, std::move(why)};
  folder.fd = std::move(below);
  return {};
}

CacheProblem CacheFolder::open(const std::vector<std::string_view> &names, Access access, OpenFolder &out) const {
  if (CacheProblem problem = openRoot(access, out))
    return problem;
  for (std::string_view name : names)
    if (CacheProblem problem = openBelow(out, name, access))
      return problem;
  return {};
}

CacheProblem CacheFolder::openFile(const OpenFolder &folder, const std::string &name, Fd &out,
                                   struct stat &status) const {
  std::string path = folder.path + "/" + name;
  // Not blocking: what lies there may be a pipe that nobody writes to.
  out = Fd(::openat(folder.fd.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!out)
    return openingProblem(path, CacheStatus::Unreadable);
  if (::fstat(out.get(), &status) != 0)
    return systemProblem(CacheStatus::Unreadable, path);
  if (std::string why = distrustOfFile(status, path, policy); !why.empty())
    return {CacheStatus::Refused, std::move(why)};
  return {};
}

CacheProblem CacheFolder::createFile(const OpenFolder &folder, const std::string &name, Fd &out) const {
  out = Fd(::openat(folder.fd.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!out) {
    int error = errno;
    CacheProblem problem = systemProblem(CacheStatus::Unwritable, folder.path + "/" + name);
    errno = error;
    return problem;
  }
  giveGroup(out.get(), folder);
  if (::fchmod(out.get(), folder.fileMode) != 0)
    return systemProblem(CacheStatus::Unwritable, folder.path + "/" + name);
  return {};
}

} // namespace accel::runtime
