// Products of cuBLASLt on a GPU: every legal layout, odd and even extents, all element types, every algorithm made again from
// its attributes. Outputs are poisoned with NaN first, bytes around them must stay, and every element is compared in fp64.
#include "kernel/Error.h"
#include "kernel/reference/PointEvaluator.h"
#include "kernel/reference/Rounding.h"
#include "kernel/reference/StoredElement.h"
#include "passes/configure/Families.h"
#include "runtime/CublasLt.h"
#include "tests/gpu/Gpu.h"
#include "tests/unit/SampleKernels.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <random>

using namespace weft;
using namespace weft::runtime;

namespace {

constexpr int64_t guardBytes = 512;  ///< before and after every output
constexpr auto poison = std::byte(0xff);

const CublasLt &library() {
  static const CublasLt loaded;
  return loaded;
}

Kernel contraction(const std::map<char, int64_t> &extents, const std::string &a, const std::string &b, const std::string &c,
                   DType type, double scale = 1) {
  samples::KernelBuilder builder("contract", extents);
  const int left = builder.input("a", a, type), right = builder.input("b", b, type);
  std::string reduced;
  for (char letter : a)
    if (c.find(letter) == std::string::npos) reduced += letter;
  const int result = builder.op("contract", OperatorClass::contraction, {left, right}, "c", c, reduced, type);
  builder.last().attributes["spec"] = a + "," + b + "->" + c;
  if (scale != 1) builder.last().attributes["scale"] = scale;
  return builder.build({result});
}

std::vector<int64_t> extentsOf(const Kernel &kernel, int value) {
  std::vector<int64_t> extents;
  for (int axis : kernel.values[value].axes) extents.push_back(kernel.axes[axis].extent);
  return extents;
}

int64_t linear(std::span<const int64_t> coordinates, const std::vector<int64_t> &extents) {
  int64_t index = 0;
  for (size_t d = 0; d < extents.size(); ++d) index = index * extents[d] + coordinates[d];
  return index;
}

/// Calls visit(logical index, offset in memory) for every element.
template <typename Visit>
void forEachElement(const std::vector<int64_t> &extents, const Layout &layout, Visit &&visit) {
  const std::vector<int64_t> strides = stridesOf(layout, extents);
  const int64_t count = std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
  for (int64_t index = 0; index < count; ++index) {
    int64_t rest = index, offset = 0;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) offset += rest % extents[d] * strides[d];
    visit(index, offset);
  }
}

/// One contraction with its operands and results in logical order, kept for all layouts.
class Subject {
public:
  explicit Subject(Kernel kernel) : kernel(std::move(kernel)), type(this->kernel.values[0].dtype) {
    std::mt19937 random(17);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (size_t input = 0; input < 2; ++input) {
      extents.push_back(extentsOf(this->kernel, int(input)));
      values[input].resize(size_t(this->kernel.elements(int(input))));
      for (double &value : values[input]) value = reference::roundTo(type, uniform(random));
    }
    extents.push_back(extentsOf(this->kernel, this->kernel.outputs[0]));
    std::vector<reference::ElementReader> readers;
    for (size_t input = 0; input < 2; ++input)
      readers.push_back([this, input](std::span<const int64_t> at) { return values[input][size_t(linear(at, extents[input]))]; });
    reference::PointEvaluator evaluator(this->kernel, readers, {});
    forEachElement(extents[2], rowMajor(extents[2].size()), [&](int64_t index, int64_t) {
      std::vector<int64_t> at(extents[2].size());
      for (size_t d = at.size(); d-- > 0; index /= extents[2][d]) at[d] = index % extents[2][d];
      expected.push_back(evaluator.output(0, at));
    });
  }
  Subject(const Subject &) = delete;

  std::vector<std::byte> stored(size_t input, const Layout &layout) const {
    std::vector<std::byte> bytes(values[input].size() * size_t(sizeOf(type)));
    forEachElement(extents[input], layout, [&](int64_t index, int64_t offset) {
      reference::storeElement(type, &bytes[size_t(offset * sizeOf(type))], values[input][size_t(index)]);
    });
    return bytes;
  }

