// PTX of device headers, statement by statement (TranslatePtx.h): one table of instructions, by how
// their names start.
#include "tests/emulate/emulate_cuda.h"
#include "tests/emulate/sm90/AsynchronousParts.h"
#include "tests/emulate/sm90/PtxStatement.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

namespace weft::emulate {

/// One instruction with its operands in order, brackets and braces left out: numbers of operands of
/// the statement, or constants.
struct PtxInstruction {
  struct Token {
    int operand = -1;  ///< or none: a constant
    int64_t constant = 0;
  };
  /// The operands of a call.
  class Arguments;
  using Run = void (*)(const PtxInstruction &, const Arguments &);

  std::string text, name = {};
  std::vector<std::string> parts = {};  ///< of the name, between dots
  std::vector<Token> tokens = {};
  int result = -1;  ///< operand that tells whether a condition holds
  Run run = nullptr;

  bool has(std::string_view part) const { return std::ranges::find(parts, part) != parts.end(); }
};

class PtxInstruction::Arguments {
public:
  Arguments(const PtxInstruction &of, std::initializer_list<PtxOperand> operands,
            const SourceLine &at)
      : parts(asynchronousParts()), at(at), of(of), operands(operands) {}
  size_t count() const { return of.tokens.size(); }
  const PtxOperand &operand(size_t n) const {
    const int number = n < count() ? of.tokens[n].operand : -1;
    if (number < 0 || size_t(number) >= operands.size())
      parts.fibers.fail(fmt::format("PTX '{}' lacks operand {}", of.text, n));
    return operands.begin()[number];
  }
  int64_t number(size_t n) const {
    if (n < count() && of.tokens[n].operand < 0) return of.tokens[n].constant;
    return operand(n).value;
  }
  uint32_t word(size_t n) const { return uint32_t(number(n)); }
  template <typename T>
  T *pointer(size_t n) const {
    return reinterpret_cast<T *>(number(n));
  }
  void set(size_t n, const void *from) const {
    const PtxOperand &to = operand(n);
    if (!to.address) parts.fibers.fail(fmt::format("PTX '{}' writes an input", of.text));
    std::memcpy(to.address, from, to.size);
  }
  void setResult(int value) const {
    if (of.result < 0) return;
    const PtxOperand &to = operands.begin()[of.result];
    std::memcpy(to.address, &value, to.size);
  }

