// Lines of configurations. Fields that have their default value are left out, so that a field added
// later with a default that means "as before" leaves older lines valid.
#include "kernel/ConfigurationText.h"

#include "kernel/CanonicalNames.h"
#include "kernel/Error.h"
#include "kernel/Schedule.h"
#include "kernel/UnusedTokens.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <span>
#include <type_traits>

namespace weft {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) fields.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return fields;
}

template <typename Integer>
Integer parseInteger(std::string_view text, std::string_view what) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error::badInput("'{}' is no number ({})", text, what);
  return value;
}

/// The fields "name=value" of a line, each read once.
class FieldReader {
public:
  explicit FieldReader(std::string_view text) {
    for (const std::string_view field : split(text, ' ')) {
      const size_t equals = field.find('=');
      if (equals == std::string_view::npos) throw Error::badInput("knob '{}' has no value", field);
      if (!fields.emplace(field.substr(0, equals), field.substr(equals + 1)).second)
        throw Error::badInput("knob '{}' occurs twice", field.substr(0, equals));
    }
  }
  std::optional<std::string_view> take(std::string_view name) {
    const auto found = fields.find(name);
    if (found == fields.end()) return std::nullopt;
    const std::string_view text = found->second;
    fields.erase(found);
    return text;
  }
  void rejectOthers() const {
    if (!fields.empty()) throw Error::badInput("unknown knob '{}'", fields.begin()->first);
  }

private:
  std::map<std::string_view, std::string_view> fields;
};

/// Of a line of any kernel, where `kernel` is null, axes are not looked up.
int parseAxis(std::string_view name, std::string_view text, const Kernel *kernel) {
  const bool isAxis = text.size() > 1 && text.front() == 'a';
  if (!isAxis && !kernel)
    throw Error::badInput("knob '{}': '{}' is no axis; axes are a0, a1, ...", name, text);
  const auto index = isAxis ? parseInteger<size_t>(text.substr(1), name) : size_t(-1);
  if (!kernel) return -1;
  const CanonicalNames names(*kernel);
  if (index >= names.axesInOrder().size())
    throw Error::badInput("knob '{}': '{}' is no axis of '{}'", name, text, kernel->name);
  return names.axesInOrder()[index];
}

int parseValue(const ScheduleField &field, std::string_view text, const Kernel *kernel) {
  switch (field.kind) {
    case ScheduleField::Kind::integer: return parseInteger<int>(text, field.rowName);
    case ScheduleField::Kind::axis: return parseAxis(field.rowName, text, kernel);
    case ScheduleField::Kind::choice: break;
  }
  const std::optional<int> value = choiceNamed(field, text);
  if (!value)
    throw Error::badInput("knob '{}': unknown {} '{}', not one of {}", field.rowName, field.noun,
                          text, choicesText(field));
  return *value;
}

Knobs knobsOf(std::string_view name, std::string_view text, const Kernel *kernel) {
  const Family *family = familyNamed(name);
  if (!family || family->isView)  // views have no lines
    throw Error::badInput("unknown kernel family '{}'", name);
  FieldReader reader(text);
  Knobs knobs = family->defaults();
  for (const ScheduleField &field : family->schedule)
    if (const auto value = reader.take(field.rowName))
      field.set(knobs, parseValue(field, *value, kernel));
  reader.rejectOthers();
  return knobs;
}

constexpr std::string_view dimensionDigits = "0123456789abcdefghijklmnopqrstuvwxyz";

/// The pitch unit behind a layout's '~', which it takes off the text; 1 where there is none.
int64_t takePitchUnit(std::string_view &layout) {
  const size_t tilde = layout.find('~');
  if (tilde == std::string_view::npos) return 1;
  const auto unit = parseInteger<int64_t>(layout.substr(tilde + 1), "pitch unit");
  if (unit < 2) throw Error::badInput("layout '{}': its pitch unit is below 2", layout);
  layout = layout.substr(0, tilde);
  return unit;
}

