// Products of cuBLASLt on a GPU: every legal layout, odd and even extents, all element types, every
// algorithm made again from its attributes. Outputs are poisoned with NaN first, bytes around them
// must stay, and every element is compared in fp64.
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/families/library/tests/LibrarySubject.h"
#include "kernel/Error.h"
#include "tests/gpu/Gpu.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleTf32.h"

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::gpu;
using namespace weft::runtime;

namespace {

Kernel contraction(const std::map<char, int64_t> &extents, const std::string &a,
                   const std::string &b, const std::string &c, DType type, double scale = 1) {
  samples::KernelBuilder builder("contract", extents);
  const int left = builder.input("a", a, type), right = builder.input("b", b, type);
  std::string reduced;
  for (char letter : a)
    if (c.find(letter) == std::string::npos) reduced += letter;
  const int result =
      builder.op("contract", OperatorClass::contraction, {left, right}, "c", c, reduced, type);
  builder.last().attributes["spec"] = a + "," + b + "->" + c;
  if (scale != 1) builder.last().attributes["scale"] = scale;
  return builder.build({result});
}

const DType types[] = {DType::f16, DType::bf16, DType::f32};

/// Row-major operands, the first configuration of a kernel with them.
Configuration rowMajorConfiguration(const Kernel &kernel) {
  Configuration configuration{.knobs = LibraryKnobs{}};
  for (int value : kernel.inputs)
    configuration.inputs.push_back(rowMajor(kernel.values[value].axes.size()));
  configuration.outputs.push_back(rowMajor(kernel.values[kernel.outputs[0]].axes.size()));
  return configuration;
}

}  // namespace

TEST_CASE("every legal layout gives the GEMM, at odd and even extents") {
  int64_t products = 0;
  for (const DType type : types)
    for (const Kernel &kernel :
         {contraction({{'p', 8}, {'h', 2}, {'b', 3}, {'k', 16}, {'j', 24}}, "phbk", "phbj", "hbjk",
                      type, 0.125),
          contraction({{'p', 5}, {'h', 3}, {'b', 2}, {'k', 7}, {'j', 9}}, "phbk", "phbj", "hbjk",
                      type, 0.3),
          contraction({{'w', 7}, {'h', 2}, {'b', 3}, {'k', 11}, {'j', 13}}, "whbk", "hbjk", "whbj",
                      type),
          contraction({{'p', 8}, {'h', 4}, {'i', 40}, {'b', 2}, {'j', 24}}, "phi", "bji", "phbj",
                      type),
          contraction({{'p', 3}, {'h', 5}, {'i', 33}, {'b', 3}, {'j', 7}}, "phi", "bji", "phbj",
                      type),
          contraction({{'m', 33}, {'n', 65}, {'k', 129}}, "mk", "kn", "mn", type),
          contraction({{'m', 128}, {'n', 64}, {'k', 256}}, "mk", "kn", "mn", type)}) {
      const Subject subject(kernel);
      for (const Configuration &configuration : nonEmpty(libraryConfigurations(kernel))) {
        INFO(nameOf(type) << " " << std::get<std::string>(kernel.body[0].attributes.at("spec"))
                          << " " << layoutsText(configuration));
        const PreparedGemm gemm =
            library().prepare(libraryGemm(kernel, configuration), LibraryKnobs{}, kernel.name);
        CHECK(gemm.warning().empty());
        CHECK(Placed(subject, configuration).wrong(gemm) == 0);
        ++products;
      }
    }
  std::printf("%ld products in all legal layouts\n", long(products));
}

TEST_CASE("extents of one, and a batch of single numbers") {
  for (const DType type : types)
    for (const Kernel &kernel :
         {contraction({{'m', 1}, {'n', 40}, {'k', 24}}, "mk", "kn", "mn", type),
          contraction({{'m', 40}, {'n', 1}, {'k', 24}}, "mk", "kn", "mn", type),
          contraction({{'m', 9}, {'n', 40}, {'k', 1}}, "mk", "kn", "mn", type),
          contraction({{'m', 1}, {'n', 1}, {'k', 77}}, "mk", "kn", "mn", type),
          contraction({{'b', 5}, {'m', 1}, {'n', 3}, {'k', 4}}, "bmk", "bkn", "bmn", type)}) {
      const Subject subject(kernel);
      for (const Configuration &configuration : nonEmpty(libraryConfigurations(kernel))) {
        INFO(nameOf(type) << " " << kernel.axes[0].extent << "... " << layoutsText(configuration));
        const PreparedGemm gemm =
            library().prepare(libraryGemm(kernel, configuration), LibraryKnobs{}, kernel.name);
        CHECK(Placed(subject, configuration).wrong(gemm) == 0);
      }
    }
}

