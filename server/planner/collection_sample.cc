// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/collection_sample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/document_walk.h"

namespace quire {
namespace {

constexpr uint64_t kPieceSizeBytes = uint64_t{1} << 20;
// Samples that a text must exceed: from one, and its halves, archives take half
// the time of one of all text.
constexpr uint64_t kSamplesMin = 4;
// Documents of a run, on average.
constexpr uint64_t kRunLength = 16;
// With fewer keys in a sample the choice by names is not random enough.
constexpr size_t kKeyCountMin = 64;

uint64_t Hash(absl::string_view text) {
  return Checksum64(AsBytes(text));
}

// Splits documents into runs, by their ids in order.
class RunCutter {
 public:
  // With `uses_whole_ids`, the key of a run is the id of its first document.
  explicit RunCutter(bool uses_whole_ids) : uses_whole_ids_(uses_whole_ids) {}

  void Next(absl::string_view id) {
    const size_t slash = id.rfind('/');
    const bool has_directory = slash != absl::string_view::npos;
    const absl::string_view directory =
        has_directory ? id.substr(0, slash) : absl::string_view();
    const absl::string_view name = has_directory ? id.substr(slash + 1) : id;
    const bool starts =
        directory != directory_ || !has_run_ || Hash(name) % kRunLength == 0;
    if (!starts) {
      return;
    }
    has_run_ = true;
    directory_ = std::string(directory);
    const size_t parent = directory.rfind('/');
    run_key_ = uses_whole_ids_
                   ? Hash(id)
                   : Hash(absl::StrCat(parent == absl::string_view::npos
                                           ? directory
                                           : directory.substr(parent + 1),
                                       "/", name));
  }

  // Returns the key of a piece of the current document.
  uint64_t KeyOf(uint64_t piece) const {
    return piece == 0 ? run_key_ : Hash(absl::StrCat(run_key_, " ", piece));
  }

 private:
  const bool uses_whole_ids_;
  bool has_run_ = false;
  std::string directory_;
  uint64_t run_key_ = 0;
};

using Part = CollectionSample::Part;
// The half that each kept key belongs to.
using KeptKeys = absl::flat_hash_map<uint64_t, Part>;

// The keys of a collection that have text, in the order of their first text. A
// sample of keys without text would foretell nothing.
class KeySizes {
 public:
  void Add(uint64_t key, uint64_t size_bytes) {
    if (size_bytes == 0) {
      return;
    }
    const auto [found, is_new] = indexes_.try_emplace(key, sizes_.size());
    if (is_new) {
      sizes_.emplace_back(key, 0);
    }
    sizes_[found->second].second += size_bytes;
    total_bytes_ += size_bytes;
  }

  // Chooses about `size_bytes`.
  KeptKeys Choose(uint64_t size_bytes) const {
    const double share =
        static_cast<double>(size_bytes) /
        static_cast<double>(std::max<uint64_t>(1, total_bytes_));
    KeptKeys kept;
    const uint64_t kept_bytes = ChooseShare(std::min(share, 1.0), kept);
    if (kept_bytes > size_bytes) {
      ChooseShare(share * static_cast<double>(size_bytes) /
                      static_cast<double>(kept_bytes),
                  kept);
    }
    return kept;
  }

 private:
  // Keeps one of each 1 / share neighbours, since these are alike: the one with
  // the least key. Keys are hashes, independent of the text. Alternates between
  // the halves. Returns the size of the kept text.
  uint64_t ChooseShare(double share, KeptKeys& kept) const {
    kept.clear();
    uint64_t kept_bytes = 0;
    for (size_t begin = 0; begin < sizes_.size();) {
      const double group = std::floor(static_cast<double>(begin) * share);
      size_t end = begin + 1;
      while (end < sizes_.size() &&
             std::floor(static_cast<double>(end) * share) == group) {
        ++end;
      }
      const auto [key, key_bytes] =
          *std::min_element(sizes_.begin() + static_cast<ptrdiff_t>(begin),
                            sizes_.begin() + static_cast<ptrdiff_t>(end));
      kept_bytes += key_bytes;
      kept.emplace(key,
                   kept.size() % 2 == 0 ? Part::kFirstHalf : Part::kSecondHalf);
      begin = end;
    }
    return kept_bytes;
  }

  absl::flat_hash_map<uint64_t, size_t> indexes_;
  // Keys and their sizes in bytes.
  std::vector<std::pair<uint64_t, uint64_t>> sizes_;
  uint64_t total_bytes_ = 0;
};

}  // namespace

class SampleTaker {
 public:
  SampleTaker(std::span<const std::unique_ptr<Source>> sources,
              const SampleOptions& options)
      : walk_(sources, {.size_bytes_max = options.input_size_bytes_max,
                        .on_note = {},
                        .cancel = options.cancel}),
        options_(options) {
    sample_.sources_ = sources;
  }

  absl::StatusOr<CollectionSample> Take() {
    KeySizes by_name;
    KeySizes by_id;
    QUIRE_RETURN_IF_ERROR(Measure(by_name, by_id));
    const uint64_t text_size_bytes = sample_.text_size_bytes_;
    if (text_size_bytes == 0) {
      return absl::InvalidArgumentError(
          "the inputs hold no text to plan with; give inputs with documents "
          "that are not empty");
    }
    sample_.collection_size_bytes_ =
        std::max(options_.collection_size_bytes, text_size_bytes);
    if (sample_.collection_size_bytes_ == text_size_bytes &&
        text_size_bytes / kSamplesMin <= options_.size_bytes) {
      sample_.size_bytes_ = text_size_bytes;
      return std::move(sample_);
    }
    KeptKeys kept = by_name.Choose(options_.size_bytes);
    const bool uses_whole_ids = kept.size() < kKeyCountMin;
    if (uses_whole_ids) {
      kept = by_id.Choose(options_.size_bytes);
    }
    QUIRE_RETURN_IF_ERROR(Keep(kept, uses_whole_ids));
    return std::move(sample_);
  }

