// SPDX-License-Identifier: Apache-2.0
#include "client/cli/captured_documents.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/cli/capture_choice.h"
#include "client/quire/document_fields.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/filter.h"

namespace quire {
namespace {

// Most captures of one answer of the server.
constexpr uint32_t kCapturedPageSizeMax = 1000;

// Names a command that lists whatever FILTER matches.
constexpr char kRedactHint[] =
    "; quired redact ARCHIVE --where FILTER --dry-run --list, on the server's "
    "machine, lists all that match";

absl::Status CheckIndexedWhere(const DocumentFilter& filter,
                               const v1::ArchiveDescription& archive,
                               bool by_key) {
  const std::vector<FieldColumn> fields = ColumnsOf(archive);
  QUIRE_RETURN_IF_ERROR(filter.CheckWhere(WithCaptureAttributes(fields)));
  const Filter& where = filter.where();
  const std::vector<std::string> captured = where.CaptureNames(fields);
  for (const std::string& name : where.field_names()) {
    if (std::find(captured.begin(), captured.end(), name) == captured.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--where: the index of captures, which has digest and "
                       "status and is asked with --key, has no fields of the "
                       "archive, such as ",
                       name, kRedactHint));
    }
  }
  if (!by_key && where.CouldMatchNulls(captured)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--where: documents without digest and status may match, such as "
        "requests, and the index of captures does not have all of these: "
        "'(FILTER) and status is not null' does not match them",
        kRedactHint));
  }
  return absl::OkStatus();
}

absl::Status CheckIndexedOptions(const CliSettings& settings,
                                 const DocumentFilter& filter) {
  if (filter.shown_field_count() > 0) {
    return absl::InvalidArgumentError(
        "--fields: the index of captures has none, and filters with digest or "
        "status are answered from it");
  }
  if (!settings.prefix.empty() && !settings.captures.by_key) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PREFIX: the index of captures, which has digest and status, is sorted "
        "by key: add 'and id prefix ",
        FormatField(absl::string_view(settings.prefix)),
        "' to --where instead, or take PREFIX as a key with --key"));
  }
  return absl::OkStatus();
}

}  // namespace

bool NeedsCaptureIndex(const CliSettings& settings,
                       const DocumentFilter& filter,
                       const v1::ArchiveDescription& archive) {
  return settings.captures.by_key ||
         (filter.has_where() && archive.capture_count() > 0 &&
          !filter.where().CaptureNames(ColumnsOf(archive)).empty());
}

CapturedDocuments::CapturedDocuments(CliRun& run, CaptureIndexLister lister,
                                     DocumentFilter filter)
    : run_(&run), lister_(std::move(lister)), filter_(std::move(filter)) {}

absl::StatusOr<CapturedDocuments> CapturedDocuments::List(
    CliRun& run, const DocumentFilter& filter,
    const v1::ArchiveDescription& archive) {
  const CliSettings& settings = run.settings();
  const bool by_key = settings.captures.by_key;
  QUIRE_RETURN_IF_ERROR(CheckIndexedOptions(settings, filter));
  if (filter.has_where()) {
    QUIRE_RETURN_IF_ERROR(CheckIndexedWhere(filter, archive, by_key));
  }
  FilterSettings others = settings.filter;
  others.where.reset();
  QUIRE_ASSIGN_OR_RETURN(DocumentFilter other_filter,
                         DocumentFilter::Make(others));
  run.PinContents(archive.uuid());
  CaptureListOptions options = {.match = v1::CAPTURE_MATCH_PREFIX,
                                .filter = settings.filter.where,
                                .archive_uuid = run.read_options().archive_uuid,
                                .page_size = kCapturedPageSizeMax};
  if (!settings.prefix.empty()) {
    options.key = settings.prefix;
  }
  return CapturedDocuments(run,
                           run.client().ListCaptures(settings.archive, options),
                           std::move(other_filter));
}

absl::StatusOr<std::optional<ListedDocument>> CapturedDocuments::Next(
    bool with_status) {
  for (;;) {
    QUIRE_ASSIGN_OR_RETURN(std::optional<v1::Capture> capture, lister_.Next());
    if (!capture.has_value()) {
      return std::optional<ListedDocument>();
    }
    ListedDocument listed;
    listed.document = std::move(*capture->mutable_document());
    const std::optional<int> status =
        capture->has_status()
            ? std::optional(static_cast<int>(capture->status()))
            : std::nullopt;
    QUIRE_ASSIGN_OR_RETURN(const bool passes,
                           PassesFilter(*run_, filter_, listed.document));
    if (!passes || !filter_.PassesStatus(status)) {
      continue;
    }
    if (with_status || filter_.needs_status()) {
      listed.http_status = status;
    }
    listed.occurrence = listed.document.occurrence();
    listed.needs_occurrence =
        listed.document.has_occurrence() || !IsReadById(listed.document);
    return std::optional<ListedDocument>(std::move(listed));
  }
}

absl::Status CapturedDocuments::End(uint64_t count) {
  if (const std::string unindexed = DescribeUnindexed(lister_);
      !unindexed.empty()) {
    QUIRE_RETURN_IF_ERROR(run_->output().Flush());
    run_->KeepOutputDespiteComplaints();
    run_->Complain("", absl::DataLossError(unindexed));
  }
  if (count > 0) {
    return absl::OkStatus();
  }
  const CliSettings& settings = run_->settings();
  return absl::NotFoundError(absl::StrCat(
      "the index of captures of ", QuotedText(settings.archive), " has none",
      settings.prefix.empty() ? ""
                              : absl::StrCat(" whose key starts with ",
                                             QuotedText(settings.prefix)),
      filter_.is_set() || settings.filter.where.has_value()
          ? " that passes the filters"
          : ""));
}

}  // namespace quire