TEST_CASE(
    "every algorithm of the list is made again from its attributes, and repeats itself bit by "
    "bit") {
  for (const DType type : types)
    for (const Kernel &kernel :
         {contraction({{'m', 192}, {'n', 136}, {'k', 1024}}, "mk", "kn", "mn", type),
          contraction({{'m', 65}, {'n', 33}, {'k', 515}}, "mk", "kn", "mn", type),
          contraction({{'b', 6}, {'m', 64}, {'n', 40}, {'k', 96}}, "bmk", "bnk", "bmn", type)}) {
      const Subject subject(kernel);
      const Configuration configuration = rowMajorConfiguration(kernel);
      const LibraryGemm problem = libraryGemm(kernel, configuration);
      Placed placed(subject, configuration);
      const std::vector<LibraryKnobs> list = library().candidates(problem);
      CHECK(!list.empty());
      std::printf("%s, %s: %zu algorithms\n",
                  std::get<std::string>(kernel.body[0].attributes.at("spec")).c_str(),
                  std::string(nameOf(type)).c_str(), list.size());
      for (const LibraryKnobs &knobs : nonEmpty(list)) {
        INFO(nameOf(type) << " " << describe(kernel, knobs));
        const PreparedGemm gemm = library().prepare(problem, knobs, kernel.name);
        CHECK(gemm.warning().empty());
        CHECK(gemm.algorithm() == knobs);
        const std::vector<std::vector<std::byte>> first = placed.run(gemm);
        CHECK(placed.wrong(first) == 0);
        CHECK(placed.run(gemm) == first);
      }
    }
}

TEST_CASE(
    "products of tf32: every layout, odd and even extents, the whole list of algorithms; f32 "
    "without it is as precise as before") {
  for (const samples::Tf32Extents &extents : {samples::Tf32Extents{.m = 64, .n = 48, .k = 80},
                                              {.m = 1000, .n = 784, .k = 560},
                                              {.b = 3, .m = 33, .n = 45, .k = 257},
                                              {.m = 129, .n = 65, .k = 77}}) {
    const Kernel tf32 = samples::tf32Gemm(extents), full = samples::fullGemm(extents);
    const Subject subject(tf32, 4), exact(full, 4);
    int layouts = 0;
    for (const Configuration &configuration : nonEmpty(libraryConfigurations(tf32))) {
      INFO(extents.b << " x " << extents.m << " x " << extents.n << " x " << extents.k << " "
                     << layoutsText(configuration));
      const LibraryGemm problem = libraryGemm(tf32, configuration);
      Placed placed(subject, configuration);
      CHECK(placed.wrong(library().prepare(problem, LibraryKnobs{}, tf32.name)) == 0);
      CHECK(Placed(exact, configuration)
                .wrong(library().prepare(libraryGemm(full, configuration), LibraryKnobs{},
                                         full.name)) == 0);
      ++layouts;
    }
    CHECK(layouts > 0);
    const Configuration configuration = rowMajorConfiguration(tf32);
    const LibraryGemm problem = libraryGemm(tf32, configuration);
    Placed placed(subject, configuration);
    for (const LibraryKnobs &knobs : nonEmpty(library().candidates(problem))) {
      INFO(describe(tf32, knobs));
      const PreparedGemm gemm = library().prepare(problem, knobs, tf32.name);
      CHECK(gemm.warning().empty());
      CHECK(gemm.algorithm() == knobs);
      CHECK(placed.wrong(gemm) == 0);
    }
  }
}

TEST_CASE(
    "products of 8-bit floats: every pair of formats that the library takes, sums in the tensor "
    "cores and promoted, with scales") {
  const GemmTypes pairs[] = {{DType::f8e4m3, DType::f8e4m3, DType::f16},
                             {DType::f8e4m3, DType::f8e4m3, DType::bf16},
                             {DType::f8e4m3, DType::f8e4m3, DType::f32},
                             {DType::f8e4m3, DType::f8e5m2, DType::f16},
                             {DType::f8e5m2, DType::f8e4m3, DType::bf16}};
  for (const GemmTypes &types : pairs)
    for (const samples::Float8Extents &extents : {samples::Float8Extents{.m = 48, .n = 64, .k = 80},
                                                  {.m = 1000, .n = 784, .k = 560},
                                                  {.b = 3, .m = 33, .n = 48, .k = 256}}) {
      const Kernel kernel = samples::float8Gemm(extents, types);
      const Subject subject(kernel, 4);
      int layouts = 0;
      for (const Configuration &configuration : nonEmpty(libraryConfigurations(kernel))) {
        INFO(nameOf(types) << " " << extents.b << " x " << extents.m << " x " << extents.n << " x "
                           << extents.k);
        INFO(layoutsText(configuration));
        LibraryGemm problem = libraryGemm(kernel, configuration);
        Placed placed(subject, configuration);
        for (const bool promotesSums : {false, true}) {
          problem.promotesSums = promotesSums;
          const PreparedGemm gemm = library().prepare(problem, LibraryKnobs{}, kernel.name);
          CHECK(placed.wrong(gemm) == 0);
        }
        problem.promotesSums = false;
        const PreparedGemm gemm = library().prepare(problem, LibraryKnobs{}, kernel.name);
        const auto plain = placed.run(gemm);
        placed.setScales(8, 0.125f);  // the same gemm: neither loses a bit
        CHECK(placed.run(gemm) == plain);
        placed.setScales(0.5f, 0.25f);
        CHECK(placed.run(gemm) != plain);
        ++layouts;
      }
      CHECK(layouts > 0);
    }
}