  /// Elements that are further from fp64 than fp32 accumulation and one rounding allow; NaN is.
  int64_t wrong(std::span<const std::byte> bytes, const Layout &layout) const {
    int64_t count = 0;
    forEachElement(extents[2], layout, [&](int64_t index, int64_t offset) {
      const double got = reference::loadElement(type, &bytes[size_t(offset * sizeOf(type))]);
      const reference::Point &point = expected[size_t(index)];
      count += !(std::abs(got - point.value) <= reference::tolerance(point, type));
    });
    return count;
  }

  const Kernel kernel;
  const DType type;
  std::vector<std::vector<int64_t>> extents;

private:
  std::vector<double> values[2];
  std::vector<reference::Point> expected;
};

/// Device copies of a subject's tensors in one configuration.
class Placed {
public:
  Placed(const Subject &subject, const Configuration &configuration) : subject(subject), configuration(configuration) {
    for (size_t input = 0; input < 2; ++input) {
      const std::vector<std::byte> bytes = subject.stored(input, configuration.inputs[input]);
      inputs.emplace_back(int64_t(bytes.size()));
      cuda::upload(inputs.back().address(), bytes);
    }
    resultBytes = subject.kernel.bytes(subject.kernel.outputs[0]);
    output = cuda::Buffer(resultBytes + 2 * guardBytes);
  }

  /// Poisons, runs, and returns the result's bytes; fails if bytes around the result changed.
  std::vector<std::byte> run(const PreparedProduct &product, bool captured = false) {
    cuda::fill(output.address(), uint8_t(poison), output.bytes());
    const cuda::Buffer workspace = product.workspaceBytes() > 0 ? cuda::Buffer(product.workspaceBytes()) : cuda::Buffer();
    const ProductInputs operands = productInputs(subject.kernel);
    const auto enqueue = [&](cuda::StreamHandle *on) {
      product.enqueue(inputs[operands.a].address(), inputs[operands.b].address(), output.address() + guardBytes, workspace.address(), on);
    };
    if (captured) {
      const cuda::Graph graph = cuda::Graph::capture(stream, enqueue);
      graph.launch(stream.handle());
      stream.synchronize();
    } else {
      enqueue(stream.handle());
      stream.synchronize();
    }
    std::vector<std::byte> bytes(size_t(output.bytes()));
    cuda::download(bytes, output.address());
    const auto isPoison = [](std::byte byte) { return byte == poison; };
    const auto begin = bytes.begin() + guardBytes, end = begin + resultBytes;
    CHECK((std::all_of(bytes.begin(), begin, isPoison) && std::all_of(end, bytes.end(), isPoison)));
    return {begin, end};
  }

  int64_t wrong(const PreparedProduct &product, bool captured = false) {
    return subject.wrong(run(product, captured), configuration.outputs[0]);
  }

private:
  const Subject &subject;
  const Configuration configuration;
  std::vector<cuda::Buffer> inputs;
  cuda::Buffer output;
  int64_t resultBytes = 0;
  cuda::Stream stream;
};

std::vector<Configuration> libraryConfigurations(const Kernel &kernel) {
  std::vector<Configuration> result;
  forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
    if (std::holds_alternative<LibraryKnobs>(configuration.knobs)) result.push_back(configuration);
    return true;
  });
  return result;
}

std::string layoutsText(const Configuration &configuration) {
  return fmt::format("{},{}->{}", fmt::join(configuration.inputs[0].order, ""), fmt::join(configuration.inputs[1].order, ""),
                     fmt::join(configuration.outputs[0].order, ""));
}

const DType types[] = {DType::f16, DType::bf16, DType::f32};

/// Row-major operands, the first configuration of a kernel with them.
Configuration rowMajorConfiguration(const Kernel &kernel) {
  Configuration configuration{.knobs = LibraryKnobs{}};
  for (int value : kernel.inputs) configuration.inputs.push_back(rowMajor(kernel.values[value].axes.size()));
  configuration.outputs.push_back(rowMajor(kernel.values[kernel.outputs[0]].axes.size()));
  return configuration;
}

}  // namespace

