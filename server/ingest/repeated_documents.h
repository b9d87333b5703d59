// SPDX-License-Identifier: GPL-3.0-or-later
//
// The last documents of an archive whose text it had before: what an append
// stored again.
#ifndef QUIRE_SERVER_INGEST_REPEATED_DOCUMENTS_H_
#define QUIRE_SERVER_INGEST_REPEATED_DOCUMENTS_H_

#include <atomic>
#include <cstdint>

#include "absl/status/statusor.h"

#include "server/archive/archive.h"

namespace quire {

// Upper bound on documents that are compared.
inline constexpr uint64_t kComparedDocumentsMax = 1'000;

struct RepeatedDocuments {
  uint64_t count = 0;
  // Size of the text that is there already.
  uint64_t size_bytes = 0;
  // True: not all documents were compared, and the figures are for all.
  bool is_estimate = false;
};

// Compares documents from `first_ordinal` on with the newest earlier one of
// their id and record type before it. Equal are whole texts, or the bodies of
// two responses of a crawl, whose headers differ. Beyond
// kComparedDocumentsMax documents, compares as many, evenly spread, and
// estimates; documents over 8 MiB are not compared, and make it an estimate.
// Blocks. `cancel` may be null.
// Errors: Cancelled; DataLoss  a block of a compared document is damaged.
absl::StatusOr<RepeatedDocuments> FindRepeatedDocuments(
    const Archive& archive, uint64_t first_ordinal,
    const std::atomic<bool>* cancel);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_REPEATED_DOCUMENTS_H_
