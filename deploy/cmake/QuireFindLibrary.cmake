# SPDX-License-Identifier: Apache-2.0
# For our own build, and installed for programs that use the client.

# quire_find_library(NAME library header) defines the imported target
# quire::NAME for a library that ships no CMake package.
function(quire_find_library name library header)
  if(TARGET quire::${name})
    return()
  endif()
  find_library(QUIRE_${name}_LIBRARY ${library} REQUIRED)
  find_path(QUIRE_${name}_INCLUDE ${header} REQUIRED)
  mark_as_advanced(QUIRE_${name}_LIBRARY QUIRE_${name}_INCLUDE)
  add_library(quire::${name} UNKNOWN IMPORTED)
  set_target_properties(quire::${name} PROPERTIES
    IMPORTED_LOCATION "${QUIRE_${name}_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${QUIRE_${name}_INCLUDE}")
endfunction()

# Libraries of the client and its codecs.
macro(quire_find_codec_libraries)
  quire_find_library(brotlidec brotlidec brotli/decode.h)
  quire_find_library(lz4 lz4 lz4.h)
  # The static library: its experimental section (sequences, raw dictionaries) is
  # not part of the shared one's stable ABI.
  quire_find_library(zstd libzstd.a zstd.h)
  quire_find_library(xxhash xxhash xxhash.h)
  quire_find_library(divsufsort divsufsort divsufsort.h)
endmacro()
