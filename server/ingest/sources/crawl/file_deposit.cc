// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/file_deposit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "codecs/deflate/deflate_parameter_finder.h"
#include "codecs/deflate/deflate_recipe.h"
#include "server/archive/deposits/deposit_page.h"
#include "server/archive/files/sha256.h"
#include "server/archive/format/work_in_threads.h"
#include "server/ingest/sources/crawl/arc_header.h"
#include "server/ingest/sources/crawl/warc_reader.h"
#include "server/ingest/sources/streams/gzip_member_reader.h"

namespace quire {
namespace {

// Members that are examined together, on several threads.
constexpr size_t kBatchCount = 256;
constexpr uint64_t kBatchSizeBytes = uint64_t{16} << 20;
constexpr size_t kPieceSizeBytes = size_t{1} << 20;
// The part of a file that its literals may have, and what any may have.
constexpr uint64_t kLiteralShareMax = 200;
constexpr uint64_t kLiteralsFreeBytes = 1 << 10;

enum class Compression { kNone, kGzip, kOther };

// A range whose text is compressed in one way.
struct Stretch {
  uint64_t offset = 0;
  uint64_t end_offset = 0;
  Compression compression = Compression::kNone;
};

// Uses `finder`, one of each thread. Returns what the member is made of; a
// literal if it is not reproduced. Sets `header` if it is.
DepositItem Examine(const GzipMember& member, DeflateParameterFinder& finder,
                    DepositHeader& header) {
  DepositItem item = {.size_bytes = member.size_bytes,
                      .text_size_bytes = member.text_size_bytes};
  const ByteView bytes = member.bytes;
  if (!member.is_member || bytes.size() != member.size_bytes ||
      member.header_size > kDepositHeaderSizeMax) {
    return item;
  }
  const size_t trailer = DeflateTrailerSize(DeflateContainer::kGzip);
  DeflateRecipe recipe = {.parameters = {},
                          .container = DeflateContainer::kGzip,
                          .text_size = member.text_size_bytes,
                          .member_size = bytes.size() - member.header_size};
  const ByteView stream =
      bytes.subspan(member.header_size, recipe.member_size - trailer);
  constexpr size_t kEffortAt = 8;
  const auto parameters = finder.Find(
      stream, member.text,
      {.container = DeflateContainer::kGzip, .effort = bytes[kEffortAt]});
  if (!parameters.ok()) {
    return item;
  }
  recipe.parameters = *parameters;
  if (!CheckDeflateRecipe(recipe).ok()) {
    return item;
  }
  item.kind = DepositItem::Kind::kMember;
  item.recipe_kind = DeflateRecipeKind(recipe);
  header = TakeApartHeader(bytes.first(member.header_size), item);
  return item;
}

class FileDeposit final : public DepositSource {
 public:
  FileDeposit(std::shared_ptr<const InputFile> file,
              std::vector<DepositRange> ranges)
      : file_(std::move(file)), ranges_(std::move(ranges)) {}

  absl::StatusOr<Result> Draft(const Options& options) const override;

 private:
  const std::shared_ptr<const InputFile> file_;
  const std::vector<DepositRange> ranges_;
};

// One reading of a file.
class Drafting {
 public:
  using Options = DepositSource::Options;
  using Result = DepositSource::Result;

  Drafting(const std::shared_ptr<const InputFile>& file,
           const std::vector<DepositRange>& ranges, const Options& options)
      : file_(file), ranges_(ranges), options_(options) {}

  absl::StatusOr<Result> Run() {
    QUIRE_ASSIGN_OR_RETURN(size_bytes_, file_->SizeBytes());
    QUIRE_ASSIGN_OR_RETURN(const std::vector<Stretch> stretches, Divide());
    const absl::Status status = ReadAll(stretches);
    if (absl::IsDataLoss(status)) {
      result_.refusal = std::string(status.message());
    } else {
      QUIRE_RETURN_IF_ERROR(status);
    }
    if (result_.refusal.empty()) {
      Finish();
    }
    return std::move(result_);
  }

