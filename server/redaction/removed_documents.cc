// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/removed_documents.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

#include "codecs/base/document_item.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive_part.h"
#include "server/archive/field_reader.h"
#include "server/archive/filtered_documents.h"
#include "server/archive/segment_reader.h"
#include "server/redaction/field_strings.h"

namespace quire {
namespace {

constexpr size_t kNamedIdsMax = 10;

absl::Status NotFound(const std::string& path,
                      const std::vector<std::string>& missing) {
  const auto named = absl::MakeConstSpan(missing).first(
      std::min(missing.size(), kNamedIdsMax));
  return absl::NotFoundError(absl::StrCat(
      path, ": no document has the id ", absl::StrJoin(named, " or "),
      missing.size() > named.size()
          ? absl::StrCat(" or one of ", missing.size() - named.size(), " more")
          : "",
      "; nothing was changed"));
}

// The documents of one id.
struct IdSelection {
  std::vector<DocumentOrdinal> documents;
  bool is_whole = false;
  // Removed ones, if it is not whole.
  std::set<uint64_t> occurrences;

  uint64_t removed_count() const {
    return is_whole ? documents.size() : occurrences.size();
  }
};

// Adds an interval after the others.
void AppendInterval(TextInterval interval,
                    std::vector<TextInterval>& intervals) {
  if (interval.begin == interval.end) {
    return;
  }
  if (!intervals.empty() && intervals.back().end == interval.begin) {
    intervals.back().end = interval.end;
  } else {
    intervals.push_back(interval);
  }
}

}  // namespace

absl::Status RemovedDocuments::AddNamed(const Archive& archive,
                                        std::span<const std::string> items) {
  std::map<absl::string_view, IdSelection> ids;
  std::vector<std::string> missing;
  for (const std::string& text : items) {
    const DocumentItem item = ParseDocumentItem(text);
    const auto [entry, is_new] = ids.try_emplace(item.id);
    IdSelection& selection = entry->second;
    if (is_new) {
      auto found = archive.FindDocuments(item.id);
      if (!found.ok() && !absl::IsNotFound(found.status())) {
        return found.status();
      }
      selection.documents =
          std::move(found).value_or(std::vector<DocumentOrdinal>());
    }
    const size_t count = selection.documents.size();
    if (count == 0) {
      missing.push_back(QuotedText(item.id));
    } else if (!item.occurrence.has_value()) {
      selection.is_whole = true;
    } else if (*item.occurrence < count) {
      selection.occurrences.insert(*item.occurrence);
    } else {
      missing.push_back(absl::StrCat(QuotedText(item.id), " as number ",
                                     *item.occurrence, " (there are ", count,
                                     ", from 0)"));
    }
  }
  if (!missing.empty()) {
    return NotFound(archive.path(), missing);
  }
  bool may_repeat = true;
  for (const auto& [id, selection] : ids) {
    const std::vector<DocumentOrdinal>& documents = selection.documents;
    for (size_t i = 0; i < documents.size(); ++i) {
      if (selection.is_whole || selection.occurrences.contains(i)) {
        ordinals_.push_back(documents[i].value);
      }
    }
    named_count_ += selection.removed_count();
    const uint64_t kept_count = documents.size() - selection.removed_count();
    // Removed documents have the empty id, so that it never disappears.
    const bool is_found_again =
        id.empty() ||
        (!selection.is_whole && *selection.occurrences.rbegin() < kept_count);
    may_repeat = may_repeat && is_found_again;
    if (is_found_again && !selection.is_whole) {
      reused_item_ = FormatDocumentItem(id, *selection.occurrences.begin());
    }
  }
  if (!may_repeat) {
    reused_item_.clear();
  }
  return absl::OkStatus();
}

absl::Status RemovedDocuments::AddMatches(
    const Archive& archive, const Filter& where,
    const std::function<absl::Status()>& check) {
  const absl::Status status = CheckFilter(archive, where);
  if (!status.ok()) {
    return absl::Status(
        status.code(), absl::StrCat(archive.path(), ": --where: ",
                                    status.message(), "; nothing was changed"));
  }
  QUIRE_RETURN_IF_ERROR(VisitMatches(archive, where,
                                     BlockingPartLoader(archive), check,
                                     [this](DocumentOrdinal ordinal) {
                                       ordinals_.push_back(ordinal.value);
                                       ++matched_count_;
                                     }));
  // A repeated command finds no match and fails.
  reused_item_.clear();
  return matched_count_ > 0
             ? absl::OkStatus()
             : absl::NotFoundError(absl::StrCat(
                   archive.path(), ": no document matches --where ",
                   QuotedText(where.text()), "; nothing was changed"));
}

absl::Status RemovedDocuments::Complete(const Archive& archive) {
  std::ranges::sort(ordinals_);
  ordinals_.erase(std::unique(ordinals_.begin(), ordinals_.end()),
                  ordinals_.end());
  // Number of documents that stay, by id, if several had it.
  absl::flat_hash_map<std::string, uint64_t> kept_counts;
  for (const uint64_t ordinal : ordinals_) {
    QUIRE_ASSIGN_OR_RETURN(Document document, archive.GetDocument({ordinal}));
    const LogicalRange& range = document.range;
    size_bytes_ += range.size_bytes;
    if (range.size_bytes == 0) {
      empty_offsets_.push_back(range.offset.value);
    }
    AppendInterval({range.offset.value, range.offset.value + range.size_bytes},
                   ranges_);
    if (const auto known = kept_counts.find(document.id);
        known != kept_counts.end()) {
      --known->second;
      continue;
    }
    const uint64_t count =
        archive.FindDocument(document.id, std::nullopt).count;
    if (count > 1) {
      kept_counts.emplace(std::move(document.id), count - 1);
    }
  }
  renumbered_id_count_ = static_cast<uint64_t>(std::ranges::count_if(
      kept_counts,
      [](const auto& id_and_count) { return id_and_count.second > 0; }));
  return absl::OkStatus();
}

absl::StatusOr<RemovedDocuments> RemovedDocuments::Find(
    const Archive& archive, std::span<const std::string> items,
    const Filter* where, const std::function<absl::Status()>& check) {
  RemovedDocuments removed;
  QUIRE_RETURN_IF_ERROR(removed.AddNamed(archive, items));
  if (where != nullptr) {
    QUIRE_RETURN_IF_ERROR(removed.AddMatches(archive, *where, check));
  }
  QUIRE_RETURN_IF_ERROR(removed.Complete(archive));
  return removed;
}

bool RemovedDocuments::HasDocumentIn(LogicalRange range) const {
  const uint64_t begin = range.offset.value;
  const uint64_t end = begin + range.size_bytes;
  const auto interval =
      std::ranges::upper_bound(ranges_, begin, {}, &TextInterval::end);
  const auto empty = std::ranges::lower_bound(empty_offsets_, begin);
  return begin < end && ((interval != ranges_.end() && interval->begin < end) ||
                         (empty != empty_offsets_.end() && *empty <= end));
}

std::vector<TextInterval> RemovedDocuments::KeptRanges(
    const Archive& archive) const {
  std::vector<TextInterval> kept;
  uint64_t at = 0;
  for (const TextInterval& range : ranges_) {
    AppendInterval({at, range.begin}, kept);
    at = range.end;
  }
  AppendInterval({at, archive.info().size_bytes}, kept);
  return kept;
}

absl::StatusOr<std::vector<std::string>> RemovedDocuments::Items(
    const Archive& archive) const {
  std::vector<std::string> items;
  // Documents of ids that have several.
  absl::flat_hash_map<std::string, std::vector<DocumentOrdinal>> of_ids;
  for (const uint64_t ordinal : ordinals_) {
    QUIRE_ASSIGN_OR_RETURN(const Document document,
                           archive.GetDocument({ordinal}));
    if (archive.FindDocument(document.id, std::nullopt).count <= 1) {
      items.push_back(FormatDocumentItem(document.id, std::nullopt));
      continue;
    }
    std::vector<DocumentOrdinal>& all = of_ids[document.id];
    if (all.empty()) {
      QUIRE_ASSIGN_OR_RETURN(all, archive.FindDocuments(document.id));
    }
    const auto found =
        std::ranges::lower_bound(all, ordinal, {}, &DocumentOrdinal::value);
    items.push_back(FormatDocumentItem(
        document.id, static_cast<uint64_t>(found - all.begin())));
  }
  return items;
}

std::span<const uint64_t> RemovedDocuments::OrdinalsIn(uint64_t begin,
                                                       uint64_t end) const {
  const auto first = std::ranges::lower_bound(ordinals_, begin);
  return {first, std::ranges::lower_bound(ordinals_, end)};
}

SegmentRedaction RemovedDocuments::PlanFor(const Archive& archive,
                                           uint32_t segment_index) const {
  const uint64_t start = archive.SegmentStart(segment_index);
  const uint64_t end = segment_index + 1 < archive.info().segment_count
                           ? archive.SegmentStart(segment_index + 1)
                           : archive.info().size_bytes;
  std::vector<TextInterval> removed;
  for (auto range =
           std::ranges::upper_bound(ranges_, start, {}, &TextInterval::end);
       range != ranges_.end() && range->begin < end; ++range) {
    removed.push_back({std::max(range->begin, start) - start,
                       std::min(range->end, end) - start});
  }
  uint64_t stored_text_size_bytes = 0;
  for (uint64_t i = 0; i < archive.SegmentBlockCount(segment_index); ++i) {
    stored_text_size_bytes += archive.BlockSizeBytes({segment_index, i});
  }
  return PlanSegmentRedaction(archive.SegmentLayoutOf(segment_index),
                              end - start, stored_text_size_bytes, removed,
                              archive.info().block_size_bytes);
}

bool HasDepositPages(const Archive& archive, const DepositedFile& file) {
  return std::ranges::any_of(file.portions,
                             [&archive](const DepositedFile::Portion& portion) {
                               return !archive.ReaderOf(portion.segment_index)
                                           .deposits()
                                           .portions()[portion.index]
                                           .pages.empty();
                             });
}

absl::Status AddRemovedText(const Archive& archive,
                            const RemovedDocuments& removed,
                            const OnTextRead& on_read, TextSink& sink) {
  QUIRE_RETURN_IF_ERROR(AddLogicalText(archive, removed.ranges(),
                                       PartialMembers::kWhole, on_read, sink));
  std::string last;
  for (const uint64_t ordinal : removed.ordinals()) {
    QUIRE_ASSIGN_OR_RETURN(const Document document,
                           archive.GetDocument({ordinal}));
    if (document.id != last) {
      sink.Add(AsBytes(document.id));
      sink.Break();
      last = document.id;
    }
  }
  return AddFieldStrings(
      archive,
      [&removed](uint64_t ordinal) {
        return !removed.OrdinalsIn(ordinal, ordinal + 1).empty();
      },
      sink);
}

}  // namespace quire
