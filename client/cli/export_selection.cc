// SPDX-License-Identifier: Apache-2.0
#include "client/cli/export_selection.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/cli/answer_order.h"
#include "client/cli/document_listing.h"
#include "client/cli/item_batch.h"
#include "client/cli/output_file.h"
#include "client/cli/revisit_targets.h"
#include "client/quire/client_status.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/document_item.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Documents that messages name; more are only counted.
constexpr uint64_t kNamedDocumentsMax = 20;
// Upper bound on descriptions of documents in flight.
constexpr uint64_t kListedSizeBytesMax = uint64_t{32} << 20;

// The documents of a listing, to be read by ordinal. If it
// `lists_matches_only`, the unlisted documents need not be withdrawn.
class ListedItems final : public ItemSource {
 public:
  ListedItems(CliRun& run, DocumentLister lister, const DocumentFilter& filter,
              const ExportScope& scope, bool lists_matches_only)
      : listing_(
            run, std::move(lister), filter,
            {.keep_going = run.settings().keep_going,
             .first_ordinal = scope.since.document_count(),
             .document_count =
                 lists_matches_only ? 0 : scope.archive.document_count()}) {}

  bool at_end() const override { return at_end_; }

  absl::StatusOr<std::optional<ReadTarget>> Next(bool may_wait) override {
    if (!may_wait && held_size_bytes_ > kListedSizeBytesMax) {
      return std::optional<ReadTarget>();
    }
    QUIRE_ASSIGN_OR_RETURN(std::optional<ListedDocument> listed,
                           listing_.Next());
    if (!listed.has_value()) {
      at_end_ = true;
      return std::optional<ReadTarget>();
    }
    const uint64_t ordinal = listed->document.ordinal();
    held_size_bytes_ += SizeBytes(*listed);
    held_.emplace(count_++, *std::move(listed));
    return std::optional<ReadTarget>(DocumentKey::Ordinal(ordinal));
  }

  // Removes and returns the document of an item.
  ListedDocument Take(uint64_t tag) {
    const auto found = held_.find(tag);
    ListedDocument listed = std::move(found->second);
    held_size_bytes_ -= SizeBytes(listed);
    held_.erase(found);
    return listed;
  }

  const DocumentListing& listing() const { return listing_; }

  // Documents that passed the filter.
  uint64_t count() const { return count_; }

 private:
  static uint64_t SizeBytes(const ListedDocument& listed) {
    return sizeof(ListedDocument) + listed.document.id().size() +
           listed.document.media_type().size();
  }

  DocumentListing listing_;
  bool at_end_ = false;
  uint64_t count_ = 0;
  // By tag, which counts from 0.
  std::map<uint64_t, ListedDocument> held_;
  uint64_t held_size_bytes_ = 0;
};

// Writes the document of an answer, which is OK or IsTooLargeForBatch().
using WriteAnswer = std::function<absl::Status(const ListedDocument& listed,
                                               const ItemAnswer& answer)>;

// Reads the selected documents for either kind of export.
class SelectionRun {
 public:
  SelectionRun(CliRun& run, const ExportScope& scope,
               const DocumentFilter& filter, WriteAnswer write)
      : run_(run),
        scope_(scope),
        filter_(filter),
        write_(std::move(write)),
        report_(run),
        targets_(run, scope.archive.document_count()) {
    if (run.settings().payload && !filter_.has_record_types()) {
      filter_.SetRecordTypes({"response", "revisit", "resource", ""});
    }
  }

  absl::Status Run(DocumentLister lister, bool ordered) {
    const absl::Status status = RunAll(std::move(lister), ordered);
    return IsOfOtherContents(status) &&
                   !run_.settings().archive_uuid.has_value()
               ? ArchiveReplaced(run_)
               : status;
  }

 private:
  absl::Status RunAll(DocumentLister lister, bool ordered) {
    const bool lists_matches_only = ordered && filter_.has_where();
    ListedItems items(run_, std::move(lister), filter_, scope_,
                      lists_matches_only);
    QUIRE_RETURN_IF_ERROR(
        Read(items, {.payload = run_.settings().payload, .ordered = ordered},
             [&](const ItemAnswer& answer) {
               return Take(items.Take(answer.tag), answer);
             }));
    const DocumentListing& listing = items.listing();
    // A listing that ends early has not withdrawn the rest.
    const UnlistedDocuments unlisted = listing.FindUnlisted();
    if (unlisted.count > 0) {
      QUIRE_RETURN_IF_ERROR(CheckWithdrawn(run_, unlisted.ordinal));
    }
    if (items.count() == 0 &&
        (listing.listed_count() > listing.withdrawn_count() ||
         filter_.has_where())) {
      return NothingPassed(run_, filter_, listing);
    }
    QUIRE_RETURN_IF_ERROR(targets_.Find());
    const std::vector<uint64_t> missing = targets_.Missing();
    target_count_ = missing.size();
    if (run_.settings().with_targets && target_count_ > 0) {
      QUIRE_RETURN_IF_ERROR(WriteTargets(missing));
    }
    const uint64_t left_out_count = report_.damaged_count();
    report_.Finish(
        "documents that are left out",
        absl::StrCat(
            FormatCounted(items.count() - left_out_count, "document",
                          "documents"),
            " of ",
            FormatCount(lists_matches_only ? scope_.archive.document_count()
                                           : listing.listed_count())),
        left_out_count, unlisted.count + listing.withdrawn_count(),
        NoteOfTargets());
    return absl::OkStatus();
  }

