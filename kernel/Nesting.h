// How deep a text nests, found before a parser sees it. Parsers, printers and copies of what they
// read recurse, and the stack ends where nobody can catch it; so whatever weft reads is scanned
// first, in one pass and without recursion.
#pragma once

#include <string_view>

namespace weft {

/// Levels that are read; a model, a plan or a configuration has about ten.
constexpr int deepestNesting = 1000;

/// Throws Error(badInput) naming `where`, line, column and the limit if objects and arrays nest
/// deeper.
void checkJsonNesting(std::string_view text, std::string_view where);

/// The same for MLIR's text form: brackets of every kind, each operator of an affine expression as
/// one level more (its parser recurses at each), and the levels of what an alias stands for where
/// the alias is used; and that no op names more than a million results. Throws Error(badInput) for
/// MLIR bytecode, too, which is no text.
void checkMlirNesting(std::string_view text, std::string_view where);

}  // namespace weft
