// Graphs as lines: aliases `!t = tensor<2x16xf16, #weft.axes<b, j>>`, ops `%r = weft.op ... :
// types`, and a return; see GraphMutation.h. What does not look so is left alone, or changed as
// text.
#include "tests/fuzz/GraphMutation.h"

#include "tests/fuzz/TextMutation.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

namespace weft::fuzz {
namespace {

bool isNameLetter(char letter) {
  return std::isalnum(uint8_t(letter)) || letter == '_' || letter == '$';
}

/// Every occurrence as a whole word.
void replaceWord(std::string &text, const std::string &word, const std::string &by) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    const size_t end = at + word.size();
    const bool isWhole = (at == 0 || !isNameLetter(text[at - 1])) &&
                         (end == text.size() || !isNameLetter(text[end]));
    if (isWhole) text.replace(at, word.size(), by);
    at += isWhole ? by.size() : 1;
  }
}

/// All matches of a pattern in a text.
std::vector<std::pair<size_t, std::string>> matches(const std::string &text,
                                                    const std::regex &pattern) {
  std::vector<std::pair<size_t, std::string>> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern);
       at != std::sregex_iterator(); ++at)
    found.emplace_back(size_t(at->position()), at->str());
  return found;
}

const std::regex valuePattern("%[A-Za-z_0-9$]+"),
    numberPattern("\\b[0-9]+(\\.[0-9]+)?(e-?[0-9]+)?\\b"), aliasPattern("![A-Za-z_0-9]+"),
    opPattern("^ *(%[A-Za-z_0-9$]+)[^=]*= *\"?weft\\."), wordPattern("[A-Za-z_]+");

/// A tensor type of an alias: extents, element type, axes.
struct AliasLine {
  size_t line = 0;
  std::string name, dtype;
  std::vector<std::string> extents, axes;

  std::string text() const {
    std::string type = name + " = tensor<", names;
    for (const std::string &extent : extents) type += extent + "x";
    for (const std::string &axis : axes) names += (names.empty() ? "" : ", ") + axis;
    return type + dtype + ", #weft.axes<" + names + ">>\n";
  }
};

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  for (const char letter : text)
    if (letter == separator) parts.push_back(std::move(part)), part.clear();
    else if (letter != ' ') part += letter;
  parts.push_back(std::move(part));
  return parts;
}

std::vector<AliasLine> aliasesOf(const std::vector<std::string> &lines) {
  static const std::regex pattern("^(![A-Za-z_0-9]+) = tensor<([^,]*), #weft\\.axes<([^>]*)>>");
  std::vector<AliasLine> aliases;
  std::smatch match;
  for (size_t line = 0; line < lines.size(); ++line) {
    if (!std::regex_search(lines[line], match, pattern)) continue;
    AliasLine alias{.line = line,
                    .name = match[1],
                    .dtype = {},
                    .extents = split(match[2], 'x'),
                    .axes = split(match[3], ',')};
    alias.dtype = alias.extents.back();
    alias.extents.pop_back();
    if (alias.extents.size() == alias.axes.size()) aliases.push_back(std::move(alias));
  }
  return aliases;
}

/// Extents, element types and orders of axes, here or everywhere.
void mutateTypes(std::vector<std::string> &lines, Random &random) {
  std::vector<AliasLine> aliases = aliasesOf(lines);
  if (aliases.empty()) return;
  AliasLine &one = random.pick(aliases);
  static const std::vector<std::string> dtypes = {"f16", "f32",      "bf16",   "f64", "i32",
                                                  "i1",  "f8E4M3FN", "f8E5M2", "i64", "index"};
  const bool isEverywhere = !random.oneIn(3);
  const auto forAll = [&](const auto &change) {
    if (!isEverywhere) change(one);
    else std::ranges::for_each(aliases, change);
  };
  const size_t dimension = random.below(one.axes.size());
  switch (random.below(4)) {
    case 0:
    case 1: {  // the extent of one axis
      if (one.axes.empty()) break;
      const std::string axis = one.axes[dimension];
      const std::string extent =
          random.oneIn(3) ? hostileNumber(random) : std::to_string(1 + random.below(40));
      forAll([&](AliasLine &alias) {
        for (size_t i = 0; i < alias.axes.size(); ++i)
          if (alias.axes[i] == axis) alias.extents[i] = extent;
      });
      break;
    }
    case 2: {
      const std::string from = one.dtype, to = random.pick(dtypes);
      forAll([&](AliasLine &alias) { alias.dtype = alias.dtype == from ? to : alias.dtype; });
      break;
    }
    default:  // the order of dimensions, or one of them gone or doubled
      if (one.axes.empty()) break;
      const size_t other = random.below(one.axes.size());
      if (random.oneIn(3)) {
        one.axes.erase(one.axes.begin() + ptrdiff_t(dimension));
        one.extents.erase(one.extents.begin() + ptrdiff_t(dimension));
      } else if (random.oneIn(2)) {
        one.axes.push_back(one.axes[other]);
        one.extents.push_back(std::string(one.extents[other]));
      } else {
        std::swap(one.axes[dimension], one.axes[other]);
        std::swap(one.extents[dimension], one.extents[other]);
      }
  }
  for (const AliasLine &alias : aliases) lines[alias.line] = alias.text();
}

