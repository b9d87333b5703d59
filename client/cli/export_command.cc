// SPDX-License-Identifier: Apache-2.0
//
// quire export: an archive as a tar or WARC, by one scan for the bytes and a
// listing in the same order for what they are; a page of that and a piece of
// the scan are all that is held. Withdrawn documents are not listed, and the
// scan has zeros in their place: these are skipped.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "client/cli/damaged_scan.h"
#include "client/cli/document_filter.h"
#include "client/cli/document_listing.h"
#include "client/cli/export_format.h"
#include "client/cli/export_selection.h"
#include "client/cli/subcommands.h"
#include "client/quire/archive_state.h"
#include "client/quire/batch_reader.h"
#include "client/quire/client_status.h"
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
        writer_(writer),
        lister_(run.client().ListDocuments(
            archive_.name(), {.first_ordinal = scope.since.document_count(),
                              .archive_uuid = archive_.uuid(),
                              .with_withdrawn = true})),
        next_offset_(first_offset_),
        document_count_(scope.since.document_count()) {}

  absl::Status Run() {
    const absl::Status status = WriteAll();
    return IsOfOtherContents(status) &&
                   !run_.settings().archive_uuid.has_value()
               ? absl::AbortedError(absl::StrCat(
                     "the archive ", QuotedText(archive_.name()),
                     " was replaced by other contents during the export; run "
                     "it again"))
               : status;
  }

  // With bytes that cannot be read, and those of them that are not written.
  uint64_t damaged_count() const { return damaged_count_; }

  uint64_t left_out_count() const { return left_out_count_; }

  uint64_t withdrawn_count() const { return withdrawn_count_; }

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
    return writer_.End();
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
        QUIRE_RETURN_IF_ERROR(WriteText(part));
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
    if (is_held_ && !is_withdrawn() &&
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
    if (ending_with_zeros_.empty()) {
      return absl::OkStatus();
    }
    const std::unique_ptr<BatchReader> batch = run_.client().StartBatch(
        archive_.name(), {.archive_uuid = archive_.uuid()});
    std::vector<BatchReader::Item> items;
    for (const uint64_t ordinal : ending_with_zeros_) {
      DocumentKey key = DocumentKey::Ordinal(ordinal);
      key.part = ByteSpan{};
      items.push_back({.tag = ordinal, .target = std::move(key)});
    }
    batch->AddAll(std::move(items));
    batch->CloseAdds();
    while (const std::optional<BatchAnswer> answer = batch->Next()) {
      const absl::Status& status = answer->result.status();
      if (absl::IsNotFound(status) || IsWithdrawn(status)) {
        return absl::AbortedError(
            absl::StrCat("document number ", answer->tag,
                         " was withdrawn during the export; run it again"));
      }
      QUIRE_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
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
        Complain(lost.status);
      }
      if (is_held_) {
        held_.clear();
      } else {
        QUIRE_RETURN_IF_ERROR(writer_.WriteZeros(size));
      }
      left -= size;
      QUIRE_RETURN_IF_ERROR(Pass(size));
    }
    return absl::OkStatus();
  }

  void Complain(const absl::Status& status) {
    ++damaged_count_;
    run_.progress().AddFailed();
    if (damaged_count_ <= kNamedDocumentsMax || run_.settings().verbose) {
      run_.Complain(
          absl::StrCat("document number ", document_->ordinal(), ", ",
                       QuotedText(document_->id()),
                       is_held_ ? ", is left out"
                                : ", has zeros in place of what is damaged"),
          status);
    }
  }

  // Goes on by `size` bytes of the document.
  absl::Status Pass(uint64_t size) {
    rest_size_bytes_ -= size;
    if (rest_size_bytes_ > 0) {
      return absl::OkStatus();
    }
    QUIRE_RETURN_IF_ERROR(EndDocument());
    return BeginNext();
  }

  absl::Status WriteText(ByteView part) {
    if (!is_held_) {
      return writer_.Write(part);
    }
    const bool is_last = part.size() == rest_size_bytes_;
    const bool is_whole_text = run_.settings().keep_going;
    if (held_.empty() && !is_whole_text && HasHead(AsText(part), is_last)) {
      // Without a copy.
      QUIRE_RETURN_IF_ERROR(Begin(AsText(part)));
      return writer_.Write(part);
    }
    if (part.size() > kHeldTextSizeBytesMax - held_.size()) {
      QUIRE_RETURN_IF_ERROR(LetGo());
      return writer_.Write(part);
    }
    held_.append(AsText(part).data(), part.size());
    return is_whole_text || !HasHead(held_, is_last) ? absl::OkStatus()
                                                     : LetGo();
  }

  // True if `head` is enough of the document to begin it.
  bool HasHead(absl::string_view head, bool is_whole) const {
    return is_whole || head.size() >= writer_.HeadSizeBytes(*document_, head);
  }

  // Writes what is held of the document.
  absl::Status LetGo() {
    if (!is_held_) {
      return absl::OkStatus();
    }
    QUIRE_RETURN_IF_ERROR(Begin(held_));
    QUIRE_RETURN_IF_ERROR(writer_.Write(AsBytes(held_)));
    held_.clear();
    return absl::OkStatus();
  }

  absl::Status Begin(absl::string_view head) {
    is_held_ = false;
    return writer_.Begin(
        *document_, head,
        [&](absl::FunctionRef<absl::Status(ByteView)> sink) -> absl::Status {
          if (head.size() == document_->range().size_bytes()) {
            return sink(AsBytes(head));
          }
          return run_.Stream(
              DocumentKey::Ordinal(document_->ordinal()), /*payload=*/false,
              [&](const PayloadOrigin& origin) {
                return IsSameDocument(origin.document, *document_)
                           ? absl::OkStatus()
                           : ArchiveReplaced(run_);
              },
              sink);
        });
  }

  // Removed from the archive, or withdrawn meanwhile: it has only zeros.
  bool is_withdrawn() const {
    return document_->record_type() == kWithdrawnRecordType;
  }

  // Nothing of the document is written, nor will be.
  bool is_left_out() const {
    return is_held_ && (is_damaged_ || is_withdrawn());
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
      is_held_ = true;
      is_damaged_ = false;
      if (rest_size_bytes_ > 0) {
        return absl::OkStatus();
      }
      QUIRE_RETURN_IF_ERROR(EndDocument());
    }
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
    QUIRE_RETURN_IF_ERROR(LetGo());
    QUIRE_RETURN_IF_ERROR(writer_.EndDocument());
    run_.progress().Add(0, 1);
    return absl::OkStatus();
  }

  CliRun& run_;
  const v1::ArchiveDescription archive_;
  // Offset of the first document.
  const uint64_t first_offset_;
  DocumentWriter& writer_;
  DocumentLister lister_;
  // The one that is being written; nothing after the last.
  std::optional<v1::Document> document_;
  uint64_t rest_size_bytes_ = 0;
  // Nothing of it is written yet; held_ has its text so far.
  bool is_held_ = false;
  std::string held_;
  // Some of it cannot be read.
  bool is_damaged_ = false;
  uint64_t damaged_count_ = 0;
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
  // Their ordinals: they may have been withdrawn during the scan.
  std::vector<uint64_t> ending_with_zeros_;
};

