// SPDX-License-Identifier: Apache-2.0
#include "client/cli/export_selection.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"

#include "client/cli/answer_order.h"
#include "client/cli/batch_items.h"
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

// Upper bound on descriptions of documents in flight.
constexpr uint64_t kListedSizeBytesMax = uint64_t{32} << 20;

// The documents of a listing, to be read by ordinal.
class ListedItems final : public ItemSource {
 public:
  ListedItems(CliRun& run, DocumentLister lister, const DocumentFilter& filter,
              const ExportScope& scope)
      : listing_(run, std::move(lister), filter,
                 {.keep_going = run.settings().keep_going,
                  .first_ordinal = scope.since.document_count(),
                  .document_count = scope.archive.document_count()}) {}

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

// Documents by ordinal, in order.
class OrdinalItems final : public ItemSource {
 public:
  explicit OrdinalItems(const std::vector<uint64_t>& ordinals)
      : ordinals_(ordinals) {}

  bool at_end() const override { return next_ == ordinals_.size(); }

  absl::StatusOr<std::optional<ReadTarget>> Next(bool /*may_wait*/) override {
    return std::optional<ReadTarget>(
        at_end() ? std::optional<ReadTarget>()
                 : DocumentKey::Ordinal(ordinals_[next_++]));
  }

 private:
  const std::vector<uint64_t>& ordinals_;
  size_t next_ = 0;
};

// Writes one document. `data` is null if it is too large for memory.
class ExportTarget {
 public:
  virtual ~ExportTarget() = default;
  virtual absl::Status Write(const ListedDocument& listed,
                             const std::string* data) = 0;
};

// Reads the selected documents for either kind of export.
class SelectionRun {
 public:
  SelectionRun(CliRun& run, const ExportScope& scope,
               const DocumentFilter& filter)
      : run_(run),
        scope_(scope),
        filter_(filter),
        targets_(run, scope.archive.document_count()) {
    if (run.settings().payload && !filter_.has_record_types()) {
      filter_.SetRecordTypes({"response", "revisit", "resource", ""});
    }
  }

  absl::Status Run(DocumentLister lister, bool ordered, ExportTarget& target) {
    const absl::Status status = RunAll(std::move(lister), ordered, target);
    return IsOfOtherContents(status) &&
                   !run_.settings().archive_uuid.has_value()
               ? ArchiveReplaced(run_)
               : status;
  }

 private:
  absl::Status RunAll(DocumentLister lister, bool ordered,
                      ExportTarget& target) {
    ListedItems items(run_, std::move(lister), filter_, scope_);
    const ItemBatchOptions options{.payload = run_.settings().payload};
    AnswerOrder order(
        {.ordered = ordered},
        [&](const ItemAnswer& answer) {
          return Take(items.Take(answer.tag), answer, target);
        },
        [&](uint64_t tag, const ReadTarget& item) {
          return AnswerForStream(run_, options, tag, item);
        });
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ItemBatch> batch,
                           ItemBatch::Start(run_, items, order, options));
    QUIRE_RETURN_IF_ERROR(batch->Run());
    if (run_.unreachable()) {
      return absl::UnavailableError("the export is not complete");
    }
    // A listing that ends early has not withdrawn the rest.
    const UnlistedDocuments unlisted = items.listing().FindUnlisted();
    if (unlisted.count > 0) {
      QUIRE_RETURN_IF_ERROR(CheckWithdrawn(run_, unlisted.ordinal));
    }
    if (items.count() == 0 &&
        items.listing().listed_count() > items.listing().withdrawn_count()) {
      return NothingPassed(run_, filter_, items.listing());
    }
    QUIRE_RETURN_IF_ERROR(targets_.Find());
    const std::vector<uint64_t> missing = targets_.Missing();
    target_count_ = missing.size();
    if (run_.settings().with_targets && target_count_ > 0) {
      QUIRE_RETURN_IF_ERROR(WriteTargets(missing, target));
    }
    run_.KeepOutputDespiteComplaints();
    NoteResult(items, unlisted.count + items.listing().withdrawn_count());
    return absl::OkStatus();
  }

