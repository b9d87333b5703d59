// SPDX-License-Identifier: Apache-2.0
//
//   payload: u8 t: bits 0 to 3 the TransformKind, bits 4 to 7 the binary
//            logarithm of the width; the rest: one zstd frame of the
//            rearranged block
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/codec_base.h"
#include "codecs/codec_factories.h"
#include "codecs/numeric/byte_transform.h"
#include "codecs/zstd/zstd_frame.h"
#include "codecs/zstd/zstd_frame_writer.h"

namespace quire {
namespace {

constexpr size_t kHeaderSize = 1;
// Fast; orders the transforms like higher levels do, within a percent.
constexpr int kTrialLevel = 1;
// Size of the trial from each block's middle; it represents the whole.
constexpr size_t kTrialSize = 32 << 10;

constexpr std::array kTransforms = {
    ByteTransform{},
    ByteTransform{TransformKind::kShuffle, 2},
    ByteTransform{TransformKind::kShuffle, 4},
    ByteTransform{TransformKind::kShuffle, 8},
    ByteTransform{TransformKind::kShuffleDelta, 2},
    ByteTransform{TransformKind::kShuffleDelta, 4},
    ByteTransform{TransformKind::kShuffleDelta, 8},
    ByteTransform{TransformKind::kBitShuffle, 2},
    ByteTransform{TransformKind::kBitShuffle, 4},
    ByteTransform{TransformKind::kBitShuffle, 8},
};

uint8_t HeaderOf(const ByteTransform& transform) {
  return static_cast<uint8_t>(
      static_cast<unsigned>(transform.kind) |
      static_cast<unsigned>(std::countr_zero(transform.width)) << 4);
}

std::optional<ByteTransform> TransformOf(uint8_t header) {
  const auto* const found = std::ranges::find(kTransforms, header, HeaderOf);
  return found == kTransforms.end() ? std::nullopt : std::optional(*found);
}

class NumericCodec final : public CodecBase {
 public:
  NumericCodec(const CodecInfo& info, int level, CodecUse use)
      : CodecBase(info, use), level_(level) {}

  size_t StoredSizeMax(size_t raw_size) const override {
    return kHeaderSize + ZSTD_compressBound(raw_size);
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<NumericScratch>(level_);
  }

  size_t MemoryBytes() const override { return sizeof(*this); }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    QUIRE_ASSIGN_OR_RETURN(const ByteTransform transform, ReadHeader(stored));
    ZstdFrameReader& reader = static_cast<NumericScratch&>(scratch).reader;
    const ByteView frame = stored.subspan(kHeaderSize);
    if (transform.kind == TransformKind::kNone) {
      return Explain(stored, reader.Decode(frame, {}, raw));
    }
    const MutableByteView rearranged = scratch.TextBuffer(raw.size());
    QUIRE_RETURN_IF_ERROR(
        Explain(stored, reader.Decode(frame, {}, rearranged)));
    UndoTransform(transform, rearranged, raw);
    return absl::OkStatus();
  }

  // Any range of a rearranged block needs all of it.
  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& scratch) const override {
    QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
    QUIRE_ASSIGN_OR_RETURN(const ByteTransform transform, ReadHeader(stored));
    auto& mine = static_cast<NumericScratch&>(scratch);
    if (transform.kind == TransformKind::kNone) {
      return Explain(stored,
                     mine.reader.DecodeRange(stored.subspan(kHeaderSize), {},
                                             raw_size, offset, out));
    }
    if (out.size() == raw_size) {
      return Decode(stored, out, scratch);
    }
    const MutableByteView raw = mine.rearranged.TextBuffer(raw_size);
    QUIRE_RETURN_IF_ERROR(Decode(stored, raw, scratch));
    std::ranges::copy(raw.subspan(offset, out.size()), out.begin());
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    auto& mine = static_cast<NumericScratch&>(scratch);
    QUIRE_ASSIGN_OR_RETURN(const ByteTransform best,
                           FindBest(raw, stored, mine));
    // The trial covers only a part; compare the whole.
    QUIRE_ASSIGN_OR_RETURN(size_t size, Store(best, raw, stored, mine));
    if (best.kind != TransformKind::kNone) {
      const MutableByteView plain =
          mine.plain.TextBuffer(StoredSizeMax(raw.size()));
      QUIRE_ASSIGN_OR_RETURN(const size_t plain_size,
                             Store(ByteTransform{}, raw, plain, mine));
      if (plain_size <= size) {
        size = plain_size;
        std::copy_n(plain.data(), size, stored.data());
      }
    }
    return size;
  }

 private:
  struct NumericScratch final : public Scratch {
    explicit NumericScratch(int level)
        : writer(level), trial_writer(kTrialLevel) {}

    ZstdFrameReader reader;
    ZstdFrameWriter writer;
    ZstdFrameWriter trial_writer;
    // Buffers of one block each.
    Scratch rearranged;
    Scratch work;
    Scratch plain;
  };

  absl::StatusOr<ByteTransform> ReadHeader(ByteView stored) const {
    if (stored.empty()) {
      return Damaged(stored, "it has no byte that names the transform");
    }
    const std::optional<ByteTransform> transform = TransformOf(stored[0]);
    if (!transform.has_value()) {
      return Damaged(
          stored, absl::StrCat("there is no transform of kind ", stored[0] & 15,
                               " and width 2^", stored[0] >> 4));
    }
    return *transform;
  }

  absl::Status Explain(ByteView stored, const absl::Status& status) const {
    return absl::IsDataLoss(status) ? Damaged(stored, status.message())
                                    : status;
  }

  static absl::StatusOr<size_t> Store(const ByteTransform& transform,
                                      ByteView raw, MutableByteView stored,
                                      NumericScratch& scratch) {
    const MutableByteView rearranged =
        scratch.rearranged.TextBuffer(raw.size());
    ApplyTransform(transform, raw, scratch.work.TextBuffer(raw.size()),
                   rearranged);
    QUIRE_ASSIGN_OR_RETURN(
        const size_t size,
        scratch.writer.Write(rearranged, stored.subspan(kHeaderSize)));
    stored[0] = HeaderOf(transform);
    return kHeaderSize + size;
  }

  // Tries a fast encoding of a part from the block's middle. It begins at a
  // number of eight bytes if the block does.
  static absl::StatusOr<ByteTransform> FindBest(ByteView raw,
                                                MutableByteView stored,
                                                NumericScratch& scratch) {
    const size_t size = std::min(raw.size(), kTrialSize);
    const ByteView part = raw.subspan((raw.size() - size) / 16 * 8, size);
    ByteTransform best;
    size_t best_size = SIZE_MAX;
    for (const ByteTransform& transform : kTransforms) {
      const MutableByteView rearranged = scratch.rearranged.TextBuffer(size);
      ApplyTransform(transform, part, scratch.work.TextBuffer(size),
                     rearranged);
      QUIRE_ASSIGN_OR_RETURN(const size_t stored_size,
                             scratch.trial_writer.Write(rearranged, stored));
      if (stored_size < best_size) {
        best_size = stored_size;
        best = transform;
      }
    }
    return best;
  }

  const int level_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakeNumericCodec(const CodecInfo& info, int level,
                                             CodecUse use) {
  return std::make_unique<NumericCodec>(info, level, use);
}

}  // namespace quire
