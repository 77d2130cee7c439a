// Numbered values get names in their locations; see NameValues.h.
#include "passes/NameValues.h"

#include "mlir/IR/Builders.h"
#include "passes/Describe.h"

#include <set>
#include <string>

namespace weft {
namespace {

class ValueNames {
public:
  explicit ValueNames(mlir::Block &body) {
    for (mlir::Value argument : body.getArguments()) taken.insert(writtenName(argument));
    for (mlir::Operation &op : body)
      for (mlir::Value result : op.getResults()) taken.insert(writtenName(result));
  }

  std::string unique(const std::string &wanted) {
    std::string name = wanted;
    for (int suffix = 2; !taken.insert(name).second; ++suffix)
      name = wanted + "_" + std::to_string(suffix);
    return name;
  }

private:
  std::set<std::string> taken;
};

}  // namespace

void nameValues(mlir::Operation *graph) {
  mlir::Block &body = graph->getRegion(0).front();
  ValueNames names(body);
  mlir::Builder builder(graph->getContext());
  const auto location = [&](const std::string &name, mlir::Location at) -> mlir::Location {
    return mlir::NameLoc::get(builder.getStringAttr(name), at);
  };
  for (mlir::BlockArgument argument : body.getArguments())
    if (writtenName(argument).empty())
      argument.setLoc(location(names.unique("arg" + std::to_string(argument.getArgNumber())),
                               argument.getLoc()));
  for (mlir::Operation &op : body) {
    std::string all;
    bool isNumbered = false;
    for (mlir::Value result : op.getResults()) {
      std::string name = writtenName(result);
      isNumbered = isNumbered || name.empty();
      if (name.empty()) name = names.unique(identifier(op.getName().stripDialect()));
      all += (all.empty() ? "" : ", ") + name;
    }
    if (isNumbered) op.setLoc(location(all, op.getLoc()));
  }
}

}  // namespace weft
