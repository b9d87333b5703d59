// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/collection_sample.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/input_limits.h"

namespace quire {
namespace {

constexpr size_t kReadSizeBytes = 64 << 10;
constexpr size_t kUnitSizeBytes = 16 << 10;

// Keeps every n-th piece of a text that arrives in order.
class PieceKeeper {
 public:
  explicit PieceKeeper(uint64_t size_bytes_max)
      : count_max_(std::max<uint64_t>(
            size_bytes_max / CollectionSample::kPieceSizeBytes, 2)) {}

  void Add(ByteView text) {
    while (!text.empty()) {
      const uint64_t left = CollectionSample::kPieceSizeBytes - piece_size_;
      const auto part = text.first(
          static_cast<size_t>(std::min<uint64_t>(left, text.size())));
      if (IsKept()) {
        piece_.append(part.begin(), part.end());
      }
      piece_size_ += part.size();
      text = text.subspan(part.size());
      if (piece_size_ == CollectionSample::kPieceSizeBytes) {
        EndPiece();
      }
    }
  }

  std::vector<std::string> Take() {
    if (piece_size_ > 0) {
      EndPiece();
    }
    return std::move(pieces_);
  }

 private:
  bool IsKept() const { return number_ % stride_ == 0; }

  void EndPiece() {
    if (IsKept()) {
      pieces_.push_back(std::move(piece_));
      piece_.clear();
    }
    ++number_;
    piece_size_ = 0;
    if (pieces_.size() > count_max_) {
      stride_ *= 2;
      size_t kept = 1;
      for (size_t i = 2; i < pieces_.size(); i += 2) {
        pieces_[kept++] = std::move(pieces_[i]);
      }
      pieces_.resize(kept);
    }
  }

  const uint64_t count_max_;
  uint64_t stride_ = 1;
  // Of the piece that is being read.
  uint64_t number_ = 0;
  uint64_t piece_size_ = 0;
  std::string piece_;
  std::vector<std::string> pieces_;
};

using DocumentSink = std::function<void(const SourceDocument&)>;

absl::Status ReadSource(const Source& source, InputLimits& limits,
                        const DocumentSink& on_document, const TextSink& sink) {
  QUIRE_RETURN_IF_ERROR(limits.StartSource(source));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<SourceReader> reader,
                         source.Open());
  std::vector<uint8_t> buffer(kReadSizeBytes);
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(std::optional<SourceDocument> document,
                           reader->Next());
    if (!document.has_value()) {
      return absl::OkStatus();
    }
    QUIRE_RETURN_IF_ERROR(limits.StartDocument(source, *reader, *document));
    on_document(*document);
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(const size_t size, reader->Read(buffer));
      if (size == 0) {
        break;
      }
      QUIRE_RETURN_IF_ERROR(limits.AddText(source, *reader, size));
      QUIRE_RETURN_IF_ERROR(sink(ByteView(buffer).first(size)));
    }
  }
}

}  // namespace

CompressibilityMeter::CompressibilityMeter()
    : codec_(MakeBlockCodec({.id = CodecId::kLz4, .level = 1}, nullptr,
                            CodecUse::kEncodeAndDecode)
                 .value()),
      scratch_(codec_->NewScratch()),
      stored_(codec_->StoredSizeMax(kUnitSizeBytes)) {
  unit_.reserve(kUnitSizeBytes);
}

CompressibilityMeter::~CompressibilityMeter() = default;

void CompressibilityMeter::Add(ByteView text) {
  while (!text.empty()) {
    const size_t part = std::min(text.size(), kUnitSizeBytes - unit_.size());
    unit_.insert(unit_.end(), text.begin(),
                 text.begin() + static_cast<std::ptrdiff_t>(part));
    text = text.subspan(part);
    if (unit_.size() == kUnitSizeBytes) {
      EndUnit();
    }
  }
}

void CompressibilityMeter::EndUnit() {
  const size_t size =
      codec_->Encode(unit_, stored_, *scratch_).value_or(unit_.size());
  size_bytes_ += unit_.size();
  lz4_bytes_ += std::min(size, unit_.size());
  if (size > unit_.size() - unit_.size() / 10) {
    incompressible_bytes_ += unit_.size();
  }
  unit_.clear();
}

Compressibility CompressibilityMeter::Take() {
  if (!unit_.empty()) {
    EndUnit();
  }
  const auto size =
      static_cast<double>(std::max<uint64_t>(std::exchange(size_bytes_, 0), 1));
  return {
      .incompressible_share =
          static_cast<double>(std::exchange(incompressible_bytes_, 0)) / size,
      .lz4_share = static_cast<double>(std::exchange(lz4_bytes_, 0)) / size};
}

uint64_t CollectionSample::size_bytes() const {
  uint64_t size = 0;
  for (const std::string& piece : pieces) {
    size += piece.size();
  }
  return size;
}

absl::Status ReadText(std::span<const std::unique_ptr<Source>> sources,
                      const TextSink& sink,
                      std::optional<uint64_t> input_size_bytes_max) {
  InputLimits limits(input_size_bytes_max);
  limits.StartPass();
  for (const std::unique_ptr<Source>& source : sources) {
    QUIRE_RETURN_IF_ERROR(ReadSource(
        *source, limits, [](const SourceDocument&) {}, sink));
  }
  return absl::OkStatus();
}

absl::StatusOr<CollectionSample> SampleCollection(
    std::span<const std::unique_ptr<Source>> sources, uint64_t size_bytes_max,
    std::optional<uint64_t> input_size_bytes_max) {
  const auto started = std::chrono::steady_clock::now();
  CollectionSample sample;
  PieceKeeper keeper(size_bytes_max);
  CompressibilityMeter meter;
  InputLimits limits(input_size_bytes_max);
  limits.StartPass();
  std::chrono::steady_clock::duration looking{};
  for (const std::unique_ptr<Source>& source : sources) {
    QUIRE_RETURN_IF_ERROR(ReadSource(
        *source, limits,
        [&](const SourceDocument& document) {
          ++sample.document_count;
          sample.id_size_bytes += document.id.size();
        },
        [&](ByteView text) {
          sample.text_size_bytes += text.size();
          const auto since = std::chrono::steady_clock::now();
          keeper.Add(text);
          meter.Add(text);
          looking += std::chrono::steady_clock::now() - since;
          return absl::OkStatus();
        }));
  }
  if (sample.text_size_bytes == 0) {
    return absl::InvalidArgumentError(
        "the inputs hold no text to plan with; give inputs with documents that "
        "are not empty");
  }
  sample.pieces = keeper.Take();
  sample.compressibility = meter.Take();
  sample.read_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started -
                                    looking)
          .count();
  return sample;
}

}  // namespace quire
