# Writes OUTPUT: WEFT_OP(layerNorm, "layer_norm") for each op of the dialect, from RECORDS, which
# mlir-tblgen --print-records wrote; kernel/OpKind.h includes it. Ops that no kernel's body holds,
# nor the dataflow of a graph, are left out.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/CamelCase.cmake)
file(STRINGS ${RECORDS} lines REGEX "string opName = \"")
set(text "// Generated from ir/WeftOps.td by cmake/OpKinds.cmake.\n")
foreach(line IN LISTS lines)
  string(REGEX REPLACE ".*= \"([a-z_0-9]+)\";.*" "\\1" name "${line}")
  if(name MATCHES "^(graph|return|yield|expect_close)$")
    continue()
  endif()
  weft_camel_case(${name} enumerator)
  string(APPEND text "WEFT_OP(${enumerator}, \"${name}\")\n")
endforeach()
# Unchanged text keeps its time, and hundreds of objects what they are.
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "${text}" @ONLY)
