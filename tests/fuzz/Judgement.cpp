// Promises of a command, checked on its streams and on the files around it; see Judgement.h.
#include "tests/fuzz/Judgement.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <regex>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace weft::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view errorMark = "weft: error: ";
constexpr size_t longestMessage = 16 << 10;

/// The sequence that starts here is one character of UTF-8, and no control character; its length,
/// else 0.
size_t printableLength(std::string_view text) {
  const uint8_t first = uint8_t(text[0]);
  if (first < 0x80) return first == '\n' || (first >= 0x20 && first != 0x7f) ? 1 : 0;
  const size_t length = first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  uint32_t point = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((uint8_t(text[i]) & 0xC0) != 0x80) return 0;
    point = point << 6 | (uint8_t(text[i]) & 0x3F);
  }
  static constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool isValid =
      point >= least[length] && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
  return isValid && point >= 0xA0 ? length : 0;
}

/// How much of a text is printable; all of it, if nothing in it is not.
size_t printablePrefix(std::string_view text) {
  size_t prefix = 0;
  while (prefix < text.size()) {
    const size_t length = printableLength(text.substr(prefix));
    if (length == 0) break;
    prefix += length;
  }
  return prefix;
}

bool namesPlace(const std::string &message, const std::vector<std::string> &names) {
  for (const std::string &name : names)
    if (message.find(name) != std::string::npos) return true;
  const auto quoted = [&](char quote) {
    const size_t open = message.find(quote);
    return open != std::string::npos && message.find(quote, open + 1) != std::string::npos;
  };
  static const std::regex kernel("kernel [A-Za-z_0-9]+( |:)");
  return quoted('\'') || quoted('"') || message.find("--") != std::string::npos ||
         std::regex_search(message, kernel);
}

/// Words of letters: a reason has at least three.
size_t wordsOf(const std::string &message) {
  size_t words = 0, letters = 0;
  for (const char letter : message + " ") {
    if (std::isalpha(uint8_t(letter))) ++letters;
    else words += letters >= 2, letters = 0;
  }
  return words;
}

std::string shortened(std::string text, size_t most = 600) {
  if (text.size() > most) text = text.substr(0, most) + "...";
  return text;
}

/// Lines before the error are ours too: nothing of a library reaches the terminal by itself.
Problem judgeStream(const std::string &err, size_t errorAt) {
  std::istringstream lines(err.substr(0, errorAt));
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("weft: ") && !line.starts_with(" "))
      return {"a line of standard error that is none of weft's", line};
  return {};
}

Problem judgeMessage(const std::string &message, const std::vector<std::string> &names) {
  if (message.size() > longestMessage) return {"a message longer than 16 KiB", shortened(message)};
  if (message.find("internal error") != std::string::npos)
    return {"an internal error", shortened(message)};
  if (message.find("out of memory") != std::string::npos)
    return {"memory over the limit", shortened(message)};
  if (!namesPlace(message, names)) return {"a message without a place", shortened(message)};
  if (wordsOf(message) < 3) return {"a message without a reason", shortened(message)};
  return {};
}

/// As much as a file holds, through one buffer: folders of an artifact are read before and after
/// every command.
std::string hashOfFile(const std::string &path) {
  static thread_local std::string buffer(size_t(1) << 16, '\0');
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "unreadable";
  size_t size = 0;
  for (ssize_t count = 0; (count = read(file, buffer.data() + size, buffer.size() - size)) > 0;)
    if ((size += size_t(count)) == buffer.size()) buffer.resize(2 * size);
  close(file);
  return hashOfBytes({buffer.data(), size});
}

bool isBelow(const std::string &path, const std::vector<std::string> &roots) {
  return std::ranges::any_of(
      roots, [&](const std::string &root) { return path == root || path.starts_with(root + "/"); });
}

}  // namespace

Problem judge(const Outcome &outcome, const CommandTraits &traits,
              const std::vector<std::string> &names) {
  if (outcome.code < 0 || outcome.code > 4)
    return {"an exit code outside 0 to 4", std::to_string(outcome.code)};
  const size_t errorAt = outcome.err.find(errorMark);
  const bool hasError = errorAt != std::string::npos;
  for (const std::string *stream : {&outcome.err, &outcome.out})
    if (const size_t length = printablePrefix(*stream); length < stream->size())
      return {"a stream that is not printable UTF-8",
              shortened(stream->substr(length > 80 ? length - 80 : 0, 160))};
  if (const Problem problem = judgeStream(outcome.err, hasError ? errorAt : outcome.err.size()))
    return problem;
  if (traits.json && !nlohmann::json::accept(outcome.out))
    return {"--json printed no JSON value", shortened(outcome.out)};
  if (outcome.code == 0 || (outcome.code == 1 && traits.oneIsAnswer && !hasError))
    return hasError ? Problem{"an error with exit code 0", shortened(outcome.err)} : Problem{};
  if (!hasError)
    return {"a failure without a message",
            "exit code " + std::to_string(outcome.code) + ": " + shortened(outcome.err)};
  return judgeMessage(outcome.err.substr(errorAt + errorMark.size()), names);
}

std::string hashOfBytes(std::string_view bytes) {
  return std::to_string(std::hash<std::string_view>()(bytes));
}

Snapshot snapshotOf(const std::string &folder) {
  Snapshot snapshot;
  std::error_code ignored;
  for (fs::recursive_directory_iterator entry(folder, ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::string &path = entry->path().native();
    std::string &content = snapshot[path.substr(folder.size() + 1)];
    if (entry->is_symlink())
      content = "link to " + fs::read_symlink(entry->path(), ignored).string();
    else if (entry->is_directory()) content = folderContent;
    else content = hashOfFile(path);
  }
  return snapshot;
}

Problem judgeFiles(const Snapshot &before, const Snapshot &after, const Outcome &outcome,
                   const CommandTraits &traits) {
  const bool succeeded = outcome.code == 0;
  for (const auto &[name, content] : after) {
    if (name.find(".weft-") != std::string::npos) return {"a temporary file left behind", name};
    const auto old = before.find(name);
    if (old != before.end() && old->second == content) continue;
    if (isBelow(name, traits.mayTouch) || (succeeded && isBelow(name, traits.writes))) continue;
    return {succeeded ? "a file written that nobody asked for"
                      : "a file written by a command that failed",
            name};
  }
  for (const auto &[name, content] : before)
    if (!after.contains(name) && !isBelow(name, traits.mayTouch) &&
        !(succeeded && isBelow(name, traits.writes)))
      return {"a file removed", name};
  if (succeeded && traits.mustWrite)
    for (const std::string &name : traits.writes)
      if (!after.contains(name)) return {"nothing written by a command that succeeded", name};
  return {};
}

std::string signatureOf(const Problem &problem) {
  std::string signature = problem.promise + ": ";
  char quote = 0;
  for (const char letter : problem.detail) {
    if (quote) {
      if (letter == quote) quote = 0;
      continue;
    }
    if (letter == '\'' || letter == '"') quote = letter;
    if (std::isalpha(uint8_t(letter)) || letter == ' ') signature += letter;
    if (signature.size() > 160) break;
  }
  return signature;
}

}  // namespace weft::fuzz