TEST_CASE(
    "an algorithm that the library rejects is replaced by its first candidate, with a warning that "
    "names both") {
  const Subject subject(
      contraction({{'m', 64}, {'n', 32}, {'k', 128}}, "mk", "kn", "mn", DType::f16));
  const Configuration configuration = rowMajorConfiguration(subject.kernel);
  const LibraryGemm problem = libraryGemm(subject.kernel, configuration);
  const LibraryKnobs good = library().candidates(problem).front();
  LibraryKnobs unknown = good, impossible = good;
  unknown.algorithm = 12345;
  unknown.libraryVersion = 110000;
  impossible.tile = 9999;
  for (const LibraryKnobs &knobs : {unknown, impossible}) {
    const PreparedGemm gemm = library().prepare(problem, knobs, "projection");
    INFO(gemm.warning());
    CHECK(gemm.algorithm() == good);
    CHECK_THAT(gemm.warning(), Catch::Contains("'projection'") && Catch::Contains("rejects") &&
                                   Catch::Contains("instead"));
    CHECK_THAT(gemm.warning(), Catch::Contains(fmt::format("algorithm {}", knobs.algorithm)));
    CHECK(Placed(subject, configuration).wrong(gemm) == 0);
  }
}

TEST_CASE("products are captured in graphs") {
  const Subject subject(contraction({{'b', 4}, {'m', 48}, {'n', 56}, {'k', 64}}, "bmk", "bkn",
                                    "bmn", DType::bf16, 0.5));
  const Configuration configuration = rowMajorConfiguration(subject.kernel);
  const LibraryGemm problem = libraryGemm(subject.kernel, configuration);
  for (const LibraryKnobs &knobs : nonEmpty(library().candidates(problem, 4))) {
    const PreparedGemm gemm = library().prepare(problem, knobs, subject.kernel.name);
    CHECK(Placed(subject, configuration).wrong(gemm, true) == 0);
  }
}

TEST_CASE("what the library cannot take is rejected by name") {
  LibraryGemm gemm{.shape = {.m = 8,
                             .n = 8,
                             .k = 8,
                             .strideAm = 16,
                             .strideAk = 2,
                             .strideBk = 8,
                             .strideBn = 1,
                             .strideCm = 8,
                             .strideCn = 1},
                   .dtype = DType::f16};
  CHECK_THROWS_WITH(library().prepare(gemm, LibraryKnobs{}, "scores"),
                    Catch::Contains("'scores'") && Catch::Contains("operand A"));
}

TEST_CASE("NaN in an operand reaches exactly the rows that read it") {
  const Kernel kernel =
      contraction({{'m', 16}, {'n', 24}, {'k', 32}}, "mk", "kn", "mn", DType::f16);
  const Configuration configuration = rowMajorConfiguration(kernel);
  std::vector<std::byte> a(16 * 32 * 2), b(32 * 24 * 2), c(16 * 24 * 2);
  for (size_t i = 0; i < 16 * 32; ++i)
    reference::storeElement(DType::f16, &a[2 * i], i == 5 * 32 + 7 ? NAN : 1);
  for (size_t i = 0; i < 32 * 24; ++i) reference::storeElement(DType::f16, &b[2 * i], 1);
  const cuda::Buffer deviceA(int64_t(a.size())), deviceB(int64_t(b.size())),
      deviceC(int64_t(c.size()));
  cuda::upload(deviceA.address(), a);
  cuda::upload(deviceB.address(), b);
  const PreparedGemm gemm =
      library().prepare(libraryGemm(kernel, configuration), LibraryKnobs{}, kernel.name);
  const cuda::Buffer workspace(std::max<int64_t>(gemm.workspaceBytes(), 256));
  const cuda::Stream stream;
  gemm.enqueue({.a = deviceA.address(), .b = deviceB.address(), .result = deviceC.address()},
               workspace.address(), stream.handle());
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
