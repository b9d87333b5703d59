// SPDX-License-Identifier: GPL-3.0-or-later
//
// The fields of records that a build uses: as ids, times and texts of
// documents, and as their typed fields.
#ifndef QUIRE_SERVER_INGEST_SOURCES_LINES_FIELD_ROLES_H_
#define QUIRE_SERVER_INGEST_SOURCES_LINES_FIELD_ROLES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "server/ingest/sources/id_rules.h"
#include "server/ingest/sources/lines/csv_fields.h"
#include "server/ingest/sources/lines/record_cutter.h"
#include "server/ingest/sources/lines/record_field.h"
#include "server/ingest/sources/source.h"

namespace quire {

// Thread-compatible.
class FieldRoles {
 public:
  // Gets what is wrong with a record or its file, without their names.
  using OnNote = absl::FunctionRef<void(EntryNote, absl::string_view)>;

  // `id_rules`, which may be null, apply to values of fields.
  FieldRoles(const LineSplit& split, std::shared_ptr<const IdRules> id_rules);

  // True if no field is wanted.
  bool is_empty() const { return fields_.empty(); }

  // Forgets the header of the file before.
  void StartFile();

  // CSV: true once the header of the file was read.
  bool has_header() const { return column_count_ > 0; }

  // Finds the columns of the fields in the header line of a CSV.
  // Errors: InvalidArgument  malformed, or a column is missing; without the
  //                          name of the file.
  absl::Status ReadHeader(absl::string_view record, const CsvDialect& dialect,
                          OnNote on_note);

  // True if `record` is the header line again. A single column may have a value
  // like its name.
  bool IsHeader(absl::string_view record) const;

  // Sets id, time and fields of `document` from the record, and `text` to the
  // value of LineSplit::text_field, where they are usable; notes others.
  // REQUIRES: the record is not open; of a CSV, has_header().
  void Apply(absl::string_view record, const LineFormat& format,
             SourceDocument& document, std::optional<std::string>& text,
             OnNote on_note);

  // Counts a record that is too long for Apply().
  void PassRecord() { ++record_count_; }

  // Ends the count of records. Errors: InvalidArgument  there were some, and
  // none had a field that records must have; the message begins with `name` and
  // ends with `first_problem`.
  absl::Status CheckFound(const std::string& name,
                          const std::string& first_problem);

 private:
  // Use of a field that records must have.
  enum class Use { kId, kText, kTime };

  struct Role {
    Use use;
    // Index in fields_.
    size_t field;
    // Records with a usable value.
    uint64_t usable_count = 0;
  };

  // Returns the index of a field in fields_, and adds it if it is new.
  size_t FieldIndex(const std::string& name, bool takes_any);
  // Sets the values of LineSplit::fields.
  void ApplyValues(SourceDocument& document, OnNote on_note);
  // Returns the problem if the value is unusable; empty otherwise.
  std::string ApplyRole(const Role& role, SourceDocument& document,
                        std::optional<std::string>& text);
  std::string ApplyId(const RecordField& field, SourceDocument& document);

  const std::shared_ptr<const IdRules> id_rules_;
  // Each once.
  std::vector<RecordField> fields_;
  std::vector<Role> roles_;
  // Indexes in fields_ of LineSplit::fields.
  std::vector<size_t> value_fields_;
  // The header line of a CSV, without its end, and its number of columns.
  std::string header_;
  size_t column_count_ = 0;
  // Records of all files.
  uint64_t record_count_ = 0;
  std::string tolerated_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_FIELD_ROLES_H_
