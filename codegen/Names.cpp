// Names: reserved words come first, so that no axis or value of a model can capture them.
#include "codegen/Names.h"

#include "kernel/CanonicalNames.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

namespace weft::codegen {
namespace {

/// Words of C++ and CUDA that a model may well use as a name.
constexpr std::array reserved = {
    "and",     "asm",       "auto",     "bool",     "break",   "case",     "char",      "class",
    "const",   "constexpr", "continue", "default",  "delete",  "do",       "double",    "else",
    "enum",    "exp",       "extern",   "false",    "float",   "for",      "goto",      "half",
    "if",      "inline",    "int",      "long",     "max",     "min",      "namespace", "new",
    "not",     "operator",  "or",       "private",  "public",  "register", "return",    "short",
    "signed",  "sizeof",    "static",   "struct",   "switch",  "template", "this",      "true",
    "typedef", "union",     "unsigned", "using",    "virtual", "void",     "volatile",  "weft",
    "while",   "xor",       "tanh",     "y0",       "y1",      "yn",       "j0",        "j1",
    "jn",      "threadIdx", "blockIdx", "blockDim", "gridDim", "main",     "bit_or",    "bit_and",
    "compl",   "export",    "import",   "friend",   "mutable", "throw",    "try",       "catch"};

}  // namespace

Names::Names() : taken(reserved.begin(), reserved.end()) {}

Code Names::reserve(std::string_view wish) {
  std::string name;
  for (char c : wish) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
  while (name.find("__") != std::string::npos) name.replace(name.find("__"), 2, "_");
  std::string unique = name;
  for (int n = 2; !taken.insert(unique).second; ++n) unique = fmt::format("{}_{}", name, n);
  return Code::name(unique);
}

Kernel withCanonicalNames(const Kernel &kernel) {
  Kernel canonical = kernel;
  canonical.name = "kernel";
  const CanonicalNames names(kernel);
  for (size_t i = 0; i < canonical.axes.size(); ++i)
    canonical.axes[i].name = fmt::format("unused{}", i);
  for (AxisId axis : names.axesInOrder()) canonical.axes[axis].name = names.axis(axis);
  for (size_t i = 0; i < canonical.values.size(); ++i) {
    canonical.values[i].name = names.value(static_cast<int>(i));
    canonical.values[i].number = -1;
  }
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    canonical.values[kernel.inputs[i]].name = fmt::format("in{}", i);
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    canonical.values[kernel.outputs[i]].name = fmt::format("out{}", i);
  for (BodyOp &op : canonical.body) op.number = -1;
  return canonical;
}

}  // namespace weft::codegen
