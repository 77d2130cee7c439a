// Builders of statements, and the text form of kernel programs that people read with --stop-after
// lower.
#include "codegen/Program.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

namespace weft::codegen {

std::string_view nameOf(Across across) {
  switch (across) {
    case Across::warp: return "warp";
    case Across::block: return "block";
    case Across::blockTree: return "tree";
    case Across::blockLinear: return "linear";
  }
  return "";
}

Statement comment(std::string note) {
  return {.kind = Statement::Kind::comment, .note = std::move(note)};
}
Statement space() { return {.kind = Statement::Kind::space}; }
Statement declare(std::string type, std::string name, std::string value, std::string note) {
  return {.kind = Statement::Kind::declare,
          .type = std::move(type),
          .name = std::move(name),
          .value = std::move(value),
          .note = std::move(note)};
}
Statement assign(std::string name, std::string value, std::string note) {
  return {.kind = Statement::Kind::assign,
          .name = std::move(name),
          .value = std::move(value),
          .note = std::move(note)};
}
Statement evaluate(std::string value) {
  return {.kind = Statement::Kind::evaluate, .value = std::move(value)};
}
Statement loop(std::string variable, std::string bound, int unroll, Block body) {
  return {.kind = Statement::Kind::loop,
          .name = std::move(variable),
          .value = std::move(bound),
          .body = std::move(body),
          .unroll = unroll};
}
Statement guard(std::string condition, Block body) {
  return {.kind = Statement::Kind::guard, .value = std::move(condition), .body = std::move(body)};
}
Statement leave(std::string condition) {
  return {.kind = Statement::Kind::leave, .value = std::move(condition)};
}

Statement launchCheckOf(const std::vector<std::string> &terms, std::string what) {
  return {.kind = Statement::Kind::launchCheck,
          .value = fmt::format("{}", fmt::join(terms, " && ")),
          .note = std::move(what)};
}

std::string asArgument(const std::string &text) {
  if (text.size() < 2 || text.front() != '(') return text;
  int depth = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return text;
  }
  return text.substr(1, text.size() - 2);
}

std::string asOperand(const std::string &text) {
  const std::string bare = asArgument(text);
  return bare.find(' ') == std::string::npos ? bare : fmt::format("({})", bare);
}

namespace {

/// Calls visit(identifier) for every identifier in a piece of C.
void forEachIdentifier(std::string_view text, const std::function<void(std::string_view)> &visit) {
  const auto isWord = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && isWord(text[end])) ++end;
    if (end > i && !std::isdigit(static_cast<unsigned char>(text[i])))
      visit(text.substr(i, end - i));
    i = std::max(end, i + 1);
  }
}

void collectIdentifiers(const Block &block, std::set<std::string, std::less<>> &used) {
  for (const Statement &s : block) {
    if (s.kind == Statement::Kind::launchCheck) continue;
    for (const std::string *text : {&s.type, &s.name, &s.value, &s.pointer, &s.width, &s.stride,
                                    &s.count, &s.condition, &s.threads, &s.scratch})
      forEachIdentifier(*text, [&](std::string_view word) { used.emplace(word); });
    collectIdentifiers(s.body, used);
  }
}

