// SPDX-License-Identifier: Apache-2.0
//
// quire export: all documents of an archive as a tar or WARC, by one scan of
// their text and a listing in the same order. Memory holds a page of the
// listing and a piece of the scan. Withdrawn documents are not listed, and the
// scan has zeros in their place, which are skipped.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "client/cli/damaged_scan.h"
#include "client/cli/document_filter.h"
#include "client/cli/document_listing.h"
#include "client/cli/export_sample.h"
#include "client/cli/export_selection.h"
#include "client/cli/formats/export_format.h"
#include "client/cli/formats/gzip_members.h"
#include "client/cli/formats/member_compressor.h"
#include "client/cli/formats/zstd_records.h"
#include "client/cli/item_batch.h"
#include "client/cli/subcommands.h"
#include "client/quire/archive_state.h"
#include "client/quire/client_status.h"
#include "client/quire/document_fields.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

class ExportRun {
 public:
  ExportRun(CliRun& run, const ExportScope& scope, DocumentWriter& writer)
      : run_(run),
        archive_(scope.archive),
        first_offset_(scope.since.size_bytes()),
        first_ordinal_(scope.since.document_count()),
        writer_(writer),
        report_(run),
        lister_(run.client().ListDocuments(archive_.name(),
                                           {.first_ordinal = first_ordinal_,
                                            .archive_uuid = archive_.uuid(),
                                            .with_withdrawn = true})),
        next_offset_(first_offset_),
        document_count_(first_ordinal_) {}

  absl::Status Run() {
    run_.progress().SetTotal(archive_.size_bytes() - first_offset_);
    run_.progress().SetItemTotal(archive_.document_count() - first_ordinal_);
    const absl::Status status = WriteAll();
    return IsOfOtherContents(status) &&
                   !run_.settings().archive_uuid.has_value()
               ? absl::AbortedError(absl::StrCat(
                     "the archive ", QuotedText(archive_.name()),
                     " was replaced by other contents during the export; run "
                     "it again"))
               : status;
  }

 private:
  absl::Status WriteAll() {
    QUIRE_RETURN_IF_ERROR(BeginNext());
    ScanOptions options;
    options.archive_uuid = archive_.uuid();
    options.offset = first_offset_;
    QUIRE_RETURN_IF_ERROR(ScanPastDamage(
        run_.client(), archive_.name(), options,
        [this](const ScanPiece& piece) { return Take(piece.data); },
        [this](const LostText& lost) {
          return run_.settings().keep_going ? Lose(lost) : lost.status;
        }));
    if (document_.has_value() || skipped_size_bytes_ > 0 ||
        document_count_ != archive_.document_count()) {
      return absl::DataLossError(
          absl::StrCat("the scan ended inside document number ",
                       document_count_, " of ", archive_.document_count()));
    }
    // A listing that ends early has not withdrawn the rest.
    if (last_withdrawn_.has_value()) {
      QUIRE_RETURN_IF_ERROR(CheckWithdrawn(run_, *last_withdrawn_));
    }
    QUIRE_RETURN_IF_ERROR(CheckZeros());
    QUIRE_RETURN_IF_ERROR(writer_.End());
    NoteResult();
    return absl::OkStatus();
  }

  void NoteResult() {
    const uint64_t size_bytes = archive_.size_bytes() - first_offset_;
    const std::string exported =
        FormatCounted(archive_.document_count() - first_ordinal_ -
                          left_out_count_ - withdrawn_count_,
                      "document", "documents");
    report_.Finish(
        "damaged documents",
        left_out_count_ == 0
            ? absl::StrCat(exported, " of ", FormatByteSize(size_bytes))
            : exported,
        left_out_count_, withdrawn_count_, "");
  }

  absl::Status Take(ByteView data) {
    while (!data.empty()) {
      if (skipped_size_bytes_ > 0) {
        QUIRE_RETURN_IF_ERROR(SkipWithdrawn(data));
        continue;
      }
      if (!document_.has_value()) {
        return absl::DataLossError(
            absl::StrCat("the scan has bytes behind the last document, number ",
                         document_count_ - 1));
      }
      const ByteView part = data.first(static_cast<size_t>(
          std::min<uint64_t>(data.size(), rest_size_bytes_)));
      QUIRE_RETURN_IF_ERROR(LeaveOutIfWithdrawn(part));
      if (!is_left_out()) {
        QUIRE_RETURN_IF_ERROR(writer_.Write(part));
      }
      ends_with_zeros_ = IsZeros(part);
      run_.progress().Add(part.size(), 0);
      data = data.subspan(part.size());
      QUIRE_RETURN_IF_ERROR(Pass(part.size()));
    }
    return absl::OkStatus();
  }

