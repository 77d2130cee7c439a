// Canonical text: what is in the key and what is not. Lines of configurations and profile texts:
// round trips, rejections with line numbers, merging, thinning.
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/Error.h"
#include "kernel/TestedProfile.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>

using namespace weft;
using namespace weft::samples;

namespace {

std::string rejection(const std::string &text) {
  try {
    parseProfile(text, "p.txt");
  } catch (const Error &error) {
    return error.kind == ErrorKind::badInput ? error.what() : "";
  }
  return "";
}

const std::string head = "# weft profile 4\n# device h200\n# protocol 1 cold L2\n";
const std::string hash = "0123456789abcdef";

ProfileMeasurement storedMeasurement(double seconds, int64_t n = 9) {
  return {.seconds = seconds, .n = n, .spread = 0.01, .familyVersion = 1};
}

Configuration reluConfiguration(std::vector<int> order, LoopKnobs knobs) {
  return {.inputs = {Layout{.order = order}}, .outputs = {Layout{.order = order}}, .knobs = knobs};
}

}  // namespace

TEST_CASE("measurements under given strides are those of the whole word, in one family") {
  ProfileKernel kernel{.name = "gemm", .measurements = {}};
  for (const char *line :
       {"cublaslt 1,8:0_1,8:0>8,1:0 algorithm=7", "cublaslt 1,8:0_1,8:0>8,1:0",
        "cublaslt 1,8:0_1,8:0>8,1:01 algorithm=7", "gemm-sm80 1,8:0_1,8:0>8,1:0"})
    kernel.measurements[line] = storedMeasurement(1e-6);
  const auto found = measurementsAt(kernel, familyWith(&Family::isLibrary), "1,8:0_1,8:0>8,1:0");
  REQUIRE(found.size() == 2);
  CHECK(found[0].first == "cublaslt 1,8:0_1,8:0>8,1:0");
  CHECK(found[1].first == "cublaslt 1,8:0_1,8:0>8,1:0 algorithm=7");
  CHECK(found[1].second == &kernel.measurements.at(std::string(found[1].first)));
}

TEST_CASE("names are not in the canonical text, extents are") {
  const Kernel a = reluKernel({{'j', 4}, {'i', 8}}, "ji");
  Kernel renamed = a;
  renamed.name = "other";
  renamed.axes[0].name = "measurements";
  renamed.values[0].name = "operand";
  CHECK(canonicalText(a) == canonicalText(renamed));
  CHECK(canonicalText(a) != canonicalText(reluKernel({{'j', 4}, {'i', 16}}, "ji")));
  CHECK(canonicalText(contractKernel({{'a', 2}, {'b', 3}, {'c', 4}}, "ab", "bc", "ac")) ==
        canonicalText(contractKernel({{'m', 2}, {'k', 3}, {'n', 4}}, "mk", "kn", "mn")));
}

TEST_CASE("broken kernels are rejected") {
  Kernel kernel = reluKernel({{'j', 4}, {'i', 8}}, "ji");
  kernel.outputs = {0};
  CHECK_THROWS_AS(verify(kernel), Error);
}

TEST_CASE("lines of configurations are read back as they were") {
  const Kernel kernel = reluKernel({{'j', 4}, {'i', 8}, {'b', 2}}, "bji");
  for (const LoopKnobs &knobs :
       {LoopKnobs{}, LoopKnobs{.vectorAxis = 1, .vectorWidth = 8, .laneAxis = 1, .threads = 256},
        LoopKnobs{.vectorAxis = 2,
        .laneAxis = 0,
        .reduction = ReductionMapping::block,
        .threadsPerRow = 64,
        .combine = BlockCombine::tree}}) {
    const Configuration configuration = reluConfiguration({2, 0, 1}, knobs);
    const std::string line = configurationLine(kernel, configuration);
    CHECK(line.starts_with("loop 201>201"));
    CHECK(parseConfiguration(line, kernel) == configuration);
  }
  CHECK_THROWS_AS(parseConfiguration("loop 011>201", kernel), Error);
  CHECK_THROWS_AS(parseConfiguration("loop 201>201 colour=3", kernel), Error);
  CHECK_THROWS_AS(parseConfiguration("loop 201>201 vector=a7", kernel), Error);
  CHECK_THROWS_AS(parseConfiguration("magic 201>201", kernel), Error);
}

TEST_CASE("equal kernels of other axis order have equal lines, and each reads its own axes") {
  const Kernel a = reluKernel({{'i', 8}, {'j', 4}}, "ji"),
               b = reluKernel({{'x', 4}, {'y', 8}}, "xy");
  REQUIRE(canonicalText(a) == canonicalText(b));
  const auto along = [](const Kernel &kernel, const char *name) {
    for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
      if (kernel.axes[axis].name == name) return int(axis);
    return -1;
  };
  const std::string line = configurationLine(
      a, reluConfiguration({0, 1}, {.vectorAxis = along(a, "i"), .laneAxis = along(a, "j")}));
  CHECK(line == configurationLine(b, reluConfiguration({0, 1}, {.vectorAxis = along(b, "y"),
                                                                .laneAxis = along(b, "x")})));
  CHECK((parseConfiguration(line, b).knobs).get<LoopKnobs>().vectorAxis == along(b, "y"));
}

