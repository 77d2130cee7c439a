// Mutations of a graph's text that mostly leave it a graph: operands, extents, dtypes, axes,
// einsums, attributes, ops and results are changed where they stand and wherever they occur, so
// that verifiers and passes are tried and not only the parser.
#pragma once

#include "tests/fuzz/Random.h"

#include <string>
#include <vector>

namespace weft::fuzz {

/// One change.
void mutateGraph(std::string &text, Random &random);

/// Keywords, ops and attributes that graphs have: replacements for tokens.
const std::vector<std::string> &graphWords();

}  // namespace weft::fuzz
