// weft import: a model to its graph.
#include "tools/driver/Compilation.h"
#include "tools/driver/Console.h"
#include "tools/driver/commands/Commands.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

namespace weft::driver {

Action addImport(CLI::App &command) {
  struct Flags {
    ModelFlags model;
    ChoiceFlags choices;
    std::string output = "-";
  };
  auto flags = std::make_shared<Flags>();
  flags->model.declare(command);
  command.add_option("-o,--output", flags->output, "file to write; default: standard output")
      ->type_name("FILE");
  command.add_option("--variant", flags->choices.variant, "of a file of several variants")
      ->type_name("NAME")
      ->group("Model");
  return [flags](bool json) {
    TargetFlags unpriced;  // nothing is chosen: no reason to read the rows that ship
    unpriced.profile = noProfile;
    Compilation compilation(flags->model, flags->choices, unpriced);
    compilation.import();
    const models::Description &description = compilation.description();
    const std::string graph = Compilation::print(compilation.graph());
    if (json) {
      if (flags->output != "-") writeFile(flags->output, graph);
      nlohmann::json object = {{"name", description.name},
                               {"dims", description.dims},
                               {"ignoredKeys", description.ignoredKeys},
                               {"dropoutKeys", description.dropoutKeys},
                               {"allowedKeys", description.allowedKeys},
                               {"assumed", description.assumed}};
      if (description.dtype) object["dtype"] = nameOf(*description.dtype);
      if (flags->output == "-") object["graph"] = graph;
      printResult(object);
      return 0;
    }
    noteConfig(description);
    writeFile(flags->output, graph);
    return 0;
  };
}

}  // namespace weft::driver