 private:
  // Returns the stretches of text in the file. One of kOther at most, as its
  // text is all that the others do not have.
  absl::StatusOr<std::vector<Stretch>> Divide() const {
    const std::vector<DepositRange> whole = {{.size_bytes = size_bytes_}};
    std::vector<Stretch> stretches;
    size_t other_begin = 0;
    size_t other_end = 0;
    for (const DepositRange& range : ranges_.empty() ? whole : ranges_) {
      if (range.size_bytes == 0) {
        continue;
      }
      Stretch next = {.offset = range.offset,
                      .end_offset = range.offset + range.size_bytes,
                      .compression = Compression::kOther};
      if (!range.is_packed) {
        QUIRE_ASSIGN_OR_RETURN(next.compression, Detect(range));
      }
      if (!stretches.empty() && next.offset < stretches.back().end_offset) {
        // Out of order: all of it is one literal, with all text up to here.
        next = {.offset = std::min(next.offset, stretches.front().offset),
                .end_offset =
                    std::max(next.end_offset, stretches.back().end_offset),
                .compression = Compression::kOther};
        stretches.clear();
        other_begin = 0;
        other_end = 0;
      }
      stretches.push_back(next);
      if (next.compression == Compression::kOther) {
        other_begin = other_end == 0 ? stretches.size() - 1 : other_begin;
        other_end = stretches.size();
      }
    }
    if (other_end > other_begin + 1) {
      stretches[other_begin] = {
          .offset = stretches[other_begin].offset,
          .end_offset = stretches[other_end - 1].end_offset,
          .compression = Compression::kOther};
      stretches.erase(
          stretches.begin() + static_cast<ptrdiff_t>(other_begin) + 1,
          stretches.begin() + static_cast<ptrdiff_t>(other_end));
    }
    return stretches;
  }

  absl::StatusOr<Compression> Detect(const DepositRange& range) const {
    std::vector<uint8_t> start(ByteStream::kPartStartSizeBytes);
    FileStream stream(file_, range.offset, range.offset + range.size_bytes);
    QUIRE_ASSIGN_OR_RETURN(const size_t size, ReadFully(stream, start));
    const ByteView found = ByteView(start).first(size);
    if (size >= 4 && start[0] == 0x1F && start[1] == 0x8B) {
      return Compression::kGzip;
    }
    // Other text than that of the documents: it is compressed, or documents
    // are left out, which the sizes show if there is one range.
    const bool is_text =
        ranges_.empty()
            ? size_bytes_ == options_.text_size_bytes
            : IsWarcStart(AsText(found)) || IsArcStart(AsText(found));
    return is_text ? Compression::kNone : Compression::kOther;
  }

  absl::Status ReadAll(const std::vector<Stretch>& stretches) {
    uint64_t offset = 0;
    for (const Stretch& stretch : stretches) {
      QUIRE_RETURN_IF_ERROR(ReadOther(offset, stretch.offset));
      switch (stretch.compression) {
        case Compression::kGzip:
          QUIRE_RETURN_IF_ERROR(ReadMembers(stretch));
          break;
        case Compression::kNone:
          QUIRE_RETURN_IF_ERROR(ReadPlain(stretch));
          break;
        case Compression::kOther:
          QUIRE_RETURN_IF_ERROR(ReadPacked(stretch));
      }
      if (!result_.refusal.empty()) {
        return absl::OkStatus();
      }
      offset = stretch.end_offset;
    }
    return ReadOther(offset, size_bytes_);
  }

  absl::Status CheckCancelled() const {
    return options_.cancel != nullptr && *options_.cancel
               ? absl::CancelledError("interrupted")
               : absl::OkStatus();
  }