/// Adds the names that a block needs from outside to `used`, dropping constants that nothing behind
/// them names.
void pruneDeclarations(Block &block, std::set<std::string, std::less<>> &used) {
  Block kept;
  for (size_t i = block.size(); i-- > 0;) {
    Statement &s = block[i];
    const bool constant = s.kind == Statement::Kind::declare && s.type.starts_with("const ");
    const bool load = s.kind == Statement::Kind::load && s.declares;
    if ((constant || load) && !used.count(s.name)) continue;
    pruneDeclarations(s.body, used);
    if (constant || load) used.erase(s.name);
    collectIdentifiers({{.kind = s.kind,
                         .type = s.type,
                         .name = constant || load ? "" : s.name,
                         .value = s.value,
                         .pointer = s.pointer,
                         .width = s.width,
                         .stride = s.stride,
                         .count = s.count,
                         .condition = s.condition,
                         .threads = s.threads,
                         .scratch = s.scratch}},
                       used);
    kept.push_back(std::move(s));
  }
  block.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

/// Drops terms of launch checks that name one of `gone`, and checks without terms.
void pruneLaunchChecks(Block &block, const std::set<std::string, std::less<>> &gone) {
  constexpr std::string_view between = " && ";
  for (Statement &s : block) {
    if (s.kind != Statement::Kind::launchCheck) continue;
    std::vector<std::string> kept;
    for (size_t at = 0; at < s.value.size();) {
      const size_t end = std::min(s.value.find(between, at), s.value.size());
      const std::string term = s.value.substr(at, end - at);
      bool names = false;
      forEachIdentifier(term, [&](std::string_view word) { names = names || gone.contains(word); });
      if (!names) kept.push_back(term);
      at = end + between.size();
    }
    s.value = fmt::format("{}", fmt::join(kept, between));
  }
  std::erase_if(block, [](const Statement &s) {
    return s.kind == Statement::Kind::launchCheck && s.value.empty();
  });
}

std::string accessText(const Statement &statement) {
  switch (statement.access) {
    case Access::packed: return fmt::format("{} packed at {}", statement.width, statement.pointer);
    case Access::strided:
      return fmt::format("{} strided by {} at {}{}", statement.width, statement.stride,
                         statement.pointer,
                         statement.count.empty() ? "" : fmt::format(" below {}", statement.count));
    case Access::single:
      return fmt::format(
          "1 at {}{}", statement.pointer,
          statement.condition.empty() ? "" : fmt::format(" where {}", statement.condition));
  }
  return "";
}

std::string headText(const Statement &s) {
  using Kind = Statement::Kind;
  switch (s.kind) {
    case Kind::comment: return "; " + s.note;
    case Kind::space: return "";
    case Kind::declare:
      return s.value.empty() ? fmt::format("var {} : {}", s.name, s.type)
                             : fmt::format("let {} : {} = {}", s.name, s.type, s.value);
    case Kind::assign: return fmt::format("{} = {}", s.name, s.value);
    case Kind::evaluate: return s.value;
    case Kind::loop:
      return fmt::format("for {} in 0..{}{}", s.name, s.value,
                         s.unroll == 0 ? " unrolled" : fmt::format(" unrolled {}", s.unroll));
    case Kind::guard: return fmt::format("if {}", s.value);
    case Kind::leave: return fmt::format("return if {}", s.value);
    case Kind::shared: return fmt::format("shared {} : {}", s.name, s.type);
    case Kind::alias: return fmt::format("type {} = {}", s.name, s.value);
    case Kind::function: return fmt::format("function {} of {}", s.name, s.type);
    case Kind::barrier: return "barrier";
    case Kind::launchCheck: return fmt::format("check {}", s.value);
    case Kind::load:
      return fmt::format("load{} {} <- {}", s.raw ? " stored" : "", s.name, accessText(s));
    case Kind::store: return fmt::format("store {} -> {}", s.value, accessText(s));
    case Kind::reduce:
      return fmt::format("{} = {} {} across {} threads of a {}", s.name,
                         s.reduction == Reduction::sum ? "sum" : "max", s.value, s.threads,
                         nameOf(s.across));
  }
  return "";
}

void printBlock(const Block &block, int depth, std::string &text) {
  for (const Statement &statement : block) {
    if (statement.kind == Statement::Kind::space) continue;
    const bool noted = !statement.note.empty() && statement.kind != Statement::Kind::comment;
    text += fmt::format("{:{}}{}{}\n", "", 2 * depth, headText(statement),
                        noted ? "  ; " + statement.note : "");
    printBlock(statement.body, depth + 1, text);
  }
}

}  // namespace

void pruneUnused(Program &program) {
  std::set<std::string, std::less<>> used;
  pruneDeclarations(program.body, used);
  used.clear();
  collectIdentifiers(program.body, used);
  collectIdentifiers(program.globals, used);
  for (const std::string *text : {&program.launchBounds, &program.clusterBlocks})
    forEachIdentifier(*text, [&](std::string_view word) { used.emplace(word); });
  for (auto line = program.constants.rbegin(); line != program.constants.rend(); ++line)
    for (auto entry = line->entries.rbegin(); entry != line->entries.rend(); ++entry)
      if (used.count(entry->first))
        forEachIdentifier(entry->second, [&](std::string_view word) { used.emplace(word); });
  std::set<std::string, std::less<>> gone;
  for (ConstantLine &line : program.constants)
    std::erase_if(line.entries, [&](const auto &entry) {
      if (used.count(entry.first)) return false;
      gone.insert(entry.first);
      return true;
    });
  pruneLaunchChecks(program.body, gone);
  std::erase_if(program.constants, [](const ConstantLine &line) { return line.entries.empty(); });
}

std::string print(const Program &program) {
  std::string text = fmt::format("program {}\n", program.entry);
  text += fmt::format("  mapping {}\n  launch <<<({}), ({}), {}>>>\n", program.mapping,
                      fmt::join(program.launch.grid, ", "), fmt::join(program.launch.block, ", "),
                      program.launch.sharedBytes);
  if (!program.clusterBlocks.empty())
    text += fmt::format("  clusters of {} blocks\n", program.launch.cluster);
  for (const ConstantLine &line : program.constants)
    for (const auto &[name, value] : line.entries)
      text += fmt::format("  constant {} : {} = {}\n", name, line.type, value);
  for (const Statement &global : program.globals)
    text += fmt::format("  global {} : {}\n", global.name, global.type);
  for (const Parameter &parameter : program.parameters)
    text += fmt::format("  parameter {} : {}\n", parameter.name, parameter.type);
  text += "body\n";
  printBlock(program.body, 1, text);
  return text;
}

}  // namespace weft::codegen
