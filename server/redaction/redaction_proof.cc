// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/redaction_proof.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/field_value.h"
#include "server/archive/archive_part.h"
#include "server/archive/field_reader.h"
#include "server/archive/format/archive_format.h"
#include "server/redaction/field_strings.h"
#include "server/redaction/window_table.h"

namespace quire {
namespace {

constexpr size_t kFailuresMax = 20;

bool IsZero(uint8_t byte) {
  return byte == 0;
}

// Counts bytes other than zero.
class ZeroCounter final : public TextSink {
 public:
  void Add(ByteView piece) override {
    other_count_ += piece.size() -
                    static_cast<size_t>(std::ranges::count_if(piece, IsZero));
  }

  void Break() override {}

  uint64_t other_count() const { return other_count_; }

 private:
  uint64_t other_count_ = 0;
};

class Prover {
 public:
  Prover(const Archive& before, const Archive& after,
         const RemovedDocuments& removed, const OnTextRead& on_read,
         uint32_t threads)
      : before_(before),
        after_(after),
        removed_(removed),
        on_read_(on_read),
        threads_(threads) {}

  // Checks everything except windows.
  absl::Status CheckDocuments();
  // Searches for the windows of `parts` of a text.
  absl::Status CheckWindows(ByteView text,
                            const std::vector<TextInterval>& parts);

  RedactionProof Take() && { return std::move(proof_); }

 private:
  // Checks that the removed documents have no fields.
  absl::Status CheckFields();
  // Checks that no file is left that has or may have bytes of them.
  void CheckDeposits();
  // Adds ids and media types of all documents except the removed ones.
  absl::Status AddDescriptions(const Archive& archive, TextSink& sink);
  // Marks the windows that remaining documents had.
  absl::Status FindKept(const WindowTable& table, std::vector<bool>& kept);
  absl::Status Search(const WindowTable& table, const std::vector<bool>& kept);

  void Fail(std::string failure) {
    if (proof_.failures.size() < kFailuresMax) {
      proof_.failures.push_back(std::move(failure));
    }
  }

