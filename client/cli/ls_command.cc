// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "client/cli/captured_documents.h"
#include "client/cli/document_filter.h"
#include "client/cli/document_listing.h"
#include "client/cli/file_subcommands.h"
#include "client/cli/shown_text.h"
#include "client/cli/subcommands.h"
#include "client/quire/document_fields.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/document_item.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr char kLongHeader[] = "%12s  %-24s  %-10s  %6s  %10s  %s";

// `item` is what `quire batch` takes for the document.
absl::Status PrintDocumentLine(CliRun& run, const ListedDocument& listed,
                               const std::string& item,
                               absl::Span<const std::string> fields) {
  const CliSettings& settings = run.settings();
  const v1::Document& document = listed.document;
  if (settings.json) {
    return run.output().Write(absl::StrCat(
        "{", JsonDocument(document),
        listed.http_status.has_value()
            ? absl::StrCat(",\"http_status\":", *listed.http_status)
            : "",
        fields.empty() ? "" : absl::StrCat(",", JsonFields(fields, document)),
        "}\n"));
  }
  std::string line;
  if (settings.long_listing) {
    line = absl::StrFormat(
        "%12d  %-24s  %-10s  %6s  %10d  ", document.range().size_bytes(),
        document.has_capture_time_ms()
            ? FormatTimeMs(document.capture_time_ms())
            : "-",
        document.has_record_type() ? PrintableText(document.record_type())
                                   : "-",
        listed.http_status.has_value() ? absl::StrCat(*listed.http_status)
        : listed.is_status_unknown     ? "?"
                                       : "-",
        document.ordinal());
  }
  // The long form has the number instead.
  const std::string& name = settings.long_listing ? document.id() : item;
  // On a terminal the id is escaped, and not the tab that may follow it.
  const size_t mark =
      name.size() > document.id().size() ? document.id().size() : name.size();
  line +=
      run.output().is_terminal()
          ? absl::StrCat(PrintableText(absl::string_view(name).substr(0, mark)),
                         absl::string_view(name).substr(mark))
          : name;
  for (size_t i = 0; i < fields.size(); ++i) {
    line += '\t';
    line += FieldText(document.fields(static_cast<int>(i)));
  }
  line += settings.null_separated ? '\0' : '\n';
  return run.output().Write(line);
}

std::string PrefixLine(CliRun& run, const std::string& prefix) {
  const CliSettings& settings = run.settings();
  if (settings.json) {
    return absl::StrCat("{", JsonBytes("common_prefix", prefix), "}\n");
  }
  return absl::StrCat(
      settings.long_listing
          ? absl::StrFormat(kLongHeader, "-", "-", "-", "-", "-", "")
          : "",
      run.output().is_terminal() ? PrintableText(prefix) : prefix,
      settings.null_separated ? absl::string_view("\0", 1) : "\n");
}

// Prints the entries of a list. Thread-compatible.
class LsOutput {
 public:
  // Borrows both; `fields` are the names of those that are shown.
  LsOutput(CliRun& run, absl::Span<const std::string> fields)
      : run_(run), fields_(fields) {}

  absl::Status Print(const ListedDocument& listed) {
    const CliSettings& settings = run_.settings();
    if (count_ == 0 && settings.long_listing && !settings.json) {
      const std::string header = absl::StrFormat(
          kLongHeader, "SIZE", "TIME", "TYPE", "STATUS", "NUMBER", "ID");
      QUIRE_RETURN_IF_ERROR(run_.output().Write(absl::StrCat(
          header, fields_.empty() ? "" : "\t", absl::StrJoin(fields_, "\t"),
          settings.null_separated ? absl::string_view("\0", 1) : "\n")));
    }
    ++count_;
    const std::string& id = listed.document.id();
    broken_count_ += id.find('\n') == std::string::npos ? 0 : 1;
    return listed.is_common_prefix
               ? run_.output().Write(PrefixLine(run_, id))
               : PrintDocumentLine(
                     run_, listed,
                     FormatDocumentItem(
                         id, listed.needs_occurrence
                                 ? std::optional<uint64_t>(listed.occurrence)
                                 : std::nullopt),
                     fields_);
  }