TEST_CASE("every legal layout gives the product, at odd and even extents") {
  int64_t products = 0;
  for (const DType type : types)
    for (const Kernel &kernel : {contraction({{'p', 8}, {'h', 2}, {'b', 3}, {'k', 16}, {'j', 24}}, "phbk", "phbj", "hbjk", type, 0.125),
                                 contraction({{'p', 5}, {'h', 3}, {'b', 2}, {'k', 7}, {'j', 9}}, "phbk", "phbj", "hbjk", type, 0.3),
                                 contraction({{'w', 7}, {'h', 2}, {'b', 3}, {'k', 11}, {'j', 13}}, "whbk", "hbjk", "whbj", type),
                                 contraction({{'p', 8}, {'h', 4}, {'i', 40}, {'b', 2}, {'j', 24}}, "phi", "bji", "phbj", type),
                                 contraction({{'p', 3}, {'h', 5}, {'i', 33}, {'b', 3}, {'j', 7}}, "phi", "bji", "phbj", type),
                                 contraction({{'m', 33}, {'n', 65}, {'k', 129}}, "mk", "kn", "mn", type),
                                 contraction({{'m', 128}, {'n', 64}, {'k', 256}}, "mk", "kn", "mn", type)}) {
      const Subject subject(kernel);
      for (const Configuration &configuration : libraryConfigurations(kernel)) {
        INFO(nameOf(type) << " " << std::get<std::string>(kernel.body[0].attributes.at("spec")) << " " << layoutsText(configuration));
        const PreparedProduct product = library().prepare(libraryProduct(kernel, configuration), LibraryKnobs{}, kernel.name);
        CHECK(product.warning().empty());
        CHECK(Placed(subject, configuration).wrong(product) == 0);
        ++products;
      }
    }
  std::printf("%ld products in all legal layouts\n", long(products));
}

TEST_CASE("extents of one, and a batch of single numbers") {
  for (const DType type : types)
    for (const Kernel &kernel : {contraction({{'m', 1}, {'n', 40}, {'k', 24}}, "mk", "kn", "mn", type),
                                 contraction({{'m', 40}, {'n', 1}, {'k', 24}}, "mk", "kn", "mn", type),
                                 contraction({{'m', 9}, {'n', 40}, {'k', 1}}, "mk", "kn", "mn", type),
                                 contraction({{'m', 1}, {'n', 1}, {'k', 77}}, "mk", "kn", "mn", type),
                                 contraction({{'b', 5}, {'m', 1}, {'n', 3}, {'k', 4}}, "bmk", "bkn", "bmn", type)}) {
      const Subject subject(kernel);
      for (const Configuration &configuration : libraryConfigurations(kernel)) {
        INFO(nameOf(type) << " " << kernel.axes[0].extent << "... " << layoutsText(configuration));
        const PreparedProduct product = library().prepare(libraryProduct(kernel, configuration), LibraryKnobs{}, kernel.name);
        CHECK(Placed(subject, configuration).wrong(product) == 0);
      }
    }
}

TEST_CASE("every algorithm of the list is made again from its attributes, and repeats itself bit by bit") {
  for (const DType type : types)
    for (const Kernel &kernel : {contraction({{'m', 192}, {'n', 136}, {'k', 1024}}, "mk", "kn", "mn", type),
                                 contraction({{'m', 65}, {'n', 33}, {'k', 515}}, "mk", "kn", "mn", type),
                                 contraction({{'b', 6}, {'m', 64}, {'n', 40}, {'k', 96}}, "bmk", "bnk", "bmn", type)}) {
      const Subject subject(kernel);
      const Configuration configuration = rowMajorConfiguration(kernel);
      const LibraryProduct problem = libraryProduct(kernel, configuration);
      Placed placed(subject, configuration);
      const std::vector<LibraryKnobs> list = library().candidates(problem);
      CHECK(!list.empty());
      std::printf("%s, %s: %zu algorithms\n", std::get<std::string>(kernel.body[0].attributes.at("spec")).c_str(),
                  std::string(nameOf(type)).c_str(), list.size());
      for (const LibraryKnobs &knobs : list) {
        INFO(nameOf(type) << " " << describe(kernel, knobs));
        const PreparedProduct product = library().prepare(problem, knobs, kernel.name);
        CHECK(product.warning().empty());
        CHECK(product.algorithm() == knobs);
        const std::vector<std::byte> first = placed.run(product);
        CHECK(subject.wrong(first, configuration.outputs[0]) == 0);
        CHECK(placed.run(product) == first);
      }
    }
}

