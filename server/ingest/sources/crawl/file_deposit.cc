// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/file_deposit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
  explicit FileDeposit(std::shared_ptr<const InputFile> file)
      : file_(std::move(file)) {}

  absl::StatusOr<Result> Draft(const Options& options) const override;

 private:
  std::shared_ptr<const InputFile> file_;
};

// One reading of a file.
class Drafting {
 public:
  using Options = DepositSource::Options;
  using Result = DepositSource::Result;

  Drafting(const std::shared_ptr<const InputFile>& file, const Options& options)
      : file_(file), options_(options) {}

  absl::StatusOr<Result> Run() {
    QUIRE_ASSIGN_OR_RETURN(size_bytes_, file_->SizeBytes());
    QUIRE_ASSIGN_OR_RETURN(const Compression compression, Detect());
    absl::Status status;
    switch (compression) {
      case Compression::kGzip:
        status = ReadMembers();
        break;
      case Compression::kNone:
        status = ReadPlain(DepositItem::Kind::kText);
        break;
      case Compression::kOther:
        status = ReadPlain(DepositItem::Kind::kLiteral);
    }
    if (absl::IsDataLoss(status)) {
      result_.refusal = std::string(status.message());
    } else {
      QUIRE_RETURN_IF_ERROR(status);
    }
    if (!result_.refusal.empty()) {
      return std::move(result_);
    }
    Finish(compression);
    return std::move(result_);
  }

 private:
  absl::StatusOr<Compression> Detect() const {
    std::vector<uint8_t> start(4);
    FileStream stream(file_);
    QUIRE_ASSIGN_OR_RETURN(const size_t size, ReadFully(stream, start));
    if (size == start.size() && start[0] == 0x1F && start[1] == 0x8B) {
      return Compression::kGzip;
    }
    // Other text than that of the documents: it is compressed, or documents
    // are left out, which the sizes show.
    return size_bytes_ == options_.text_size_bytes ? Compression::kNone
                                                   : Compression::kOther;
  }

  absl::Status CheckCancelled() const {
    return options_.cancel != nullptr && *options_.cancel
               ? absl::CancelledError("interrupted")
               : absl::OkStatus();
  }

  // One item for the whole file.
  absl::Status ReadPlain(DepositItem::Kind kind) {
    if (kind == DepositItem::Kind::kLiteral && !options_.keeps_all) {
      result_.refusal =
          "it is compressed, and not by gzip, so that all of it would be "
          "stored a second time; --deposited-files does so";
      return absl::OkStatus();
    }
    std::vector<uint8_t> piece(kPieceSizeBytes);
    uint64_t offset = 0;
    while (true) {
      QUIRE_RETURN_IF_ERROR(CheckCancelled());
      QUIRE_ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(offset, piece));
      if (got == 0) {
        break;
      }
      sum_.Add(ByteView(piece).first(got));
      text_sum_.Add(ByteView(piece).first(got));
      offset += got;
    }
    Add({.kind = kind,
         .size_bytes = offset,
         .text_size_bytes = options_.text_size_bytes});
    return absl::OkStatus();
  }

  absl::Status ReadMembers() {
    const auto on_bytes = [this](ByteView bytes) { sum_.Add(bytes); };
    const auto on_text = [this](ByteView text) { text_sum_.Add(text); };
    GzipMemberReader reader(std::make_unique<FileStream>(file_),
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
    if (!options_.keeps_all &&
        totals_.literal_size_bytes >
            size_bytes_ / kLiteralShareMax + kLiteralsFreeBytes) {
      result_.refusal = absl::StrCat(
          "of its first ", FormatByteSize(totals_.size_bytes), ", ",
          FormatByteSize(totals_.literal_size_bytes),
          " would be stored a second time (",
          FormatCounted(result_.counts.foreign_count, "member", "members"),
          " of an unknown encoder, ", result_.counts.large_count,
          " of more than ", FormatByteSize(kDepositMemberTextSizeMax),
          " of text); --deposited-files does so");
    }
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

  void Finish(Compression compression) {
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
    if (compression != Compression::kOther) {
      result_.text_checksum = text_sum_.Get();
    }
    result_.draft = std::make_shared<DepositDraft>(std::move(draft_));
  }

  const std::shared_ptr<const InputFile>& file_;
  const Options& options_;
  uint64_t size_bytes_ = 0;
  Sha256Summer sum_;
  Checksummer64 text_sum_;
  DepositTotals totals_;
  absl::flat_hash_map<std::string, uint32_t> header_numbers_;
  DepositDraft::File draft_;
  Result result_;
};

absl::StatusOr<DepositSource::Result> FileDeposit::Draft(
    const Options& options) const {
  return Drafting(file_, options).Run();
}

}  // namespace

std::shared_ptr<const DepositSource> MakeFileDeposit(
    std::shared_ptr<const InputFile> file) {
  return std::make_shared<FileDeposit>(std::move(file));
}

}  // namespace quire