  // Removes text of withdrawn documents from the front of `data`.
  absl::Status SkipWithdrawn(ByteView& data) {
    const ByteView part = data.first(static_cast<size_t>(
        std::min<uint64_t>(data.size(), skipped_size_bytes_)));
    if (!IsZeros(part)) {
      return absl::DataLossError(absl::StrCat(
          "the scan has text of documents before number ", document_count_,
          " that the server did not list; run the export again, "
          "as documents may have been withdrawn or restored "
          "during it"));
    }
    skipped_size_bytes_ -= part.size();
    data = data.subspan(part.size());
    run_.progress().Add(part.size(), 0);
    return absl::OkStatus();
  }

  // A document may be withdrawn after it was listed: its text is zeros then.
  absl::Status LeaveOutIfWithdrawn(ByteView part) {
    if (!writer_.has_begun() && !is_withdrawn() &&
        rest_size_bytes_ == document_->range().size_bytes() && IsZeros(part)) {
      QUIRE_ASSIGN_OR_RETURN(const bool is_gone,
                             IsWithdrawnNow(run_, document_->ordinal()));
      if (is_gone) {
        document_->set_record_type(std::string(kWithdrawnRecordType));
      }
    }
    return absl::OkStatus();
  }

  // Fails if a document that ends with zeros was withdrawn after its beginning
  // was written.
  absl::Status CheckZeros() {
    TargetItems items(ending_with_zeros_, ByteSpan{});
    return ReadItems(
        run_, items, {}, [&](const ItemAnswer& answer) -> absl::Status {
          const absl::Status& status = answer.result.status();
          return absl::IsNotFound(status) || IsWithdrawn(status)
                     ? absl::AbortedError(absl::StrCat(
                           "document number ", ending_with_zeros_[answer.tag],
                           " was withdrawn during the export; run it again"))
                     : status;
        });
  }

  static bool IsZeros(ByteView data) {
    return std::all_of(data.begin(), data.end(),
                       [](uint8_t byte) { return byte == 0; });
  }

  // Leaves out the documents that the text is of. Of one whose beginning is
  // written already the text becomes zeros.
  absl::Status Lose(const LostText& lost) {
    uint64_t left = lost.size_bytes;
    while (left > 0 && (skipped_size_bytes_ > 0 || document_.has_value())) {
      if (skipped_size_bytes_ > 0) {
        const uint64_t skipped = std::min(left, skipped_size_bytes_);
        left -= skipped;
        skipped_size_bytes_ -= skipped;
        continue;
      }
      const uint64_t size = std::min(left, rest_size_bytes_);
      if (!std::exchange(is_damaged_, true)) {
        report_.Complain(*document_,
                         writer_.has_begun()
                             ? "has zeros in place of what is damaged"
                             : "is left out",
                         lost.status);
      }
      if (writer_.has_begun()) {
        QUIRE_RETURN_IF_ERROR(writer_.WriteZeros(size));
      }
      left -= size;
      QUIRE_RETURN_IF_ERROR(Pass(size));
    }
    return absl::OkStatus();
  }

  // Advances by `size` bytes of the document.
  absl::Status Pass(uint64_t size) {
    rest_size_bytes_ -= size;
    if (rest_size_bytes_ > 0) {
      return absl::OkStatus();
    }
    QUIRE_RETURN_IF_ERROR(EndDocument());
    return BeginNext();
  }

  // Removed from the archive, or withdrawn meanwhile: it has only zeros.
  bool is_withdrawn() const {
    return document_->record_type() == kWithdrawnRecordType;
  }

  // Nothing of the document is written, nor will be.
  bool is_left_out() const {
    return !writer_.has_begun() && (is_damaged_ || is_withdrawn());
  }

  // Begins the next document that has bytes; those without are written whole.
  absl::Status BeginNext() {
    for (;;) {
      QUIRE_ASSIGN_OR_RETURN(document_, lister_.Next());
      SkipUnlisted();
      if (!document_.has_value()) {
        return absl::OkStatus();
      }
      const v1::ByteRange& range = document_->range();
      if (range.offset() != next_offset_ ||
          range.size_bytes() > archive_.size_bytes() - next_offset_) {
        return absl::DataLossError(absl::StrCat(
            "document number ", document_->ordinal(), " is said to be ",
            range.size_bytes(), " bytes at offset ", range.offset(),
            ", where the archive of ", archive_.size_bytes(),
            " bytes was at offset ", next_offset_));
      }
      next_offset_ += range.size_bytes();
      rest_size_bytes_ = range.size_bytes();
      is_damaged_ = false;
      StartDocument();
      if (rest_size_bytes_ > 0) {
        return absl::OkStatus();
      }
      QUIRE_RETURN_IF_ERROR(EndDocument());
    }
  }

