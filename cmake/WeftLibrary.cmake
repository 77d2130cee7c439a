# weft_library(NAME [MLIR | OPTIMIZED] SOURCES ... LINK ...): one static library rooted at the
# source folder, so that includes read "ir/IterationSpace.h". MLIR libraries share one precompiled
# header (1 s instead of 5 s a file). OPTIMIZED: -O2 in every build type. APART: files that are
# compiled one by one, since names in their anonymous namespaces are those of a neighbour.
function(weft_library name)
  cmake_parse_arguments(arg "MLIR;OPTIMIZED" "" "SOURCES;LINK;APART" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES} ${arg_APART})
  weft_join_sources(${name} ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PUBLIC ${WEFT_FMT} nlohmann_json::nlohmann_json ${arg_LINK})
  add_dependencies(${name} weft_op_kinds)  # a header that kernel/CMakeLists.txt generates
  if(arg_MLIR)
    target_link_libraries(${name} PUBLIC weft_mlir)
    weft_use_mlir_header(${name})
  elseif(arg_OPTIMIZED)
    weft_use_optimized_header(${name})
  else()
    weft_use_plain_header(${name})
  endif()
  if(arg_MLIR OR name IN_LIST WEFT_SANITIZED_LIBRARIES)
    weft_sanitize(${name})
  endif()
endfunction()

# weft_join_sources(TARGET SOURCES...): with WEFT_UNITY up to eight files of one folder are one
# translation unit, which halves the time to compile them (docs/experiments/build.md).
function(weft_join_sources target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${WEFT_UNITY} UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE folder)
    cmake_path(GET folder PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER "${folder}" group)
    math(EXPR before_${group} "0${before_${group}} + 1")
    math(EXPR batch "(${before_${group}} - 1) / 8")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${batch})
  endforeach()
endfunction()

