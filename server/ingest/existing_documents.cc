// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/existing_documents.h"

#include <algorithm>
#include <span>
#include <tuple>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kReadSizeBytes = size_t{1} << 20;
// More documents of an id are remembered, and more that agree in all except
// their text get checksums.
constexpr size_t kFewMax = 8;

class NewDocumentReader final : public SourceReader {
 public:
  NewDocumentReader(std::unique_ptr<SourceReader> reader,
                    std::shared_ptr<const ExistingDocuments> existing,
                    std::string name)
      : reader_(std::move(reader)),
        existing_(std::move(existing)),
        name_(std::move(name)) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(std::optional<SourceDocument> document,
                             reader_->Next());
      if (!document.has_value()) {
        return document;
      }
      const uint64_t number = document_count_++;
      if (next_ == existing_->size() || (*existing_)[next_].number != number) {
        return document;
      }
      if ((*existing_)[next_++].id_checksum !=
          Checksum64(AsBytes(document->id))) {
        return absl::FailedPreconditionError(
            absl::StrCat(name_, ": ", reader_->Place(),
                         ": was another document before: the input changed "
                         "while it was read; try again"));
      }
    }
  }

  std::string Place() const override { return reader_->Place(); }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    return reader_->Read(out);
  }

  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override {
    return reader_->Skip(size_bytes);
  }

  std::shared_ptr<const TextCheck> AwaitedCheck() const override {
    return reader_->AwaitedCheck();
  }

  bool CanContinue() const override { return reader_->CanContinue(); }

  SkippedEntries skipped() const override { return reader_->skipped(); }

  void Listen(NoteListener listener) override {
    reader_->Listen(std::move(listener));
  }

 private:
  const std::unique_ptr<SourceReader> reader_;
  const std::shared_ptr<const ExistingDocuments> existing_;
  const std::string name_;
  uint64_t document_count_ = 0;
  // Index of the next existing document.
  size_t next_ = 0;
};

}  // namespace

absl::StatusOr<ExistingDocuments> ExistingDocumentFinder::Find(
    const Source& source) {
  ExistingDocuments existing;
  const absl::StatusOr<std::unique_ptr<SourceReader>> reader = source.Open();
  if (!reader.ok()) {
    return existing;
  }
  uint64_t number = 0;
  while (true) {
    QUIRE_RETURN_IF_ERROR(on_read_(0));
    const absl::StatusOr<std::optional<SourceDocument>> document =
        (*reader)->Next();
    if (!document.ok() && (*reader)->CanContinue()) {
      continue;
    }
    if (!document.ok() || !document->has_value()) {
      return existing;
    }
    Group few;
    QUIRE_ASSIGN_OR_RETURN(Group* const group, GroupOf(**document, few));
    if (group != nullptr) {
      QUIRE_ASSIGN_OR_RETURN(
          const std::optional<bool> is_there,
          HasBytesOf(**reader, (*document)->size_bytes, *group));
      if (!is_there.has_value() && !(*reader)->CanContinue()) {
        return existing;
      }
      if (is_there.value_or(false)) {
        const size_t capacity = existing.capacity();
        existing.push_back({number, Checksum64(AsBytes((*document)->id))});
        result_bytes_ +=
            (existing.capacity() - capacity) * sizeof(ExistingDocument);
        QUIRE_RETURN_IF_ERROR(CheckMemory());
      }
    }
    ++number;
  }
}

absl::Status ExistingDocumentFinder::CheckMemory() const {
  const uint64_t bytes = result_bytes_ + many_count_ * kManyBytes;
  return bytes <= memory_bytes_max_
             ? absl::OkStatus()
             : absl::ResourceExhaustedError(absl::StrCat(
                   "the documents that are there already take more than ",
                   FormatByteSize(bytes), " of memory, and --build-memory is ",
                   FormatByteSizeExact(memory_bytes_max_),
                   "; give more, or append the inputs in parts"));
}

