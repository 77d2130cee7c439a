# Writes OUTPUT: the reference expressions of ir/ElementwiseOps.td as C++ functions without MLIR,
# from RECORDS, which mlir-tblgen --print-records wrote. A getter of a numeric attribute,
# getFactor().convertToDouble(), becomes attribute("factor"), and so does double(getCount()) of an
# integer.
cmake_minimum_required(VERSION 3.25)
file(STRINGS ${RECORDS} lines REGEX "string scalarReference = ")
set(text "// Generated from ir/ElementwiseOps.td by cmake/ScalarReferences.cmake.\n")
string(APPEND text
    "#include \"kernel/reference/ScalarReferences.h\"\n\n#include <cmath>\n#include <limits>\n\n")
string(APPEND text
    "namespace weft::reference {\n\n"
    "const std::map<OpKind, ScalarReference> &scalarReferences() {\n")
string(APPEND text "  static const std::map<OpKind, ScalarReference> table = {\n")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "= \"([a-z_]+) = (.*)\";$")
    continue()  # a class, whose arguments are open
  endif()
  set(name ${CMAKE_MATCH_1})
  set(expression "${CMAKE_MATCH_2}")
  foreach(getter IN ITEMS "get([A-Z])([A-Za-z]*)\\(\\)\\.convertToDouble\\(\\)"
      "double\\(get([A-Z])([A-Za-z]*)\\(\\)\\)")
    while(expression MATCHES "${getter}")
      set(text_of_getter "${CMAKE_MATCH_0}")
      set(rest "${CMAKE_MATCH_2}")
      string(TOLOWER "${CMAKE_MATCH_1}" first)
      string(REPLACE "${text_of_getter}" "attribute(\"${first}${rest}\")" expression
          "${expression}")
    endwhile()
  endforeach()
  string(APPEND text
      "      {opKindNamed(\"${name}\").value(), [](std::span<const double> operands,\n"
      "                        const NumericAttribute &attribute) -> double {\n")
  string(APPEND text
      "         const auto at = [&](size_t n) {\n"
      "           return n < operands.size() ? operands[n] : 0.0;\n"
      "         };\n"
      "         const double a = at(0), b = at(1), c = at(2);\n"
      "         (void)a, (void)b, (void)c, (void)attribute;\n"
      "         return ${expression};\n       }},\n")
endforeach()
string(APPEND text "  };\n  return table;\n}\n\n}  // namespace weft::reference\n")
file(WRITE ${OUTPUT} "${text}")