/// An axis of another name, everywhere, in einsums too.
void renameAxis(std::string &text, Random &random) {
  static const std::vector<std::string> names = {
      "a",      "b",   "h", "i", "j", "k", "p", "u", "w", "z", "A", "batch", "\"head dim\"",
      "\"*/\"", "\"\""};
  const std::vector<AliasLine> aliases = aliasesOf(linesOf(text));
  if (aliases.empty()) return;
  const AliasLine &one = random.pick(aliases);
  if (one.axes.empty()) return;
  const std::string from = random.pick(one.axes), to = random.pick(names);
  static const std::regex einsum("\"[A-Za-z,]+->[A-Za-z]*\"");
  if (from.size() == 1 && to.size() == 1)
    for (const auto &[at, spec] : matches(text, einsum))
      std::ranges::replace(text.begin() + ptrdiff_t(at), text.begin() + ptrdiff_t(at + spec.size()),
                           from[0], to[0]);
  replaceWord(text, from, to);
}

/// Lines that compute something.
std::vector<size_t> opLines(const std::vector<std::string> &lines) {
  std::vector<size_t> found;
  for (size_t line = 0; line < lines.size(); ++line)
    if (std::regex_search(lines[line], opPattern)) found.push_back(line);
  return found;
}

std::string resultOf(const std::string &line) {
  std::smatch match;
  return std::regex_search(line, match, opPattern) ? match[1].str() : "";
}

/// The alias of an op's first result: behind the arrow if there is one, else the first type.
std::string typeOf(const std::string &line) {
  const size_t colon = line.rfind(" : "), arrow = line.rfind("->");
  if (colon == std::string::npos) return "";
  const auto found = matches(
      line.substr(arrow != std::string::npos && arrow > colon ? arrow : colon), aliasPattern);
  return found.empty() ? "" : found.front().second;
}

/// Another operand: of this line, or any value of the graph.
void mutateOperand(std::vector<std::string> &lines, Random &random) {
  const std::vector<size_t> ops = opLines(lines);
  if (ops.empty()) return;
  std::string &line = lines[random.pick(ops)];
  const auto used = matches(line, valuePattern);
  if (used.size() < 2) return;
  const auto &[at, old] = used[1 + random.below(used.size() - 1)];
  std::vector<std::pair<size_t, std::string>> defined;
  if (random.oneIn(2)) defined = used;
  else defined = matches(joined(lines), valuePattern);
  line.replace(at, old.size(), random.pick(defined).second);
}

/// An op leaves; its readers read its first operand.
void dropOp(std::vector<std::string> &lines, Random &random) {
  const std::vector<size_t> ops = opLines(lines);
  if (ops.empty()) return;
  const size_t line = random.pick(ops);
  const auto used = matches(lines[line], valuePattern);
  std::string text = joined([&] {
    std::vector<std::string> rest = lines;
    rest.erase(rest.begin() + ptrdiff_t(line));
    return rest;
  }());
  if (used.size() > 1) replaceWord(text, used.front().second, used[1].second);
  lines = linesOf(text);
}