absl::StatusOr<ExistingDocumentFinder::Group*> ExistingDocumentFinder::GroupOf(
    const SourceDocument& document, Group& few) {
  const TypeAndTime key = {document.record_type, document.capture_time_ms};
  auto known = many_.find(document.id);
  if (known == many_.end()) {
    const absl::StatusOr<std::vector<DocumentOrdinal>> found =
        archive_.FindDocuments(document.id);
    if (!found.ok()) {
      return nullptr;
    }
    QUIRE_ASSIGN_OR_RETURN(GroupsOfId groups, GroupsOf(*found));
    if (found->size() <= kFewMax) {
      few = std::move(groups[key]);
      return few.candidates.empty() ? nullptr : &few;
    }
    if ((many_count_ + found->size()) * kManyBytes > memory_bytes_max_ / 2) {
      many_.clear();
      many_count_ = 0;
    }
    many_count_ += found->size();
    known = many_.emplace(document.id, std::move(groups)).first;
    QUIRE_RETURN_IF_ERROR(CheckMemory());
  }
  const auto group = known->second.find(key);
  return group == known->second.end() ? nullptr : &group->second;
}

absl::StatusOr<ExistingDocumentFinder::GroupsOfId>
ExistingDocumentFinder::GroupsOf(const std::vector<DocumentOrdinal>& ordinals) {
  GroupsOfId groups;
  for (const DocumentOrdinal ordinal : ordinals) {
    const absl::StatusOr<Document> document = archive_.GetDocument(ordinal);
    if (document.ok()) {
      groups[{document->record_type, document->capture_time_ms}]
          .candidates.push_back({.range = document->range});
    }
  }
  for (auto& [key, group] : groups) {
    std::ranges::stable_sort(group.candidates, {}, [](const Candidate& c) {
      return c.range.size_bytes;
    });
  }
  return groups;
}