  // Notes ids that lines do not hold.
  absl::Status End() {
    const CliSettings& settings = run_.settings();
    if (broken_count_ > 0 && !settings.null_separated && !settings.json) {
      QUIRE_RETURN_IF_ERROR(run_.output().Flush());
      run_.Note(absl::StrCat(
          FormatCounted(broken_count_, "id holds", "ids hold"),
          " a newline; with -0 each line ends with a NUL byte instead, and "
          "batch -0 takes them"));
    }
    return absl::OkStatus();
  }

  uint64_t count() const { return count_; }

 private:
  CliRun& run_;
  const absl::Span<const std::string> fields_;
  uint64_t count_ = 0;
  uint64_t broken_count_ = 0;
};

absl::Status ListById(CliRun& run, const DocumentFilter& filter) {
  const CliSettings& settings = run.settings();
  ListOptions options = {.prefix = settings.prefix,
                         .delimiter = settings.delimiter,
                         .archive_uuid = settings.archive_uuid,
                         .with_withdrawn = true,
                         .fields = filter.fields()};
  // Lines without numbers count the documents of each id.
  if (settings.json || settings.long_listing) {
    options.filter = settings.filter.where;
  }
  DocumentListing listing(run,
                          run.client().ListDocuments(settings.archive, options),
                          filter, {.with_status = settings.long_listing});
  LsOutput output(
      run,
      absl::MakeConstSpan(filter.fields()).first(filter.shown_field_count()));
  for (;;) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<ListedDocument> listed,
                           listing.Next());
    if (!listed.has_value()) {
      break;
    }
    QUIRE_RETURN_IF_ERROR(output.Print(*listed));
  }
  QUIRE_RETURN_IF_ERROR(output.End());
  if (listing.withdrawn_count() > 0) {
    QUIRE_RETURN_IF_ERROR(run.output().Flush());
    run.Note(
        absl::StrCat(FormatCounted(listing.withdrawn_count(), "document was",
                                   "documents were"),
                     " removed from the archive and not listed; --record-type "
                     "withdrawn lists them"));
  }
  if (output.count() > 0) {
    return absl::OkStatus();
  }
  if (listing.listed_count() > listing.withdrawn_count() ||
      filter.has_where()) {
    return NothingPassed(run, filter, listing);
  }
  if (!settings.prefix.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no document of ", QuotedText(settings.archive),
        " has an id that starts with ", QuotedText(settings.prefix)));
  }
  return absl::OkStatus();
}

absl::Status ListByIndex(CliRun& run, const DocumentFilter& filter,
                         const v1::ArchiveDescription& archive) {
  QUIRE_ASSIGN_OR_RETURN(CapturedDocuments documents,
                         CapturedDocuments::List(run, filter, archive));
  LsOutput output(run, {});
  for (;;) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<ListedDocument> listed,
                           documents.Next(run.settings().long_listing));
    if (!listed.has_value()) {
      break;
    }
    QUIRE_RETURN_IF_ERROR(output.Print(*listed));
  }
  QUIRE_RETURN_IF_ERROR(output.End());
  return documents.End(output.count());
}

}  // namespace

absl::Status RunLs(CliRun& run) {
  const CliSettings& settings = run.settings();
  if (settings.lists_files) {
    return ListFiles(run);
  }
  QUIRE_ASSIGN_OR_RETURN(const DocumentFilter filter,
                         DocumentFilter::Make(settings.filter));
  if (!filter.has_where() && !settings.captures.by_key) {
    return ListById(run, filter);
  }
  QUIRE_ASSIGN_OR_RETURN(const v1::ArchiveDescription archive,
                         run.client().GetArchive(settings.archive));
  if (NeedsCaptureIndex(settings, filter, archive)) {
    return ListByIndex(run, filter, archive);
  }
  QUIRE_RETURN_IF_ERROR(filter.CheckWhere(ColumnsOf(archive)));
  return ListById(run, filter);
}

}  // namespace quire
