// SPDX-License-Identifier: GPL-3.0-or-later
//
// Symbol tables and encoders for answers in FSST.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_WIRE_ENCODERS_H_
#define QUIRE_SERVER_SERVICE_CATALOG_WIRE_ENCODERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/mutex.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"
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

// The encoders of the tables that were used last, all archives together: one
// takes up to 4 MB and is made in less than a millisecond. Thread-safe.
class WireEncoders {
 public:
  // Memory of the encoders that are kept, in bytes, as far as
  // FsstEncoder::MemoryBytesMax() bounds it. The last one is always kept.
  static constexpr size_t kBytesMax = size_t{4} << 20;

  // Returns the encoder of the table, and makes it if it is not kept.
  std::shared_ptr<const FsstEncoder> Get(const WireTable& table)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Kept {
    std::string table;
    std::shared_ptr<const FsstEncoder> encoder;
  };

  Mutex mutex_;
  // The one used last comes last.
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_WIRE_ENCODERS_H_