  // ReadItems() of all items.
  absl::Status Read(ItemSource& items, const ItemBatchOptions& options,
                    const AnswerOrder::Sink& sink) {
    QUIRE_RETURN_IF_ERROR(ReadItems(run_, items, options, sink));
    return run_.unreachable()
               ? absl::UnavailableError("the export is not complete")
               : absl::OkStatus();
  }

  // Writes what exported revisits refer to.
  absl::Status WriteTargets(const std::vector<uint64_t>& ordinals) {
    TargetItems items(ordinals);
    return Read(items, {}, [&](const ItemAnswer& answer) -> absl::Status {
      ListedDocument listed;
      if (answer.result.ok()) {
        listed.document = *answer.result->document;
      } else {
        DocumentKey key = std::get<DocumentKey>(answer.target);
        key.part = ByteSpan{};
        QUIRE_ASSIGN_OR_RETURN(const ReadResult described, run_.Read(key));
        listed.document = *described.document;
      }
      return Take(listed, answer);
    });
  }

  absl::Status Take(const ListedDocument& listed, const ItemAnswer& answer) {
    absl::Status status = answer.result.status();
    if (status.ok() || IsTooLargeForBatch(status)) {
      status = write_(listed, answer);
    }
    if (status.ok()) {
      run_.progress().Add(0, 1);
      // Payloads are those of the targets.
      return run_.settings().payload
                 ? status
                 : targets_.Add(listed.document,
                                answer.result.ok()
                                    ? AsBytes(answer.result->data)
                                    : ByteView());
    }
    const bool is_of_item =
        !EndsRun(status) && !absl::IsAborted(status) &&
        ExitCodeFor(status) != kExitUnreachable &&
        (run_.settings().keep_going || IsPayloadFault(status) ||
         IsWithdrawn(status) ||
         (run_.settings().payload && absl::IsNotFound(status)));
    if (!is_of_item) {
      return status;
    }
    report_.Complain(listed.document, "is left out", status);
    return absl::OkStatus();
  }

  std::string NoteOfTargets() const {
    std::string note;
    if (target_count_ > 0) {
      absl::StrAppend(&note, "; ",
                      FormatCounted(target_count_, "target of revisits is",
                                    "targets of revisits are"),
                      run_.settings().with_targets
                          ? " added"
                          : " left out (--with-targets adds them)");
    }
    if (targets_.unresolved_count() > 0) {
      absl::StrAppend(&note, "; ",
                      FormatCounted(targets_.unresolved_count(),
                                    "revisit refers", "revisits refer"),
                      " to what the archive does not hold");
    }
    return note;
  }

  CliRun& run_;
  const ExportScope& scope_;
  DocumentFilter filter_;
  const WriteAnswer write_;
  ExportReport report_;
  RevisitTargets targets_;
  // Targets of exported revisits that the filter leaves out.
  uint64_t target_count_ = 0;
};

// Returns a sink that fails if the data are of another document.
auto CheckOrigin(CliRun& run, const v1::Document& document) {
  return [&](const PayloadOrigin& origin) {
    return IsSameDocument(origin.revisit.value_or(origin.document), document)
               ? absl::OkStatus()
               : ArchiveReplaced(run);
  };
}