 private:
  absl::Status Measure(KeySizes& by_name, KeySizes& by_id) {
    RunCutter name_runs(/*uses_whole_ids=*/false);
    RunCutter id_runs(/*uses_whole_ids=*/true);
    return walk_.ForEachDocument(
        [&](SourceReader& reader, const SourceDocument& document) {
          name_runs.Next(document.id);
          id_runs.Next(document.id);
          ++sample_.document_count_;
          for (uint64_t piece = 0;; ++piece) {
            QUIRE_ASSIGN_OR_RETURN(const uint64_t size, Skip(reader));
            by_name.Add(name_runs.KeyOf(piece), size);
            by_id.Add(id_runs.KeyOf(piece), size);
            sample_.text_size_bytes_ += size;
            if (size < kPieceSizeBytes) {
              return absl::OkStatus();
            }
          }
        });
  }

  absl::Status Keep(const KeptKeys& kept, bool uses_whole_ids) {
    RunCutter runs(uses_whole_ids);
    return walk_.ForEachDocument(
        [&](SourceReader& reader, const SourceDocument& document) {
          runs.Next(document.id);
          for (uint64_t piece = 0;; ++piece) {
            const auto found = kept.find(runs.KeyOf(piece));
            uint64_t size = 0;
            if (found == kept.end()) {
              QUIRE_ASSIGN_OR_RETURN(size, Skip(reader));
            } else {
              QUIRE_ASSIGN_OR_RETURN(
                  size, KeepPiece(reader, document, piece, found->second));
            }
            if (size < kPieceSizeBytes) {
              return absl::OkStatus();
            }
          }
        });
  }

  // Both read to the end of a piece, and return its size.
  absl::StatusOr<uint64_t> Skip(SourceReader& reader) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t size, reader.Skip(kPieceSizeBytes));
    QUIRE_RETURN_IF_ERROR(walk_.AddText(reader, size));
    return size;
  }

  absl::StatusOr<uint64_t> KeepPiece(SourceReader& reader,
                                     const SourceDocument& document,
                                     uint64_t number, Part half) {
    buffer_.resize(kPieceSizeBytes);
    uint64_t size = 0;
    while (size < kPieceSizeBytes) {
      QUIRE_ASSIGN_OR_RETURN(
          const size_t got,
          reader.Read(MutableByteView(buffer_).subspan(size)));
      if (got == 0) {
        break;
      }
      size += got;
      QUIRE_RETURN_IF_ERROR(walk_.AddText(reader, got));
    }
    // A document of whole pieces has no further, empty piece.
    if (number > 0 && size == 0) {
      return 0;
    }
    sample_.size_bytes_ += size;
    CollectionSample::Piece& piece = sample_.pieces_.emplace_back();
    piece.document = document;
    piece.document.size_bytes = size;
    if (number > 0) {
      absl::StrAppend(&piece.document.id, "#", number);
    }
    piece.text = std::string(AsText(ByteView(buffer_).first(size)));
    piece.half = half;
    return size;
  }

  DocumentWalk walk_;
  const SampleOptions options_;
  std::vector<uint8_t> buffer_;
  CollectionSample sample_;
};

class SampleSource final : public Source {
 public:
  SampleSource(std::span<const CollectionSample::Piece> pieces, Part part)
      : pieces_(pieces), part_(part) {}

  const std::string& name() const override { return name_; }

  const char* kind() const override { return "sample"; }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    return std::make_unique<Reader>(pieces_, part_);
  }

 private:
  class Reader final : public SourceReader {
   public:
    Reader(std::span<const CollectionSample::Piece> pieces, Part part)
        : pieces_(pieces), part_(part) {}

    absl::StatusOr<std::optional<SourceDocument>> Next() override {
      while (next_ < pieces_.size()) {
        const CollectionSample::Piece& piece = pieces_[next_++];
        if (part_ == Part::kAll || part_ == piece.half) {
          rest_ = AsBytes(piece.text);
          return piece.document;
        }
      }
      return std::nullopt;
    }

    std::string Place() const override {
      return absl::StrCat("document ", next_ - 1);
    }

    absl::StatusOr<size_t> Read(MutableByteView out) override {
      const size_t size = std::min(out.size(), rest_.size());
      std::copy_n(rest_.begin(), size, out.begin());
      rest_ = rest_.subspan(size);
      return size;
    }

   private:
    const std::span<const CollectionSample::Piece> pieces_;
    const Part part_;
    size_t next_ = 0;
    ByteView rest_;
  };

  const std::string name_ = "sample";
  const std::span<const CollectionSample::Piece> pieces_;
  const Part part_;
};

absl::StatusOr<CollectionSample> CollectionSample::Take(
    std::span<const std::unique_ptr<Source>> sources,
    const SampleOptions& options) {
  return SampleTaker(sources, options).Take();
}

std::unique_ptr<Source> CollectionSample::SourceOf(Part part) const {
  return std::make_unique<SampleSource>(pieces_, part);
}

}  // namespace quire