TEST_CASE("dimensions of extent 1 do not make another configuration") {
  const Kernel kernel = reluKernel({{'b', 1}, {'i', 8}}, "bi");
  CHECK(configurationLine(kernel, reluConfiguration({0, 1}, {})) ==
        configurationLine(kernel, reluConfiguration({1, 0}, {})));
}

TEST_CASE(
    "GEMMs are one subject whatever their axes are called, and their strides are the "
    "line") {
  const Kernel ab = contractKernel({{'a', 2}, {'b', 3}, {'c', 4}}, "ab", "bc", "ac");
  const Kernel split = contractKernel({{'p', 2}, {'q', 1}, {'k', 3}, {'n', 4}}, "pqk", "kn", "pqn");
  const LibraryKnobs algorithm{.libraryVersion = 130200, .algorithm = 66, .tile = 20, .stages = 36};
  const Configuration plain{
      .inputs = {rowMajor(2), rowMajor(2)}, .outputs = {rowMajor(2)}, .knobs = algorithm};
  const Configuration merged{
      .inputs = {rowMajor(3), rowMajor(2)}, .outputs = {rowMajor(3)}, .knobs = algorithm};
  CHECK(subjectOf(ab, plain).text == subjectOf(split, merged).text);
  CHECK(configurationLine(ab, plain) == configurationLine(split, merged));
  const std::string line = configurationLine(ab, plain);
  const LineFields parts = splitLine(line);
  CHECK((parseKnobs(parts.family, parts.knobs, ab)).get<LibraryKnobs>() == algorithm);
  Configuration transposed = plain;
  transposed.inputs[0].order = {1, 0};
  CHECK(configurationLine(ab, plain) != configurationLine(ab, transposed));
}

TEST_CASE("profiles survive a round trip with all kinds of measurements") {
  const Kernel kernel = reluKernel({{'j', 4}, {'i', 8}}, "ji");
  Profile profile{.device = "h200", .protocols = {{1, "cold L2, n=9"}}, .kernels = {}};
  addMeasurement(profile, kernel, reluConfiguration({0, 1}, {}),
                 storedMeasurement(quantized(1.23456e-6)));
  addMeasurement(profile, kernel, reluConfiguration({1, 0}, {}),
                 {.status = MeasurementStatus::slow, .seconds = 5e-5, .n = 1, .familyVersion = 1});
  addMeasurement(profile, kernel, reluConfiguration({0, 1}, {.threads = 64}),
                 {.status = MeasurementStatus::failed,
                  .source = hash,
                  .familyVersion = 1,
                  .reason = "build: ptxas ; gave up"});
  CHECK(parseProfile(printProfile(profile), "p") == profile);
  CHECK_THROWS_AS(
      addMeasurement(profile, kernel, reluConfiguration({0, 1}, {}), storedMeasurement(1e-6)),
      Error);
}

TEST_CASE("a broken line is named") {
  const std::string kernel = "kernel " + hash + " relu\n";
  CHECK(rejection("nonsense").starts_with("p.txt:1:"));
  CHECK(rejection("# weft profile 1\n# device h200\n").starts_with("p.txt:1:"));
  CHECK(rejection(head + "  1e-6 9 0.1 1 - 1 loop 0>0\n")
            .starts_with("p.txt:4:"));  // a measurement before any kernel
  CHECK(rejection(head + kernel + "  nan 9 0.1 1 - 1 loop 0>0\n").starts_with("p.txt:5:"));
  CHECK(rejection(head + kernel + "  -1e-6 9 0.1 1 - 1 loop 0>0\n").starts_with("p.txt:5:"));
  CHECK(rejection(head + kernel + "  1e-6 0 0.1 1 - 1 loop 0>0\n").starts_with("p.txt:5:"));
  CHECK(rejection(head + kernel + "  1e-6 9 0.1 2 - 1 loop 0>0\n").find("protocol 2") !=
        std::string::npos);
  CHECK(rejection(head + kernel + "  failed 1 - 1 loop 0>0\n").starts_with("p.txt:5:"));
  const std::string measurement = "  1e-6 9 0.1 1 - 1 loop 0>0\n";
  CHECK(rejection(head + kernel + measurement).empty());
  CHECK(rejection(head + kernel + measurement + measurement).starts_with("p.txt:6:"));
  const std::string cut = rejection(head + kernel + measurement + "  1e-6 9 0.1 1 - 1 loop 01>0");
  CHECK(cut.starts_with("p.txt:6:"));
  CHECK(cut.find("cut off") != std::string::npos);
}