/// Dimensions of extent 1 change no address: they come first, ascending, so that equal layouts have
/// one text.
std::string layoutText(const Layout &layout, const Kernel &kernel, ValueId value) {
  const std::vector<AxisId> &axes = kernel.values[static_cast<size_t>(value)].axes;
  std::vector<int> order = layout.order;
  const auto large = std::stable_partition(order.begin(), order.end(), [&](int dimension) {
    return kernel.axes[static_cast<size_t>(axes[static_cast<size_t>(dimension)])].extent == 1;
  });
  std::sort(order.begin(), large);
  std::string text;
  for (const int dimension : order) text += dimensionDigits.at(static_cast<size_t>(dimension));
  if (order.empty()) text = "-";
  if (!layout.strides.empty()) text += fmt::format("[{}]", fmt::join(layout.strides, "/"));
  if (layout.isPadded()) text += fmt::format("~{}", layout.pitchUnit);
  return text;
}

Layout parseLayout(std::string_view text, const Kernel &kernel, ValueId value) {
  const size_t rank = kernel.values[static_cast<size_t>(value)].axes.size();
  Layout layout;
  layout.pitchUnit = takePitchUnit(text);
  const size_t bracket = std::min(text.find('['), text.size());
  if (text.substr(0, bracket) != "-")
    for (const char digit : text.substr(0, bracket))
      layout.order.push_back(static_cast<int>(dimensionDigits.find(digit)));
  std::vector<int> sorted = layout.order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != rowMajor(rank).order)
    throw Error::badInput("layout '{}' does not order the {} dimensions of '{}'", text, rank,
                          kernel.values[static_cast<size_t>(value)].name);
  if (bracket == text.size()) return layout;
  if (text.back() != ']') throw Error::badInput("layout '{}' lacks its closing bracket", text);
  for (const std::string_view stride :
       split(text.substr(bracket + 1, text.size() - bracket - 2), '/'))
    layout.strides.push_back(parseInteger<int64_t>(stride, "stride"));
  if (layout.strides.size() != rank)
    throw Error::badInput("layout '{}' needs {} strides", text, rank);
  return layout;
}

/// "64" or "64x512/524288".
GroupFactors parseGroup(std::string_view text) {
  GroupFactors factors;
  for (size_t slash = text.find('/'); slash != std::string_view::npos; slash = text.find('/')) {
    const std::string_view factor = text.substr(0, slash);
    const size_t times = factor.find('x');
    if (times == std::string_view::npos)
      throw Error::badInput("stride '{}' lacks the extent that another one follows", factor);
    factors.push_back(
        {.extent = parseInteger<int64_t>(factor.substr(times + 1), "extent of a stride"),
         .stride = parseInteger<int64_t>(factor.substr(0, times), "stride")});
    text.remove_prefix(slash + 1);
  }
  factors.push_back({.stride = parseInteger<int64_t>(text, "stride")});
  return factors;
}

std::string groupText(const GroupFactors &group) {
  std::string text;
  for (size_t i = 0; i < group.size(); ++i)
    text += i + 1 < group.size() ? fmt::format("{}x{}/", group[i].stride, group[i].extent)
                                 : fmt::to_string(group[i].stride);
  return text.empty() ? "0" : text;
}

/// What a configuration is as a GEMM, where it is timed as one.
struct TimedGemm {
  StridedBatchedGemm extents;  ///< strides too, where each group has one
  std::string place;
};
/// Several strides along a group are taken by some families alone.
TimedGemm timedGemm(const Kernel &kernel, const Configuration &configuration) {
  if (const auto gemm = stridedBatchedGemm(kernel, configuration))
    return {.extents = *gemm, .place = strideText(*gemm)};
  const auto factored = multiStrideGemm(kernel, configuration);
  if (!factored || !configuration.knobs.family().severalStrides)
    throw Error::checkFailed("kernel '{}': these layouts are not one strided GEMM", kernel.name);
  const auto &[batch, m, n, k] = factored->extents;
  return {.extents = {.batch = batch, .m = m, .n = n, .k = k}, .place = strideText(*factored)};
}

