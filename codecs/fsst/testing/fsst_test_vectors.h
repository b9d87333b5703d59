// SPDX-License-Identifier: Apache-2.0
//
// For tests, fuzzing and benchmarks of FSST: tables and strings that the
// authors' library made, and tables of any kind.
#ifndef QUIRE_CODECS_FSST_TESTING_FSST_TEST_VECTORS_H_
#define QUIRE_CODECS_FSST_TESTING_FSST_TEST_VECTORS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "codecs/codec_test_inputs.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {

struct FsstTestString {
  std::string text;
  std::string codes;
};

// One of the files in testdata/.
struct FsstTestVector {
  std::string name;
  bool zero_terminated = false;
  std::string table;
  std::vector<FsstTestString> strings;
};

// All of testdata/, found below the environment variable QUIRE_SOURCE_DIR.
// Never empty: ends the program if it cannot be read.
std::vector<FsstTestVector> FsstTestVectors();

// The table of these symbols, which must be sound.
SymbolTable MakeSymbolTable(const std::vector<std::string>& symbols,
                            bool zero_terminated = false);

// A table of up to `symbol_count` different pieces of `text`, of 1 to 8 bytes;
// many begin alike.
SymbolTable RandomSymbolTable(TestRandom& random, absl::string_view text,
                              size_t symbol_count,
                              bool zero_terminated = false);

// A serialised table that must be refused, and a word that says why.
struct BadSymbolTable {
  std::string bytes;
  std::string fault;
};

// One of each kind that importers must refuse.
std::vector<BadSymbolTable> BadSymbolTables();

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TESTING_FSST_TEST_VECTORS_H_