  // Reads bytes, and adds an item of them unless there are none.
  absl::Status ReadItem(uint64_t offset, uint64_t end_offset,
                        DepositItem::Kind kind) {
    if (offset >= end_offset) {
      return absl::OkStatus();
    }
    std::vector<uint8_t> piece(kPieceSizeBytes);
    FileStream stream(file_, offset, end_offset);
    while (true) {
      QUIRE_RETURN_IF_ERROR(CheckCancelled());
      QUIRE_ASSIGN_OR_RETURN(const size_t got, stream.Read(piece));
      if (got == 0) {
        break;
      }
      sum_.Add(ByteView(piece).first(got));
      if (kind == DepositItem::Kind::kText) {
        text_sum_.Add(ByteView(piece).first(got));
      }
    }
    const uint64_t size_bytes = stream.offset() - offset;
    if (size_bytes > 0) {
      Add({.kind = kind,
           .size_bytes = size_bytes,
           .text_size_bytes =
               kind == DepositItem::Kind::kText ? size_bytes : 0});
    }
    return absl::OkStatus();
  }

  absl::Status ReadPlain(const Stretch& stretch) {
    return ReadItem(stretch.offset, stretch.end_offset,
                    DepositItem::Kind::kText);
  }

  // Reads the bytes between ranges.
  absl::Status ReadOther(uint64_t offset, uint64_t end_offset) {
    unranged_size_bytes_ += end_offset - std::min(offset, end_offset);
    QUIRE_RETURN_IF_ERROR(
        ReadItem(offset, end_offset, DepositItem::Kind::kLiteral));
    CheckLiterals();
    return absl::OkStatus();
  }

  absl::Status ReadPacked(const Stretch& stretch) {
    if (!options_.keeps_all) {
      result_.refusal =
          ranges_.empty()
              ? "it is compressed, and not by gzip, so that all of it would be "
                "stored a second time; --deposited-files does so"
              : "its WARCs are compressed twice, or not by gzip, so that they "
                "would be stored a second time; --deposited-files does so";
      return absl::OkStatus();
    }
    const size_t index = draft_.items.size();
    QUIRE_RETURN_IF_ERROR(ReadItem(stretch.offset, stretch.end_offset,
                                   DepositItem::Kind::kLiteral));
    if (draft_.items.size() > index) {
      packed_item_ = index;
    }
    return absl::OkStatus();
  }

  absl::Status ReadMembers(const Stretch& stretch) {
    const auto on_bytes = [this](ByteView bytes) { sum_.Add(bytes); };
    const auto on_text = [this](ByteView text) { text_sum_.Add(text); };
    GzipMemberReader reader(
        std::make_unique<FileStream>(file_, stretch.offset, stretch.end_offset),
        kDepositMemberTextSizeMax, on_bytes, on_text);
    std::vector<GzipMember> batch;
    bool at_end = false;
    while (!at_end) {
      batch.clear();
      uint64_t size_bytes = 0;
      while (batch.size() < kBatchCount && size_bytes < kBatchSizeBytes) {
        QUIRE_RETURN_IF_ERROR(CheckCancelled());
        QUIRE_ASSIGN_OR_RETURN(std::optional<GzipMember> member, reader.Next());
        if (!member.has_value()) {
          at_end = true;
          break;
        }
        size_bytes += member->text.size() + member->bytes.size();
        batch.push_back(*std::move(member));
      }
      ExamineBatch(batch);
      if (!result_.refusal.empty()) {
        break;
      }
    }
    return absl::OkStatus();
  }

  void ExamineBatch(const std::vector<GzipMember>& batch) {
    std::vector<DepositItem> items(batch.size());
    std::vector<DepositHeader> headers(batch.size());
    WorkInThreads(options_.threads, batch.size(), [&](const NextNumber& next) {
      DeflateParameterFinder finder;
      while (const std::optional<uint64_t> i = next()) {
        items[*i] = Examine(batch[*i], finder, headers[*i]);
      }
    });
    for (size_t i = 0; i < batch.size(); ++i) {
      const bool is_reproduced = items[i].kind == DepositItem::Kind::kMember;
      if (is_reproduced) {
        items[i].header = NumberOf(std::move(headers[i]));
      }
      result_.counts.reproduced_count += is_reproduced ? 1 : 0;
      const bool is_large =
          items[i].text_size_bytes > kDepositMemberTextSizeMax;
      result_.counts.large_count += is_large ? 1 : 0;
      result_.counts.foreign_count +=
          !is_reproduced && !is_large && batch[i].is_member ? 1 : 0;
      Add(items[i]);
    }
    CheckLiterals();
  }