TEST_CASE("an algorithm that the library refuses is replaced by its first candidate, with a warning that names both") {
  const Subject subject(contraction({{'m', 64}, {'n', 32}, {'k', 128}}, "mk", "kn", "mn", DType::f16));
  const Configuration configuration = rowMajorConfiguration(subject.kernel);
  const LibraryProduct problem = libraryProduct(subject.kernel, configuration);
  const LibraryKnobs good = library().candidates(problem).front();
  LibraryKnobs unknown = good, impossible = good;
  unknown.algorithm = 12345;
  unknown.libraryVersion = 110000;
  impossible.tile = 9999;
  for (const LibraryKnobs &knobs : {unknown, impossible}) {
    const PreparedProduct product = library().prepare(problem, knobs, "projection");
    INFO(product.warning());
    CHECK(product.algorithm() == good);
    CHECK_THAT(product.warning(), Catch::Contains("'projection'") && Catch::Contains("refuses") && Catch::Contains("instead"));
    CHECK_THAT(product.warning(), Catch::Contains(fmt::format("algorithm {}", knobs.algorithm)));
    CHECK(Placed(subject, configuration).wrong(product) == 0);
  }
}

TEST_CASE("products are captured in graphs") {
  const Subject subject(contraction({{'b', 4}, {'m', 48}, {'n', 56}, {'k', 64}}, "bmk", "bkn", "bmn", DType::bf16, 0.5));
  const Configuration configuration = rowMajorConfiguration(subject.kernel);
  const LibraryProduct problem = libraryProduct(subject.kernel, configuration);
  for (const LibraryKnobs &knobs : library().candidates(problem, 4)) {
    const PreparedProduct product = library().prepare(problem, knobs, subject.kernel.name);
    CHECK(Placed(subject, configuration).wrong(product, true) == 0);
  }
}

TEST_CASE("what the library cannot take is refused by name") {
  LibraryProduct product{.shape = {.m = 8, .n = 8, .k = 8, .strideAm = 16, .strideAk = 2, .strideBk = 8, .strideBn = 1, .strideCm = 8, .strideCn = 1},
                         .dtype = DType::f16};
  CHECK_THROWS_WITH(library().prepare(product, LibraryKnobs{}, "scores"), Catch::Contains("'scores'") && Catch::Contains("operand A"));
}

TEST_CASE("NaN in an operand reaches exactly the rows that read it") {
  const Kernel kernel = contraction({{'m', 16}, {'n', 24}, {'k', 32}}, "mk", "kn", "mn", DType::f16);
  const Configuration configuration = rowMajorConfiguration(kernel);
  std::vector<std::byte> a(16 * 32 * 2), b(32 * 24 * 2), c(16 * 24 * 2);
  for (size_t i = 0; i < 16 * 32; ++i) reference::storeElement(DType::f16, &a[2 * i], i == 5 * 32 + 7 ? NAN : 1);
  for (size_t i = 0; i < 32 * 24; ++i) reference::storeElement(DType::f16, &b[2 * i], 1);
  const cuda::Buffer deviceA(int64_t(a.size())), deviceB(int64_t(b.size())), deviceC(int64_t(c.size()));
  cuda::upload(deviceA.address(), a);
  cuda::upload(deviceB.address(), b);
  const PreparedProduct product = library().prepare(libraryProduct(kernel, configuration), LibraryKnobs{}, kernel.name);
  const cuda::Buffer workspace(std::max<int64_t>(product.workspaceBytes(), 256));
  const cuda::Stream stream;
  product.enqueue(deviceA.address(), deviceB.address(), deviceC.address(), workspace.address(), stream.handle());
  stream.synchronize();
  cuda::download(c, deviceC.address());
  bool isRight = true;
  for (size_t m = 0; m < 16; ++m)
    for (size_t n = 0; n < 24; ++n) {
      const double got = reference::loadElement(DType::f16, &c[2 * (m * 24 + n)]);
      isRight = isRight && (m == 5 ? std::isnan(got) : got == 32);
    }
  CHECK(isRight);
}
