// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/archive_deposit.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive_part.h"
#include "server/archive/deposit_reader.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

uint64_t EndOf(const LogicalRange& range) {
  return range.offset.value + range.size_bytes;
}

class ArchiveDeposit final : public DepositSource {
 public:
  // The part of the file from byte `begin` of the logical space on.
  ArchiveDeposit(std::shared_ptr<const Archive> archive,
                 const DepositedFile& file, uint64_t begin)
      : archive_(std::move(archive)), file_(file), begin_(begin) {}

  absl::StatusOr<Result> Draft(const Options& options) const override;

 private:
  const std::shared_ptr<const Archive> archive_;
  const DepositedFile& file_;
  const uint64_t begin_;
};

absl::StatusOr<DepositSource::Result> ArchiveDeposit::Draft(
    const Options& options) const {
  Result result = {.is_carried = true};
  DepositDraft::File draft = {.path = options.path,
                              .size_bytes = file_.size_bytes,
                              .digest = file_.digest,
                              .begins = begin_ <= file_.text.offset.value};
  if (file_.state == DepositState::kWithdrawn) {
    draft.state = file_.state;
    draft.items = {{.kind = DepositItem::Kind::kText,
                    .size_bytes = options.text_size_bytes,
                    .text_size_bytes = options.text_size_bytes}};
    result.draft = std::make_shared<DepositDraft>(std::move(draft));
    return result;
  }
  DepositTotals skipped;
  uint64_t text_left = begin_ - std::min(begin_, file_.text.offset.value);
  DepositTotals totals;
  absl::flat_hash_map<std::string, uint32_t> numbers;
  DepositPlanner planner(*archive_, file_, BlockingPartLoader(*archive_));
  QUIRE_RETURN_IF_ERROR(planner.VisitItems(
      [&](DepositItem item, const DepositPage& page) -> absl::Status {
        if (skipped.text_size_bytes + item.text_size_bytes <= text_left &&
            totals.size_bytes == 0 && text_left > 0) {
          // The portion before has items without text after its last one.
          skipped.Add(item);
          return absl::OkStatus();
        }
        if (item.kind == DepositItem::Kind::kMember) {
          const DepositHeader& header = page.headers()[item.header];
          const auto [entry, is_new] = numbers.try_emplace(
              absl::StrCat(header.text_size_at, ",", header.member_size_at, ",",
                           header.bytes),
              static_cast<uint32_t>(draft.headers.size()));
          if (is_new) {
            draft.headers.push_back(header);
          }
          item.header = entry->second;
          ++result.counts.reproduced_count;
        }
        totals.Add(item);
        draft.items.push_back(item);
        return absl::OkStatus();
      }));
  if (totals.text_size_bytes != options.text_size_bytes) {
    result.refusal = absl::StrCat(
        "documents of it are left out: it has ",
        FormatCounted(totals.text_size_bytes, "byte", "bytes"), " of text, ",
        "and its documents here have ", FormatCount(options.text_size_bytes));
    return result;
  }
  draft.read = [archive = archive_, &file = file_, start = skipped.size_bytes](
                   uint64_t offset, MutableByteView out) {
    return DepositReader(*archive, file).Read(start + offset, out);
  };
  result.draft = std::make_shared<DepositDraft>(std::move(draft));
  return result;
}

}  // namespace

ArchiveDeposits::ArchiveDeposits(std::shared_ptr<const Archive> archive,
                                 uint64_t begin)
    : archive_(std::move(archive)), begin_(begin) {
  for (const DepositedFile& file : archive_->deposited_files().files()) {
    if (EndOf(file.text) > begin) {
      files_.push_back(&file);
    }
  }
  std::ranges::sort(files_, {}, [](const DepositedFile* file) {
    return file->text.offset.value;
  });
}

ArchiveDeposits::Found ArchiveDeposits::At(uint64_t offset) {
  while (next_ < files_.size() && EndOf(files_[next_]->text) <= offset) {
    ++next_;
    source_.reset();
  }
  if (next_ == files_.size() || files_[next_]->text.offset.value > offset) {
    return {};
  }
  if (source_ == nullptr) {
    source_ =
        std::make_shared<ArchiveDeposit>(archive_, *files_[next_], begin_);
  }
  return {.file = files_[next_], .source = source_};
}

}  // namespace quire
