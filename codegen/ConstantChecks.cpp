// Constants of a program as terms of launch checks; see ConstantChecks.h.
#include "codegen/ConstantChecks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace weft::codegen {
namespace {

/// Terms of one check, by what it is about, in order.
struct Subject {
  std::string what;
  std::vector<std::string> terms;
};

class ConstantChecks {
public:
  explicit ConstantChecks(Program &program) : program(program) {}

  void run() {
    const auto isCheck = [](const Statement &s) { return s.kind == Statement::Kind::launchCheck; };
    for (const Statement &s : program.body)
      if (isCheck(s)) present += checkText(s) + between;
    for (const ConstantLine &line : program.constants)
      for (const auto &[name, value] : line.entries) addConstant(line, name, value);
    for (const Statement &global : program.globals)
      add("device memory",
          fmt::format("sizeof({}) == sizeof({})", nameOf(global), typeText(global)));
    Block checks;
    for (const Subject &subject : subjects)
      checks.push_back(launchCheckOf({subject.terms.begin(), subject.terms.end()}, subject.what));
    const auto last = std::find_if(program.body.rbegin(), program.body.rend(), isCheck).base();
    program.body.insert(last, checks.begin(), checks.end());
  }

private:
  static std::string nameOf(const Statement &global) {
    return global.name.str().substr(0, global.name.str().find('['));
  }

  void add(const std::string &what, const std::string &term) {
    if (present.find(between + term + between) != std::string::npos) return;
    const auto found = std::ranges::find(subjects, what, &Subject::what);
    if (found != subjects.end()) found->terms.push_back(term);
    else subjects.push_back({.what = what, .terms = {term}});
  }

  void addConstant(const ConstantLine &line, const std::string &name, const ConstantValue &value) {
    if (line.subject.kind == ConstantSubject::Kind::unchecked) return;
    if (line.type == "int" || line.type == "weft::Offset") {
      const std::optional<int64_t> number = value.evaluate(known);
      // What is negative is data of the graph, on which no launch depends.
      if (!number || *number < 0) return;
      known.emplace(name, *number);
      add(textOf(line.subject), fmt::format("{} == {}", name, *number));
    } else if (value.kind() == ConstantValue::Kind::list) {
      addMembers(textOf(line.subject), name, value);
    }
  }

  /// Of `place`, a constant or a member of one: numbers, truth values, and lists of either.
  void addMembers(const std::string &what, const std::string &place, const ConstantValue &list) {
    const bool isNamed = !list.list().empty() && !list.list().front().name.empty();
    if (!isNamed) return addExtents(what, place, list);
    for (const ConstantMember &member : list.list()) {
      const bool isOperand = member.name == "a" || member.name == "b";
      const std::string at = fmt::format("{}.{}", place, member.name);
      if (member.value.kind() == ConstantValue::Kind::list)
        addMembers(isOperand ? "strides of operand " + member.name : what, at, member.value);
      else addLeaf(what, at, member.value);
    }
  }

  /// Of weft::sm90::Dimensions, "{{p, h}}".
  void addExtents(const std::string &what, const std::string &place, const ConstantValue &list) {
    const std::vector<ConstantMember> &outer = list.list();
    if (outer.size() != 1 || outer.front().value.kind() != ConstantValue::Kind::list) return;
    const std::vector<ConstantMember> &extents = outer.front().value.list();
    for (size_t index = 0; index < extents.size(); ++index)
      addLeaf(what, fmt::format("{}.extent[{}]", place, index), extents[index].value);
    add(what, fmt::format("{}.count() == {}", place, extents.size()));
  }

  void addLeaf(const std::string &what, const std::string &place, const ConstantValue &value) {
    if (value.kind() == ConstantValue::Kind::truth)
      return add(what, fmt::format("{} == {}", place, value.str()));
    if (const std::optional<int64_t> number = value.evaluate(known))
      add(what, fmt::format("{} == {}", place, *number));
  }

  Program &program;
  const std::string between = " && ";
  std::string present = between;  ///< terms that are checked already
  std::map<std::string, int64_t, std::less<>> known;
  std::vector<Subject> subjects;
};

}  // namespace

void addConstantChecks(Program &program) { ConstantChecks(program).run(); }

}  // namespace weft::codegen
