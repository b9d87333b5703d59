// SPDX-License-Identifier: Apache-2.0
#include "codecs/auto/auto_codec.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/auto/block_probe.h"
#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/codec_base.h"

namespace quire {
namespace {

constexpr size_t kHeaderSize = 1;

// Entropy in thousandths of a bit from which bytes that look uniformly
// distributed gain nothing from codes of their own.
constexpr uint32_t kRandomEntropy = 7950;
// Share of a block's text that occurs in the dictionary from which xz, which
// uses no dictionary, is not tried.
constexpr uint32_t kWellKnownPerMille = 500;
// Upper bound on the false positives of the filter.
constexpr uint32_t kUnknownPerMille = 20;
// The time of a member must differ from that of rlz by the block's size divided
// by this to outweigh the difference in size.
constexpr size_t kTimeDivisor = 16;

constexpr std::array kMemberIds = {CodecId::kCopy, CodecId::kLz4, CodecId::kXz,
                                   CodecId::kNumeric, CodecId::kRlz};
static_assert(kMemberIds.size() == kAutoMemberCount);

std::optional<size_t> IndexOfMember(unsigned id) {
  const auto* const found = std::ranges::find(
      kMemberIds, id,
      [](CodecId member) { return static_cast<unsigned>(member); });
  return found == kMemberIds.end()
             ? std::nullopt
             : std::optional(static_cast<size_t>(found - kMemberIds.begin()));
}

absl::StatusOr<size_t> ReadMember(ByteView stored) {
  if (stored.empty()) {
    return absl::DataLossError("it has no byte that names the member");
  }
  const std::optional<size_t> index = IndexOfMember(stored[0]);
  if (!index.has_value()) {
    const CodecInfo* const info = FindCodec(static_cast<CodecId>(stored[0]));
    return absl::DataLossError(absl::StrCat(
        "codec ", stored[0], info == nullptr ? "" : ", ",
        info == nullptr ? absl::string_view() : info->name,
        ", is not a member: expected copy, lz4, xz, numeric or rlz"));
  }
  return *index;
}

class AutoCodec final : public CodecBase {
 public:
  AutoCodec(const CodecInfo& info, AutoObjective objective,
            AutoMemberCodecs members,
            std::shared_ptr<const CodecContext> context, CodecUse use)
      : CodecBase(info, use),
        objective_(objective),
        members_(std::move(members)),
        context_(std::move(context)) {
    if (use != CodecUse::kDecode) {
      filter_.emplace(AsBytes(context_->dictionary));
    }
  }

  size_t StoredSizeMax(size_t raw_size) const override {
    size_t size_max = 0;
    for (const auto& member : members_) {
      size_max = std::max(size_max, member->StoredSizeMax(raw_size));
    }
    return kHeaderSize + size_max;
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<AutoScratch>();
  }

  size_t MemoryBytes() const override {
    size_t size = sizeof(*this) + (filter_ ? filter_->MemoryBytes() : 0);
    for (const auto& member : members_) {
      size += member->MemoryBytes();
    }
    return size;
  }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    QUIRE_ASSIGN_OR_RETURN(const Selected member, Select(stored, scratch));
    return Explain(stored, member.codec.Decode(stored.subspan(kHeaderSize), raw,
                                               member.scratch));
  }

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& scratch) const override {
    QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
    QUIRE_ASSIGN_OR_RETURN(const Selected member, Select(stored, scratch));
    return Explain(
        stored, member.codec.DecodeRange(stored.subspan(kHeaderSize), raw_size,
                                         offset, out, member.scratch));
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    auto& mine = static_cast<AutoScratch&>(scratch);
    Best best(*this, raw, stored, mine);
    QUIRE_RETURN_IF_ERROR(best.Try(kCopy));
    const ByteEntropy entropy = MeasureEntropy(raw);
    // Computed lazily: most blocks do not need it.
    std::optional<uint32_t> found;
    const auto known = [&] {
      if (!found.has_value()) {
        found = filter_->SharePerMille(raw);
      }
      return *found;
    };
    const bool numeric = LooksNumeric(entropy);
    const bool looks_random = !numeric && entropy.plain >= kRandomEntropy &&
                              known() <= kUnknownPerMille;
    const size_t margin = raw.size() / kTimeDivisor;
    const bool lz4_is_quicker = TimeOf(kLz4, raw) + margin < TimeOf(kRlz, raw);
    if (looks_random || lz4_is_quicker) {
      QUIRE_RETURN_IF_ERROR(best.Try(kLz4));
    }
    if (looks_random && best.member() == kCopy) {
      return best.size();
    }
    QUIRE_RETURN_IF_ERROR(best.Try(kRlz));
    if (numeric) {
      QUIRE_RETURN_IF_ERROR(best.Try(kNumeric));
    }
    // xz decodes so slowly that it hardly ever pays where time matters.
    if (!lz4_is_quicker && TimeOf(kXz, raw) <= TimeOf(kRlz, raw) + margin &&
        known() <= kWellKnownPerMille) {
      QUIRE_RETURN_IF_ERROR(best.Try(kXz));
    }
    return best.size();
  }

