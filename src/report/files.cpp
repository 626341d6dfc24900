#include "report/files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "report/report.hpp"

namespace convmish {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, std::string_view reason) {
  throw InputError(fmt::format("cannot write {}: {}", path.string(), reason));
}

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

fs::path folder_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

/// Whether this process may: by the effective user, as open() decides it.
bool may(const fs::path& path, int mode) {
  return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

void check_folder(const fs::path& path) {
  const fs::path folder = folder_of(path);
  struct stat status;
  if (::stat(folder.c_str(), &status) != 0)
    fail(path, fmt::format("folder {}: {}", folder.string(), reason_of(errno)));
  if (!S_ISDIR(status.st_mode)) fail(path, fmt::format("{} is not a folder", folder.string()));
  // A process may still be in it, but no file can be made there.
  if (status.st_nlink == 0) fail(path, fmt::format("folder {} has been removed", folder.string()));
  if (!may(folder, W_OK | X_OK))
    fail(path, fmt::format("no file can be made in folder {}: {}", folder.string(), reason_of(errno)));
}

/// What write_file() has to do for a path.
struct Target {
  fs::path path;  // the file itself, behind any symbolic link
  Destination destination;
  std::optional<mode_t> mode = {};  // of the file that is replaced, without its kind
};

bool is_standard_output(const struct stat& status) {
  struct stat output;
  return ::fstat(STDOUT_FILENO, &output) == 0 && output.st_dev == status.st_dev &&
         output.st_ino == status.st_ino;
}

/// Throws where the path cannot be written.
Target resolve(const fs::path& path) {
  if (path.empty()) throw InputError("cannot write a file whose name is empty");
  struct stat status;
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail(path, "it is a folder; name a file in it");
    if (!may(path, W_OK)) fail(path, reason_of(errno));
    // A file too, where output is redirected to it: replaced, it would lose what is printed afterwards.
    if (is_standard_output(status)) return {path, Destination::standard_output};
    if (!S_ISREG(status.st_mode)) return {path, Destination::stream};
    std::error_code error;
    const fs::path file = fs::is_symlink(path, error) ? fs::canonical(path, error) : path;
    if (error) fail(path, error.message());
    check_folder(file);
    return {file, Destination::file, status.st_mode & 07777};
  }
  const int why_not_found = errno;
  std::error_code error;
  if (const auto found = fs::symlink_status(path, error); fs::is_symlink(found))
    fail(path, why_not_found == ENOENT ? "it is a symbolic link to a file that is not there"
                                       : reason_of(why_not_found));
  else if (found.type() == fs::file_type::none)
    fail(path, error.message());
  check_folder(path);
  if (!path.has_filename()) fail(path, "it names no file");
  return {path, Destination::file};
}

/// A file being written. If it is `temporary`, it is gone again unless it replaced another.
class OutputFile {
 public:
  static OutputFile stream(const fs::path& path) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) fail(path, reason_of(errno));
    return OutputFile(path, path, descriptor, false);
  }

  /// Not opened anew: a file that output is redirected to would be written from its beginning.
  static OutputFile standard_output(const fs::path& path) {
    const int descriptor = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) fail(path, reason_of(errno));
    return OutputFile(path, path, descriptor, false);
  }

  /// In the target's folder, for a rename does not cross file systems. `asked` is the path of messages.
  static OutputFile temporary(const fs::path& asked, const Target& target) {
    // Names are taken by other threads, and by what a killed process of the same number left.
    constexpr int kAttempts = 100;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const fs::path path =
          folder_of(target.path) / fmt::format(".{}-{}-{}.tmp", kToolName, ::getpid(), attempt);
      // 0666: the user's umask decides, as for any other new file. What replaces a file is never open to more
      // people than that was, not even for a moment.
      const int descriptor =
          ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, target.mode.value_or(0666));
      if (descriptor >= 0) {
        // The umask may have taken away some. A file system that has no modes refuses: nothing is lost there.
        if (target.mode) ::fchmod(descriptor, *target.mode);
        return OutputFile(asked, path, descriptor, true);
      }
      if (errno != EEXIST) break;
    }
    fail(asked, reason_of(errno));
  }

  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (temporary_) ::unlink(path_.c_str());
  }

  void write(std::string_view contents) {
    while (!contents.empty()) {
      const ssize_t written = ::write(descriptor_, contents.data(), contents.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(asked_, reason_of(errno));
      contents.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  /// To the disk first, so that no crash of the machine leaves the new name on a file without contents.
  void replace(const fs::path& target) {
    if (::fsync(descriptor_) != 0 && errno != EINVAL) fail(asked_, reason_of(errno));
    const int closed = ::close(std::exchange(descriptor_, -1));
    if (closed != 0) fail(asked_, reason_of(errno));
    if (::rename(path_.c_str(), target.c_str()) != 0) fail(asked_, reason_of(errno));
    temporary_ = false;
  }

 private:
  OutputFile(fs::path asked, fs::path path, int descriptor, bool temporary)
      : asked_(std::move(asked)), path_(std::move(path)), descriptor_(descriptor), temporary_(temporary) {}

  fs::path asked_, path_;  // the path of messages, and the one written to
  int descriptor_;
  bool temporary_;
};

/// Keeps a file to one process at a time, by another beside it: the file itself gives way to a new one. The
/// system frees the lock of a process that is killed; its file is then the next one's.
class FileLock {
 public:
  FileLock(const fs::path& asked, const fs::path& file)
      : path_(folder_of(file) / fmt::format(".{}.lock", file.filename().string())) {
    while (!take(asked)) {
    }
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    ::unlink(path_.c_str());  // while it is held: the next process may hold another's file of this name
    ::close(descriptor_);
  }

 private:
  /// False where the holder that was waited for removed the file: a newcomer would lock another.
  bool take(const fs::path& asked) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(asked, fmt::format("{}: {}", path_.string(), reason_of(errno)));
    // Where the file system has no locks, it goes on without one: that loses less than not writing.
    while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
    struct stat held, named;
    if (::fstat(descriptor_, &held) == 0 && ::stat(path_.c_str(), &named) == 0 &&
        held.st_dev == named.st_dev && held.st_ino == named.st_ino)
      return true;
    ::close(descriptor_);
    return false;
  }

  fs::path path_;
  int descriptor_ = -1;
};

}  // namespace

Destination check_writable(const fs::path& path) {
  return resolve(path).destination;
}

void write_file(const fs::path& path, std::string_view contents) {
  const Target target = resolve(path);
  switch (target.destination) {
    case Destination::standard_output:
      return OutputFile::standard_output(path).write(contents);
    case Destination::stream:
      return OutputFile::stream(path).write(contents);
    case Destination::file:
      break;
  }
  OutputFile file = OutputFile::temporary(path, target);
  file.write(contents);
  file.replace(target.path);
}

void update_file(const fs::path& path, const std::function<std::string()>& contents) {
  const FileLock lock(path, resolve(path).path);
  write_file(path, contents());
}

}  // namespace convmish
