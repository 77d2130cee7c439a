// Messages of measuring processes as CBOR objects.
#include "runtime/measure/MeasureJobs.h"

#include "codegen/families/library/GemmFields.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/Error.h"
#include "kernel/Schedule.h"

#include <nlohmann/json.hpp>

namespace weft::runtime {
namespace {

using nlohmann::json;

std::string pack(const json &object) {
  const std::vector<uint8_t> bytes = json::to_cbor(object);
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// Reads a body and turns whatever is wrong with it into one error.
template <typename Message>
Message unpack(std::string_view body, const char *what, Message (*read)(const json &)) {
  try {
    return read(json::from_cbor(body));
  } catch (const json::exception &error) {
    throw Error::checkFailed("a {} that cannot be read: {}", what, error.what());
  }
}

json binary(const std::string &bytes) { return json::binary({bytes.begin(), bytes.end()}); }
std::string fromBinary(const json &value) {
  const auto &bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}

json toJson(const std::optional<TensorMap> &map) {
  if (!map) return {};
  return {{"dtype", nameOf(map->dtype)},  {"extents", map->extents},
          {"strides", map->strides},      {"box", map->box},
          {"swizzle", map->swizzleBytes}, {"shift", map->shift}};
}

std::optional<TensorMap> tensorMapFrom(const json &object) {
  if (object.is_null()) return std::nullopt;
  const auto type = parseDType(object.at("dtype").get<std::string>());
  if (!type) throw Error::checkFailed("a map of a tensor of an unknown element type");
  return TensorMap{.dtype = *type,
                   .extents = object.at("extents"),
                   .strides = object.at("strides"),
                   .box = object.at("box"),
                   .swizzleBytes = object.at("swizzle"),
                   .shift = object.at("shift")};
}

json toJson(const KernelJob &job) {
  json arguments = json::array();
  for (const KernelArgument &argument : job.arguments)
    arguments.push_back({{"kind", nameOf(argument.kind)},
                         {"index", argument.index},
                         {"map", toJson(argument.map)}});
  return {{"cubin", binary(job.cubin)}, {"entry", job.entry},
          {"grid", job.grid},           {"block", job.block},
          {"shared", job.sharedBytes},  {"arguments", arguments},
          {"inputs", job.inputBytes},   {"outputs", job.outputBytes},
          {"zeros", job.zeroInputs},    {"lengths", job.lengthInputs},
          {"float8", job.readsFloat8},  {"workspace", job.workspaceBytes},
          {"pages", job.pageInputs}};
}

ParameterKind parameterKindFrom(const std::string &name) {
  const auto kind = parseParameterKind(name);
  if (!kind) throw Error::checkFailed("an argument of the unknown kind \"{}\"", name);
  return *kind;
}

KernelJob kernelJobFrom(const json &object) {
  KernelJob job{.cubin = fromBinary(object.at("cubin")),
                .entry = object.at("entry"),
                .grid = object.at("grid"),
                .block = object.at("block"),
                .sharedBytes = object.at("shared"),
                .arguments = {},
                .inputBytes = object.at("inputs"),
                .outputBytes = object.at("outputs"),
                .workspaceBytes = object.at("workspace"),
                .zeroInputs = object.at("zeros"),
                .lengthInputs = object.at("lengths"),
                .pageInputs = object.at("pages"),
                .readsFloat8 = object.at("float8")};
  for (const json &argument : object.at("arguments"))
    job.arguments.push_back({.kind = parameterKindFrom(argument.at("kind")),
                             .index = argument.at("index"),
                             .map = tensorMapFrom(argument.at("map"))});
  return job;
}

json toJson(const GroupStrides &strides) { return {strides.batch, strides.m, strides.n}; }
GroupStrides groupStridesFrom(const json &numbers) {
  return {.batch = numbers.at(0), .m = numbers.at(1), .n = numbers.at(2)};
}

json toJson(const GemmJob &job) {
  json numbers = json::array();
  for (const GemmField &one : gemmFields) numbers.push_back(job.gemm.shape.*one.member);
  return {{"shape", numbers},
          {"types", nameOf(job.gemm.types())},
          {"alpha", job.gemm.alpha},
          {"candidates", job.candidates},
          {"epilogue", traitsOf(job.gemm.epilogue).name},
          {"beta", job.gemm.beta},
          {"residual", toJson(job.gemm.residual)},
          {"auxiliary", toJson(job.gemm.auxiliary)}};
}

GemmJob gemmJobFrom(const json &object) {
  GemmJob job{.gemm = {}, .candidates = object.at("candidates")};
  for (size_t i = 0; i < std::size(gemmFields); ++i)
    job.gemm.shape.*gemmFields[i].member = object.at("shape").at(i);
  const auto types = parseGemmTypes(object.at("types").get<std::string>());
  if (!types) throw Error::checkFailed("a GEMM of an unknown element type");
  job.gemm.setTypes(*types);
  job.gemm.alpha = object.at("alpha");
  const auto epilogue = parseLibraryEpilogue(object.at("epilogue").get<std::string>());
  if (!epilogue) throw Error::checkFailed("a GEMM with an unknown epilogue");
  job.gemm.epilogue = *epilogue;
  job.gemm.beta = object.at("beta");
  job.gemm.residual = groupStridesFrom(object.at("residual"));
  job.gemm.auxiliary = groupStridesFrom(object.at("auxiliary"));
  return job;
}

json toJson(const MeasureResult &result) {
  json knobs = json::array();
  for (const ScheduleField &field : libraryFamily.schedule)
    knobs.push_back(field.get(result.knobs));
  return {
      {"job", result.job},         {"knobs", knobs}, {"status", static_cast<int>(result.status)},
      {"seconds", result.seconds}, {"n", result.n},  {"spread", result.spread},
      {"reason", result.reason}};
}

MeasureResult resultFrom(const json &object) {
  MeasureResult result{.job = object.at("job"),
                       .knobs = {},
                       .status = static_cast<MeasurementStatus>(object.at("status").get<int>()),
                       .seconds = object.at("seconds"),
                       .n = object.at("n"),
                       .spread = object.at("spread"),
                       .reason = object.at("reason")};
  size_t position = 0;
  Knobs knobs = result.knobs;
  for (const ScheduleField &field : libraryFamily.schedule)
    field.set(knobs, object.at("knobs").at(position++));
  result.knobs = knobs.get<LibraryKnobs>();
  return result;
}

}  // namespace

std::string toBody(const MeasureGroup &group) {
  json kernels = json::array();
  for (const KernelJob &job : group.kernels) kernels.push_back(toJson(job));
  return pack({{"best", group.bestFirstRun},
               {"kernels", kernels},
               {"gemm", group.gemm ? toJson(*group.gemm) : json()}});
}

std::string toBody(const MeasureReply &reply) {
  json results = json::array();
  for (const MeasureResult &result : reply.results) results.push_back(toJson(result));
  return pack({{"best", reply.bestFirstRun}, {"results", results}, {"fatal", reply.fatal}});
}

std::string toBody(const MeasureGreeting &greeting) {
  return pack({{"gpu", greeting.gpu},
               {"architecture", greeting.architecture},
               {"driver", greeting.driver},
               {"protocol", greeting.protocol},
               {"clocks", greeting.clocks},
               {"error", greeting.error},
               {"errorKind", greeting.errorKind}});
}

MeasureGroup measureGroupFrom(std::string_view body) {
  return unpack<MeasureGroup>(body, "group to measure", [](const json &object) {
    MeasureGroup group{.bestFirstRun = object.at("best"), .kernels = {}, .gemm = {}};
    for (const json &job : object.at("kernels")) group.kernels.push_back(kernelJobFrom(job));
    if (!object.at("gemm").is_null()) group.gemm = gemmJobFrom(object.at("gemm"));
    return group;
  });
}

MeasureReply measureReplyFrom(std::string_view body) {
  return unpack<MeasureReply>(body, "reply of a measuring process", [](const json &object) {
    MeasureReply reply{.bestFirstRun = object.at("best")};
    reply.fatal = object.at("fatal");
    for (const json &result : object.at("results")) reply.results.push_back(resultFrom(result));
    return reply;
  });
}

MeasureGreeting measureGreetingFrom(std::string_view body) {
  return unpack<MeasureGreeting>(body, "greeting of a measuring process", [](const json &object) {
    return MeasureGreeting{.gpu = object.at("gpu"),
                           .architecture = object.at("architecture"),
                           .driver = object.at("driver"),
                           .protocol = object.at("protocol"),
                           .clocks = object.at("clocks"),
                           .error = object.at("error"),
                           .errorKind = object.at("errorKind")};
  });
}

}  // namespace weft::runtime