  AsynchronousParts &parts;
  const SourceLine at;

private:
  const PtxInstruction &of;
  const std::initializer_list<PtxOperand> operands;
};

namespace {

using Instruction = PtxInstruction;
using Arguments = PtxInstruction::Arguments;

void nothing(const Instruction &, const Arguments &) {}

// ---- Barriers ----

void initializeBarrier(const Instruction &, const Arguments &a) {
  a.parts.memoryBarriers.initialize(a.word(0), a.number(1));
}
void arrive(const Instruction &is, const Arguments &a) {
  if (is.has("expect_tx")) a.parts.memoryBarriers.expect(a.word(0), a.number(1));
  a.parts.memoryBarriers.arrive(a.word(0));
}
void waitForParity(const Instruction &, const Arguments &a) {
  a.parts.memoryBarriers.wait(a.word(0), a.word(1), a.at);
  a.setResult(1);
}
void testParity(const Instruction &is, const Arguments &a) {
  const bool hasEnded = a.parts.memoryBarriers.hasEnded(a.word(0), a.word(1));
  if (!hasEnded) a.parts.fibers.poll(is.name.c_str(), a.at);
  a.setResult(hasEnded ? 1 : 0);
}
void expectBytes(const Instruction &, const Arguments &a) {
  a.parts.memoryBarriers.expect(a.word(0), a.number(1));
}
void namedBarrier(const Instruction &is, const Arguments &a) {
  a.parts.namedBarriers.arrive(a.word(0), a.number(1), is.has("sync"), a.at);
}

void fenceProxies(const Instruction &, const Arguments &a) { a.parts.shared.fence(); }

// ---- Bulk copies ----

/// The box of a map at coordinates from operand `first` on.
GlobalSide boxOf(const Instruction &is, const Arguments &a, size_t map, size_t first) {
  GlobalSide side{.map = EmulatedMap{}};
  std::memcpy(&*side.map, a.pointer<void>(map), sizeof(EmulatedMap));
  const auto dimensions = std::ranges::find_if(
      is.parts, [](const std::string &part) { return part.size() == 2 && part[1] == 'd'; });
  const int count = dimensions == is.parts.end() ? 0 : (*dimensions)[0] - '0';
  if (count != side.map->dimensions)
    a.parts.fibers.fail(
        fmt::format("PTX '{}' of a map of {} dimensions", is.text, side.map->dimensions));
  for (int d = 0; d < count; ++d) side.position[size_t(d)] = int32_t(a.number(first + size_t(d)));
  return side;
}
void loadBox(const Instruction &is, const Arguments &a) {
  const GlobalSide from = boxOf(is, a, 1, 2);
  a.parts.copies.load(a.word(0), from, a.word(2 + size_t(from.map->dimensions)));
}
void storeBox(const Instruction &is, const Arguments &a) {
  const GlobalSide to = boxOf(is, a, 0, 1);
  const bool adds = is.name.starts_with("cp.reduce");
  if (adds && to.map->type != DType::f32) a.parts.fibers.fail("TMA adds fp32 alone here");
  a.parts.copies.store(to, a.word(1 + size_t(to.map->dimensions)), adds);
}
void loadBytes(const Instruction &, const Arguments &a) {
  a.parts.copies.load(a.word(0), {.start = a.pointer<std::byte>(1), .bytes = a.number(2)},
                      a.word(3));
}
void storeBytes(const Instruction &is, const Arguments &a) {
  const bool adds = is.name.starts_with("cp.reduce");
  if (adds && (!is.has("add") || !is.has("f32")))
    a.parts.fibers.fail(fmt::format("PTX '{}': bulk copies add fp32 alone here", is.text));
  a.parts.copies.store({.start = a.pointer<std::byte>(0), .bytes = a.number(2)}, a.word(1), adds);
}
void commitStores(const Instruction &, const Arguments &a) { a.parts.copies.commitStores(); }
void waitForStores(const Instruction &is, const Arguments &a) {
  a.parts.copies.waitForStores(a.number(0), is.has("read"), a.at);
}

// ---- WGMMA ----

void fenceWgmma(const Instruction &, const Arguments &a) { a.parts.products.fence(); }
void commitWgmma(const Instruction &, const Arguments &a) { a.parts.products.commit(); }
void waitForWgmma(const Instruction &, const Arguments &a) {
  a.parts.products.wait(a.number(0), a.at);
}

DType typeOf(const Instruction &is, size_t part) {
  static const std::map<std::string, DType> types = {{"f16", DType::f16},
                                                     {"bf16", DType::bf16},
                                                     {"tf32", DType::tf32},
                                                     {"e4m3", DType::f8e4m3},
                                                     {"e5m2", DType::f8e5m2}};
  return types.at(is.parts.at(part));
}

/// wgmma.mma_async.sync.aligned.mMnNkK.f32.A.B {d...}, a or {a0, ..., a3}, b, accumulates, 1, 1
/// [, transposesA] [, transposesB]
void multiply(const Instruction &is, const Arguments &a) {
  WgmmaInstruction product{.typeA = typeOf(is, 6), .typeB = typeOf(is, 7)};
  if (std::sscanf(is.parts[4].c_str(), "m64n%dk%d", &product.n, &product.k) != 2 ||
      is.parts[5] != "f32")
    a.parts.fibers.fail(fmt::format("PTX '{}': no WGMMA of 64 rows in fp32", is.name));
  const size_t count = size_t(product.n / 2), orders = sizeOf(product.typeA) == 2 ? 2 : 0;
  product.hasRegistersA = a.count() == count + 4 + 1 + 3 + orders / 2;
  if (!product.hasRegistersA && a.count() != count + 2 + 3 + orders)
    a.parts.fibers.fail(fmt::format("PTX '{}': {} operands", is.name, a.count()));
  auto *accumulators = static_cast<float *>(a.operand(0).address);
  for (size_t i = 0; i < count; ++i)
    if (a.operand(i).address != accumulators + i)
      a.parts.fibers.fail(fmt::format("PTX '{}': accumulator {} is no neighbour", is.name, i));
  size_t next = count;
  uint32_t registers[4] = {};
  if (product.hasRegistersA)
    for (uint32_t &word : registers) word = a.word(next++);
  else product.a = uint64_t(a.number(next++));
  product.b = uint64_t(a.number(next++));
  product.accumulates = a.number(next++) != 0;
  for (int sign = 0; sign < 2; ++sign)
    if (a.number(next++) != 1) a.parts.fibers.fail("WGMMA: negated operands are not emulated");
  if (orders > 0 && !product.hasRegistersA) product.isTransposedA = a.number(next++) != 0;
  if (orders > 0) product.isTransposedB = a.number(next++) != 0;
  a.parts.products.issue(product, accumulators, product.hasRegistersA ? registers : nullptr);
}

// ---- Shared memory ----

size_t vectorOf(const Instruction &is) { return is.has("v4") ? 4 : is.has("v2") ? 2 : 1; }

/// As the device demands.
void checkAligned(const Instruction &is, const Arguments &a, uint64_t address, size_t bytes) {
  if (address % bytes != 0)
    a.parts.fibers.fail(
        fmt::format("PTX '{}' at address {}: not aligned to {} bytes", is.name, address, bytes));
}
uint32_t aligned(const Instruction &is, const Arguments &a, uint32_t address, size_t bytes) {
  checkAligned(is, a, address, bytes);
  return address;
}
size_t elementBytes(const Instruction &is) {
  const std::string &type = is.parts.back();
  return type.ends_with("16") ? 2 : type.ends_with("64") ? 8 : type.ends_with("8") ? 1 : 4;
}
void loadShared(const Instruction &is, const Arguments &a) {
  const size_t count = vectorOf(is), bytes = elementBytes(is);
  const std::byte *from =
      a.parts.shared.load(aligned(is, a, a.word(count), count * bytes), count * bytes);
  for (size_t n = 0; n < count; ++n) a.set(n, from + n * bytes);
}
void storeShared(const Instruction &is, const Arguments &a) {
  const size_t count = vectorOf(is), bytes = elementBytes(is);
  std::byte *to = a.parts.shared.store(aligned(is, a, a.word(0), count * bytes), count * bytes);
  for (size_t n = 0; n < count; ++n) {
    const int64_t value = a.number(1 + n);
    std::memcpy(to + n * bytes, &value, bytes);
  }
}

/// Blocks of 8 x 8 of 16 bits, whose rows lanes name. A lane has two elements of row l / 4, or
/// transposed, of column l / 4. `count` blocks: the lanes behind name nothing.
size_t matricesOf(const Instruction &is) { return is.has("x4") ? 4 : is.has("x2") ? 2 : 1; }

template <typename Visit>
void forEachOfMatrices(const Instruction &is, const Arguments &a, uint32_t row, Visit visit) {
  uint32_t rows[32];
  exchange(~0u, &row, sizeof row, rows, a.at.file, a.at.line);
  const uint32_t lane = uint32_t(a.parts.fibers.runningThread() % 32);
  for (uint32_t block = 0; block < matricesOf(is); ++block)
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t r = is.has("trans") ? lane % 4 * 2 + half : lane / 4,
                     c = is.has("trans") ? lane / 4 : lane % 4 * 2 + half;
      visit(block, half, aligned(is, a, rows[8 * block + r], 16) + 2 * c);
    }
}
void storeMatrices(const Instruction &is, const Arguments &a) {
  forEachOfMatrices(is, a, a.word(0), [&](uint32_t block, uint32_t half, uint32_t to) {
    const auto bits = uint16_t(a.word(1 + block) >> 16 * half);
    std::memcpy(a.parts.shared.store(to, sizeof bits), &bits, sizeof bits);
  });
}
void loadMatrices(const Instruction &is, const Arguments &a) {
  uint32_t words[4] = {};
  forEachOfMatrices(is, a, a.word(matricesOf(is)),
                    [&](uint32_t block, uint32_t half, uint32_t from) {
                      uint16_t bits;
                      std::memcpy(&bits, a.parts.shared.load(from, sizeof bits), sizeof bits);
                      words[block] |= uint32_t(bits) << 16 * half;
                    });
  for (size_t block = 0; block < matricesOf(is); ++block) a.set(block, &words[block]);
}

// ---- Registers and memory ----

/// The first lane of the warp is the one.
void electLane(const Instruction &, const Arguments &a) {
  a.setResult(a.parts.fibers.runningThread() % 32 == 0 ? 1 : 0);
}
/// cvt.rna.tf32.f32: nearest, ties away from zero.
void roundToTf32(const Instruction &, const Arguments &a) {
  constexpr uint32_t infinity = 0x7F800000, magnitude = 0x7FFFFFFF, lower = 0x1FFF;
  uint32_t bits = a.word(1);
  if ((bits & magnitude) > infinity) bits = magnitude & ~lower;
  else if ((bits & magnitude) != infinity) bits = (bits + (lower + 1) / 2) & ~lower;
  a.set(0, &bits);
}
/// A load that orders memory looks for what others write: they get their turn before it.
void loadGlobal(const Instruction &is, const Arguments &a) {
  const size_t count = vectorOf(is), bytes = elementBytes(is);
  if (is.has("acquire") || is.has("relaxed") || is.has("volatile"))
    a.parts.fibers.poll(is.name.c_str(), a.at);
  const auto *from = a.pointer<const std::byte>(count);
  checkAligned(is, a, uint64_t(a.number(count)), count * bytes);
  for (size_t n = 0; n < count; ++n) a.set(n, from + n * bytes);
}
void storeGlobal(const Instruction &is, const Arguments &a) {
  const size_t count = vectorOf(is), bytes = elementBytes(is);
  checkAligned(is, a, uint64_t(a.number(0)), count * bytes);
  for (size_t n = 0; n < count; ++n) {
    const int64_t value = a.number(1 + n);
    std::memcpy(a.pointer<std::byte>(0) + n * bytes, &value, bytes);
  }
  a.parts.fibers.progressed();
}

/// What red and atom make of an element and an operand, of 32 bits.
uint32_t combined(const Instruction &is, const Arguments &a, uint32_t old, uint32_t operand) {
  const bool isFloat = is.parts.back() == "f32";
  if (is.has("add"))
    return isFloat
               ? std::bit_cast<uint32_t>(std::bit_cast<float>(old) + std::bit_cast<float>(operand))
               : old + operand;
  if (is.has("exch")) return operand;
  if (is.has("inc") && !isFloat) return old >= operand ? 0 : old + 1;
  if (is.parts.back() == "u32" && is.has("max")) return std::max(old, operand);
  if (is.parts.back() == "u32" && is.has("min")) return std::min(old, operand);
  a.parts.fibers.fail(fmt::format("PTX '{}' is not emulated", is.text));
  return old;
}
/// red [address], values: of floats, vectors too; atom result, [address], value.
void combineGlobal(const Instruction &is, const Arguments &a) {
  const bool returns = is.parts[0] == "atom";
  const size_t address = returns ? 1 : 0, count = vectorOf(is);
  if (elementBytes(is) != 4 || !is.has("global"))
    a.parts.fibers.fail(fmt::format("PTX '{}' is not emulated", is.text));
  checkAligned(is, a, uint64_t(a.number(address)), 4 * count);
  auto *to = a.pointer<uint32_t>(address);
  for (size_t n = 0; n < count; ++n) {
    const uint32_t old = to[n];
    to[n] = combined(is, a, old, a.word(address + 1 + n));
    if (returns) a.set(n, &old);
  }
  a.parts.fibers.progressed();
}

struct Entry {
  std::string_view start;
  Instruction::Run run;
};
/// The first that fits holds.
constexpr Entry instructions[] = {
    {"mbarrier.init.", initializeBarrier},
    {"mbarrier.arrive.", arrive},
    {"mbarrier.expect_tx.", expectBytes},
    {"mbarrier.try_wait.parity.", waitForParity},
    {"mbarrier.test_wait.parity.", testParity},
    {"bar.sync", namedBarrier},
    {"bar.arrive", namedBarrier},
    {"barrier.sync", namedBarrier},
    {"barrier.arrive", namedBarrier},
    {"cp.async.bulk.commit_group", commitStores},
    {"cp.async.bulk.wait_group", waitForStores},
    {"cp.async.bulk.prefetch.", nothing},
    {"wgmma.fence.", fenceWgmma},
    {"wgmma.commit_group.", commitWgmma},
    {"wgmma.wait_group.", waitForWgmma},
    {"wgmma.mma_async.", multiply},
    {"ld.shared::cta.", loadShared},
    {"ld.shared.", loadShared},
    {"st.shared::cta.", storeShared},
    {"st.shared.", storeShared},
    {"st.async.", nullptr},
    {"stmatrix.", storeMatrices},
    {"ldmatrix.", loadMatrices},
    {"cvt.rna.tf32.f32", roundToTf32},
    {"ld.", loadGlobal},
    {"st.", storeGlobal},
    {"red.", combineGlobal},
    {"atom.", combineGlobal},
    {"elect.sync", electLane},
    {"setmaxnreg.", nothing},
    {"fence.proxy.async", fenceProxies},
    {"fence.", nothing},
    {"prefetch.", nothing},
    {"griddepcontrol.", nothing},
};

Instruction::Run copyOf(const Instruction &is) {
  const bool isBox = is.has("tensor");
  if (is.has("multicast::cluster")) return nullptr;
  if (is.parts.at(1) == "reduce" || (is.parts.at(1) == "async" && is.has("bulk_group")))
    return isBox ? storeBox : storeBytes;
  if (is.has("complete_tx::bytes") || is.has("mbarrier::complete_tx::bytes"))
    return isBox ? loadBox : loadBytes;
  return nullptr;
}

Instruction::Run runOf(const Instruction &is) {
  for (const auto &[start, run] : instructions)
    if (is.name.starts_with(start)) return run;
  if (is.name.starts_with("cp.async.bulk.") || is.name.starts_with("cp.reduce.async.bulk."))
    return copyOf(is);
  return nullptr;
}

bool isOfWord(char c) { return std::isalnum(uint8_t(c)) || c == '_' || c == '%' || c == '-'; }

/// The operands of an instruction: %N, constants, and predicates by the operands they stand for.
void collectTokens(Instruction &is, std::string_view text,
                   const std::map<std::string, int, std::less<>> &predicates) {
  while (!text.empty()) {
    if (!isOfWord(text.front())) {
      text.remove_prefix(1);
      continue;
    }
    size_t length = 0;
    while (length < text.size() && isOfWord(text[length])) ++length;
    const std::string_view word = text.substr(0, length);
    text.remove_prefix(length);
    Instruction::Token token;
    const auto read = [&](std::string_view digits, auto &to) {
      return std::from_chars(digits.data(), digits.data() + digits.size(), to).ec == std::errc{};
    };
    if (word.front() == '%') read(word.substr(1), token.operand);
    else if (const auto found = predicates.find(word); found != predicates.end())
      token.operand = found->second;
    else if (!read(word, token.constant)) continue;  // a predicate that is set, or none: _
    is.tokens.push_back(token);
  }
}

int operandIn(std::string_view text) {
  const size_t at = text.find('%');
  return at == std::string_view::npos ? -1 : std::atoi(text.data() + at + 1);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \n\t";
  const size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

/// A statement has one instruction; around it predicates are declared, set from an operand, and
/// read into one.
Instruction parse(std::string_view whole) {
  Instruction is{.text = std::string(whole)};
  std::string_view rest = trimmed(whole);
  if (rest.starts_with('{') && rest.ends_with('}')) rest = rest.substr(1, rest.size() - 2);
  std::map<std::string, int, std::less<>> predicates;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view statement = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string_view name = statement.substr(0, statement.find_first_of(" \t")),
                           operands = statement.substr(name.size());
    if (statement.empty() || name.starts_with(".reg")) continue;
    if (name.starts_with("setp.ne.")) {
      const std::string_view predicate = trimmed(operands.substr(0, operands.find(',')));
      predicates.emplace(predicate, operandIn(operands));
    } else if (name.starts_with("selp.")) {
      is.result = operandIn(operands);
    } else {
      if (!is.name.empty()) return {.text = is.text};  // two instructions
      is.name = name;
      for (std::string_view parts = name; !parts.empty();) {
        const size_t dot = std::min(parts.find('.'), parts.size());
        is.parts.emplace_back(parts.substr(0, dot));
        parts.remove_prefix(std::min(dot + 1, parts.size()));
      }
      collectTokens(is, operands, predicates);
    }
  }
  is.run = is.name.empty() ? nullptr : runOf(is);
  return is;
}

}  // namespace

PtxStatement::PtxStatement(const char *text) : instruction(new PtxInstruction(parse(text))) {}

PtxStatement::~PtxStatement() { delete instruction; }

void PtxStatement::operator()(std::initializer_list<PtxOperand> operands, const char *file,
                              int line) const {
  const Arguments arguments(*instruction, operands, {file, line});
  if (!instruction->run)
    arguments.parts.fibers.fail(
        fmt::format("{}:{}: PTX '{}' is not emulated", file, line, instruction->text));
  instruction->run(*instruction, arguments);
}

}  // namespace weft::emulate
