// SPDX-License-Identifier: Apache-2.0
//
// Selects documents by record type, HTTP status, media type and capture time:
// the options --record-type, --status, --media-type, --from and --to. Also by
// fields, hosts and domains: --where and --rule.
#ifndef QUIRE_CLIENT_CLI_DOCUMENT_FILTER_H_
#define QUIRE_CLIENT_CLI_DOCUMENT_FILTER_H_

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/capture_time.h"
#include "client/quire/document_fields.h"
#include "client/quire/read_target.h"
#include "codecs/filter/filter.h"

namespace quire {

// Values of the options, unparsed.
struct FilterSettings {
  std::vector<std::string> record_types = {};
  std::vector<std::string> statuses = {};
  std::vector<std::string> media_types = {};
  std::optional<std::string> from = {};
  std::optional<std::string> to = {};
  // Filter of filter.h.
  std::optional<std::string> where = {};
  // Names of fields to show, in lists with commas.
  std::vector<std::string> fields = {};
};

// Adds --from and --to to a subcommand. `settings` must outlive it. Returns
// them.
std::vector<CLI::Option*> AddTimeOptions(CLI::App& subcommand,
                                         FilterSettings& settings);

// Adds all options, as above.
std::vector<CLI::Option*> AddFilterOptions(CLI::App& subcommand,
                                           FilterSettings& settings);

// Adds --where, and --rule, a short form of it, to a subcommand that lists
// documents. As above.
std::vector<CLI::Option*> AddWhereOptions(CLI::App& subcommand,
                                          FilterSettings& settings);

// As ParseCapturePeriod(); errors begin with the name of the option.
absl::StatusOr<CapturePeriod> ParseNamedTime(const char* option,
                                             const std::string& text);

// Splits each value at commas and converts it to lower case.
// Errors: InvalidArgument  an empty element in a list of several.
absl::StatusOr<std::vector<std::string>> ParseRecordTypes(
    const std::vector<std::string>& values);

// Thread-compatible; a const filter is thread-safe.
class DocumentFilter {
 public:
  // Passes every document that was not removed.
  DocumentFilter() = default;

  // Errors: InvalidArgument  names the option and the bad value.
  static absl::StatusOr<DocumentFilter> Make(const FilterSettings& settings);

  // True if some documents may be left out that were not removed.
  bool is_set() const;

  bool has_where() const { return where_.has_value(); }

  // The filter of --where. REQUIRES: has_where().
  const Filter& where() const { return where_->filter(); }

  // Checks the filter of --where, if there is one. Errors: InvalidArgument  as
  // Filter::Check().
  absl::Status CheckWhere(absl::Span<const FieldColumn> columns) const;

  // Names of the fields to request from a list: first those to show, then
  // others of the filter.
  const std::vector<std::string>& fields() const { return fields_; }

  size_t shown_field_count() const { return shown_field_count_; }

  bool has_record_types() const { return !record_types_.empty(); }

  // True if PassesStatus() depends on its argument.
  bool needs_status() const { return statuses_.has_value(); }

  // Replaces the record types; "" stands for documents without one.
  void SetRecordTypes(std::vector<std::string> types) {
    record_types_ = std::move(types);
  }

  // True if the document passes all options except --status. Removed documents
  // pass only if their record type is selected. The document has fields().
  bool Passes(const v1::Document& document) const;

  // The same without --media-type.
  bool PassesOtherThanMediaType(const v1::Document& document) const;

  bool has_media_types() const { return !media_types_.empty(); }

  // Unset: the document has no HTTP status.
  bool PassesStatus(std::optional<int> status) const;

  // Makes a key that has only an id select the newest document of the id that
  // passes the record types and times. If none passes, the server reports
  // RECORD_TYPE_NOT_FOUND or returns a document that does not pass. Leaves
  // other keys unchanged.
  void Select(DocumentKey& key) const;

 private:
  // A media type, or all subtypes of `type` if `subtype` is "*".
  struct MediaPattern {
    std::string type;
    std::string subtype;
  };

  absl::Status AddStatuses(const std::string& list);
  absl::Status AddMediaTypes(const std::string& list);
  absl::Status SetTimes(const FilterSettings& settings);
  absl::Status SetFields(const FilterSettings& settings);
  bool PassesMediaType(const v1::Document& document) const;

  // Empty: any.
  std::vector<std::string> record_types_;
  std::vector<MediaPattern> media_types_;
  std::optional<std::bitset<1000>> statuses_;
  // Both inclusive.
  std::optional<int64_t> from_ms_;
  std::optional<int64_t> to_ms_;
  std::vector<std::string> fields_;
  size_t shown_field_count_ = 0;
  std::optional<DocumentMatcher> where_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_DOCUMENT_FILTER_H_
