// SPDX-License-Identifier: GPL-3.0-or-later
//
// Examines an archive from which documents were removed.
#ifndef QUIRE_SERVER_REDACTION_REDACTION_PROOF_H_
#define QUIRE_SERVER_REDACTION_REDACTION_PROOF_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/redaction/inflated_block.h"
#include "server/redaction/removed_documents.h"

namespace quire {

struct RedactionProof {
  // Windows (window_table.h) of the removed documents' text, ids, fields and
  // inflated members that no other document had in its text, id, media type,
  // fields or members.
  // Windows of zeros do not count; one may count once for each pass.
  uint64_t window_count = 0;
  // Searched for these windows: text of blocks that remaining documents use,
  // with members inflated and as it is; bytes of the dictionary that did not
  // change; ids and media types; strings of fields and of their bounds.
  uint64_t block_count = 0;
  uint64_t text_size_bytes = 0;
  uint64_t dictionary_size_bytes = 0;
  uint64_t id_count = 0;
  uint64_t field_string_count = 0;
  // Removed documents that were read: they have no id, attributes and fields,
  // and their text is zeros.
  uint64_t document_count = 0;
  uint64_t size_bytes = 0;
  // Sentences about what must not be; at most 20. Empty: all is as it should.
  std::vector<std::string> failures;
};

// Compares `after`, which is `before` without the documents `removed`, with
// `before`, whose files may have lost their names. Reads all of both once for
// each `windows_per_pass` bytes of the removed text. Memory: WindowTable of so
// many windows, and their text; a block for each thread.
// Errors: DataLoss  one of the archives is damaged; those of `on_read`.
absl::StatusOr<RedactionProof> ProveRedaction(const Archive& before,
                                              const Archive& after,
                                              const RemovedDocuments& removed,
                                              size_t windows_per_pass,
                                              const OnTextRead& on_read,
                                              uint32_t threads = 1);

}  // namespace quire

#endif  // QUIRE_SERVER_REDACTION_REDACTION_PROOF_H_