  void StartDocument() {
    writer_.Start(
        *document_,
        [this](FileSink sink) {
          return run_.Stream(
              DocumentKey::Ordinal(document_->ordinal()), /*payload=*/false,
              [&](const PayloadOrigin& origin) {
                return IsSameDocument(origin.document, *document_)
                           ? absl::OkStatus()
                           : ArchiveReplaced(run_);
              },
              sink);
        },
        /*holds_text=*/run_.settings().keep_going);
  }

  // Notes the withdrawn documents between the last document and `document_`, or
  // the archive's end.
  void SkipUnlisted() {
    const bool is_end = !document_.has_value();
    const uint64_t ordinal =
        is_end ? archive_.document_count() : document_->ordinal();
    const uint64_t offset =
        is_end ? archive_.size_bytes() : document_->range().offset();
    if (ordinal <= document_count_ || offset < next_offset_ ||
        offset > archive_.size_bytes()) {
      return;
    }
    last_withdrawn_ = document_count_;
    withdrawn_count_ += ordinal - document_count_;
    skipped_size_bytes_ += offset - next_offset_;
    document_count_ = ordinal;
    next_offset_ = offset;
  }

  absl::Status EndDocument() {
    ++document_count_;
    if (std::exchange(ends_with_zeros_, false) && !is_withdrawn()) {
      ending_with_zeros_.push_back(document_->ordinal());
    }
    if (is_left_out()) {
      (is_damaged_ ? left_out_count_ : withdrawn_count_) += 1;
      return absl::OkStatus();
    }
    QUIRE_RETURN_IF_ERROR(writer_.EndDocument());
    run_.progress().Add(0, 1);
    return absl::OkStatus();
  }

  CliRun& run_;
  const v1::ArchiveDescription archive_;
  // Position of the first document.
  const uint64_t first_offset_;
  const uint64_t first_ordinal_;
  DocumentWriter& writer_;
  ExportReport report_;
  DocumentLister lister_;
  // The one that is being written; nothing after the last.
  std::optional<v1::Document> document_;
  uint64_t rest_size_bytes_ = 0;
  // Some of it cannot be read.
  bool is_damaged_ = false;
  uint64_t left_out_count_ = 0;
  // Offset at which the next document must begin.
  uint64_t next_offset_;
  // Documents written, left out, withdrawn, or before the first one.
  uint64_t document_count_;
  uint64_t withdrawn_count_ = 0;
  // The first of the last withdrawn ones that are neighbours.
  std::optional<uint64_t> last_withdrawn_;
  // Text of withdrawn documents that comes next.
  uint64_t skipped_size_bytes_ = 0;
  // The last part of the document's text is zeros.
  bool ends_with_zeros_ = false;
  // Ordinals of these: they may have been withdrawn during the scan.
  std::vector<uint64_t> ending_with_zeros_;
};

// Compression of an export, by the name of its file.
enum class ExportCompression { kNone, kGzip, kZstd };

// Errors: InvalidArgument  the name is that of another compression.
absl::StatusOr<ExportCompression> CompressionOf(const CliSettings& settings) {
  const std::string& name = settings.output;
  if (absl::EndsWithIgnoreCase(name, ".gz") ||
      absl::EndsWithIgnoreCase(name, ".tgz")) {
    return ExportCompression::kGzip;
  }
  if (absl::EndsWithIgnoreCase(name, ".zst") &&
      settings.export_form == ExportForm::kWarc) {
    return ExportCompression::kZstd;
  }
  for (const char* const other :
       {".zst", ".xz", ".bz2", ".lz4", ".br", ".zip"}) {
    if (absl::EndsWithIgnoreCase(name, other)) {
      return absl::InvalidArgumentError(absl::StrCat(
          name,
          ": an export is compressed with gzip, if its name ends in .gz "
          "or .tgz, a WARC with zstd, if it ends in .zst, or not at all; for "
          "others export to - and pipe it"));
    }
  }
  return ExportCompression::kNone;
}

