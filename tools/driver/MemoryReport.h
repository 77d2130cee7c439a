// What a plan needs of a GPU's memory, by kind, and which kernel needs most of it. No MLIR.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <nlohmann/json.hpp>

#include <string>

namespace weft::driver {

/// Bytes: "parameters", "arguments", "results", "workspace", and "total" of these; "peak": the
/// kernel while which most temporaries are in use, their bytes, those in results included, and who
/// they are and where.
nlohmann::json memoryReport(const Plan &plan);
/// The same in one line, with its end.
std::string memoryLine(const Plan &plan);

}  // namespace weft::driver
