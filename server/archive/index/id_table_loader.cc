// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/training/symbol_trainer.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/index/id_bucket.h"

namespace quire {
namespace {

// Sample size for training. Four times the trainer's default makes ids 2 %
// smaller.
constexpr size_t kSampleSizeBytes = 64 << 10;
// For less text a symbol table costs more than it saves.
constexpr uint64_t kCodedSizeBytesMin = 32 << 10;

absl::Status BadIds(uint64_t rank, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the id of rank ", rank, " ", what));
}

// The three runs of a section: shared size, size of the rest, and the rest of
// each id.
struct IdRuns {
  ByteView shared_sizes;
  ByteView suffix_sizes;
  ByteView suffixes = {};
  // Size of the longest id.
  uint64_t id_size_bytes_max = 0;
};

struct FrontCodedId {
  uint32_t shared = 0;
  ByteView suffix;
};

// REQUIRES: AddUpSizes() accepted the runs.
absl::StatusOr<FrontCodedId> TakeId(IdRuns& runs) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t shared, TakeVarint(runs.shared_sizes));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t more, TakeVarint(runs.suffix_sizes));
  const FrontCodedId id = {static_cast<uint32_t>(shared),
                           runs.suffixes.first(more)};
  runs.suffixes = runs.suffixes.subspan(more);
  return id;
}

// Finds the runs and checks all sizes.
absl::StatusOr<IdRuns> AddUpSizes(ByteView section, uint64_t count,
                                  uint64_t id_size_bytes) {
  IdRuns runs = {.shared_sizes = section, .suffix_sizes = section};
  for (uint64_t i = 0; i < count; ++i) {
    QUIRE_RETURN_IF_ERROR(TakeVarint(runs.suffix_sizes).status());
  }
  ByteView shared_sizes = runs.shared_sizes;
  runs.suffixes = runs.suffix_sizes;
  uint64_t previous = 0;
  uint64_t total = 0;
  uint64_t suffixes_size_bytes = 0;
  for (uint64_t rank = 0; rank < count; ++rank) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t shared, TakeVarint(shared_sizes));
    QUIRE_ASSIGN_OR_RETURN(const uint64_t more, TakeVarint(runs.suffixes));
    if (shared > previous) {
      return BadIds(rank, "shares more than there is");
    }
    if (more > kDocumentIdSizeBytesMax - shared) {
      return BadIds(rank, absl::StrCat("is longer than ",
                                       kDocumentIdSizeBytesMax, " bytes"));
    }
    previous = shared + more;
    runs.id_size_bytes_max = std::max(runs.id_size_bytes_max, previous);
    total += previous;
    suffixes_size_bytes += more;
  }
  if (total != id_size_bytes || suffixes_size_bytes != runs.suffixes.size()) {
    return absl::DataLossError(absl::StrCat(
        "ids have ", total, " bytes, expected ", id_size_bytes, "; ",
        runs.suffixes.size(), " stored, expected ", suffixes_size_bytes));
  }
  return runs;
}

// Changes `id` into the next one.
// Errors: DataLoss  it is below, or shares more than stated: one byte decides,
//                   since the shared part must be as long as possible.
absl::Status MoveOn(uint64_t rank, const FrontCodedId& next, std::string& id) {
  const absl::string_view suffix = AsText(next.suffix);
  if (next.shared < id.size() &&
      (suffix.empty() || static_cast<uint8_t>(suffix[0]) <=
                             static_cast<uint8_t>(id[next.shared]))) {
    return BadIds(rank, "is not above the one before");
  }
  id.resize(next.shared);
  id.append(suffix.data(), suffix.size());
  return absl::OkStatus();
}

// Trains a table for the texts of the buckets, on an even sample of buckets.
absl::StatusOr<SymbolTable> TrainOnSample(IdRuns runs, uint64_t count,
                                          uint64_t text_size_bytes) {
  const uint64_t bucket_count = count / kIdBucketSize + 1;
  // The trainer samples its input again.
  const uint64_t stride = std::clamp<uint64_t>(
      text_size_bytes / (4 * kSampleSizeBytes), 1, bucket_count);
  // Heads must not move.
  std::deque<std::string> heads;
  std::vector<ByteView> texts;
  std::string id;
  for (uint64_t rank = 0; rank < count; ++rank) {
    QUIRE_ASSIGN_OR_RETURN(const FrontCodedId next, TakeId(runs));
    QUIRE_RETURN_IF_ERROR(MoveOn(rank, next, id));
    if (rank / kIdBucketSize % stride == 0) {
      texts.push_back(rank % kIdBucketSize == 0
                          ? AsBytes(heads.emplace_back(id))
                          : next.suffix);
    }
  }
  SymbolTrainerOptions options;
  options.sample_size_bytes = kSampleSizeBytes;
  return TrainSymbolTable(texts, options);
}