TEST_CASE("a line that no kernel has is rejected before anything is measured against it") {
  for (const char *line : {"loop 0132,01>0132 vector=a3 width=8 lanes=a3 reduction=warp perRow=32",
                           "loop 0,-,10[1/64]>01", "loop 01~64>10~8", "view 01>01",
                           "cublaslt 64,1:32768_1,64:32768>512,1:262144 algorithm=66",
                           "gemm-sm90 01,10>01 tileM=128 schedule=ping-pong"}) {
    INFO(line);
    if (std::string_view(line).starts_with("view"))
      CHECK_THROWS_AS(checkLine(line), Error);  // a view takes no time
    else CHECK_NOTHROW(checkLine(line));
  }
  for (const char *line : {"lop 01>01", "loop 09,01>01", "loop 011>01", "loop 01", "loop 01,>0A",
                           "loop 01>01 vector=z9", "loop 01>01 vector=a", "loop 01>01 width=8x",
                           "loop 01>01 schedul2=1", "loop 01>01 cu", "loop 01>01 reduction=warpp",
                           "loop 01[1/64>01", "loop 01[1/y]>01", "loop 01~>01", "loop 01~1>01",
                           "loop 01~8x>01", "cublaslt 64,1:32768_1,64:32768>512,1 algorithm=66",
                           "cublaslt 64,1:32768_1,6.4:32768>512,1:262144"}) {
    INFO(line);
    CHECK_THROWS_AS(checkLine(line), Error);
  }
}

TEST_CASE("merging keeps the newer version, then what was measured, then more repetitions") {
  const Kernel kernel = reluKernel({{'j', 4}, {'i', 8}}, "ji");
  const Configuration configuration = reluConfiguration({0, 1}, {});
  const auto profileWith = [&](ProfileMeasurement measurement, const std::string &protocol) {
    Profile profile{.device = "h200", .protocols = {{1, protocol}}, .kernels = {}};
    addMeasurement(profile, kernel, configuration, measurement);
    return profile;
  };
  const auto winner = [&](ProfileMeasurement first, ProfileMeasurement second) {
    Profile profile = profileWith(first, "a");
    mergeProfile(profile, profileWith(second, "b"));
    CHECK(profile.measurementCount() == 1);
    return profile.kernels.begin()->second.measurements.begin()->second;
  };
  ProfileMeasurement newer = storedMeasurement(2e-6);
  newer.familyVersion = 2;
  CHECK(winner(newer, storedMeasurement(1e-6)).seconds == 2e-6);
  CHECK(winner(storedMeasurement(1e-6), newer).protocol == 2);
  CHECK(winner(storedMeasurement(1e-6),
               {.status = MeasurementStatus::failed, .n = 99, .familyVersion = 1, .reason = "x"})
            .seconds == 1e-6);
  CHECK(winner(storedMeasurement(1e-6, 25), storedMeasurement(2e-6, 9)).seconds == 1e-6);
  Profile other = profileWith(newer, "b");
  other.device = "a100";
  Profile profile = profileWith(newer, "a");
  CHECK_THROWS_AS(mergeProfile(profile, other), Error);
}

TEST_CASE("thinning keeps the fastest of every layouts, and every layouts") {
  const Kernel kernel = reluKernel({{'j', 4}, {'i', 8}}, "ji");
  Profile profile{.device = "h200", .protocols = {{1, "a"}, {2, "unused"}}, .kernels = {}};
  for (const int threads : {64, 128, 256})
    addMeasurement(profile, kernel, reluConfiguration({0, 1}, {.threads = threads}),
                   storedMeasurement(threads * 1e-8));
  addMeasurement(profile, kernel, reluConfiguration({0, 1}, {.threads = 32}),
                 {.status = MeasurementStatus::slow, .seconds = 1e-9, .n = 1, .familyVersion = 1});
  addMeasurement(profile, kernel, reluConfiguration({1, 0}, {}),
                 {.status = MeasurementStatus::slow, .seconds = 1e-3, .n = 1, .familyVersion = 1});
  addMeasurement(profile, kernel, reluConfiguration({1, 0}, {.threads = 64}),
                 {.status = MeasurementStatus::failed, .familyVersion = 1, .reason = "x"});
  const Profile thin = thinned(profile, 1);
  REQUIRE(thin.measurementCount() == 2);
  CHECK(thin.protocols.size() == 1);
  std::vector<double> seconds;
  for (const auto &[line, measurement] : thin.kernels.begin()->second.measurements)
    seconds.push_back(measurement.seconds);
  CHECK(seconds == std::vector<double>{64e-8, 1e-3});
}

