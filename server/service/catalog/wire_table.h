// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CATALOG_WIRE_TABLE_H_
#define QUIRE_SERVER_SERVICE_CATALOG_WIRE_TABLE_H_

#include <cstdint>
#include <string>

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {

// Converts the text of an archive to codes of its symbol table and back.
// Immutable, hence thread-safe.
struct WireTable {
  explicit WireTable(const SymbolTable& table)
      : serialised(table.Serialise()),
        hash(Checksum64(AsBytes(serialised))),
        encoder(table),
        decoder(table) {}

  const std::string serialised;
  // Checksum of `serialised`, which identifies the table.
  const uint64_t hash;
  const FsstEncoder encoder;
  const FsstDecoder decoder;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_WIRE_TABLE_H_