  // Refuses a file of which too much would be literals.
  void CheckLiterals() {
    if (options_.keeps_all ||
        totals_.literal_size_bytes <=
            size_bytes_ / kLiteralShareMax + kLiteralsFreeBytes) {
      return;
    }
    result_.refusal = absl::StrCat(
        "of its first ", FormatByteSize(totals_.size_bytes), ", ",
        FormatByteSize(totals_.literal_size_bytes),
        " would be stored as they are (",
        unranged_size_bytes_ == 0
            ? ""
            : absl::StrCat(FormatByteSize(unranged_size_bytes_),
                           " of other entries than WARCs, "),
        FormatCounted(result_.counts.foreign_count, "member", "members"),
        " of an unknown encoder, ", result_.counts.large_count,
        " of more than ", FormatByteSize(kDepositMemberTextSizeMax),
        " of text); --deposited-files does so");
  }

  uint32_t NumberOf(DepositHeader header) {
    const auto [entry, is_new] = header_numbers_.try_emplace(
        absl::StrCat(header.text_size_at, ",", header.member_size_at, ",",
                     header.bytes),
        static_cast<uint32_t>(draft_.headers.size()));
    if (is_new) {
      draft_.headers.push_back(std::move(header));
    }
    return entry->second;
  }

  void Add(const DepositItem& item) {
    totals_.Add(item);
    draft_.items.push_back(item);
  }

  void Finish() {
    if (packed_item_.has_value() &&
        totals_.text_size_bytes < options_.text_size_bytes) {
      draft_.items[*packed_item_].text_size_bytes =
          options_.text_size_bytes - totals_.text_size_bytes;
      totals_.text_size_bytes = options_.text_size_bytes;
    }
    if (totals_.text_size_bytes != options_.text_size_bytes) {
      result_.refusal = absl::StrCat(
          "it has ", FormatCounted(totals_.text_size_bytes, "byte", "bytes"),
          " of text, and its documents have ",
          FormatCount(options_.text_size_bytes),
          ": some were left out, or it changed");
      return;
    }
    draft_.path = options_.path;
    draft_.size_bytes = totals_.size_bytes;
    draft_.digest = sum_.Finish();
    draft_.read = [file = file_](uint64_t offset,
                                 MutableByteView out) -> absl::Status {
      while (!out.empty()) {
        QUIRE_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(offset, out));
        if (got == 0) {
          return absl::DataLossError(
              absl::StrCat(file->name(), ": became shorter during the build"));
        }
        offset += got;
        out = out.subspan(got);
      }
      return absl::OkStatus();
    };
    if (!packed_item_.has_value()) {
      result_.text_checksum = text_sum_.Get();
    }
    result_.draft = std::make_shared<DepositDraft>(std::move(draft_));
  }

  const std::shared_ptr<const InputFile>& file_;
  const std::vector<DepositRange>& ranges_;
  const Options& options_;
  uint64_t size_bytes_ = 0;
  Sha256Summer sum_;
  Checksummer64 text_sum_;
  DepositTotals totals_;
  // Bytes that are in no range.
  uint64_t unranged_size_bytes_ = 0;
  // Index of the item that has the text of no other one.
  std::optional<size_t> packed_item_;
  absl::flat_hash_map<std::string, uint32_t> header_numbers_;
  DepositDraft::File draft_;
  Result result_;
};

absl::StatusOr<DepositSource::Result> FileDeposit::Draft(
    const Options& options) const {
  return Drafting(file_, ranges_, options).Run();
}

}  // namespace

std::shared_ptr<const DepositSource> MakeFileDeposit(
    std::shared_ptr<const InputFile> file, std::vector<DepositRange> ranges) {
  return std::make_shared<FileDeposit>(std::move(file), std::move(ranges));
}

}  // namespace quire
