// Whole-or-nothing folders; see Files.h for the contract.
#include "runtime/system/Files.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view temporaryMark = ".weft-tmp-";
constexpr std::string_view replacedMark = ".weft-old-";

[[noreturn]] void fail(int code, const fs::path &path) {
  throw std::system_error(code, std::generic_category(), path.string());
}

/// Of files that have no end, or none that comes: pipes, devices, sockets.
class NoRegularFile : public std::error_category {
public:
  const char *name() const noexcept override { return "weft file"; }
  std::string message(int) const override {
    return "it is no regular file (a pipe, a device or a socket): write what it gives to a file";
  }
};

[[noreturn]] void failAsIrregular(const fs::path &path) {
  static const NoRegularFile category;
  throw std::system_error(1, category, path.string());
}

fs::path siblingPattern(const fs::path &target, std::string_view mark) {
  return target.parent_path() / ("." + target.filename().string() + std::string(mark) + "XXXXXX");
}

void syncFolder(const fs::path &folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;  // readable by nobody, yet written: nothing more can be done for durability
  fsync(descriptor);
  close(descriptor);
}

/// Whether the path still names the folder that the descriptor was opened on.
bool sameFolder(int descriptor, const fs::path &path) {
  struct stat byDescriptor, byPath;
  return fstat(descriptor, &byDescriptor) == 0 && stat(path.c_str(), &byPath) == 0 &&
         byDescriptor.st_ino == byPath.st_ino && byDescriptor.st_dev == byPath.st_dev;
}

fs::path makeUniqueFolder(const fs::path &pattern) {
  std::string name = pattern.string();
  if (!mkdtemp(name.data())) fail(errno, pattern.parent_path());
  return name;
}

/// An open, exclusively locked descriptor of the folder; -1 if another process holds it or it is
/// gone.
int lockFolder(const fs::path &folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 && sameFolder(descriptor, folder))
    return descriptor;
  close(descriptor);
  return -1;
}

/// Removes a temporary folder unless its writer lives; returns the bytes of its files.
int64_t removeAbandoned(const fs::path &folder) {
  const int lock = lockFolder(folder);
  if (lock < 0) return 0;
  int64_t bytes = 0;
  std::error_code ignored;
  // Its writer may remove it at the same time: what was replaced lies here without a lock. Only
  // increments with a code do not throw then.
  for (fs::recursive_directory_iterator entry(folder, ignored);
       entry != fs::recursive_directory_iterator(); entry.increment(ignored))
    if (std::error_code gone; entry->is_regular_file(gone)) {
      const auto size = entry->file_size(gone);
      if (!gone) bytes += int64_t(size);
    }
  fs::remove_all(folder, ignored);
  close(lock);
  return bytes;
}

bool isEmptyOrMissing(const fs::path &folder) {
  std::error_code ignored;
  return !fs::exists(folder, ignored) || fs::is_empty(folder, ignored);
}

}  // namespace

std::string readFile(const fs::path &path) {
  // No stream: those take an exception of no memory for the end of the file.
  constexpr size_t piece = size_t(1) << 16;
  struct Descriptor {
    int number;
    ~Descriptor() { close(number); }
  };
  // Without waiting for whoever writes to a pipe.
  const int opened = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) fail(errno, path);
  const Descriptor file{opened};
  struct stat status;
  if (fstat(file.number, &status) != 0) fail(errno, path);
  if (S_ISDIR(status.st_mode)) fail(EISDIR, path);
  if (!S_ISREG(status.st_mode)) failAsIrregular(path);
  std::string content;
  content.reserve(size_t(status.st_size) + piece);
  for (size_t size = 0;;) {
    content.resize(size + piece);
    const ssize_t count = read(file.number, content.data() + size, piece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno, path);
    size += size_t(count);
    if (count > 0) continue;
    content.resize(size);
    return content;
  }
}

