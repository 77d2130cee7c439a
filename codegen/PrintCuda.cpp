// Kernel program to CUDA C++: one spelling a statement, nothing decided.
#include "codegen/Program.h"

#include "kernel/LaunchCheck.h"
#include "kernel/PlainText.h"

#include <algorithm>
#include <optional>

namespace weft::codegen {
namespace {

constexpr size_t columnLimit = 118, noteColumn = 98, wrapColumn = 120;

/// How tightly the break at a space binds, less is better; nothing where a break would leave an
/// operator dangling.
std::optional<int> tightness(std::string_view code, size_t space) {
  const char before = code[space - 1], after = space + 1 < code.size() ? code[space + 1] : ' ';
  if (before == ',' || before == ';' || after == '?' || after == ':') return 0;
  if (std::string_view("&|").find(after) != std::string_view::npos) return 1;
  if (std::string_view("+-").find(after) != std::string_view::npos) return 2;
  if (std::string_view("*/%").find(after) != std::string_view::npos) return 3;
  return std::nullopt;
}

/// The space of the second half of `room` that is in the fewest parentheses and binds least; 0 if
/// there is none.
size_t breakOf(std::string_view code, size_t room) {
  size_t best = 0;
  for (size_t i = 1, depth = 0, least = code.size(); i < room && i < code.size(); ++i) {
    const bool opens = std::string_view("({[").find(code[i]) != std::string_view::npos ||
                       (code[i] == '<' && code[i - 1] != ' ');
    const bool closes = std::string_view(")}]").find(code[i]) != std::string_view::npos ||
                        (code[i] == '>' && code[i - 1] != ' ');
    if (opens) ++depth;
    else if (closes && depth > 0) --depth;
    const auto binding = code[i] == ' ' && i >= room / 2 ? tightness(code, i) : std::nullopt;
    if (!binding || depth * 4 + static_cast<size_t>(*binding) > least) continue;
    least = depth * 4 + static_cast<size_t>(*binding);
    best = i;
  }
  return best;
}

/// Code in lines of at most wrapColumn columns behind `indent`; the following ones stand four
/// columns further.
std::string wrapped(std::string rest, size_t indent) {
  std::string lines;
  for (size_t further = 0; rest.size() + indent + further > wrapColumn; further = 4) {
    const size_t at = breakOf(rest, wrapColumn - indent - further);
    if (at == 0) break;
    lines += rest.substr(0, at) + '\n' + std::string(indent + 4, ' ');
    rest.erase(0, at + 1);
  }
  return lines + rest;
}

class Printer {
public:
  std::string run(const Program &program) {
    for (const std::string &header : program.headers)
      text += fmt::format("#include \"{}\"\n", header);
    text += '\n';
    printConstants(program);
    printSignature(program);
    printBlock(program.body, 1);
    text += "}\n";
    return text;
  }

private:
  void printConstants(const Program &program) {
    if (program.constants.empty() && program.globals.empty()) return;
    text += "namespace {\n";
    for (const ConstantLine &line : program.constants) {
      std::vector<std::string> entries;
      for (const auto &[name, value] : line.entries)
        entries.push_back(fmt::format("{} = {}", name, value.str()));
      printLine(0, fmt::format("constexpr {} {};", line.type, fmt::join(entries, ", ")), line.note,
                52);
    }
    for (const Statement &global : program.globals)
      if (global.value.empty())
        printLine(0, fmt::format("__device__ {} {};", typeText(global), global.name), global.note,
                  52);
      else printTable(global);
    text += "}  // namespace\n\n";
  }

  /// A constant in device memory: its values in lines of wrapColumn columns.
  void printTable(const Statement &global) {
    if (!global.note.empty()) text += "// " + lineComment(global.note) + '\n';
    std::string line = fmt::format("__device__ {} {} = ", typeText(global), global.name);
    const std::string &value = global.value.str();
    for (size_t begin = 0; begin < value.size();) {
      const size_t end = std::min(value.find(' ', begin), value.size());
      if (line.size() + end - begin > wrapColumn) {
        line.resize(line.find_last_not_of(' ') + 1);
        text += line + '\n';
        line = "    ";
      }
      line += value.substr(begin, end - begin) + ' ';
      begin = end + 1;
    }
    line.back() = ';';
    text += line + '\n';
  }

  void printSignature(const Program &program) {
    const std::string cluster = program.clusterBlocks.empty()
                                    ? ""
                                    : fmt::format("__cluster_dims__({}) ", program.clusterBlocks);
    text += fmt::format("extern \"C\" __global__ void {}__launch_bounds__({})\n", cluster,
                        program.launchBounds);
    std::string line = program.entry + "(";
    const size_t indent = line.size();
    for (size_t i = 0; i < program.parameters.size(); ++i) {
      const Parameter &parameter = program.parameters[i];
      const bool last = i + 1 == program.parameters.size();
      const std::string piece = declaration(parameter, program.hasRestrict) + (last ? ") {" : ",");
      if (line.size() > indent && line.size() + 1 + piece.size() > columnLimit) {
        text += line + '\n';
        line = std::string(indent, ' ') + piece;
      } else {
        line += (line.size() > indent ? " " : "") + piece;
      }
    }
    text += line + '\n';
  }

  static std::string declaration(const Parameter &parameter, bool hasRestrict) {
    if (isMap(parameter.kind))
      return fmt::format("const __grid_constant__ {} {}", parameter.type, parameter.name);
    if (isNumber(parameter.kind)) return fmt::format("{} {}", parameter.type, parameter.name);
    return fmt::format("{}{} *{}{}", isWrittenTo(parameter.kind) ? "" : "const ", parameter.type,
                       hasRestrict ? "__restrict__ " : "", parameter.name);
  }

