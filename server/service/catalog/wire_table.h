// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CATALOG_WIRE_TABLE_H_
#define QUIRE_SERVER_SERVICE_CATALOG_WIRE_TABLE_H_

#include <cstdint>
#include <string>

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {

// The symbol table of an archive, for answers in its codes; WireEncoders has
// its encoder.
// Immutable, hence thread-safe.
struct WireTable {
  explicit WireTable(const SymbolTable& symbols)
      : table(symbols),
        serialised(table.Serialise()),
        hash(Checksum64(AsBytes(serialised))),
        decoder(table) {}

  const SymbolTable table;
  const std::string serialised;
  // Checksum of `serialised`, which identifies the table.
  const uint64_t hash;
  const FsstDecoder decoder;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_WIRE_TABLE_H_
