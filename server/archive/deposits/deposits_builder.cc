// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/deposits/deposits_builder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// A page ends once its headers or its literals have this size.
constexpr size_t kPageHeadersSize = kDepositPageSizeMax / 4;
constexpr uint64_t kPageLiteralsSize = uint64_t{4} << 20;

void SetState(DepositState state, DepositPortion& portion) {
  portion.state = state;
  if (state != DepositState::kKept) {
    portion.file_size_bytes = 0;
    portion.digest = {};
    portion.pages.clear();
  }
}

}  // namespace

// Ends of the documents of a file, for ascending offsets.
class DepositsBuilder::Ends {
 public:
  // The first begins at `begin`.
  Ends(uint64_t begin, std::span<const uint64_t> sizes)
      : sizes_(sizes), begin_(begin) {}

  uint64_t After(uint64_t offset) {
    while (offset >= begin_ + sizes_[next_]) {
      begin_ += sizes_[next_];
      ++next_;
    }
    return begin_ + sizes_[next_];
  }

 private:
  const std::span<const uint64_t> sizes_;
  // Start of document `next_`.
  uint64_t begin_ = 0;
  size_t next_ = 0;
};

absl::Status DepositsBuilder::AddText(
    const std::shared_ptr<DepositDraft>& draft, uint64_t size_bytes,
    ContainerData& data) {
  if (draft_ != draft) {
    QUIRE_RETURN_IF_ERROR(EndDraft(data));
    draft_ = draft;
    draft_text_offset_ = text_size_bytes_;
  }
  if (draft != nullptr) {
    draft_sizes_.push_back(size_bytes);
  }
  text_size_bytes_ += size_bytes;
  return absl::OkStatus();
}

void DepositsBuilder::AddStored(DepositPortion portion) {
  portion.text_offset += text_size_bytes_;
  if (!portion.begins && !portions_.empty()) {
    DepositPortion& before = portions_.back();
    if (!before.ends && before.path == portion.path) {
      before.ends = portion.ends;
      before.text_size_bytes += portion.text_size_bytes;
      before.file_size_bytes = portion.file_size_bytes;
      before.digest = portion.digest;
      std::ranges::move(portion.pages, std::back_inserter(before.pages));
      SetState(std::max(before.state, portion.state), before);
      return;
    }
  }
  portions_.push_back(std::move(portion));
}

absl::StatusOr<std::string> DepositsBuilder::Build(ContainerData& data) {
  QUIRE_RETURN_IF_ERROR(EndDraft(data));
  for (DepositPortion& portion : portions_) {
    // The rest of the file has no document, or another place.
    if ((!portion.begins && portion.text_offset != 0) ||
        (!portion.ends &&
         portion.text_offset + portion.text_size_bytes != text_size_bytes_)) {
      SetState(DepositState::kAbandoned, portion);
      portion.begins = true;
      portion.ends = true;
    }
  }
  return SegmentDeposits(std::move(portions_)).Encode();
}

absl::Status DepositsBuilder::EndDraft(ContainerData& data) {
  if (draft_ == nullptr) {
    return absl::OkStatus();
  }
  DepositPortion portion;
  portion.path = draft_->path();
  portion.text_offset = draft_text_offset_;
  portion.text_size_bytes = text_size_bytes_ - draft_text_offset_;
  const DepositDraft::Part part = draft_->Take(portion.text_size_bytes);
  portion.begins = part.begins;
  portion.ends = part.ends;
  portion.file_size_bytes = draft_->file().size_bytes;
  portion.digest = draft_->file().digest;
  Ends ends(draft_text_offset_, draft_sizes_);
  std::span<const DepositItem> left = part.items;
  uint64_t offset = part.offset;
  while (!left.empty() && draft_->state() == DepositState::kKept) {
    QUIRE_ASSIGN_OR_RETURN(const size_t count,
                           AddPage(left, offset, ends, portion, data));
    offset += portion.pages.back().totals.size_bytes;
    left = left.subspan(count);
  }
  SetState(part.items.empty() ? DepositState::kAbandoned : draft_->state(),
           portion);
  portions_.push_back(std::move(portion));
  draft_.reset();
  draft_sizes_.clear();
  return absl::OkStatus();
}

absl::StatusOr<size_t> DepositsBuilder::AddPage(
    std::span<const DepositItem> items, uint64_t offset, Ends& ends,
    DepositPortion& portion, ContainerData& data) {
  const uint64_t text_offset =
      portion.text_offset + portion.Totals().text_size_bytes;
  DepositPageEntry page;
  size_t headers_size = 0;
  size_t count = 0;
  while (count < items.size() && count < kDepositPageItemsMax &&
         headers_size < kPageHeadersSize &&
         page.totals.literal_size_bytes < kPageLiteralsSize) {
    const DepositItem& item = items[count++];
    page.totals.Add(item);
    if (item.kind == DepositItem::Kind::kMember) {
      headers_size += draft_->header(item).bytes.size();
    }
  }
  items = items.first(count);
  const std::string raw =
      EncodeDepositPage(items, draft_->file().headers, text_offset,
                        [&ends](uint64_t at) { return ends.After(at); });
  QUIRE_ASSIGN_OR_RETURN(page.part, data.Append(AsBytes(raw)));
  QUIRE_RETURN_IF_ERROR(AddLiterals(items, offset, page, data));
  portion.pages.push_back(std::move(page));
  return count;
}

absl::Status DepositsBuilder::AddLiterals(std::span<const DepositItem> items,
                                          uint64_t offset,
                                          DepositPageEntry& page,
                                          ContainerData& data) const {
  std::vector<uint8_t> buffer;
  const auto flush = [&]() -> absl::Status {
    QUIRE_ASSIGN_OR_RETURN(page.literals.emplace_back(), data.Append(buffer));
    buffer.clear();
    return absl::OkStatus();
  };
  for (const DepositItem& item : items) {
    uint64_t left =
        item.kind == DepositItem::Kind::kLiteral ? item.size_bytes : 0;
    uint64_t at = offset;
    while (left > 0) {
      const auto size = static_cast<size_t>(
          std::min<uint64_t>(left, kContainerPartSizeBytesMax - buffer.size()));
      buffer.resize(buffer.size() + size);
      QUIRE_RETURN_IF_ERROR(
          draft_->Read(at, MutableByteView(buffer).last(size)));
      at += size;
      left -= size;
      if (buffer.size() == kContainerPartSizeBytesMax) {
        QUIRE_RETURN_IF_ERROR(flush());
      }
    }
    offset += item.size_bytes;
  }
  return buffer.empty() ? absl::OkStatus() : flush();
}

}  // namespace quire
