// SPDX-License-Identifier: GPL-3.0-or-later
//
// Strings in the fields of documents, as texts in which windows are searched.
#ifndef QUIRE_SERVER_REDACTION_FIELD_STRINGS_H_
#define QUIRE_SERVER_REDACTION_FIELD_STRINGS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/redaction/window_table.h"

namespace quire {

// Adds the strings of the documents that `is_wanted`, which is called with each
// ordinal, in order. Equal strings of neighbours are added once. Reads no
// fields of an archive without fields of strings. Memory: as
// DocumentFieldReader. Errors: DataLoss  fields are damaged.
absl::Status AddFieldStrings(
    const Archive& archive, absl::FunctionRef<bool(uint64_t ordinal)> is_wanted,
    TextSink& sink);

// Adds all strings that a segment stores in its fields, whether a document has
// them or not, bounds included. Returns their number. Errors: DataLoss.
absl::StatusOr<uint64_t> AddStoredFieldStrings(const Archive& archive,
                                               uint32_t segment_index,
                                               TextSink& sink);

}  // namespace quire

#endif  // QUIRE_SERVER_REDACTION_FIELD_STRINGS_H_
