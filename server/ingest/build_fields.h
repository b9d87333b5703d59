// SPDX-License-Identifier: GPL-3.0-or-later
//
// The fields of the documents of a build: finds their types, and converts their
// values to these.
#ifndef QUIRE_SERVER_INGEST_BUILD_FIELDS_H_
#define QUIRE_SERVER_INGEST_BUILD_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "codecs/filter/field_value.h"
#include "server/archive/fields/field_directory.h"
#include "server/ingest/sources/source.h"

namespace quire {

// The type of a field is that in the archives that have it. Otherwise it is
// found by all values of the first pass:
//
//   boolean  all are true or false
//   integer  all are numbers without fraction and exponent, of 64 bits
//   float    all are numbers, with less than 2^53 if they are integers
//   time     all are strings that ParseFieldTime() takes without losing digits
//   string   all other values, as they are written
//
// Thread-compatible.
class BuildFields {
 public:
  // `sources` must outlive it.
  explicit BuildFields(std::span<const std::unique_ptr<Source>> sources);

  // Sets the types of fields of an archive that the build adds to; call first.
  // Errors: FailedPrecondition  a source has another type.
  //         InvalidArgument     too many fields together.
  absl::Status SetKnown(const std::vector<FieldColumn>& columns,
                        const std::string& archive);

  // Takes the values of the current document of `reader` in the first pass.
  // Errors: FailedPrecondition  a value is of another type than the field has,
  //                             or is too long.
  absl::Status Count(size_t source_index, const SourceReader& reader,
                     const SourceDocument& document);

  // Ends the first pass: sets the types.
  // Errors: InvalidArgument  no document has a value for a field that no
  // archive
  //                          has.
  absl::Status EndCount();

  // Fields of all sources, in order. REQUIRES: EndCount() succeeded.
  const std::vector<FieldColumn>& columns() const { return columns_; }

  // Fields whose values are stored as strings since they have several types;
  // for people.
  const std::vector<std::string>& notes() const { return notes_; }

  // Sets `values` to those of a document, one for each of columns().
  // Errors: FailedPrecondition  a value does not fit the type, since the inputs
  //                             changed.
  absl::Status Convert(size_t source_index, const SourceReader& reader,
                       const SourceDocument& document,
                       std::vector<FieldValue>& values) const;

 private:
  struct Field {
    std::string name;
    // Set by an archive; kNull: by values.
    FieldType type = FieldType::kNull;
    std::string archive = {};
    // Types that occur, as bits; integers that a float cannot be.
    uint32_t types = 0;
    bool has_large_integers = false;
  };

  absl::Status Fix(Field& field, FieldType type, const std::string& archive);
  // Type of all values so far.
  static FieldType TypeOfAll(const Field& field);
  static std::string DescribeTypes(const Field& field);

  const std::span<const std::unique_ptr<Source>> sources_;
  absl::Status status_;
  std::vector<Field> fields_;
  // For each source the indexes of its fields.
  std::vector<std::vector<size_t>> indexes_;
  std::vector<FieldColumn> columns_;
  std::vector<std::string> notes_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BUILD_FIELDS_H_
