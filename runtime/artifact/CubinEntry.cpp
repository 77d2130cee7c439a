// Reads the ELF file of a cubin as far as a launch depends on it; see CubinEntry.h.
#include "runtime/artifact/CubinEntry.h"

#include "kernel/Error.h"
#include "plan/CheckedSizes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace weft::runtime {
namespace {

// Attributes of .nv.info: one byte of format, one of attribute, two of value or size.
constexpr int sizedFormat = 4;
constexpr int maximumThreads = 0x05, requiredThreads = 0x10, parameterInfo = 0x17,
              parametersSize = 0x19, registerCount = 0x2f;
constexpr uint64_t headerBytes = 64, sectionBytes = 64, symbolBytes = 24, parameterInfoBytes = 12;
constexpr uint32_t symbolTable = 2;
constexpr int parameterSizeShift = 18;  // of the last word of parameterInfo
constexpr int functionType = 2, globalBinding = 1;
constexpr uint8_t kernelFlag = 0x10;  // of a symbol's other byte

struct Section {
  std::string name;
  std::string_view content;
  uint32_t type = 0, link = 0;
};

class Elf {
public:
  explicit Elf(std::string_view bytes) : bytes(bytes) {
    const auto table = number<uint64_t>(40);
    const auto each = number<uint16_t>(58), count = number<uint16_t>(60),
               names = number<uint16_t>(62);
    if (count > 0 && each != sectionBytes) fail();
    std::vector<uint32_t> nameAt;
    for (uint64_t index = 0; index < count; ++index) {
      const uint64_t at = table + index * sectionBytes;
      constexpr uint32_t withoutContent = 8;
      const auto type = number<uint32_t>(at + 4);
      const bool isEmpty = type == withoutContent || type == 0;
      sections.push_back(
          {.name = {},
           .content = isEmpty ? std::string_view()
                              : part(number<uint64_t>(at + 24), number<uint64_t>(at + 32)),
           .type = type,
           .link = number<uint32_t>(at + 40)});
      nameAt.push_back(number<uint32_t>(at));
    }
    if (names >= sections.size()) return;
    for (size_t index = 0; index < sections.size(); ++index)
      sections[index].name = textAt(sections[names].content, nameAt[index]);
  }

  const Section *find(std::string_view name) const {
    const auto found = std::ranges::find(sections, name, &Section::name);
    return found == sections.end() ? nullptr : &*found;
  }

  struct Symbol {
    std::string name;
    uint32_t index = 0;
    bool isGlobal = false, isKernel = false;
  };
  std::vector<Symbol> functions() const {
    std::vector<Symbol> found;
    for (const Section &section : sections) {
      if (section.type != symbolTable || section.link >= sections.size()) continue;
      for (uint32_t index = 0; (index + 1) * symbolBytes <= section.content.size(); ++index) {
        const std::string_view entry = section.content.substr(index * symbolBytes, symbolBytes);
        const auto info = static_cast<uint8_t>(entry[4]), other = static_cast<uint8_t>(entry[5]);
        if ((info & 0xf) != functionType) continue;
        found.push_back({.name = textAt(sections[section.link].content, read<uint32_t>(entry, 0)),
                         .index = index,
                         .isGlobal = info >> 4 == globalBinding,
                         .isKernel = (other & kernelFlag) != 0});
      }
    }
    return found;
  }

  /// Attributes of a section of .nv.info with a separate content.
  static std::vector<std::pair<int, std::string_view>> attributes(std::string_view content) {
    std::vector<std::pair<int, std::string_view>> found;
    while (content.size() >= 4) {
      const int format = static_cast<uint8_t>(content[0]),
                attribute = static_cast<uint8_t>(content[1]);
      const size_t size = format == sizedFormat ? read<uint16_t>(content, 2) : 2;
      const size_t at = format == sizedFormat ? 4 : 2;
      if (at + size > content.size()) fail();
      found.emplace_back(attribute, content.substr(at, size));
      content.remove_prefix(at + size);
    }
    return found;
  }

  template <typename Number>
  static Number read(std::string_view from, uint64_t at) {
    if (at > from.size() || from.size() - at < sizeof(Number)) fail();
    Number value;
    std::memcpy(&value, from.data() + at, sizeof value);
    return value;
  }

private:
  [[noreturn]] static void fail() { throw Error::badInput("it is a damaged ELF file"); }
  template <typename Number>
  Number number(uint64_t at) const {
    return read<Number>(bytes, at);
  }
  std::string_view part(uint64_t at, uint64_t size) const {
    if (at > bytes.size() || bytes.size() - at < size) fail();
    return bytes.substr(at, size);
  }
  static std::string textAt(std::string_view names, uint64_t at) {
    if (at >= names.size()) fail();
    return std::string(names.substr(at, names.find('\0', at) - at));
  }

