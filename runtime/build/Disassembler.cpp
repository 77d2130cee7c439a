// Finds a disassembler and runs it on one cubin in a temporary folder.
#include "runtime/build/Disassembler.h"

#include "kernel/Error.h"
#include "runtime/system/Environment.h"
#include "runtime/system/Files.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft::runtime {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> programFolders() {
  std::vector<fs::path> folders;
  if (const auto toolkit = environmentValue("CUDA_HOME"))
    folders.push_back(fs::path(*toolkit) / "bin");
  folders.emplace_back("/usr/local/cuda/bin");
  const std::string path = environmentValue("PATH").value_or("");
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    if (end > start) folders.emplace_back(path.substr(start, end - start));
    start = end + 1;
  }
  return folders;
}

/// Runs a program with its standard output going to a file; the exit status as waitpid gives it.
int runInto(const std::vector<std::string> &command, const fs::path &output) {
  std::vector<char *> arguments;
  for (const std::string &word : command) arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int failure =
      posix_spawn(&child, command.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0)
    throw Error::checkFailed("{} does not start: error {}", command.front(), failure);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

}  // namespace

DisassemblerLocation findDisassembler() {
  DisassemblerLocation location;
  for (const char *name : {"nvdisasm", "cuobjdump"})
    for (const fs::path &folder : programFolders()) {
      if (access((folder / name).c_str(), X_OK) == 0) {
        location.program = folder / name;
        return location;
      }
      location.searched.push_back((folder / name).string());
    }
  return location;
}

std::string disassemble(const fs::path &program, std::string_view cubin) {
  const TemporaryFolder folder(fs::temp_directory_path() / "weft-disassembly");
  const fs::path input = folder.path() / "kernel.cubin", output = folder.path() / "kernel.sass";
  writeFile(input, cubin, Durability::cached);
  std::vector<std::string> command{program.string()};
  if (program.filename() == "cuobjdump") command.emplace_back("--dump-sass");
  else command.emplace_back("--print-code");
  command.push_back(input.string());
  if (const int status = runInto(command, output); status != 0)
    throw Error::checkFailed("{} failed with status {}", program.string(), status);
  return readFile(output);
}

}  // namespace weft::runtime
