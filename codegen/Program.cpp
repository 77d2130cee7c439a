// Builders of statements, and the text form of kernel programs that people read with --stop-after
// lower.
#include "codegen/Program.h"

#include "kernel/Error.h"

#include <algorithm>
#include <iterator>

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
Statement declare(Code type, Code name, Code value, std::string note) {
  return {.kind = Statement::Kind::declare,
          .type = std::move(type),
          .name = std::move(name),
          .value = std::move(value),
          .note = std::move(note)};
}
Statement declareConstant(Code type, Code name, Code value, std::string note) {
  Statement result = declare(std::move(type), std::move(name), std::move(value), std::move(note));
  result.isConstant = true;
  return result;
}
std::string typeText(const Statement &declaration) {
  return (declaration.isConstant ? "const " : "") + declaration.type.str();
}
Statement assign(Code name, Code value, std::string note) {
  return {.kind = Statement::Kind::assign,
          .name = std::move(name),
          .value = std::move(value),
          .note = std::move(note)};
}
Statement evaluate(Code value) {
  return {.kind = Statement::Kind::evaluate, .value = std::move(value)};
}
Statement loop(Code variable, Code bound, int unroll, Block body) {
  return {.kind = Statement::Kind::loop,
          .name = std::move(variable),
          .value = std::move(bound),
          .body = std::move(body),
          .unroll = unroll};
}
Statement guard(Code condition, Block body) {
  return {.kind = Statement::Kind::guard, .value = std::move(condition), .body = std::move(body)};
}
Statement leave(Code condition) {
  return {.kind = Statement::Kind::leave, .value = std::move(condition)};
}

Statement launchCheckOf(std::vector<Code> terms, std::string what) {
  return {.kind = Statement::Kind::launchCheck, .note = std::move(what), .terms = std::move(terms)};
}

std::string checkText(const Statement &launchCheck) {
  return fmt::format("{}", fmt::join(launchCheck.terms, " && "));
}

Code asArgument(const Code &code) {
  const std::string &text = code.str();
  if (text.size() < 2 || text.front() != '(') return code;
  int depth = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return code;
  }
  return Code::composed(text.substr(1, text.size() - 2), {&code});
}

Code asOperand(const Code &text) {
  const Code bare = asArgument(text);
  return bare.str().find(' ') == std::string::npos ? bare : code("({})", bare);
}

namespace {

/// Adds what a statement reads, its body and the name that it declares aside.
void addReads(const Statement &s, Code::NameSet &used) {
  for (const Code *code : {&s.type, &s.value, &s.pointer, &s.width, &s.stride, &s.count,
                           &s.condition, &s.threads, &s.scratch})
    used.insert(code->names().begin(), code->names().end());
}

void addNames(const Block &block, Code::NameSet &used) {
  for (const Statement &s : block) {
    if (s.kind == Statement::Kind::launchCheck) continue;
    addReads(s, used);
    used.insert(s.name.names().begin(), s.name.names().end());
    addNames(s.body, used);
  }
}

/// Adds the names that a block needs from outside to `used`, dropping constants that nothing behind
/// them names.
void pruneDeclarations(Block &block, Code::NameSet &used) {
  Block kept;
  for (size_t i = block.size(); i-- > 0;) {
    Statement &s = block[i];
    const bool constant = s.kind == Statement::Kind::declare && s.isConstant;
    const bool load = s.kind == Statement::Kind::load && s.declares;
    if ((constant || load) && !used.contains(s.name.str())) continue;
    pruneDeclarations(s.body, used);
    if (constant || load) used.erase(s.name.str());
    else used.insert(s.name.names().begin(), s.name.names().end());
    addReads(s, used);
    kept.push_back(std::move(s));
  }
  block.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

/// Drops terms of launch checks that name one of `gone`, and checks without terms.
void pruneLaunchChecks(Block &block, const Code::NameSet &gone) {
  const auto isGone = [&](const std::string &name) { return gone.contains(name); };
  for (Statement &s : block)
    std::erase_if(s.terms,
                  [&](const Code &term) { return std::ranges::any_of(term.names(), isGone); });
  std::erase_if(block, [](const Statement &s) {
    return s.kind == Statement::Kind::launchCheck && s.terms.empty();
  });
}

std::string accessText(const Statement &statement) {
  switch (statement.access) {
    case Access::packed: return fmt::format("{} packed at {}", statement.width, statement.pointer);
    case Access::part:
      return fmt::format("{} packed at {} below {}", statement.width, statement.pointer,
                         statement.count);
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
      return s.value.empty() ? fmt::format("var {} : {}", s.name, typeText(s))
                             : fmt::format("let {} : {} = {}", s.name, typeText(s), s.value);
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
    case Kind::launchCheck: return fmt::format("check {}", checkText(s));
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

std::string textOf(const ConstantSubject &subject) {
  using Kind = ConstantSubject::Kind;
  switch (subject.kind) {
    case Kind::knobs: return "these knobs";
    case Kind::extents: return "these extents";
    case Kind::strides: return fmt::format("strides of {}", subject.of);
    case Kind::map: return fmt::format("map of {}, fastest first", subject.of);
    case Kind::places: return fmt::format("places of {}", subject.of);
    case Kind::subVectors: return "sub-vectors";
    case Kind::rotaryPairs: return "pairs of a rotary embedding";
    case Kind::unchecked: return "";
  }
  throw Error::checkFailed("constants of no subject");
}

void pruneUnused(Program &program) {
  Code::NameSet used;
  pruneDeclarations(program.body, used);
  used.clear();
  addNames(program.body, used);
  addNames(program.globals, used);
  for (const Code *code : {&program.launchBounds, &program.clusterBlocks})
    used.insert(code->names().begin(), code->names().end());
  for (auto line = program.constants.rbegin(); line != program.constants.rend(); ++line)
    for (auto entry = line->entries.rbegin(); entry != line->entries.rend(); ++entry)
      if (used.contains(entry->first))
        used.insert(entry->second.code().names().begin(), entry->second.code().names().end());
  Code::NameSet gone;
  for (ConstantLine &line : program.constants)
    std::erase_if(line.entries, [&](const auto &entry) {
      if (used.contains(entry.first)) return false;
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
  if (program.launch.workspaceBytes > 0)
    text += fmt::format("  workspace {} bytes\n", program.launch.workspaceBytes);
  for (const ConstantLine &line : program.constants)
    for (const auto &[name, value] : line.entries)
      text += fmt::format("  constant {} : {} = {}\n", name, line.type, value.str());
  for (const Statement &global : program.globals)
    text += fmt::format("  global {} : {}\n", global.name, typeText(global));
  for (const Parameter &parameter : program.parameters)
    text += fmt::format("  parameter {} : {}\n", parameter.name, parameter.type);
  text += "body\n";
  printBlock(program.body, 1, text);
  return text;
}

}  // namespace weft::codegen