/// The same op once more behind itself, under a new name; or an op on its result, read in its
/// place.
void addOp(std::vector<std::string> &lines, Random &random) {
  static const std::vector<std::string> unary = {"relu",    "gelu", "gelu_tanh", "silu",    "tanh",
                                                 "sigmoid", "exp",  "rsqrt",     "identity"};
  const std::vector<size_t> ops = opLines(lines);
  if (ops.empty()) return;
  const size_t line = random.pick(ops);
  const std::string result = resultOf(lines[line]), type = typeOf(lines[line]);
  const std::string fresh = "%fresh" + std::to_string(random.below(1000));
  if (type.empty()) return;
  std::string added;
  switch (random.below(5)) {
    case 0: {
      added = lines[line];
      replaceWord(added, result, fresh);
      break;
    }
    case 1:
      added = "    " + fresh + " = weft.add " + result + ", " + result + " : " + type + "\n";
      break;
    case 2:
      added = "    " + fresh + " = weft.dropout " + result +
              " {p = 0.5, stream = " + std::to_string(random.below(3)) + "} : " + type + "\n";
      break;
    case 3:
      added = "    " + fresh + " = weft.scale " + result +
              " {factor = " + (random.oneIn(2) ? "0.5" : hostileNumber(random)) + "} : " + type +
              "\n";
      break;
    default:
      added = "    " + fresh + " = weft." + random.pick(unary) + " " + result + " : " + type + "\n";
  }
  std::vector<std::string> rest(lines.begin() + ptrdiff_t(line) + 1, lines.end());
  std::string after = joined(rest);
  if (!random.oneIn(4)) replaceWord(after, result, fresh);
  lines.resize(line + 1);
  lines.push_back(added);
  for (std::string &next : linesOf(after)) lines.push_back(std::move(next));
}

/// Another result, or one more, or one less; the signature follows, mostly.
void mutateResults(std::vector<std::string> &lines, Random &random) {
  const std::vector<size_t> ops = opLines(lines);
  const auto back = std::ranges::find_if(
      lines, [](const std::string &line) { return line.find("weft.return") != std::string::npos; });
  const auto head = std::ranges::find_if(lines, [](const std::string &line) {
    return line.find("weft.graph @") != std::string::npos;
  });
  if (ops.empty() || back == lines.end() || head == lines.end()) return;
  const size_t colon = back->find(" : "), arrow = head->rfind("->");
  if (colon == std::string::npos || arrow == std::string::npos) return;
  std::vector<std::string> values = split(
      back->substr(back->find("weft.return") + 11, colon - back->find("weft.return") - 11), ',');
  std::vector<std::string> types;
  for (const auto &[at, type] : matches(back->substr(colon), aliasPattern)) types.push_back(type);
  if (values.size() != types.size() || values.empty()) return;
  const std::string &op = lines[random.pick(ops)];
  const size_t index = random.below(values.size());
  switch (random.below(3)) {
    case 0:
      values.push_back(resultOf(op));
      types.push_back(typeOf(op));
      break;
    case 1:
      values[index] = resultOf(op);
      types[index] = typeOf(op);
      break;
    default:
      values.erase(values.begin() + ptrdiff_t(index));
      types.erase(types.begin() + ptrdiff_t(index));
  }
  const auto list = [](const std::vector<std::string> &names) {
    std::string text;
    for (const std::string &name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  };
  *back =
      "    weft.return" + (values.empty() ? "" : " " + list(values) + " : " + list(types)) + "\n";
  if (!random.oneIn(10)) *head = head->substr(0, arrow) + "-> (" + list(types) + ") {\n";
}

/// Letters of an einsum, a number, or a keyword of one op.
void mutateAttribute(std::vector<std::string> &lines, Random &random) {
  const std::vector<size_t> ops = opLines(lines);
  if (ops.empty()) return;
  std::string &line = lines[random.pick(ops)];
  static const std::regex einsum("\"[A-Za-z,]+->[A-Za-z]*\"");
  const auto specs = matches(line, einsum);
  if (!specs.empty() && random.oneIn(2)) {
    const auto &[at, spec] = specs.front();
    std::string changed = spec.substr(1, spec.size() - 2);
    const size_t letter = random.below(changed.size()), other = random.below(changed.size());
    switch (random.below(4)) {
      case 0: std::swap(changed[letter], changed[other]); break;
      case 1: changed.erase(letter, 1); break;
      case 2: changed.insert(letter, 1, changed[other]); break;
      default: changed[letter] = char('a' + random.below(26));
    }
    line.replace(at, spec.size(), "\"" + changed + "\"");
    return;
  }
  const auto numbers = matches(line, random.oneIn(2) ? numberPattern : wordPattern);
  if (numbers.empty()) return;
  const auto &[at, old] = random.pick(numbers);
  line.replace(at, old.size(),
               std::isdigit(uint8_t(old[0])) ? hostileNumber(random) : random.pick(graphWords()));
}

/// Parameters become arguments and the other way round.
void mutateParameter(std::string &text, Random &random) {
  static const std::regex pattern("( \\{weft\\.parameter\\})?(?=[,)])");
  const auto found = matches(text.substr(0, text.find("{\n")), pattern);
  if (found.empty()) return;
  const auto &[at, old] = random.pick(found);
  text.replace(at, old.size(), old.empty() ? " {weft.parameter}" : "");
}

}  // namespace