// Writes the document of an answer in a format.
absl::Status WriteInFormat(CliRun& run, DocumentWriter& writer,
                           const v1::Document& document,
                           const ItemAnswer& answer) {
  const auto read_again = [&](FileSink sink) {
    return run.Stream(answer.target, run.settings().payload,
                      CheckOrigin(run, document), sink);
  };
  v1::Document member = document;
  uint64_t left = document.range().size_bytes();
  if (answer.result.ok()) {
    left = answer.result->data.size();
  } else if (run.settings().payload && document.has_record_type()) {
    // The header needs the size of the payload, which only decoding tells:
    // large payloads are read twice.
    left = 0;
    QUIRE_RETURN_IF_ERROR(read_again([&](ByteView bytes) {
      left += bytes.size();
      return absl::OkStatus();
    }));
  }
  member.mutable_range()->set_size_bytes(left);
  writer.Start(member, read_again);
  absl::Status written;
  const absl::Status status =
      PassData(run, answer, run.settings().payload, CheckOrigin(run, document),
               [&](ByteView bytes) {
                 written = bytes.size() > left ? ArchiveReplaced(run)
                                               : writer.Write(bytes);
                 left -= bytes.size();
                 return written;
               });
  if (status.ok()) {
    return left == 0 ? writer.EndDocument() : ArchiveReplaced(run);
  }
  if (!written.ok() || !writer.has_begun() || absl::IsAborted(status) ||
      !run.settings().keep_going) {
    return status;
  }
  run.Complain(
      absl::StrCat("document number ", document.ordinal(), ", ",
                   QuotedText(document.id()), ", has zeros from offset ",
                   member.range().size_bytes() - left),
      status);
  QUIRE_RETURN_IF_ERROR(writer.WriteZeros(left));
  return writer.EndDocument();
}

// Name of the file that `quire batch` writes for a line of `quire ls`.
std::string ListedFileName(const ListedDocument& listed) {
  const std::string item = FormatDocumentItem(
      listed.document.id(), listed.needs_occurrence
                                ? std::optional<uint64_t>(listed.occurrence)
                                : std::nullopt);
  const DocumentItem parts = ParseDocumentItem(item);
  DocumentKey key = DocumentKey::Id(std::string(parts.id));
  key.occurrence = parts.occurrence;
  return FileNameOf(key);
}

}  // namespace

void ExportReport::Complain(const v1::Document& document,
                            absl::string_view effect,
                            const absl::Status& status) {
  ++damaged_count_;
  run_.progress().AddFailed();
  if (damaged_count_ <= kNamedDocumentsMax || run_.settings().verbose) {
    run_.Complain(absl::StrCat("document number ", document.ordinal(), ", ",
                               QuotedText(document.id()), ", ", effect),
                  status);
  }
}

void ExportReport::Finish(absl::string_view damaged, absl::string_view exported,
                          uint64_t left_out_count, uint64_t withdrawn_count,
                          absl::string_view note) {
  run_.KeepOutputDespiteComplaints();
  if (damaged_count_ > kNamedDocumentsMax && !run_.settings().verbose) {
    run_.Note(absl::StrCat("and ",
                           FormatCount(damaged_count_ - kNamedDocumentsMax),
                           " more ", damaged, "; --verbose names all"));
  }
  run_.Note(absl::StrCat(
      "exported ", exported,
      left_out_count == 0
          ? ""
          : absl::StrCat(", and left out ", FormatCount(left_out_count),
                         " that cannot be read in full"),
      withdrawn_count == 0
          ? ""
          : absl::StrCat(
                "; ",
                FormatCounted(withdrawn_count, "document is", "documents are"),
                " withdrawn"),
      note));
}

absl::Status ExportSelection(CliRun& run, const ExportScope& scope,
                             const DocumentFilter& filter,
                             DocumentWriter& writer) {
  QUIRE_RETURN_IF_ERROR(
      SelectionRun(run, scope, filter,
                   [&](const ListedDocument& listed, const ItemAnswer& answer) {
                     return WriteInFormat(run, writer, listed.document, answer);
                   })
          .Run(run.client().ListDocuments(
                   run.settings().archive,
                   {.first_ordinal = scope.since.document_count(),
                    .archive_uuid = scope.archive.uuid(),
                    .with_withdrawn = true,
                    .fields = filter.fields(),
                    .filter = run.settings().filter.where}),
               /*ordered=*/true));
  return writer.End();
}

absl::Status ExportToDirectory(CliRun& run, const ExportScope& scope,
                               const DocumentFilter& filter) {
  QUIRE_ASSIGN_OR_RETURN(const OutputDirectory directory,
                         OutputDirectory::Create(run.settings().output_dir));
  const auto write = [&](const ListedDocument& listed,
                         const ItemAnswer& answer) {
    return directory.WriteFile(ListedFileName(listed), [&](PayloadSink sink) {
      return PassData(run, answer, run.settings().payload,
                      CheckOrigin(run, listed.document), sink);
    });
  };
  // By id: file names have occurrences.
  QUIRE_RETURN_IF_ERROR(
      SelectionRun(run, scope, filter, write)
          .Run(run.client().ListDocuments(run.settings().archive,
                                          {.archive_uuid = scope.archive.uuid(),
                                           .with_withdrawn = true,
                                           .fields = filter.fields()}),
               /*ordered=*/false));
  return directory.Sync();
}

}  // namespace quire
