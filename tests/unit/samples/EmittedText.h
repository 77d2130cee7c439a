// What an emitted kernel must have whatever its text looks like: every tensor reaches it, and every
// op shows in what it computes. Whether it computes the right thing is what tests/emulate asks.
#pragma once

#include "codegen/Emit.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

#include <set>
#include <string>

namespace weft::samples {

/// Parameters of these two kinds (pointers and tensor maps) name each of so many tensors.
inline bool reachAll(const codegen::EmittedKernel &emitted, codegen::Parameter::Kind pointer,
                     codegen::Parameter::Kind map, size_t tensors) {
  std::set<int> reached;
  for (const codegen::Parameter &parameter : emitted.parameters)
    if (parameter.kind == pointer || parameter.kind == map) reached.insert(parameter.index);
  return reached.size() == tensors;
}

inline void requireAllTensors(const codegen::EmittedKernel &emitted, const Kernel &kernel) {
  CHECK(reachAll(emitted, codegen::Parameter::Kind::input, codegen::Parameter::Kind::inputMap,
                 kernel.inputs.size()));
  CHECK(reachAll(emitted, codegen::Parameter::Kind::output, codegen::Parameter::Kind::outputMap,
                 kernel.outputs.size()));
}

/// Each expression is part of the text: with another one it is another text.
inline void requireEveryOp(const Kernel &kernel, const Configuration &configuration,
                           std::string_view architecture) {
  const std::string text = codegen::emit(kernel, configuration, architecture).text;
  size_t checked = 0;
  for (size_t op = 0; op < kernel.body.size(); ++op) {
    if (kernel.body[op].expression.empty()) continue;
    Kernel other = kernel;
    other.body[op].expression =
        Expression::unary(ScalarOperator::negate, kernel.body[op].expression);
    INFO(nameOf(kernel.body[op].kind));
    CHECK(codegen::emit(other, configuration, architecture).text != text);
    ++checked;
  }
  CHECK(checked > 0);
}

/// How often a name stands in a text outside of its comments.
inline size_t occurrences(const std::string &text, const std::string &name) {
  const auto isWord = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_';
  };
  size_t found = 0;
  for (size_t at = text.find(name); at != std::string::npos;
       at = text.find(name, at + name.size())) {
    const size_t line = text.rfind('\n', at) + 1, end = at + name.size();
    const bool isComment = text.substr(line, at - line).find("//") != std::string::npos;
    const bool isWhole =
        (at == 0 || !isWord(text[at - 1])) && (end == text.size() || !isWord(text[end]));
    found += isWhole && !isComment;
  }
  return found;
}

}  // namespace weft::samples
