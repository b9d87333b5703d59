// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/uniform_dictionary.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/rlz/announced_text.h"

namespace quire {
namespace {

class UniformDictionaryBuilder final : public DictionaryBuilder {
 public:
  // REQUIRES: dictionary_size <= text_size; sample_size > 0.
  UniformDictionaryBuilder(uint64_t dictionary_size, uint64_t sample_size,
                           uint64_t text_size)
      : dictionary_size_(dictionary_size),
        sample_size_(sample_size),
        text_(text_size),
        sample_count_(dictionary_size / sample_size +
                      (dictionary_size % sample_size != 0 ? 1 : 0)) {
    dictionary_.reserve(dictionary_size_);
  }

  int pass_count() const override { return 1; }

  size_t MemoryBytesMax() const override {
    // A string allocates one more byte than its capacity.
    return sizeof(*this) + dictionary_size_ + 1;
  }

  absl::Status Add(ByteView piece) override {
    const uint64_t piece_begin = text_.position();
    QUIRE_RETURN_IF_ERROR(text_.Add(piece.size()));
    const uint64_t piece_end = text_.position();
    while (dictionary_.size() < dictionary_size_) {
      // The rest of the current sample, or the next sample.
      const uint64_t from = SampleStart(dictionary_.size() / sample_size_) +
                            dictionary_.size() % sample_size_;
      if (from >= piece_end) {
        break;
      }
      const uint64_t size =
          std::min({sample_size_ - dictionary_.size() % sample_size_,
                    dictionary_size_ - dictionary_.size(), piece_end - from});
      const ByteView part = piece.subspan(from - piece_begin, size);
      dictionary_.append(AsText(part).data(), part.size());
    }
    return absl::OkStatus();
  }

  absl::Status FinishPass() override { return text_.FinishPass(); }

  std::string Take() override {
    QUIRE_CHECK(dictionary_.size() == dictionary_size_);
    return std::move(dictionary_);
  }

 private:
  // REQUIRES: index < sample_count_.
  uint64_t SampleStart(uint64_t index) const {
    // i * left_out / n without overflow: both counts are below 2^31.
    const uint64_t left_out = text_.size() - dictionary_size_;
    return index * sample_size_ + left_out / sample_count_ * index +
           left_out % sample_count_ * index / sample_count_;
  }

  const uint64_t dictionary_size_;
  const uint64_t sample_size_;
  // Its position is never after the next byte to take.
  AnnouncedText text_;
  const uint64_t sample_count_;
  std::string dictionary_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DictionaryBuilder>> MakeUniformDictionaryBuilder(
    const UniformDictionaryOptions& options, uint64_t text_size_bytes) {
  if (options.dictionary_size_bytes > kDictionarySizeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a dictionary of ", FormatByteSize(options.dictionary_size_bytes),
        " is too large; the limit is ", kDictionarySizeBytesMax, " bytes"));
  }
  if (options.sample_size_bytes == 0) {
    return absl::InvalidArgumentError(
        "samples of 0 bytes make no dictionary; 1024 is usual");
  }
  const uint64_t dictionary_size =
      std::min(options.dictionary_size_bytes, text_size_bytes);
  // A sample larger than the dictionary is truncated to it.
  const uint64_t sample_size = std::min(options.sample_size_bytes,
                                        std::max<uint64_t>(dictionary_size, 1));
  return std::make_unique<UniformDictionaryBuilder>(
      dictionary_size, sample_size, text_size_bytes);
}

}  // namespace quire