# The precompiled headers live in libraries without other content; every user reuses them.
function(weft_header_library name)
  cmake_parse_arguments(arg "" "" "LINK;HEADERS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cpp "// carrier of a precompiled header\n")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PUBLIC ${WEFT_FMT} nlohmann_json::nlohmann_json ${arg_LINK})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

function(weft_use_mlir_header name)
  if(NOT TARGET weft_pch_mlir)
    weft_header_library(weft_pch_mlir LINK weft_mlir HEADERS
      <algorithm> <cstdint> <functional> <map> <memory> <optional> <string> <string_view>
          <variant> <vector>
      <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/BuiltinTypes.h>
          <mlir/IR/DialectImplementation.h>
      <mlir/IR/OpImplementation.h> <mlir/IR/PatternMatch.h> <mlir/Interfaces/FunctionInterfaces.h>
      <mlir/Interfaces/SideEffectInterfaces.h> <mlir/Parser/Parser.h> <mlir/Pass/Pass.h>
          <mlir/Pass/PassManager.h>
      <llvm/ADT/TypeSwitch.h>)
    weft_sanitize(weft_pch_mlir)
  endif()
  target_precompile_headers(${name} REUSE_FROM weft_pch_mlir)
endfunction()

function(weft_use_plain_header name)
  if(NOT TARGET weft_pch_plain)
    weft_header_library(weft_pch_plain HEADERS
      <algorithm> <cstdint> <filesystem> <functional> <map> <memory> <optional> <set> <string>
          <string_view>
      <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)
  endif()
  target_precompile_headers(${name} REUSE_FROM weft_pch_plain)
endfunction()

# Of what is optimized in every build type, whose compiler flags the others lack.
function(weft_use_optimized_header name)
  if(NOT TARGET weft_pch_optimized)
    weft_header_library(weft_pch_optimized HEADERS
      <algorithm> <cmath> <cstdint> <functional> <map> <memory> <optional> <set> <string>
          <string_view>
      <variant> <vector> <fmt/format.h> ${CMAKE_SOURCE_DIR}/kernel/Family.h)
    add_dependencies(weft_pch_optimized weft_op_kinds)
    target_compile_options(weft_pch_optimized PRIVATE -O2)
  endif()
  target_compile_options(${name} PRIVATE -O2)
  target_precompile_headers(${name} REUSE_FROM weft_pch_optimized)
endfunction()

# Of tests: Catch2 besides, and with MLIR the dialect (a third to a half less time to compile).
# Neither is position independent code of a library, as the executables that reuse them are not.
function(weft_use_test_header name mlir)
  set(header weft_pch_test)
  if(mlir)
    set(header weft_pch_test_mlir)
  endif()
  if(NOT TARGET ${header})
    if(mlir)
      weft_header_library(${header} LINK weft_mlir HEADERS
        <algorithm> <functional> <map> <memory> <optional> <set> <string> <string_view> <variant>
            <vector> <fmt/format.h> <nlohmann/json.hpp> <catch2/catch.hpp>
        ${CMAKE_SOURCE_DIR}/ir/Weft.h ${CMAKE_SOURCE_DIR}/kernel/Family.h <mlir/Parser/Parser.h>
            <mlir/Pass/Pass.h> <mlir/Pass/PassManager.h>)
      add_dependencies(${header} weft_ir_tablegen weft_op_kinds)
      weft_sanitize(${header})
    else()
      weft_header_library(${header} HEADERS
        <algorithm> <filesystem> <functional> <map> <memory> <optional> <set> <string>
            <string_view>
        <variant> <vector> <fmt/format.h> <nlohmann/json.hpp> <catch2/catch.hpp>)
    endif()
    target_include_directories(${header} PRIVATE ${WEFT_CATCH_INCLUDE})
    target_compile_options(${header} PRIVATE -Og)
    set_target_properties(${header} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  endif()
  target_precompile_headers(${name} REUSE_FROM ${header})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
endfunction()

# weft_embed(TARGET NAME files...): text files as a generated C++ map, for device headers and device
# descriptions.
function(weft_embed target name)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  list(TRANSFORM ARGN REPLACE "^([^/])" "${CMAKE_CURRENT_SOURCE_DIR}/\\1" OUTPUT_VARIABLE files)
  list(JOIN files " " files)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DNAME=${name} "-DFILES=${files}" -P
        ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# weft_device_headers(OUTPUT): the shared device headers and those of kernel families. Kernels
# include all of them as weft/NAME.cuh, so no two have one name.
function(weft_device_headers output)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/codegen/device/*.cuh
      ${CMAKE_SOURCE_DIR}/codegen/families/*/device/*.cuh)
  set(names)
  foreach(header IN LISTS headers)
    cmake_path(GET header FILENAME name)
    if(name IN_LIST names)
      message(FATAL_ERROR "two device headers are named ${name}; kernels include one of them as "
          "weft/${name}: rename ${header}")
    endif()
    list(APPEND names ${name})
  endforeach()
  set(${output} ${headers} PARENT_SCOPE)
endfunction()

# weft_embed_test_headers(TARGET): device headers of the families that only tests have, for
# tests/support/DeviceHeaders.h.
function(weft_embed_test_headers target)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/families/*/device/*.cuh)
  weft_embed(${target} testHeaderFiles ${headers})
endfunction()

# weft_use_allocator(NAME): links jemalloc, which takes a fifth off the time of a search. Not where
# the sanitizers bring an allocator.
function(weft_use_allocator name)
  if(NOT WEFT_SANITIZE)
    target_link_libraries(${name} PRIVATE ${WEFT_ALLOCATOR} ${CMAKE_DL_LIBS})
  endif()
endfunction()

# weft_test(NAME LABEL SOURCES ... LINK ...): one Catch2 executable, registered with CTest under a
# tier label.
function(weft_test name label)
  weft_test_executable(${name} ${ARGN})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${label})
endfunction()

# The executable alone.
function(weft_test_executable name)
  cmake_parse_arguments(arg "MLIR" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PRIVATE weft_catch_main ${WEFT_FMT} nlohmann_json::nlohmann_json
      ${arg_LINK})
  target_compile_definitions(${name} PRIVATE WEFT_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
      WEFT_BINARY_DIR="${CMAKE_BINARY_DIR}")
  # What is tested is optimized; assertions are many, and run once: a fifth less time to compile.
  target_compile_options(${name} PRIVATE -Og)
  if(arg_MLIR)
    target_link_libraries(${name} PRIVATE weft_mlir)
    weft_sanitize(${name})
  endif()
  weft_use_test_header(${name} "${arg_MLIR}")
  # What configures Catch2 includes it by itself.
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    file(STRINGS ${path} configures REGEX "define CATCH_CONFIG_")
    if(configures)
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
  weft_use_allocator(${name})
endfunction()