void mutateGraph(std::string &text, Random &random) {
  // std::regex recurses at each letter of what it matches: an earlier mutation made a word so long.
  constexpr size_t longestLine = 4000;
  if (std::ranges::any_of(linesOf(text),
                          [](const std::string &line) { return line.size() > longestLine; }))
    return;
  const auto onLines = [&](void (*mutate)(std::vector<std::string> &, Random &)) {
    std::vector<std::string> lines = linesOf(text);
    mutate(lines, random);
    text = joined(lines);
  };
  switch (random.below(12)) {
    case 0:
    case 1: return onLines(mutateTypes);
    case 2: return renameAxis(text, random);
    case 3:
    case 4: return onLines(mutateOperand);
    case 5: return onLines(dropOp);
    case 6:
    case 7: return onLines(addOp);
    case 8: return onLines(mutateResults);
    case 9: return mutateParameter(text, random);
    default: return onLines(mutateAttribute);
  }
}

const std::vector<std::string> &graphWords() {
  static const std::vector<std::string> words = {"weft.contract",
                                                 "weft.bias",
                                                 "weft.softmax",
                                                 "weft.dropout",
                                                 "weft.layer_norm",
                                                 "weft.rms_norm",
                                                 "weft.relu",
                                                 "weft.gelu",
                                                 "weft.add",
                                                 "weft.mul",
                                                 "weft.residual",
                                                 "weft.mask",
                                                 "weft.scale",
                                                 "weft.rotary",
                                                 "weft.transpose",
                                                 "weft.concat",
                                                 "weft.slice",
                                                 "weft.broadcast",
                                                 "weft.reduce",
                                                 "weft.cast",
                                                 "weft.gather",
                                                 "weft.select",
                                                 "weft.constant",
                                                 "weft.return",
                                                 "weft.graph",
                                                 "weft.kernel",
                                                 "weft.yield",
                                                 "weft.parameter",
                                                 "weft.initial",
                                                 "weft.saved",
                                                 "weft.cross_entropy",
                                                 "weft.identity",
                                                 "weft.one_hot",
                                                 "tensor",
                                                 "dense",
                                                 "module",
                                                 "along",
                                                 "over",
                                                 "causal",
                                                 "window",
                                                 "padding",
                                                 "tokens",
                                                 "max",
                                                 "sum",
                                                 "mean",
                                                 "zero",
                                                 "style",
                                                 "interleaved",
                                                 "halved",
                                                 "scale",
                                                 "factor",
                                                 "epsilon",
                                                 "empty_row",
                                                 "stream",
                                                 "p",
                                                 "b",
                                                 "h",
                                                 "i",
                                                 "j",
                                                 "k",
                                                 "u",
                                                 "w",
                                                 "f16",
                                                 "f32",
                                                 "bf16",
                                                 "i32",
                                                 "i1",
                                                 "f8E4M3FN",
                                                 "?",
                                                 "->",
                                                 "{",
                                                 "}",
                                                 "(",
                                                 ")",
                                                 "<",
                                                 ">",
                                                 "true",
                                                 "unit",
                                                 "[]",
                                                 "[0, 0]",
                                                 "#weft.axes<>",
                                                 "!bji",
                                                 "%x",
                                                 "@f",
                                                 "loc(unknown)",
                                                 "-",
                                                 "0xFF800000",
                                                 "0x7FC00000"};
  return words;
}

}  // namespace weft::fuzz