/// Every layout orders as many dimensions as it has.
void checkLayouts(std::string_view text) {
  const size_t arrow = text.find('>');
  if (arrow == std::string_view::npos)
    throw Error::badInput("layouts '{}' lack the '>' before the outputs", text);
  for (const std::string_view operands : {text.substr(0, arrow), text.substr(arrow + 1)}) {
    for (std::string_view layout : split(operands, ',')) {
      takePitchUnit(layout);
      const size_t bracket = std::min(layout.find('['), layout.size());
      const std::string_view order = layout.substr(0, bracket);
      uint64_t seen = 0;
      for (const char digit : order == "-" ? std::string_view() : order)
        if (const size_t dimension = dimensionDigits.find(digit); dimension < order.size())
          seen |= uint64_t(1) << dimension;
      if (order != "-" && (order.empty() || std::popcount(seen) != int(order.size())))
        throw Error::badInput("layout '{}' orders no dimensions", layout);
      if (bracket == layout.size()) continue;
      if (layout.back() != ']')
        throw Error::badInput("layout '{}' lacks its closing bracket", layout);
      for (const std::string_view stride :
           split(layout.substr(bracket + 1, layout.size() - bracket - 2), '/'))
        parseInteger<int64_t>(stride, "stride");
    }
  }
}

std::string layoutsText(const Kernel &kernel, const Configuration &configuration) {
  std::vector<std::string> inputs, outputs;
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    inputs.push_back(layoutText(configuration.inputs.at(i), kernel, kernel.inputs[i]));
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    outputs.push_back(layoutText(configuration.outputs.at(i), kernel, kernel.outputs[i]));
  return fmt::format("{}>{}", fmt::join(inputs, ","), fmt::join(outputs, ","));
}

}  // namespace

ProfileSubject kernelSubject(const Kernel &kernel) {
  return {.text = canonicalText(kernel), .name = kernel.name};
}

ProfileSubject gemmSubject(const GemmTypes &types, const StridedBatchedGemm &gemm) {
  const std::string text =
      fmt::format("gemm {} {} x {} x {} x {}", nameOf(types), gemm.batch, gemm.m, gemm.n, gemm.k);
  return {.text = text, .name = text};
}

std::string strideText(const StridedBatchedGemm &gemm) {
  return fmt::format("{},{}:{}_{},{}:{}>{},{}:{}", gemm.strideAm, gemm.strideAk, gemm.batchStrideA,
                     gemm.strideBk, gemm.strideBn, gemm.batchStrideB, gemm.strideCm, gemm.strideCn,
                     gemm.batchStrideC);
}

std::string strideText(const MultiStrideGemm &gemm) {
  const auto &[a, b, c] = std::tie(gemm.a, gemm.b, gemm.c);
  return fmt::format("{},{}:{}_{},{}:{}>{},{}:{}", groupText(a[mGroup]), groupText(a[kGroup]),
                     groupText(a[batchGroup]), groupText(b[kGroup]), groupText(b[nGroup]),
                     groupText(b[batchGroup]), groupText(c[mGroup]), groupText(c[nGroup]),
                     groupText(c[batchGroup]));
}

