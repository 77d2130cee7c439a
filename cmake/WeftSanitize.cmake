# Preset asan: AddressSanitizer and UndefinedBehaviorSanitizer in what works on graphs. The rest is
# compiled as in preset dev, so that both share the compiler cache: only what is instrumented costs
# time.
option(WEFT_SANITIZE "Instrument the graph-level libraries and their tests (preset asan)" OFF)

# Free of MLIR, and part of what works on graphs.
set(WEFT_SANITIZED_LIBRARIES weft_iteration_space weft_fuse weft_account weft_reference)

function(weft_sanitize target)
  if(NOT WEFT_SANITIZE)
    return()
  endif()
  # Not vptr: it wants the type information that LLVM is compiled without.
  target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize=vptr
      -fno-sanitize-recover=all
                         -fno-omit-frame-pointer -g1)
  target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
  target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  # The runtime is a shared library and asks the program for its options: as an object, since that
  # library has a weak default which would keep a member of an archive out.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/SanitizerOptions.cpp)
    target_link_options(${target} PRIVATE -Wl,--export-dynamic-symbol=__asan_default_options)
  endif()
endfunction()