absl::Status ExistingDocumentFinder::AddChecksums(Group& group) {
  // In the order of the text, so that each block is decoded once.
  std::ranges::sort(group.candidates, {},
                    [](const Candidate& c) { return c.range.offset.value; });
  for (Candidate& candidate : group.candidates) {
    QUIRE_RETURN_IF_ERROR(on_read_(0));
    Checksummer64 start;
    Checksummer64 all;
    uint64_t left = kReadSizeBytes;
    QUIRE_RETURN_IF_ERROR(VisitText(candidate.range, [&](ByteView text) {
      const size_t size = std::min<uint64_t>(left, text.size());
      start.Add(text.first(size));
      left -= size;
      all.Add(text);
      return true;
    }));
    candidate.start_checksum = start.Get();
    candidate.checksum = all.Get();
  }
  const auto key = [](const Candidate& c) {
    return std::tuple(c.range.size_bytes, c.start_checksum, c.checksum);
  };
  std::ranges::stable_sort(group.candidates, {}, key);
  // Another document counts as new if its text differs from that of the one
  // that is left, so that nothing depends on the checksums.
  group.candidates.erase(
      std::unique(group.candidates.begin(), group.candidates.end(),
                  [&key](const Candidate& a, const Candidate& b) {
                    return key(a) == key(b);
                  }),
      group.candidates.end());
  group.has_checksums = true;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<bool>> ExistingDocumentFinder::HasBytesOf(
    SourceReader& reader, std::optional<uint64_t> size_bytes, Group& group) {
  const auto of_sizes = [&group](uint64_t least, uint64_t most) {
    const auto size_of = [](const Candidate& c) { return c.range.size_bytes; };
    const auto begin =
        std::ranges::lower_bound(group.candidates, least, {}, size_of);
    const auto end =
        std::ranges::upper_bound(group.candidates, most, {}, size_of);
    return std::span<const Candidate>(begin, end);
  };
  if (size_bytes.has_value() && of_sizes(*size_bytes, *size_bytes).empty()) {
    return std::optional(false);
  }
  QUIRE_ASSIGN_OR_RETURN(const bool is_readable, ReadStart(reader));
  if (!is_readable) {
    return std::optional<bool>();
  }
  const bool has_ended = buffer_.size() < kReadSizeBytes;
  const uint64_t least =
      has_ended ? buffer_.size() : size_bytes.value_or(kReadSizeBytes);
  const uint64_t most = has_ended ? least : size_bytes.value_or(UINT64_MAX);
  if (has_ended && size_bytes.value_or(least) != least) {
    return std::optional(false);
  }
  if (!group.has_checksums && of_sizes(least, most).size() > kFewMax) {
    QUIRE_RETURN_IF_ERROR(AddChecksums(group));
  }
  const uint64_t checksum = Checksum64(buffer_);
  std::span<const Candidate> candidates = of_sizes(least, most);
  if (group.has_checksums && least == most) {
    const auto begin = std::ranges::lower_bound(candidates, checksum, {},
                                                &Candidate::start_checksum);
    const auto end = std::ranges::upper_bound(candidates, checksum, {},
                                              &Candidate::start_checksum);
    candidates = {begin, end};
  }
  std::vector<LogicalRange> ranges;
  for (const Candidate& candidate : candidates) {
    if (!group.has_checksums || candidate.start_checksum == checksum) {
      ranges.push_back(candidate.range);
    }
  }
  QUIRE_ASSIGN_OR_RETURN(ranges, Equal(ranges, 0));
  return has_ended ? std::optional(!ranges.empty())
                   : HasRestOf(reader, std::move(ranges));
}

absl::StatusOr<bool> ExistingDocumentFinder::ReadStart(SourceReader& reader) {
  buffer_.resize(kReadSizeBytes);
  size_t size = 0;
  while (size < buffer_.size()) {
    const absl::StatusOr<size_t> got =
        reader.Read(MutableByteView(buffer_).subspan(size));
    if (!got.ok()) {
      return false;
    }
    QUIRE_RETURN_IF_ERROR(on_read_(*got));
    if (*got == 0) {
      break;
    }
    size += *got;
  }
  buffer_.resize(size);
  return true;
}

absl::StatusOr<std::optional<bool>> ExistingDocumentFinder::HasRestOf(
    SourceReader& reader, std::vector<LogicalRange> candidates) {
  uint64_t offset = buffer_.size();
  while (!candidates.empty()) {
    buffer_.resize(kReadSizeBytes);
    const absl::StatusOr<size_t> got = reader.Read(buffer_);
    if (!got.ok()) {
      return std::optional<bool>();
    }
    QUIRE_RETURN_IF_ERROR(on_read_(*got));
    if (*got == 0) {
      return std::optional(
          std::ranges::any_of(candidates, [&](const LogicalRange& range) {
            return range.size_bytes == offset;
          }));
    }
    buffer_.resize(*got);
    QUIRE_ASSIGN_OR_RETURN(candidates, Equal(candidates, offset));
    offset += *got;
  }
  return std::optional(false);
}

absl::StatusOr<std::vector<LogicalRange>> ExistingDocumentFinder::Equal(
    const std::vector<LogicalRange>& candidates, uint64_t offset) {
  std::vector<LogicalRange> equal;
  for (const LogicalRange& range : candidates) {
    if (buffer_.size() > range.size_bytes - offset) {
      continue;
    }
    ByteView left = buffer_;
    QUIRE_RETURN_IF_ERROR(VisitText(
        {{range.offset.value + offset}, left.size()}, [&left](ByteView text) {
          if (!std::ranges::equal(text, left.first(text.size()))) {
            return false;
          }
          left = left.subspan(text.size());
          return true;
        }));
    if (left.empty()) {
      equal.push_back(range);
    }
  }
  return equal;
}

absl::Status ExistingDocumentFinder::VisitText(
    LogicalRange range, const std::function<bool(ByteView text)>& visit) {
  const uint64_t end = range.offset.value + range.size_bytes;
  // A plan has an entry for each block.
  for (uint64_t offset = range.offset.value; offset < end;) {
    const uint64_t size_bytes =
        std::min<uint64_t>(end - offset, kReadSizeBytes);
    QUIRE_ASSIGN_OR_RETURN(const std::vector<BlockSlice> slices,
                           archive_.Plan({{offset}, size_bytes}));
    for (const BlockSlice& slice : slices) {
      if (decoded_ != slice.block) {
        decoded_.reset();
        block_.resize(archive_.BlockSizeBytes(slice.block));
        QUIRE_RETURN_IF_ERROR(
            archive_.ReadBlock(slice.block, block_, *scratch_));
        decoded_ = slice.block;
        ++decoded_block_count_;
      }
      if (!visit(ByteView(block_).subspan(slice.offset_in_block,
                                          slice.size_bytes))) {
        return absl::OkStatus();
      }
    }
    offset += size_bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SourceReader>> NewDocumentSource::Open() const {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<SourceReader> reader, source_->Open());
  return std::make_unique<NewDocumentReader>(std::move(reader), existing_,
                                             name());
}

}  // namespace quire
