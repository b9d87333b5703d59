// SPDX-License-Identifier: Apache-2.0
#include "testing/codecs/fsst_test_vectors.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/json_text.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

std::string FromHex(const Json& hex) {
  return absl::HexStringToBytes(hex.get<std::string>());
}

FsstTestVector ReadVector(const std::string& name) {
  const char* const root = std::getenv("QUIRE_SOURCE_DIR");
  const std::string path = absl::StrCat(root == nullptr ? "." : root,
                                        "/testing/codecs/testdata/", name);
  std::ifstream file(path, std::ios::binary);
  const Json json = Json::parse(file, /*cb=*/nullptr,
                                /*allow_exceptions=*/false);
  QUIRE_CHECK(!json.is_discarded(), path, " is not JSON");
  FsstTestVector vector;
  vector.name = name;
  vector.zero_terminated = json.at("zero_terminated").get<bool>();
  vector.table = FromHex(json.at("table_hex"));
  for (const Json& string : json.at("strings")) {
    vector.strings.push_back({.text = FromHex(string.at("plaintext_hex")),
                              .codes = FromHex(string.at("compressed_hex"))});
  }
  QUIRE_CHECK(!vector.strings.empty(), "no strings in ", path);
  return vector;
}

}  // namespace

std::vector<FsstTestVector> FsstTestVectors() {
  return {ReadVector("v1_urls.json"), ReadVector("v2_zeroterm.json"),
          ReadVector("v3_full255.json"), ReadVector("v4_empty_table.json")};
}

SymbolTable MakeSymbolTable(const std::vector<std::string>& symbols,
                            bool zero_terminated) {
  std::vector<FsstSymbol> list;
  for (const std::string& text : symbols) {
    FsstSymbol symbol = {.size = static_cast<uint8_t>(text.size())};
    for (size_t i = 0; i < std::min(text.size(), kFsstSymbolSizeMax); ++i) {
      symbol.bytes |= uint64_t{static_cast<uint8_t>(text[i])} << (8 * i);
    }
    list.push_back(symbol);
  }
  auto table = SymbolTable::FromSymbols(list, zero_terminated);
  QUIRE_CHECK(table.ok(), table.status().ToString());
  return *std::move(table);
}

SymbolTable RandomSymbolTable(TestRandom& random, absl::string_view text,
                              size_t symbol_count, bool zero_terminated) {
  std::set<std::string> symbols;
  // Bounded: a short text has too few pieces.
  for (size_t i = 0; i < 4 * symbol_count && symbols.size() < symbol_count;
       ++i) {
    if (text.empty()) {
      break;
    }
    const size_t begin = RandomBelow(random, text.size());
    std::string symbol(text.substr(begin, kFsstSymbolSizeMax));
    // Sometimes many prefixes that are symbols too.
    symbol.resize(1 + RandomBelow(random, symbol.size()));
    if (zero_terminated && absl::StrContains(symbol, '\0')) {
      continue;
    }
    symbols.insert(symbol);
    if (i % 3 == 0 && symbols.size() < symbol_count) {
      symbols.insert(symbol.substr(0, 1 + RandomBelow(random, symbol.size())));
    }
  }
  if (zero_terminated && symbols.size() == kFsstSymbolCountMax) {
    symbols.erase(symbols.begin());
  }
  return MakeSymbolTable({symbols.begin(), symbols.end()}, zero_terminated);
}

std::vector<BadSymbolTable> BadSymbolTables() {
  const std::string good = MakeSymbolTable({"a", "bc", "defg"}).Serialise();
  std::vector<BadSymbolTable> bad;
  const auto add = [&](std::string fault,
                       const std::vector<std::pair<size_t, int>>& changes) {
    std::string bytes = good;
    for (const auto& [offset, value] : changes) {
      bytes[offset] = static_cast<char>(value);
    }
    bad.push_back({std::move(bytes), std::move(fault)});
  };
  bad.push_back({"", "header"});
  bad.push_back({good.substr(0, 16), "header"});
  bad.push_back({good.substr(0, good.size() - 1), "behind its header"});
  bad.push_back({good.substr(0, 17), "behind its header"});
  bad.push_back({good + "x", "left over"});
  add("byte order", {{0, 0}});
  add("names", {{1, 2}});
  add("names", {{1, 4}});
  add("version", {{4, 0x0b}});
  add("version", {{7, 2}});
  add("flags", {{8, 2}});
  add("without a symbol of one byte", {{8, 1}, {9, 0}, {1, 2}});
  // Byte 1 agrees modulo 256.
  add("counts 259", {{9, 255}, {10, 2}, {11, 2}, {12, 0}, {1, 3}});
  add("behind its header", {{16, 200}, {1, 203}});
  return bad;
}

}  // namespace quire