  /// One line, its note at `column` or right behind it.
  void printLine(int depth, const std::string &code, const std::string &rawNote = "",
                 size_t column = noteColumn) {
    const std::string note = lineComment(rawNote);
    const bool breaks = code.size() + 2 * depth > wrapColumn &&
                        code.find('\n') == std::string::npos && !code.starts_with('/');
    std::string line = std::string(2 * depth, ' ') + (breaks ? wrapped(code, 2 * depth) : code);
    const bool noteAbove = breaks || line.size() + 5 + note.size() > wrapColumn;
    if (noteAbove && !note.empty()) text += std::string(2 * depth, ' ') + "// " + note + '\n';
    if (!note.empty() && !noteAbove) {
      const size_t fitting = columnLimit > note.size() + 3 ? columnLimit - note.size() - 3 : 0;
      line.resize(std::max(std::min(column, fitting), line.size() + 2), ' ');
      line += "// " + note;
    }
    text += line + '\n';
  }

  void printBlock(const Block &block, int depth) {
    for (const Statement &statement : block) printStatement(statement, depth);
  }

  void printStatement(const Statement &s, int depth) {
    using Kind = Statement::Kind;
    switch (s.kind) {
      case Kind::comment: return printLine(depth, "// " + lineComment(s.note));
      case Kind::space: text += '\n'; return;
      case Kind::declare:
        return printLine(depth,
                         s.value.empty() ? fmt::format("{} {};", typeText(s), s.name)
                                         : fmt::format("{} {} = {};", typeText(s), s.name, s.value),
                         s.note);
      case Kind::assign: return printLine(depth, fmt::format("{} = {};", s.name, s.value), s.note);
      case Kind::evaluate: return printLine(depth, s.value + ";", s.note);
      case Kind::loop:
        printLine(0, s.unroll == 0 ? "#pragma unroll" : fmt::format("#pragma unroll {}", s.unroll));
        return printNested(s, depth,
                           fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", s.name, s.value));
      case Kind::guard: return printNested(s, depth, fmt::format("if ({})", s.value));
      case Kind::leave: return printLine(depth, fmt::format("if ({}) return;", s.value));
      case Kind::shared:
        return printLine(depth, fmt::format("__shared__ {} {};", s.type, s.name), s.note);
      case Kind::alias: return printLine(depth, fmt::format("using {} = {};", s.name, s.value));
      case Kind::function:
        printLine(depth, fmt::format("const auto {} = [=]({}) {{", s.name, s.type));
        printBlock(s.body, depth + 1);
        return printLine(depth, "};");
      case Kind::barrier: return printLine(depth, "weft::ptx::barrier();");
      case Kind::launchCheck:
        text += std::string(2 * depth, ' ') + launchCheck(checkText(s), s.note) + '\n';
        return;  // one line, however long
      case Kind::load: return printLoad(s, depth);
      case Kind::store: return printLine(depth, storeText(s), s.note);
      case Kind::reduce: return printLine(depth, reduceText(s), s.note);
    }
  }

  void printNested(const Statement &s, int depth, const std::string &head) {
    const bool simple =
        s.body.size() == 1 && s.body[0].body.empty() && s.body[0].kind != Statement::Kind::loop;
    printLine(depth, head + (simple ? "" : " {"));
    printBlock(s.body, depth + 1);
    if (!simple) printLine(depth, "}");
  }

  void printLoad(const Statement &s, int depth) {
    std::string call;
    switch (s.access) {
      case Access::packed:
        call = fmt::format("weft::{}{}<{}>({})", s.raw ? "loadPacked" : "loadVector",
                           s.inOrder ? "InOrder" : "", s.width, s.pointer);
        break;
      case Access::part:
        call = fmt::format("weft::loadPart<{}>({}, {})", s.width, s.pointer, s.count);
        break;
      case Access::strided:
        call = fmt::format("weft::loadStrided<{}>({}, {}{})", s.width, s.pointer,
                           asArgument(s.stride), s.count.empty() ? "" : ", " + s.count);
        break;
      case Access::single: call = fmt::format("weft::loadOne({})", s.pointer); break;
    }
    if (!s.condition.empty()) call = fmt::format("{} ? {} : {}", s.condition, call, s.value);
    printLine(depth, fmt::format("{}{} = {};", s.declares ? "const auto " : "", s.name, call),
              s.note);
  }

  static std::string storeText(const Statement &s) {
    switch (s.access) {
      case Access::packed:
        return fmt::format("weft::storeVector<{}>({}, {});", s.width, s.pointer, s.value);
      case Access::part:
        return fmt::format("weft::storePart<{}>({}, {}, {});", s.width, s.pointer, s.value,
                           s.count);
      case Access::strided:
        return fmt::format("weft::storeStrided<{}>({}, {}, {}{});", s.width, s.pointer,
                           asArgument(s.stride), s.value, s.count.empty() ? "" : ", " + s.count);
      case Access::single: return fmt::format("weft::storeOne({}, {});", s.pointer, s.value);
    }
    return "";
  }

  static std::string reduceText(const Statement &s) {
    const std::string function =
        fmt::format("{}{}", nameOf(s.across), s.reduction == Reduction::sum ? "Sum" : "Max");
    return fmt::format("{}{} = weft::{}<{}>({}{});", s.declares ? "const float " : "", s.name,
                       function, s.threads, s.value, s.scratch.empty() ? "" : ", " + s.scratch);
  }

  std::string text;
};

}  // namespace

std::string printCuda(const Program &program) { return Printer().run(program); }

}  // namespace weft::codegen