void writeFile(const fs::path &path, std::string_view bytes, Durability durability) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(errno, path);
  int code = 0;
  while (!bytes.empty() && code == 0) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) bytes.remove_prefix(size_t(written));
    else if (errno != EINTR) code = errno;
  }
  if (code == 0 && durability == Durability::synced && fsync(descriptor) != 0) code = errno;
  if (close(descriptor) != 0 && code == 0) code = errno;
  if (code != 0) fail(code, path);
}

void replaceFile(const fs::path &path, std::string_view bytes) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (fs::exists(status) && !fs::is_regular_file(status)) return writeFile(path, bytes);
  const bool isLink = fs::is_symlink(fs::symlink_status(path, code));
  const fs::path target = isLink ? fs::weakly_canonical(path) : path;
  std::string beside = siblingPattern(target, temporaryMark).string();
  const int descriptor = mkostemp(beside.data(), O_CLOEXEC);
  if (descriptor < 0) fail(errno, target.parent_path());
  close(descriptor);
  try {
    writeFile(beside, bytes);
    const mode_t mask = umask(0);
    umask(mask);
    if (chmod(beside.c_str(), fs::exists(status) ? mode_t(status.permissions()) : 0666 & ~mask) !=
        0)
      fail(errno, target);
    if (std::rename(beside.c_str(), target.c_str()) != 0) fail(errno, target);
  } catch (const std::system_error &) {
    std::remove(beside.c_str());
    throw;
  }
  syncFolder(target.has_parent_path() ? target.parent_path() : ".");
}

FolderLock::FolderLock(const fs::path &folder)
    : descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor < 0) fail(errno, folder);
  int result = 0;
  do result = flock(descriptor, LOCK_EX);
  while (result < 0 && errno == EINTR);
  if (result == 0) return;
  const int code = errno;
  close(descriptor);
  fail(code, folder);
}
FolderLock::~FolderLock() { close(descriptor); }

TemporaryFolder::TemporaryFolder(const fs::path &target) : target(target) {
  fs::create_directories(target.parent_path());
  // A cleaner may remove the folder between its creation and its lock; then it is made again.
  while (lock < 0) {
    folder = makeUniqueFolder(siblingPattern(target, temporaryMark));
    lock = lockFolder(folder);
  }
  const mode_t mask = umask(0);
  umask(mask);
  chmod(folder.c_str(),
        0777 & ~mask);  // mkdtemp makes it private; an artifact is as open as any other folder
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!folder.empty()) fs::remove_all(folder, ignored);
  if (lock >= 0) close(lock);
}

bool TemporaryFolder::publish() {
  syncFolder(folder);
  if (std::rename(folder.c_str(), target.c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST) return false;
    fail(errno, target);
  }
  folder.clear();
  syncFolder(target.parent_path());
  return true;
}

void TemporaryFolder::publishReplacing() {
  if (isEmptyOrMissing(target) && publish()) return;
  syncFolder(folder);
  if (renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    syncFolder(target.parent_path());
    return;  // the destructor removes what was replaced, now under the temporary name
  }
  if (errno != EINVAL && errno != ENOSYS) fail(errno, target);
  // A file system that cannot exchange: move the old away, and bring it back if the new one cannot
  // follow.
  const fs::path replaced = makeUniqueFolder(siblingPattern(target, replacedMark));
  fs::rename(target, replaced);
  std::error_code code;
  fs::rename(folder, target, code);
  if (code) {
    fs::rename(replaced, target);
    fail(code.value(), target);
  }
  folder.clear();
  fs::remove_all(replaced);
}

void removeLeftovers(const fs::path &target) {
  const std::string temporary = "." + target.filename().string() + std::string(temporaryMark);
  const std::string replaced = "." + target.filename().string() + std::string(replacedMark);
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(target.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(replaced) && isEmptyOrMissing(target))
      fs::rename(entry.path(), target, ignored);
    else if (name.starts_with(temporary) || name.starts_with(replaced))
      removeAbandoned(entry.path());
  }
}

int64_t removeAllLeftovers(const fs::path &folder) {
  int64_t bytes = 0;
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().find(temporaryMark) != std::string::npos)
      bytes += removeAbandoned(entry.path());
  return bytes;
}

}  // namespace weft::runtime