std::optional<MultiStrideGemm> parseStrides(std::string_view place) {
  if (place.find('_') == std::string_view::npos) return std::nullopt;
  MultiStrideGemm gemm;
  auto &[extents, a, b, c] = gemm;
  const std::array groups = {&a[mGroup],     &a[kGroup], &a[batchGroup], &b[kGroup],    &b[nGroup],
                             &b[batchGroup], &c[mGroup], &c[nGroup],     &c[batchGroup]};
  constexpr std::string_view separators = ",:_,:>,:";
  std::string_view rest = place;
  for (size_t i = 0; i < groups.size(); ++i) {
    const size_t end = i < separators.size() ? rest.find(separators[i]) : rest.size();
    if (end == std::string_view::npos)
      throw Error::badInput("strides '{}' lack a '{}'", place, separators[i]);
    *groups[i] = parseGroup(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return gemm;
}

std::string gemmLine(std::string_view place, const Knobs &knobs) {
  return fmt::format("{} {}{}", knobs.family(), place,
                     scheduleText(knobs, CanonicalNames(Kernel{})));
}
std::string gemmLine(const StridedBatchedGemm &gemm, const Knobs &knobs) {
  return gemmLine(strideText(gemm), knobs);
}

bool isTimedAsGemm(const Kernel &kernel, const Family &family) {
  return family.isGemm && kernel.body.size() == 1 && !summedTokens(kernel);
}

std::string placeText(const Kernel &kernel, const Configuration &configuration) {
  return isTimedAsGemm(kernel, configuration.knobs.family())
             ? timedGemm(kernel, configuration).place
             : layoutsText(kernel, configuration);
}

std::string configurationLine(const Kernel &kernel, const Configuration &configuration) {
  const std::string place = placeText(kernel, configuration);
  if (configuration.knobs.family().isGemm) return gemmLine(place, configuration.knobs);
  const CanonicalNames names(kernel);
  return fmt::format("{} {}{}", configuration.knobs.family(), place,
                     scheduleText(configuration.knobs, names));
}

ProfileSubject subjectOf(const Kernel &kernel, const Configuration &configuration) {
  if (!isTimedAsGemm(kernel, configuration.knobs.family())) return kernelSubject(kernel);
  return gemmSubject(gemmTypes(kernel), timedGemm(kernel, configuration).extents);
}

LineFields splitLine(std::string_view line) {
  const size_t first = line.find(' ');
  if (first == std::string_view::npos)
    throw Error::badInput("'{}' is no configuration: family, layouts and knobs", line);
  const size_t second = std::min(line.find(' ', first + 1), line.size());
  return {.family = line.substr(0, first),
          .layouts = line.substr(first + 1, second - first - 1),
          .knobs = line.substr(std::min(second + 1, line.size()))};
}

std::vector<Layout> parseLayouts(std::string_view text, const Kernel &kernel) {
  const size_t arrow = text.find('>');
  if (arrow == std::string_view::npos)
    throw Error::badInput("layouts '{}' lack the '>' before the outputs", text);
  const auto inputs = split(text.substr(0, arrow), ','),
             outputs = split(text.substr(arrow + 1), ',');
  if (inputs.size() != kernel.inputs.size() || outputs.size() != kernel.outputs.size())
    throw Error::badInput("layouts '{}' do not fit the {} inputs and {} outputs of '{}'", text,
                          kernel.inputs.size(), kernel.outputs.size(), kernel.name);
  std::vector<Layout> layouts;
  for (size_t i = 0; i < inputs.size(); ++i)
    layouts.push_back(parseLayout(inputs[i], kernel, kernel.inputs[i]));
  for (size_t i = 0; i < outputs.size(); ++i)
    layouts.push_back(parseLayout(outputs[i], kernel, kernel.outputs[i]));
  return layouts;
}

Knobs parseKnobs(std::string_view family, std::string_view text, const Kernel &kernel) {
  return knobsOf(family, text, &kernel);
}

void checkLine(std::string_view line) {
  const LineFields fields = splitLine(line);
  const Knobs knobs = knobsOf(fields.family, fields.knobs, nullptr);
  if (!knobs.family().isGemm || !parseStrides(fields.layouts)) checkLayouts(fields.layouts);
}

Configuration parseConfiguration(std::string_view line, const Kernel &kernel) {
  const LineFields fields = splitLine(line);
  const std::vector<Layout> layouts = parseLayouts(fields.layouts, kernel);
  const auto outputs = layouts.begin() + static_cast<ptrdiff_t>(kernel.inputs.size());
  return {.inputs = {layouts.begin(), outputs},
          .outputs = {outputs, layouts.end()},
          .knobs = parseKnobs(fields.family, fields.knobs, kernel)};
}

}  // namespace weft