  // Writes what exported revisits refer to.
  absl::Status WriteTargets(const std::vector<uint64_t>& ordinals,
                            ExportTarget& target) {
    OrdinalItems items(ordinals);
    const ItemBatchOptions options;
    AnswerOrder order(
        {},
        [&](const ItemAnswer& answer) -> absl::Status {
          ListedDocument listed;
          if (answer.result.ok()) {
            listed.document = *answer.result->document;
          } else {
            DocumentKey key = std::get<DocumentKey>(answer.target);
            key.part = ByteSpan{};
            QUIRE_ASSIGN_OR_RETURN(const ReadResult described, run_.Read(key));
            listed.document = *described.document;
          }
          return Take(listed, answer, target);
        },
        [&](uint64_t tag, const ReadTarget& item) {
          return AnswerForStream(run_, options, tag, item);
        });
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ItemBatch> batch,
                           ItemBatch::Start(run_, items, order, options));
    QUIRE_RETURN_IF_ERROR(batch->Run());
    return run_.unreachable()
               ? absl::UnavailableError("the export is not complete")
               : absl::OkStatus();
  }

  absl::Status Take(const ListedDocument& listed, const ItemAnswer& answer,
                    ExportTarget& target) {
    absl::Status status = answer.result.status();
    if (status.ok() || IsTooLargeForBatch(status)) {
      if (status.ok() &&
          !IsSameDocument(*answer.result->document, listed.document)) {
        return ArchiveReplaced(run_);
      }
      status =
          target.Write(listed, status.ok() ? &answer.result->data : nullptr);
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
        !absl::IsFailedPrecondition(status) && !absl::IsAborted(status) &&
        !IsClosedOutput(status) && ExitCodeFor(status) != kExitUnreachable &&
        (run_.settings().keep_going || IsPayloadFault(status) ||
         IsWithdrawn(status) ||
         (run_.settings().payload && absl::IsNotFound(status)));
    if (!is_of_item) {
      return status;
    }
    Complain(listed.document, status);
    return absl::OkStatus();
  }

  void Complain(const v1::Document& document, const absl::Status& status) {
    ++left_out_count_;
    run_.progress().AddFailed();
    if (left_out_count_ <= kNamedDocumentsMax || run_.settings().verbose) {
      run_.Complain(absl::StrCat("document number ", document.ordinal(), ", ",
                                 QuotedText(document.id()), ", is left out"),
                    status);
    }
  }

  void NoteResult(const ListedItems& items, uint64_t withdrawn_count) {
    if (left_out_count_ > kNamedDocumentsMax && !run_.settings().verbose) {
      run_.Note(absl::StrCat("and ",
                             FormatCount(left_out_count_ - kNamedDocumentsMax),
                             " more documents that are left out; --verbose "
                             "names all"));
    }
    run_.Note(absl::StrCat(
        "exported ",
        FormatCounted(items.count() - left_out_count_, "document", "documents"),
        " of ", FormatCount(items.listing().listed_count()),
        left_out_count_ == 0
            ? ""
            : absl::StrCat(", and left out ", FormatCount(left_out_count_),
                           " that cannot be read in full"),
        NoteOfWithdrawn(withdrawn_count), NoteOfTargets()));
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
  RevisitTargets targets_;
  // Targets of exported revisits, and those that the filter leaves out.
  uint64_t target_count_ = 0;
  uint64_t left_out_count_ = 0;
};

absl::Status StreamDocument(CliRun& run, const v1::Document& document,
                            PayloadSink sink) {
  return run.Stream(
      DocumentKey::Ordinal(document.ordinal()), run.settings().payload,
      [&](const PayloadOrigin& origin) {
        return IsSameDocument(origin.revisit.has_value() ? *origin.revisit
                                                         : origin.document,
                              document)
                   ? absl::OkStatus()
                   : ArchiveReplaced(run);
      },
      sink);
}

class FormatTarget final : public ExportTarget {
 public:
  FormatTarget(CliRun& run, DocumentWriter& writer)
      : run_(run), writer_(writer) {}

  absl::Status Write(const ListedDocument& listed,
                     const std::string* data) override {
    v1::Document member = listed.document;
    if (data != nullptr) {
      member.mutable_range()->set_size_bytes(data->size());
      QUIRE_RETURN_IF_ERROR(Begin(member, *data));
      run_.progress().Add(data->size(), 0);
      QUIRE_RETURN_IF_ERROR(writer_.Write(AsBytes(*data)));
      return writer_.EndDocument();
    }
    // The header needs the size of the payload, which only decoding tells:
    // large payloads are read twice.
    if (run_.settings().payload && member.has_record_type()) {
      uint64_t size_bytes = 0;
      QUIRE_RETURN_IF_ERROR(
          StreamDocument(run_, listed.document, [&](ByteView bytes) {
            size_bytes += bytes.size();
            return absl::OkStatus();
          }));
      member.mutable_range()->set_size_bytes(size_bytes);
    }
    return WriteStream(listed.document, member);
  }

 private:
  absl::Status Begin(const v1::Document& member, absl::string_view head) {
    return writer_.Begin(
        member, head,
        [&](absl::FunctionRef<absl::Status(ByteView)> sink) -> absl::Status {
          return head.size() == member.range().size_bytes()
                     ? sink(AsBytes(head))
                     : StreamDocument(run_, member, sink);
        });
  }

  absl::Status WriteStream(const v1::Document& document,
                           const v1::Document& member) {
    bool has_begun = false;
    std::string head;
    uint64_t left = member.range().size_bytes();
    absl::Status output_status;
    const absl::Status status =
        StreamDocument(run_, document, [&](ByteView bytes) -> absl::Status {
          if (bytes.size() > left) {
            return ArchiveReplaced(run_);
          }
          left -= bytes.size();
          run_.progress().Add(bytes.size(), 0);
          if (has_begun) {
            output_status = writer_.Write(bytes);
            return output_status;
          }
          head.append(AsText(bytes).data(), bytes.size());
          if (left > 0 && head.size() < writer_.HeadSizeBytes(member, head)) {
            return absl::OkStatus();
          }
          QUIRE_RETURN_IF_ERROR(Begin(member, head));
          has_begun = true;
          output_status = writer_.Write(AsBytes(head));
          return output_status;
        });
    if (status.ok() && left > 0) {
      return ArchiveReplaced(run_);
    }
    if (status.ok() && !has_begun) {
      QUIRE_RETURN_IF_ERROR(Begin(member, head));
    } else if (!output_status.ok() || !has_begun || absl::IsAborted(status) ||
               (!status.ok() && !run_.settings().keep_going)) {
      return status;
    }
    if (!status.ok()) {
      run_.Complain(
          absl::StrCat("document number ", document.ordinal(), ", ",
                       QuotedText(document.id()), ", has zeros from offset ",
                       member.range().size_bytes() - left),
          status);
      QUIRE_RETURN_IF_ERROR(writer_.WriteZeros(left));
    }
    return writer_.EndDocument();
  }

  CliRun& run_;
  DocumentWriter& writer_;
};

class DirectoryTarget final : public ExportTarget {
 public:
  DirectoryTarget(CliRun& run, const OutputDirectory& directory)
      : run_(run), directory_(directory) {}

  absl::Status Write(const ListedDocument& listed,
                     const std::string* data) override {
    QUIRE_ASSIGN_OR_RETURN(
        const ReadTarget item,
        ParseBatchItem(
            ItemForm::kId,
            FormatDocumentItem(listed.document.id(),
                               listed.needs_occurrence
                                   ? std::optional<uint64_t>(listed.occurrence)
                                   : std::nullopt)));
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                           directory_.OpenFile(FileNameOf(item)));
    const auto write = [&](ByteView bytes) {
      run_.progress().Add(bytes.size(), 0);
      return file->Write(bytes);
    };
    QUIRE_RETURN_IF_ERROR(data != nullptr
                              ? write(AsBytes(*data))
                              : StreamDocument(run_, listed.document, write));
    return file->Commit(/*sync=*/false);
  }

 private:
  CliRun& run_;
  const OutputDirectory& directory_;
};

}  // namespace

absl::Status ExportSelection(CliRun& run, const ExportScope& scope,
                             const DocumentFilter& filter,
                             DocumentWriter& writer) {
  FormatTarget target(run, writer);
  QUIRE_RETURN_IF_ERROR(
      SelectionRun(run, scope, filter)
          .Run(run.client().ListDocuments(
                   run.settings().archive,
                   {.first_ordinal = scope.since.document_count(),
                    .archive_uuid = scope.archive.uuid(),
                    .with_withdrawn = true}),
               /*ordered=*/true, target));
  return writer.End();
}

absl::Status ExportToDirectory(CliRun& run, const ExportScope& scope,
                               const DocumentFilter& filter) {
  QUIRE_ASSIGN_OR_RETURN(const OutputDirectory directory,
                         OutputDirectory::Create(run.settings().output_dir));
  DirectoryTarget target(run, directory);
  // By id: file names have occurrences.
  QUIRE_RETURN_IF_ERROR(
      SelectionRun(run, scope, filter)
          .Run(run.client().ListDocuments(run.settings().archive,
                                          {.archive_uuid = scope.archive.uuid(),
                                           .with_withdrawn = true}),
               /*ordered=*/false, target));
  return directory.Sync();
}

}  // namespace quire
