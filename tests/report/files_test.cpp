#include "report/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "scratch_folder.hpp"

namespace convmish {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ScratchFolder;

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The message with which `path` is refused, by the check before a run and by the write itself alike.
std::string refusal(const fs::path& path) {
  std::string messages[2] = {"accepted", "accepted"};
  try {
    check_writable(path);
  } catch (const InputError& error) {
    messages[0] = error.what();
  }
  try {
    write_file(path, "new");
  } catch (const InputError& error) {
    messages[1] = error.what();
  }
  EXPECT_EQ(messages[0], messages[1]);
  return messages[0];
}

/// Gives up root's rights for a scope, so that permissions count; nothing to do for other users.
class Unprivileged {
 public:
  Unprivileged() {
    if (::geteuid() == 0) root_ = ::seteuid(kNobody) == 0;
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  ~Unprivileged() {
    if (root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  static constexpr uid_t kNobody = 65534;
  bool root_ = false;
};

/// No file may grow beyond `bytes`: what a full disk does, on any machine.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(WriteFile, MakesAndReplaces) {
  const ScratchFolder folder;
  const fs::path path = folder.path() / "report.json";
  write_file(path, "old");
  EXPECT_EQ(contents(path), "old");
  write_file(path, std::string(100'000, 'x'));
  EXPECT_EQ(contents(path), std::string(100'000, 'x'));
  EXPECT_THAT(folder.entries(), ElementsAre("report.json"));
}

TEST(WriteFile, NewFileHasThePermissionsOfTheUmask) {
  const ScratchFolder folder;
  const mode_t before = ::umask(027);
  write_file(folder.path() / "report.json", "text");
  ::umask(before);
  EXPECT_EQ(fs::status(folder.path() / "report.json").permissions(), static_cast<fs::perms>(0640));
}

TEST(WriteFile, ReplacedFileKeepsItsPermissions) {
  const ScratchFolder folder;
  const fs::path path = folder.path() / "report.json", link = folder.path() / "link.json";
  fs::create_symlink("report.json", link);
  write_file(path, "old");
  for (const int mode : {0600, 0666, 0640, 0755}) {
    fs::permissions(path, static_cast<fs::perms>(mode));
    for (const fs::path& name : {path, link}) {
      const mode_t before = ::umask(027);
      write_file(name, "new");
      ::umask(before);
      EXPECT_EQ(fs::status(path).permissions(), static_cast<fs::perms>(mode)) << name;
    }
  }
  EXPECT_EQ(contents(path), "new");
}

TEST(WriteFile, FailureLeavesTheOldFileAndNothingElse) {
  const ScratchFolder folder;
  const fs::path path = folder.path() / "report.json";
  write_file(path, "old");
  std::string message;
  {
    const FileSizeLimit limit(1000);
    try {
      write_file(path, std::string(5000, 'x'));
    } catch (const InputError& error) {
      message = error.what();
    }
  }
  EXPECT_EQ(message, "cannot write " + path.string() + ": File too large");
  EXPECT_EQ(contents(path), "old");
  EXPECT_THAT(folder.entries(), ElementsAre("report.json"));
}

TEST(WriteFile, LeftoverOfAKilledProcessIsNoObstacle) {
  const ScratchFolder folder;
  const std::string leftover = ".convmish-bench-" + std::to_string(::getpid()) + "-0.tmp";
  std::ofstream(folder.path() / leftover) << "half a rep";
  write_file(folder.path() / "report.json", "text");
  EXPECT_EQ(contents(folder.path() / "report.json"), "text");
}

TEST(WriteFile, FollowsALink) {
  const ScratchFolder folder;
  write_file(folder.path() / "real.json", "old");
  fs::create_symlink("real.json", folder.path() / "link.json");
  write_file(folder.path() / "link.json", "new");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link.json"));
  EXPECT_EQ(contents(folder.path() / "real.json"), "new");
}

TEST(WriteFile, DevicesAreWrittenToNotReplaced) {
  write_file("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  try {
    write_file("/dev/full", "text");
    ADD_FAILURE() << "a full device took the text";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "cannot write /dev/full: No space left on device");
  }
}

TEST(UpdateFile, NoUpdateIsLost) {
  const ScratchFolder folder;
  const fs::path path = folder.path() / "count";
  constexpr int kThreads = 8, kUpdates = 20;
  write_file(path, "0");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&path] {
        for (int update = 0; update < kUpdates; ++update)
          update_file(path, [&path] { return std::to_string(std::stoi(contents(path)) + 1); });
      });
  }
  EXPECT_EQ(contents(path), std::to_string(kThreads * kUpdates));
  EXPECT_THAT(folder.entries(), ElementsAre("count")) << "the lock is left behind";
}

TEST(UpdateFile, LockOfAKilledProcessIsNoObstacle) {
  const ScratchFolder folder;
  write_file(folder.path() / ".table.json.lock", "");
  update_file(folder.path() / "table.json", [] { return "text"; });
  EXPECT_THAT(folder.entries(), ElementsAre("table.json"));
}

TEST(CheckWritable, TellsWhatAPathLeadsTo) {
  const ScratchFolder folder;
  const fs::path fifo = folder.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(check_writable(folder.path() / "report.json"), Destination::file);
  EXPECT_EQ(check_writable(fifo), Destination::stream);
  EXPECT_EQ(check_writable("/dev/stdout"), Destination::standard_output);
}

TEST(CheckWritable, ChangesNothing) {
  const ScratchFolder folder;
  check_writable(folder.path() / "report.json");
  EXPECT_THAT(folder.entries(), IsEmpty());
  write_file(folder.path() / "report.json", "old");
  check_writable(folder.path() / "report.json");
  EXPECT_EQ(contents(folder.path() / "report.json"), "old");
}

TEST(CheckWritable, TellsWhatIsWrong) {
  const ScratchFolder folder;
  const fs::path& here = folder.path();
  write_file(here / "file", "text");
  fs::create_symlink("nowhere", here / "dangling");
  fs::create_symlink("loop", here / "loop");

  EXPECT_EQ(refusal(here), "cannot write " + here.string() + ": it is a folder; name a file in it");
  EXPECT_THAT(refusal(here / "missing" / "report.json"), HasSubstr("missing: No such file or directory"));
  EXPECT_THAT(refusal(here / "file" / "report.json"), HasSubstr("file is not a folder"));
  EXPECT_THAT(refusal(here / "dangling"), HasSubstr("a symbolic link to a file that is not there"));
  EXPECT_EQ(refusal(here / "loop"),
            "cannot write " + (here / "loop").string() + ": Too many levels of symbolic links");
  EXPECT_EQ(refusal(""), "cannot write a file whose name is empty");
  EXPECT_THAT(folder.entries(), ::testing::UnorderedElementsAre("file", "dangling", "loop"));
}

TEST(CheckWritable, SeesPermissions) {
  const ScratchFolder folder;
  const fs::path closed = folder.path() / "closed", open = folder.path() / "open";
  fs::create_directory(closed);
  fs::create_directory(open);
  write_file(open / "protected.json", "old");
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(open, fs::perms::all);
  fs::permissions(open / "protected.json", static_cast<fs::perms>(0444));
  fs::permissions(closed, static_cast<fs::perms>(0555));
  {
    const Unprivileged unprivileged;
    EXPECT_THAT(refusal(closed / "report.json"), HasSubstr("closed: Permission denied"));
    EXPECT_THAT(refusal(open / "protected.json"), HasSubstr("protected.json: Permission denied"));
    EXPECT_EQ(refusal(open / "report.json"), "accepted");
  }
  EXPECT_EQ(contents(open / "protected.json"), "old");
}

}  // namespace
}  // namespace convmish