// Null: the file is not compressed.
// Errors: those of CompressionOf() and MakeExportDictionary().
absl::StatusOr<std::unique_ptr<MemberCompressor>> MakeCompressor(
    CliRun& run, const ExportScope& scope, const DocumentFilter& filter) {
  QUIRE_ASSIGN_OR_RETURN(const ExportCompression compression,
                         CompressionOf(run.settings()));
  switch (compression) {
    case ExportCompression::kNone:
      break;
    case ExportCompression::kGzip:
      return std::make_unique<GzipMembers>();
    case ExportCompression::kZstd: {
      QUIRE_ASSIGN_OR_RETURN(std::string dictionary,
                             MakeExportDictionary(run, scope, filter));
      return std::make_unique<ZstdRecords>(std::move(dictionary));
    }
  }
  return std::unique_ptr<MemberCompressor>();
}

// Finds the states of the archive that --uuid and --since name.
// Errors: FailedPrecondition  --since names none.
absl::StatusOr<ExportScope> FindScope(CliRun& run) {
  const CliSettings& settings = run.settings();
  ExportScope scope;
  QUIRE_ASSIGN_OR_RETURN(scope.archive,
                         run.client().GetArchive(settings.archive));
  if (settings.archive_uuid.has_value()) {
    const std::optional<v1::EarlierState> state =
        FindState(scope.archive, *settings.archive_uuid);
    if (state.has_value()) {
      scope.archive.set_size_bytes(state->size_bytes());
      scope.archive.set_document_count(state->document_count());
    }
    // The server refuses an unknown one.
    scope.archive.set_uuid(*settings.archive_uuid);
  }
  if (settings.since_uuid.has_value()) {
    std::optional<v1::EarlierState> state =
        FindState(scope.archive, *settings.since_uuid);
    if (!state.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("--since ", QuotedText(*settings.since_uuid),
                       " must be an earlier state of the archive ",
                       QuotedText(settings.archive),
                       ", as quire info --json lists them; the archive may "
                       "have been replaced: export all of it"));
    }
    scope.since = *std::move(state);
  }
  scope.archive.clear_history();
  scope.archive.clear_redacted_states();
  return scope;
}

// Errors: InvalidArgument  as Filter::Check(); of digest and status it names
//                          commands that select by them.
absl::Status CheckExportedWhere(const DocumentFilter& filter,
                                const v1::ArchiveDescription& archive) {
  const std::vector<FieldColumn> fields = ColumnsOf(archive);
  if (filter.has_where() && archive.capture_count() > 0 &&
      !filter.where().CaptureNames(fields).empty()) {
    return absl::InvalidArgumentError(
        "--where: digest and status are in the index of captures, which "
        "exports are not made of; 'quire ls ARCHIVE -0 --where FILTER | quire "
        "batch ARCHIVE -0 -o FILE.warc' writes the records of a WARC that "
        "match");
  }
  return filter.CheckWhere(fields);
}

}  // namespace

absl::Status RunExport(CliRun& run) {
  const CliSettings& settings = run.settings();
  if (settings.json) {
    return absl::InvalidArgumentError(
        "export writes a tar or WARC and has no --json; ls --json and batch "
        "--json do");
  }
  if (settings.export_form == ExportForm::kNone) {
    return absl::InvalidArgumentError(
        "export needs --tar FILE, --warc FILE or --output-dir DIR; a FILE of - "
        "is standard output");
  }
  const bool is_directory = settings.export_form == ExportForm::kDirectory;
  if (!is_directory && run.output().is_terminal()) {
    return absl::InvalidArgumentError(
        "an export must not go to a terminal; name a file instead of -, or "
        "redirect standard output");
  }
  QUIRE_ASSIGN_OR_RETURN(const DocumentFilter filter,
                         DocumentFilter::Make(settings.filter));
  QUIRE_ASSIGN_OR_RETURN(const ExportScope scope, FindScope(run));
  QUIRE_RETURN_IF_ERROR(CheckExportedWhere(filter, scope.archive));
  run.PinContents(scope.archive.uuid());
  if (is_directory) {
    return ExportToDirectory(run, scope, filter);
  }
  const std::unique_ptr<ExportFormat> format =
      settings.export_form == ExportForm::kTar
          ? MakeTarExport()
          : MakeWarcExport(scope.archive, absl::ToUnixMillis(absl::Now()),
                           settings.revisit_duplicates);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<MemberCompressor> compressor,
                         MakeCompressor(run, scope, filter));
  DocumentWriter writer(*format, std::move(compressor), [&](ByteView bytes) {
    return run.output().Write(bytes);
  });
  QUIRE_RETURN_IF_ERROR(settings.payload || settings.with_targets ||
                                filter.is_set()
                            ? ExportSelection(run, scope, filter, writer)
                            : ExportRun(run, scope, writer).Run());
  for (const std::string& note : format->Notes()) {
    run.Note(note);
  }
  return absl::OkStatus();
}

}  // namespace quire