// Collects the strings of bucket after bucket.
class BucketWriter {
 public:
  // `table` may be null: then all texts are plain.
  BucketWriter(const SymbolTable* table, uint64_t count, size_t section_size) {
    if (table != nullptr) {
      encoder_.emplace(*table);
      coding_ = std::make_unique<const IdCoding>(*table);
    }
    const uint64_t bucket_count = (count + kIdBucketSize - 1) / kIdBucketSize;
    head_begins_.reserve(bucket_count + 1);
    body_begins_.reserve(bucket_count);
    // Unused memory is released at the end, untouched.
    buckets_.bodies.reserve(section_size + kIdCodesPadding);
  }

  // `id` is the complete string. It must not move until the next is added.
  void Add(const FrontCodedId& front_coded, const std::string& id) {
    if (count_ == kIdBucketSize) {
      Flush();
    }
    if (count_ == 0) {
      head_ = id;
    }
    texts_[count_] = count_ == 0 ? AsBytes(head_) : front_coded.suffix;
    shared_sizes_[count_] = front_coded.shared;
    ++count_;
  }

  IdBuckets Finish() && {
    Flush();
    head_begins_.push_back(buckets_.heads.size());
    buckets_.heads.append(kIdCodesPadding, '\0');
    buckets_.bodies.append(kIdCodesPadding, '\0');
    buckets_.heads.shrink_to_fit();
    buckets_.bodies.shrink_to_fit();
    buckets_.head_begins = Pack(head_begins_, buckets_.heads.size());
    buckets_.body_begins = Pack(body_begins_, buckets_.bodies.size());
    if (has_codes_) {
      buckets_.coding = std::move(coding_);
    }
    return std::move(buckets_);
  }

 private:
  static PackedVector Pack(const std::vector<uint64_t>& values,
                           uint64_t value_max) {
    PackedVector packed(values.size(), value_max);
    for (uint64_t i = 0; i < values.size(); ++i) {
      packed.Set(i, values[i]);
    }
    return packed;
  }

  void Flush() {
    head_begins_.push_back(buckets_.heads.size());
    body_begins_.push_back(buckets_.bodies.size());
    const std::span<const ByteView> texts = std::span(texts_).first(count_);
    const std::span<const uint32_t> shared_sizes =
        std::span(shared_sizes_).first(count_);
    const bool are_codes = encoder_.has_value() && Encode(texts);
    IdBucket::Append(shared_sizes,
                     are_codes ? std::span(coded_texts_).first(count_) : texts,
                     are_codes, buckets_.heads, buckets_.bodies);
    has_codes_ |= are_codes;
    count_ = 0;
  }

  // Fills coded_texts_; returns false if they are not smaller.
  bool Encode(std::span<const ByteView> texts) {
    size_t size = 0;
    for (const ByteView text : texts) {
      size += text.size();
    }
    codes_.resize(std::max(codes_.size(), FsstEncoder::CodesSizeMax(size)));
    std::array<uint32_t, kIdBucketSize> ends;
    const size_t codes_size = encoder_->EncodeStrings(
        texts, codes_, std::span(ends).first(texts.size()));
    uint32_t begin = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      coded_texts_[i] = ByteView(codes_).subspan(begin, ends[i] - begin);
      begin = ends[i];
    }
    return codes_size < size;
  }

  std::optional<FsstEncoder> encoder_;
  std::unique_ptr<const IdCoding> coding_;
  bool has_codes_ = false;
  IdBuckets buckets_;
  std::vector<uint64_t> head_begins_;
  std::vector<uint64_t> body_begins_;
  // The current bucket.
  size_t count_ = 0;
  std::string head_;
  std::array<ByteView, kIdBucketSize> texts_;
  std::array<uint32_t, kIdBucketSize> shared_sizes_;
  std::array<ByteView, kIdBucketSize> coded_texts_;
  std::vector<uint8_t> codes_;
};

}  // namespace

absl::StatusOr<IdBuckets> LoadIdBuckets(ByteView section, uint64_t count,
                                        uint64_t id_size_bytes,
                                        std::vector<bool>* repeats) {
  QUIRE_ASSIGN_OR_RETURN(IdRuns runs,
                         AddUpSizes(section, count, id_size_bytes));
  const uint64_t text_size_bytes =
      runs.suffixes.size() + id_size_bytes / kIdBucketSize;
  std::optional<SymbolTable> table;
  if (text_size_bytes >= kCodedSizeBytesMin) {
    QUIRE_ASSIGN_OR_RETURN(table, TrainOnSample(runs, count, text_size_bytes));
  }
  BucketWriter writer(table.has_value() ? &*table : nullptr, count,
                      section.size());
  std::string id;
  for (uint64_t rank = 0; rank < count; ++rank) {
    QUIRE_ASSIGN_OR_RETURN(const FrontCodedId next, TakeId(runs));
    if (repeats != nullptr) {
      repeats->push_back(rank != 0 && next.shared == id.size() &&
                         next.suffix.empty());
    }
    QUIRE_RETURN_IF_ERROR(MoveOn(rank, next, id));
    writer.Add(next, id);
  }
  IdBuckets buckets = std::move(writer).Finish();
  buckets.id_size_bytes_max = runs.id_size_bytes_max;
  return buckets;
}

}  // namespace quire
