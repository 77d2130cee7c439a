# Compiler launcher and linker: used when present, never required.
find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  # The sloppiness is what precompiled headers need, and no more: without the times of headers, one
  # that is edited while a compiler reads it leaves its old text under the new one's key. Without
  # the folder in the key, clones share entries.
  set(launcher ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_NOHASHDIR=1
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${WEFT_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()

find_program(WEFT_LLD NAMES ld.lld HINTS /usr/lib/llvm-22/bin NO_DEFAULT_PATH)
if(WEFT_LLD)
  get_filename_component(lld_folder ${WEFT_LLD} DIRECTORY)
  add_link_options(-B${lld_folder} -fuse-ld=lld)
endif()
add_link_options(-Wl,--gc-sections)
# A struct's members that a designated initializer does not name have defaults here: on purpose.
add_compile_options(-ffunction-sections -fdata-sections -Wall -Wextra -Wno-unused-parameter
    -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # What GCC 12 says of std::string's own code, and of a file's private types where several files
  # are one translation unit.
  add_compile_options(-Wno-stringop-overflow -Wno-restrict -Wno-subobject-linkage)
endif()