TEST_CASE("what ships passes all checks, and is read without them as it is with them") {
  size_t read = 0;
  for (const auto &file :
       std::filesystem::recursive_directory_iterator(WEFT_SOURCE_DIR "/profiles")) {
    if (file.path().extension() != ".txt") continue;
    std::ifstream in(file.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!text.starts_with("# weft profile ")) continue;
    INFO(file.path());
    const Profile profile = parseProfile(text, "p.txt");
    CHECK(parseTestedProfile(text, "p.txt") == profile);
    read += profile.measurementCount();
  }
  CHECK(read > 10000);
}

TEST_CASE("moving a profile into another gives what merging gives") {
  const std::string one = "  1.00e-06 9 0.100 1 - 1 loop 0>0\n";
  const Profile first = parseProfile(head + "kernel " + hash + " softmax\n" + one, "a");
  Profile other = parseProfile(
      "# weft profile 4\n# device h200\n# protocol 1 warm L2\nkernel " + hash +
          " softmax\n  2.00e-06 20 0.100 1 - 1 loop 0>0\n  3.00e-06 9 0.100 1 - 1 loop 01>01\n" +
          "kernel 0123456789abcdff scale\n" + one,
      "b");
  Profile merged = first, moved = first;
  mergeProfile(merged, other);
  moveIntoProfile(moved, std::move(other));
  CHECK(moved == merged);
  CHECK(merged.kernels.at(hash).measurements.at("loop 0>0").n == 20);
  CHECK(merged.kernels.at("0123456789abcdff").measurements.at("loop 0>0").protocol == 2);
}

TEST_CASE("a profile of format 2 is read in today's words, and an older one is rejected") {
  const std::string rest = "\n# device h200\n# protocol 1 cold L2\n";
  const std::string old = "product f16 64 x 512 x 512 x 64", now = "gemm f16 64 x 512 x 512 x 64";
  const std::string place = " 64,1:32768_1,64:32768>512,1:262144";
  const auto textOf = [&](const std::string &head, const std::string &subject,
                          const std::vector<std::string> &lines) {
    std::string text = head + rest + "kernel " + profileHash(subject) + " " + subject + "\n";
    for (const std::string &line : lines) text += "  1.00e-06 9 0.100 1 - 1 " + line + "\n";
    return text;
  };
  const std::string loop = "loop 0123>0123 vector=a3 width=8 lanes=a3 perRow=32",
                    library = "cublaslt" + place + " algorithm=66 splitK=2";
  const Profile read = parseProfile(
      textOf("# weft profile 2", old,
             {"hopper-contraction" + place +
                  " schedule=narrow tileM=64 staging=2 raster=4 splits=2 "
                  "sharers=2 streams=4",
              "hopper-contraction" + place, "hopper-contraction" + place + " schedule=ping-pong",
              "ampere-contraction" + place + " raster=8", "plain-contraction" + place + " tileK=8",
              loop, library}),
      "p");
  CHECK(read ==
        parseProfile(textOf("# weft profile 4", now,
                            {"gemm-sm90" + place +
                                 " schedule=single-consumer tileM=64 epilogueStages=2 "
                                 "groupM=4 splitK=2 multicastB=2 streamK=4",
                             "gemm-sm90" + place, "gemm-sm90" + place + " schedule=ping-pong",
                             "gemm-sm80" + place + " groupM=8", "gemm-fma" + place + " tileK=8",
                             loop, library}),
                     "p"));
  CHECK(read.kernels.contains(profileHash(now)));
  CHECK(printProfile(read).starts_with("# weft profile 4\n"));
  // Format 4 has no old words, and format 2 no new ones beside them.
  CHECK(rejection(textOf("# weft profile 4", now, {"hopper-contraction" + place})) ==
        "p.txt:5: unknown kernel family 'hopper-contraction'");
  CHECK(rejection(textOf("# weft profile 2", old, {"hopper-contraction" + place + " colour=1"})) ==
        "p.txt:5: unknown knob 'colour'");
  CHECK(rejection("# weft profile 1" + rest).starts_with("p.txt:1: the first line must be"));
  CHECK(rejection("# weft profile 5" + rest).starts_with("p.txt:1: the first line must be"));
}

TEST_CASE("a profile of format 3 keeps its measurements and the hashes of their texts") {
  const std::string text =
      "# weft profile 3\n# device h200\n# protocol 1 cold L2\nkernel 0123456789abcdef softmax\n"
      "  1.00e-06 9 0.100 1 04c2aabb11223344 1 loop 0>0\n";
  const Profile read = parseProfile(text, "p.txt");
  CHECK(read.kernels.at("0123456789abcdef").measurements.at("loop 0>0").source ==
        "04c2aabb11223344");
  CHECK(printProfile(read) == "# weft profile 4" + text.substr(text.find('\n')));
}
