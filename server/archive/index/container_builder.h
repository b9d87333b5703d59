// SPDX-License-Identifier: GPL-3.0-or-later
//
// Collects the container of a segment while it is written.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_CONTAINER_BUILDER_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_CONTAINER_BUILDER_H_

#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/filter/field_value.h"
#include "server/archive/container/container_part.h"
#include "server/archive/fields/fields_builder.h"
#include "server/archive/format/archive_description.h"

namespace quire {

// Holds the parts that are finished, and what its sub-sections hold.
// Thread-compatible.
class ContainerBuilder {
 public:
  FieldsBuilder& fields() { return fields_; }

  // Adds what the next document has for the sub-sections. Errors: as
  // FieldsBuilder::Add().
  absl::Status AddDocument(const NewDocument& document) {
    return fields_.Add(document.fields, data_);
  }

  struct Sections {
    std::string directory;
    std::string data;
  };

  // Returns the sections of the container; unset if it has no sub-section. The
  // builder is unusable afterwards. Errors: Internal.
  // REQUIRES: there is a document.
  absl::StatusOr<std::optional<Sections>> Build();

 private:
  ContainerData data_;
  FieldsBuilder fields_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_CONTAINER_BUILDER_H_
