// SPDX-License-Identifier: GPL-3.0-or-later
//
// Collects the container of a segment while it is written.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_CONTAINER_BUILDER_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_CONTAINER_BUILDER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/status_macros.h"
#include "codecs/filter/field_value.h"
#include "server/archive/captures/captures_builder.h"
#include "server/archive/container/container_part.h"
#include "server/archive/deposits/deposits_builder.h"
#include "server/archive/fields/fields_builder.h"
#include "server/archive/format/archive_description.h"

namespace quire {

// Holds the parts that are finished, and what its sub-sections hold.
// Thread-compatible.
class ContainerBuilder {
 public:
  FieldsBuilder& fields() { return fields_; }

  CapturesBuilder& captures() { return captures_; }

  DepositsBuilder& deposits() { return deposits_; }

  // For parts that are copied from another container.
  ContainerData& data() { return data_; }

  // Adds what the next document, of this ordinal in the segment, has for the
  // sub-sections. Errors: as FieldsBuilder::Add(), CapturesBuilder::Add() and
  // DepositsBuilder::AddText().
  absl::Status AddDocument(uint64_t ordinal, const NewDocument& document);

  struct Sections {
    std::string directory;
    std::string data;
  };

  // Returns the sections of the container; unset if it has no sub-section. The
  // builder is unusable afterwards. Errors: Internal; those of reading
  // deposited files.
  // REQUIRES: there is a document.
  absl::StatusOr<std::optional<Sections>> Build();

 private:
  ContainerData data_;
  FieldsBuilder fields_;
  CapturesBuilder captures_;
  DepositsBuilder deposits_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_CONTAINER_BUILDER_H_
