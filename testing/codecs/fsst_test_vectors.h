// SPDX-License-Identifier: Apache-2.0
//
// Tables and strings made by the authors' library, and random tables, for
// tests, fuzzing and benchmarks of FSST.
#ifndef QUIRE_TESTING_CODECS_FSST_TEST_VECTORS_H_
#define QUIRE_TESTING_CODECS_FSST_TEST_VECTORS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "codecs/fsst/table/symbol_table.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {

struct FsstTestString {
  std::string text;
  std::string codes;
};

// A file in testdata/.
struct FsstTestVector {
  std::string name;
  bool zero_terminated = false;
  std::string table;
  std::vector<FsstTestString> strings;
};

// All files of testdata/, below the environment variable QUIRE_SOURCE_DIR.
// Never empty: exits if they cannot be read.
std::vector<FsstTestVector> FsstTestVectors();

// Returns the table of these symbols, which must be valid.
SymbolTable MakeSymbolTable(const std::vector<std::string>& symbols,
                            bool zero_terminated = false);

// Returns a table of up to `symbol_count` different pieces of `text`, of 1 to 8
// bytes; many share a prefix.
SymbolTable RandomSymbolTable(TestRandom& random, absl::string_view text,
                              size_t symbol_count,
                              bool zero_terminated = false);

// An invalid serialised table, and a word of the expected error.
struct BadSymbolTable {
  std::string bytes;
  std::string fault;
};

// One for each error that importers must detect.
std::vector<BadSymbolTable> BadSymbolTables();

}  // namespace quire

#endif  // QUIRE_TESTING_CODECS_FSST_TEST_VECTORS_H_