  const Archive& before_;
  const Archive& after_;
  const RemovedDocuments& removed_;
  const OnTextRead& on_read_;
  const uint32_t threads_;
  RedactionProof proof_;
};

absl::Status Prover::CheckDocuments() {
  for (const uint64_t ordinal : removed_.ordinals()) {
    QUIRE_ASSIGN_OR_RETURN(const Document document,
                           after_.GetDocument({ordinal}));
    if (!IsRedacted(document)) {
      Fail(absl::StrCat("document ", ordinal, " still has a description"));
    }
  }
  QUIRE_RETURN_IF_ERROR(CheckFields());
  CheckDeposits();
  ZeroCounter zeros;
  QUIRE_RETURN_IF_ERROR(AddLogicalText(after_, removed_.ranges(),
                                       PartialMembers::kNone, on_read_, zeros));
  if (zeros.other_count() > 0) {
    Fail(absl::StrCat("the text of the removed documents has ",
                      zeros.other_count(), " bytes that are not zero"));
  }
  proof_.document_count = removed_.ordinals().size();
  proof_.size_bytes = removed_.size_bytes();
  return absl::OkStatus();
}

absl::Status Prover::CheckFields() {
  std::vector<uint32_t> columns(after_.fields().size());
  std::iota(columns.begin(), columns.end(), uint32_t{0});
  DocumentFieldReader reader(after_, columns, BlockingPartLoader(after_));
  std::vector<FieldView> values;
  for (const uint64_t ordinal : removed_.ordinals()) {
    QUIRE_RETURN_IF_ERROR(
        reader.Read(DocumentOrdinal{ordinal}, values).status());
    for (size_t i = 0; i < values.size(); ++i) {
      if (TypeOf(values[i]) != FieldType::kNull) {
        Fail(absl::StrCat("document ", ordinal, " still has a value of field ",
                          after_.fields()[i].name));
      }
    }
  }
  return absl::OkStatus();
}

void Prover::CheckDeposits() {
  const DepositedFiles& deposits = after_.deposited_files();
  for (const DepositedFile& file : deposits.files()) {
    if (removed_.HasDocumentIn(file.text) && HasDepositPages(after_, file)) {
      Fail(absl::StrCat("deposited file ", QuotedText(file.path),
                        " still has removed documents"));
    }
  }
  for (const DepositedFile& file : deposits.incomplete_files()) {
    if (HasDepositPages(after_, file)) {
      Fail(absl::StrCat("deposited file ", QuotedText(file.path),
                        ", which is incomplete, still has bytes"));
    }
  }
}

absl::Status Prover::AddDescriptions(const Archive& archive, TextSink& sink) {
  auto next = removed_.ordinals().begin();
  for (uint64_t i = 0; i < archive.info().document_count; ++i) {
    if (next != removed_.ordinals().end() && *next == i) {
      ++next;
      continue;
    }
    QUIRE_ASSIGN_OR_RETURN(const Document document, archive.GetDocument({i}));
    for (const std::string* const part : {&document.id, &document.media_type}) {
      sink.Add(AsBytes(*part));
      sink.Break();
    }
  }
  return absl::OkStatus();
}

absl::Status Prover::FindKept(const WindowTable& table,
                              std::vector<bool>& kept) {
  WindowScanner scanner(table,
                        [&kept](uint32_t position) { kept[position] = true; });
  QUIRE_RETURN_IF_ERROR(AddLogicalText(before_, removed_.KeptRanges(before_),
                                       PartialMembers::kNone, on_read_,
                                       scanner));
  QUIRE_RETURN_IF_ERROR(AddFieldStrings(
      before_,
      [this](uint64_t ordinal) {
        return removed_.OrdinalsIn(ordinal, ordinal + 1).empty();
      },
      scanner));
  return AddDescriptions(before_, scanner);
}

absl::Status Prover::Search(const WindowTable& table,
                            const std::vector<bool>& kept) {
  std::atomic<uint64_t> found_count = 0;
  std::deque<WindowScanner> scanners;
  std::vector<TextSink*> sinks;
  while (sinks.size() < threads_) {
    sinks.push_back(&scanners.emplace_back(table, [&](uint32_t position) {
      found_count += kept[position] ? 0 : 1;
    }));
  }
  TextSink& scanner = *sinks[0];
  const auto report = [&](const std::string& place) {
    if (found_count.exchange(0) > 0) {
      Fail(absl::StrCat(place, " has text that only removed documents had"));
    }
    scanner.Break();
  };
  for (uint32_t i = 0; i < after_.info().segment_count; ++i) {
    const SegmentRedaction plan = removed_.PlanFor(after_, i);
    QUIRE_RETURN_IF_ERROR(
        AddKeptText(after_, i, plan, HasInflatedText(after_), on_read_, sinks));
    report(after_.SegmentPath(i));
  }
  const ByteView dictionary = after_.dictionary();
  const ByteView old_dictionary = before_.dictionary();
  for (size_t at = 0; at < dictionary.size();) {
    size_t end = at;
    while (end < dictionary.size() && dictionary[end] == old_dictionary[end]) {
      ++end;
    }
    scanner.Add(dictionary.subspan(at, end - at));
    scanner.Break();
    at = std::max(end, at + 1);
  }
  report("the dictionary");
  QUIRE_RETURN_IF_ERROR(AddDescriptions(after_, scanner));
  report("the index of ids and types");
  proof_.field_string_count = 0;
  for (uint32_t i = 0; i < after_.info().segment_count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t count,
                           AddStoredFieldStrings(after_, i, scanner));
    proof_.field_string_count += count;
    report(absl::StrCat(after_.SegmentPath(i), ": fields"));
  }
  return absl::OkStatus();
}

absl::Status Prover::CheckWindows(ByteView text,
                                  const std::vector<TextInterval>& parts) {
  WindowTable table(text, text.size());
  for (const TextInterval& part : parts) {
    table.Add(part.begin, part.end - kWindowSizeBytes + 1);
  }
  std::vector<bool> kept(text.size());
  QUIRE_RETURN_IF_ERROR(FindKept(table, kept));
  for (const TextInterval& part : parts) {
    table.Scan(text.subspan(part.begin, part.end - part.begin),
               [&](size_t offset, uint32_t position) {
                 if (part.begin + offset != position || kept[position]) {
                   return;
                 }
                 // Removed text leaves zeros.
                 kept[position] = std::ranges::all_of(
                     text.subspan(position, kWindowSizeBytes), IsZero);
                 proof_.window_count += kept[position] ? 0 : 1;
               });
  }
  return Search(table, kept);
}

}  // namespace

absl::StatusOr<RedactionProof> ProveRedaction(const Archive& before,
                                              const Archive& after,
                                              const RemovedDocuments& removed,
                                              size_t windows_per_pass,
                                              const OnTextRead& on_read,
                                              uint32_t threads) {
  Prover prover(before, after, removed, on_read, threads);
  QUIRE_RETURN_IF_ERROR(prover.CheckDocuments());
  TextCollector collector(
      windows_per_pass,
      [&prover](ByteView text, const std::vector<TextInterval>& parts) {
        return prover.CheckWindows(text, parts);
      });
  QUIRE_RETURN_IF_ERROR(AddRemovedText(before, removed, on_read, collector));
  QUIRE_RETURN_IF_ERROR(collector.Finish());
  RedactionProof proof = std::move(prover).Take();
  const ArchiveInfo& info = after.info();
  proof.block_count = info.block_count;
  proof.text_size_bytes = info.stored_text_size_bytes;
  proof.dictionary_size_bytes = info.dictionary_size_bytes;
  proof.id_count = info.document_count - removed.ordinals().size();
  return proof;
}

}  // namespace quire