// Errors: InvalidArgument  the name is of another kind of file than an export.
absl::StatusOr<bool> IsGzipName(absl::string_view name) {
  for (const char* const other :
       {".zst", ".xz", ".bz2", ".lz4", ".br", ".zip"}) {
    if (absl::EndsWithIgnoreCase(name, other)) {
      return absl::InvalidArgumentError(absl::StrCat(
          name,
          ": an export is compressed with gzip, if its name ends in .gz "
          "or .tgz, or not at all; for others export to - and pipe it"));
    }
  }
  return absl::EndsWithIgnoreCase(name, ".gz") ||
         absl::EndsWithIgnoreCase(name, ".tgz");
}

absl::Status ExportAll(CliRun& run, const ExportScope& scope,
                       DocumentWriter& writer) {
  const uint64_t size_bytes =
      scope.archive.size_bytes() - scope.since.size_bytes();
  const uint64_t document_count =
      scope.archive.document_count() - scope.since.document_count();
  run.progress().SetTotal(size_bytes);
  run.progress().SetItemTotal(document_count);
  ExportRun export_run(run, scope, writer);
  QUIRE_RETURN_IF_ERROR(export_run.Run());
  run.KeepOutputDespiteComplaints();
  if (export_run.damaged_count() > kNamedDocumentsMax &&
      !run.settings().verbose) {
    run.Note(absl::StrCat(
        "and ", FormatCount(export_run.damaged_count() - kNamedDocumentsMax),
        " more damaged documents; --verbose names all"));
  }
  const uint64_t left_out_count = export_run.left_out_count();
  run.Note(absl::StrCat(
      "exported ",
      FormatCounted(
          document_count - left_out_count - export_run.withdrawn_count(),
          "document", "documents"),
      left_out_count == 0
          ? absl::StrCat(" of ", FormatByteSize(size_bytes))
          : absl::StrCat(", and left out ", FormatCount(left_out_count),
                         " that cannot be read in full"),
      NoteOfWithdrawn(export_run.withdrawn_count())));
  return absl::OkStatus();
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
  run.PinContents(scope.archive.uuid());
  if (is_directory) {
    return ExportToDirectory(run, scope, filter);
  }
  const std::unique_ptr<ExportFormat> format =
      settings.export_form == ExportForm::kTar
          ? MakeTarExport()
          : MakeWarcExport(scope.archive, absl::ToUnixMillis(absl::Now()));
  QUIRE_ASSIGN_OR_RETURN(const bool is_gzip, IsGzipName(settings.output));
  ExportOutput output(run.output(), is_gzip);
  DocumentWriter writer(*format, output);
  QUIRE_RETURN_IF_ERROR(settings.payload || settings.with_targets ||
                                filter.is_set()
                            ? ExportSelection(run, scope, filter, writer)
                            : ExportAll(run, scope, writer));
  for (const std::string& note : format->Notes()) {
    run.Note(note);
  }
  return absl::OkStatus();
}

}  // namespace quire