  const std::string_view bytes;
  std::vector<Section> sections;
};

int64_t bytesOf(const PlanParameter &parameter) {
  constexpr int64_t mapBytes = 128, pointerBytes = 8, numberBytes = 4;
  if (parameter.map) return mapBytes;
  return isNumber(parameter.kind) ? numberBytes : pointerBytes;
}

void readAttributes(const Elf &elf, const Elf::Symbol &symbol, CubinEntry &entry) {
  std::map<int64_t, int64_t> parameters;
  if (const Section *own = elf.find(".nv.info." + symbol.name))
    for (const auto &[attribute, value] : Elf::attributes(own->content)) {
      if (attribute == maximumThreads || attribute == requiredThreads)
        entry.mostThreads = int64_t(Elf::read<uint32_t>(value, 0)) * Elf::read<uint32_t>(value, 4) *
                            Elf::read<uint32_t>(value, 8);
      if (attribute == parametersSize) entry.allParameterBytes = Elf::read<uint16_t>(value, 0);
      if (attribute == parameterInfo && value.size() >= parameterInfoBytes)
        parameters[Elf::read<uint16_t>(value, 4)] =
            Elf::read<uint32_t>(value, 8) >> parameterSizeShift;
    }
  for (const auto &[position, bytes] : parameters) entry.parameterBytes.push_back(bytes);
  if (const Section *all = elf.find(".nv.info"))
    for (const auto &[attribute, value] : Elf::attributes(all->content))
      if (attribute == registerCount && Elf::read<uint32_t>(value, 0) == symbol.index)
        entry.registers = Elf::read<uint32_t>(value, 4);
}

/// Registers are given to a warp in lots.
bool fitsRegisters(int64_t registers, int64_t threads) {
  constexpr int64_t ofProcessor = 65536, lot = 8, warp = 32;
  return threads <= ofProcessor &&
         (registers + lot - 1) / lot * lot * ((threads + warp - 1) / warp * warp) <= ofProcessor;
}

}  // namespace

bool isElf(std::string_view bytes) {
  return bytes.size() >= headerBytes && bytes.starts_with(
                                            "\x7f"
                                            "ELF\x02\x01");
}

std::optional<CubinEntry> entryOf(std::string_view cubin, const std::string &name) {
  const Elf elf(cubin);
  for (const Elf::Symbol &symbol : elf.functions()) {
    if (symbol.name != name || !symbol.isKernel) continue;
    CubinEntry entry{.isGlobal = symbol.isGlobal};
    readAttributes(elf, symbol, entry);
    return entry;
  }
  return std::nullopt;
}

std::string launchRejection(const PlanKernel &kernel, std::string_view cubin) {
  if (!isElf(cubin)) return "";
  const std::optional<CubinEntry> entry = entryOf(cubin, kernel.entry);
  if (!entry) {
    std::vector<std::string> names;
    for (const Elf::Symbol &symbol : Elf(cubin).functions())
      if (symbol.isKernel) names.push_back(fmt::format("'{}'", symbol.name));
    return fmt::format("its cubin has no kernel '{}'; it has {}", kernel.entry,
                       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  }
  if (!entry->isGlobal) return fmt::format("'{}' is no global symbol of its cubin", kernel.entry);
  std::vector<int64_t> passed;
  for (const PlanParameter &parameter : kernel.parameters) passed.push_back(bytesOf(parameter));
  const bool isSumAlone = entry->parameterBytes.empty() && entry->allParameterBytes > 0;
  int64_t sum = 0;
  for (const int64_t bytes : passed) sum += bytes;
  if (isSumAlone ? entry->allParameterBytes < sum : entry->parameterBytes != passed)
    return fmt::format(
        "'{}' takes parameters of {} bytes in its cubin, and the plan passes {}", kernel.entry,
        isSumAlone ? fmt::format("{}", entry->allParameterBytes)
                   : fmt::format("[{}]", fmt::join(entry->parameterBytes, ", ")),
        isSumAlone ? fmt::format("{}", sum) : fmt::format("[{}]", fmt::join(passed, ", ")));
  constexpr int64_t mostAnywhere = int64_t(1) << 20;  // of a block on any GPU, and more
  const int64_t threads =
      checkedProblem(checkedProblem(kernel.block[0], kernel.block[1]), kernel.block[2])
          .value_or(mostAnywhere);
  if (entry->mostThreads && threads > *entry->mostThreads)
    return fmt::format("'{}' was built for blocks of at most {} threads, and the plan launches {}",
                       kernel.entry, *entry->mostThreads, threads);
  if (!fitsRegisters(entry->registers, threads))
    return fmt::format(
        "'{}' was built with {} registers a thread: {} threads need more than the 65536 of a "
        "processor",
        kernel.entry, entry->registers, threads);
  return "";
}

}  // namespace weft::runtime