 private:
  // Indexes of members.
  enum Member : size_t { kCopy, kLz4, kXz, kNumeric, kRlz };

  struct AutoScratch final : public Scratch {
    // Made on first use: most blocks of an archive use few members.
    std::array<std::unique_ptr<Scratch>, kAutoMemberCount> of_members;
  };

  struct Selected {
    const BlockCodec& codec;
    Scratch& scratch;
  };

  // The cheapest encoding so far, at the front of `stored`.
  class Best {
   public:
    Best(const AutoCodec& codec, ByteView raw, MutableByteView stored,
         AutoScratch& scratch)
        : codec_(codec), raw_(raw), stored_(stored), scratch_(scratch) {}

    // At equal cost the earlier encoding stays.
    absl::Status Try(Member member) {
      const bool is_first = size_ == 0;
      const MutableByteView candidate =
          is_first ? stored_
                   : scratch_.TextBuffer(codec_.StoredSizeMax(raw_.size()));
      QUIRE_ASSIGN_OR_RETURN(
          const size_t member_size,
          codec_.members_[member]->Encode(raw_, candidate.subspan(kHeaderSize),
                                          codec_.ScratchOf(member, scratch_)));
      const size_t size = kHeaderSize + member_size;
      const uint64_t cost = size + codec_.TimeOf(member, raw_);
      if (!is_first && cost >= cost_) {
        return absl::OkStatus();
      }
      candidate[0] = static_cast<uint8_t>(kMemberIds[member]);
      if (!is_first) {
        std::copy_n(candidate.data(), size, stored_.data());
      }
      member_ = member;
      size_ = size;
      cost_ = cost;
      return absl::OkStatus();
    }

    Member member() const { return member_; }

    size_t size() const { return size_; }

   private:
    const AutoCodec& codec_;
    const ByteView raw_;
    const MutableByteView stored_;
    AutoScratch& scratch_;
    Member member_ = kCopy;
    size_t size_ = 0;
    uint64_t cost_ = 0;
  };

  uint64_t TimeOf(Member member, ByteView raw) const {
    return TimeCost(AutoMembers(objective_)[member].speed, objective_,
                    raw.size());
  }

  Scratch& ScratchOf(size_t member, AutoScratch& scratch) const {
    std::unique_ptr<Scratch>& made = scratch.of_members[member];
    if (made == nullptr) {
      made = members_[member]->NewScratch();
    }
    return *made;
  }

  absl::Status Explain(ByteView stored, const absl::Status& status) const {
    return absl::IsDataLoss(status) ? Damaged(stored, status.message())
                                    : status;
  }

  absl::StatusOr<Selected> Select(ByteView stored, Scratch& scratch) const {
    const absl::StatusOr<size_t> member = ReadMember(stored);
    if (!member.ok()) {
      return Damaged(stored, member.status().message());
    }
    return Selected{*members_[*member],
                    ScratchOf(*member, static_cast<AutoScratch&>(scratch))};
  }

  const AutoObjective objective_;
  const AutoMemberCodecs members_;
  const std::shared_ptr<const CodecContext> context_;
  // Filter of the dictionary; for encoding only.
  std::optional<const DictionaryFilter> filter_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakeAutoCodec(
    const CodecInfo& info, AutoObjective objective, AutoMemberCodecs members,
    std::shared_ptr<const CodecContext> context, CodecUse use) {
  for (size_t i = 0; i < kAutoMemberCount; ++i) {
    QUIRE_CHECK(members[i]->info().id == kMemberIds[i]);
  }
  return std::make_unique<AutoCodec>(info, objective, std::move(members),
                                     std::move(context), use);
}

absl::StatusOr<CodecId> AutoMemberOf(ByteView stored) {
  QUIRE_ASSIGN_OR_RETURN(const size_t index, ReadMember(stored));
  return kMemberIds[index];
}

}  // namespace quire
