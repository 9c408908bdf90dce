#include "runtime/cache/FolderTrust.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits.h>
#include <system_error>
#include <unistd.h>

namespace accel::runtime {
namespace {

/// As many as Linux follows (path_resolution(7)).
constexpr int kMaxLinks = 40;

bool isOurs(uid_t owner) { return owner == 0 || owner == ::geteuid(); }

bool isOurGroup(gid_t group) {
  if (group == ::getegid())
    return true;
  int count = ::getgroups(0, nullptr);
  if (count <= 0)
    return false;
  std::vector<gid_t> groups(static_cast<size_t>(count));
  count = ::getgroups(count, groups.data());
  return count > 0 && std::find(groups.begin(), groups.begin() + count, group) != groups.begin() + count;
}

std::string describe(const struct stat &status, const std::string &path) {
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(status.st_mode & 07777));
  return path + " is owned by uid " + std::to_string(status.st_uid) + " and gid " + std::to_string(status.st_gid) +
         " with mode " + mode;
}

std::string whatItShouldBe(TrustPolicy policy) {
  std::string owners = ::geteuid() == 0 ? "root" : "root or uid " + std::to_string(::geteuid());
  if (policy == TrustPolicy::Group)
    return "; it must be owned by " + owners + " or have a group of this user's, and not be writable by others";
  return "; it must be owned by " + owners + " and not be writable by group or others";
}

bool isTrusted(const struct stat &status, TrustPolicy policy) {
  bool isGroupTrusted = policy == TrustPolicy::Group && isOurGroup(status.st_gid);
  if (!isOurs(status.st_uid) && !isGroupTrusted)
    return false;
  if (status.st_mode & S_IWOTH)
    return false;
  return !(status.st_mode & S_IWGRP) || isGroupTrusted;
}

/// Appends the names of a path to the front of `names`.
void prependNames(std::vector<std::string> &names, const std::string &path) {
  std::vector<std::string> added;
  for (size_t begin = 0; begin < path.size();) {
    size_t end = std::min(path.find('/', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    if (!name.empty() && name != ".")
      added.push_back(std::move(name));
    begin = end + 1;
  }
  names.insert(names.begin(), added.begin(), added.end());
}

std::string join(const std::string &folder, const std::string &name) {
  return folder == "/" ? "/" + name : folder + "/" + name;
}

std::string parentOf(const std::string &folder) {
  size_t slash = folder.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : folder.substr(0, slash);
}

/// Goes down a path, one name after the other, as the kernel would.
class PathWalk {
public:
  PathWalk(const std::string &path, TrustPolicy policy) : policy(policy) { prependNames(rest, path); }

  TrustVerdict run() {
    verdict.resolved = "/";
    bool goesOn = true;
    while (goesOn && !rest.empty())
      goesOn = enterFolder() && takeName();
    // The last one has to be trusted by itself, sticky or not.
    struct stat status;
    if (verdict.refusal.empty() && verdict.missing.empty()) {
      if (::lstat(verdict.resolved.c_str(), &status) != 0)
        return refuse(verdict.resolved + ": " + std::generic_category().message(errno)), verdict;
      refuse(distrustOfFolder(status, verdict.resolved, policy));
    }
    return verdict;
  }

private:
  bool refuse(std::string why) {
    verdict.refusal = std::move(why);
    return false;
  }

  /// Judges the folder that the walk stands in, as the parent of what comes next.
  bool enterFolder() {
    struct stat status;
    if (::lstat(verdict.resolved.c_str(), &status) != 0)
      return refuse(verdict.resolved + ": " + std::generic_category().message(errno));
    bool isOpen = (status.st_mode & S_IWOTH) || ((status.st_mode & S_IWGRP) && !isTrusted(status, policy));
    isSticky = isOpen && S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) && isOurs(status.st_uid);
    if (isSticky)
      return true;
    std::string why = distrustOfFolder(status, verdict.resolved, policy);
    return why.empty() || refuse(std::move(why));
  }

  bool takeName() {
    std::string name = rest.front();
    if (name == "..") {
      rest.erase(rest.begin());
      verdict.resolved = parentOf(verdict.resolved);
      return true;
    }
    std::string path = join(verdict.resolved, name);
    struct stat status;
    if (::lstat(path.c_str(), &status) != 0) {
      if (errno != ENOENT)
        return refuse(path + ": " + std::generic_category().message(errno));
      if (std::find(rest.begin(), rest.end(), "..") != rest.end())
        return refuse(path + " does not exist, and the path goes up from it");
      verdict.missing = rest;
      return false;
    }
    if (isSticky && !isOurs(status.st_uid))
      return refuse(describe(status, path) + " in a folder that others can write to; it must be owned by root or uid " +
                    std::to_string(::geteuid()));
    rest.erase(rest.begin());
    if (S_ISLNK(status.st_mode))
      return followLink(path, status);
    verdict.resolved = std::move(path);
    return true;
  }

  bool followLink(const std::string &path, const struct stat &status) {
    // Where the folder is the group's, its members may have made the link; its parent was judged.
    if (!isOurs(status.st_uid) && policy != TrustPolicy::Group)
      return refuse("the symbolic link " + describe(status, path) + "; it must be owned by root or uid " +
                    std::to_string(::geteuid()));
    if (++links > kMaxLinks)
      return refuse(path + ": too many symbolic links");
    char target[PATH_MAX];
    ssize_t size = ::readlink(path.c_str(), target, sizeof target);
    if (size <= 0 || size == static_cast<ssize_t>(sizeof target))
      return refuse(path + ": the symbolic link can't be read");
    std::string text(target, static_cast<size_t>(size));
    prependNames(rest, text);
    if (text[0] == '/')
      verdict.resolved = "/";
    return true;
  }

  TrustPolicy policy;
  TrustVerdict verdict;
  std::vector<std::string> rest;
  bool isSticky = false;
  int links = 0;
};

} // namespace

std::string distrustOfFolder(const struct stat &status, const std::string &path, TrustPolicy policy) {
  if (!S_ISDIR(status.st_mode))
    return path + " is not a folder";
  return isTrusted(status, policy) ? "" : describe(status, path) + whatItShouldBe(policy);
}

std::string distrustOfFile(const struct stat &status, const std::string &path, TrustPolicy policy) {
  if (!S_ISREG(status.st_mode))
    return path + " is not a regular file";
  return isTrusted(status, policy) ? "" : describe(status, path) + whatItShouldBe(policy);
}

TrustVerdict judgeFolder(const std::string &folder, TrustPolicy policy) { return PathWalk(folder, policy).run(); }

} // namespace accel::runtime
