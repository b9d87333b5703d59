// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/captures/capture_leaf.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/captures/capture_digest.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

// In the column of skipped bytes: the URL is stated.
constexpr uint64_t kStatedUrl = kDocumentIdSizeBytesMax + 1;

absl::Status TakeTextsOf(uint64_t count, ByteView& bytes,
                         std::vector<absl::string_view>& texts) {
  QUIRE_ASSIGN_OR_RETURN(const ColumnView sizes,
                         ColumnView::Take(bytes, count));
  for (uint64_t i = 0; i < count; ++i) {
    if (sizes[i] > bytes.size()) {
      return Damaged(absl::StrCat("a text of a capture has ", sizes[i],
                                  " bytes of ", bytes.size()));
    }
    texts.push_back(AsText(bytes.first(sizes[i])));
    bytes = bytes.subspan(sizes[i]);
  }
  return absl::OkStatus();
}

void AppendTexts(const std::vector<absl::string_view>& texts,
                 std::string& out) {
  std::vector<uint64_t> sizes;
  sizes.reserve(texts.size());
  for (const absl::string_view text : texts) {
    sizes.push_back(text.size());
  }
  AppendColumn(sizes, out);
  for (const absl::string_view text : texts) {
    absl::StrAppend(&out, text);
  }
}

// The numbers of captures, as columns have them.
struct Numbers {
  explicit Numbers(std::span<const SegmentCapture> captures) {
    least_time = captures.front().time_ms;
    least_ordinal = captures.front().ordinal;
    for (const SegmentCapture& capture : captures) {
      least_time = std::min(least_time, capture.time_ms);
      least_ordinal = std::min(least_ordinal, capture.ordinal);
    }
    for (const SegmentCapture& capture : captures) {
      times.push_back(static_cast<uint64_t>(capture.time_ms - least_time));
      time_unit = std::gcd(time_unit, times.back());
      ordinals.push_back(capture.ordinal - least_ordinal);
      statuses.push_back(capture.status);
      id_skips.push_back(capture.id_skip_bytes.value_or(kStatedUrl));
    }
    time_unit = std::max<uint64_t>(time_unit, 1);
    for (uint64_t& time : times) {
      time /= time_unit;
    }
  }

  int64_t least_time = 0;
  uint64_t time_unit = 0;
  uint64_t least_ordinal = 0;
  std::vector<uint64_t> times;
  std::vector<uint64_t> ordinals;
  std::vector<uint64_t> statuses;
  std::vector<uint64_t> id_skips;
};

}  // namespace

absl::StatusOr<CaptureLeaf> CaptureLeaf::Parse(ByteView bytes,
                                               uint64_t document_count) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(bytes));
  if (count == 0 || count > kCaptureLeafCountMax) {
    return Damaged(absl::StrCat("a leaf has ", count,
                                " captures, expected 1 to ",
                                kCaptureLeafCountMax));
  }
  CaptureLeaf leaf;
  QUIRE_ASSIGN_OR_RETURN(
      leaf.keys_, CaptureKeys::Take(bytes, static_cast<uint32_t>(count)));
  QUIRE_RETURN_IF_ERROR(leaf.TakeNumbers(bytes, document_count));
  QUIRE_RETURN_IF_ERROR(leaf.TakeTexts(bytes));
  if (!bytes.empty()) {
    return Damaged(
        absl::StrCat(bytes.size(), " bytes follow a leaf of captures"));
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (leaf.keys_[i].empty()) {
      return Damaged("a capture has an empty key");
    }
    if (i > 0 && !(leaf.Place(i - 1) < leaf.Place(i))) {
      return Damaged(absl::StrCat("captures ", i - 1, " and ", i,
                                  " of a leaf are not in their order"));
    }
  }
  return leaf;
}

absl::Status CaptureLeaf::TakeNumbers(ByteView& bytes,
                                      uint64_t document_count) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t first_time, TakeVarint(bytes));
  first_time_ms_ = UnZigZag(first_time);
  QUIRE_ASSIGN_OR_RETURN(time_unit_, TakeVarint(bytes));
  constexpr auto kTimeRange = static_cast<uint64_t>(2 * kCaptureTimeMsMax);
  if (first_time_ms_ < -kCaptureTimeMsMax ||
      first_time_ms_ > kCaptureTimeMsMax || time_unit_ == 0 ||
      time_unit_ > kTimeRange) {
    return Damaged(absl::StrCat("times of captures from ", first_time_ms_,
                                " by ", time_unit_, " ms"));
  }
  QUIRE_ASSIGN_OR_RETURN(times_, ColumnView::Take(bytes, count()));
  QUIRE_ASSIGN_OR_RETURN(first_ordinal_, TakeVarint(bytes));
  QUIRE_ASSIGN_OR_RETURN(ordinals_, ColumnView::Take(bytes, count()));
  QUIRE_ASSIGN_OR_RETURN(statuses_, ColumnView::Take(bytes, count()));
  QUIRE_ASSIGN_OR_RETURN(id_skips_, ColumnView::Take(bytes, count()));
  QUIRE_ASSIGN_OR_RETURN(digest_kinds_, ColumnView::Take(bytes, count()));
  for (uint32_t i = 0; i < count(); ++i) {
    const uint64_t ordinal = (*ordinals_)[i];
    if ((*times_)[i] > kTimeRange / time_unit_ ||
        TimeMs(i) > kCaptureTimeMsMax || first_ordinal_ >= document_count ||
        ordinal >= document_count - first_ordinal_ ||
        (*statuses_)[i] > kHttpStatusMax || (*id_skips_)[i] > kStatedUrl ||
        (*digest_kinds_)[i] > static_cast<uint64_t>(CaptureDigestKind::kText)) {
      return Damaged(absl::StrCat("capture ", i, " of a leaf, of document ",
                                  first_ordinal_, " + ", ordinal,
                                  ", has a number beyond its bounds"));
    }
  }
  return absl::OkStatus();
}

absl::Status CaptureLeaf::TakeTexts(ByteView& bytes) {
  uint64_t text_count = 0;
  uint64_t url_count = 0;
  for (uint32_t i = 0; i < count(); ++i) {
    text_count +=
        (*digest_kinds_)[i] == static_cast<uint64_t>(CaptureDigestKind::kText)
            ? 1
            : 0;
    url_count += (*id_skips_)[i] == kStatedUrl ? 1 : 0;
  }
  digests_.resize(count());
  for (uint32_t i = 0; i < count(); ++i) {
    if ((*digest_kinds_)[i] ==
        static_cast<uint64_t>(CaptureDigestKind::kSha1)) {
      if (bytes.size() < kSha1SizeBytes) {
        return Damaged("digests of captures are cut");
      }
      digests_[i] = AsText(bytes.first(kSha1SizeBytes));
      bytes = bytes.subspan(kSha1SizeBytes);
    }
  }
  std::vector<absl::string_view> texts;
  QUIRE_RETURN_IF_ERROR(TakeTextsOf(text_count, bytes, texts));
  QUIRE_RETURN_IF_ERROR(TakeTextsOf(url_count, bytes, texts));
  auto text = texts.begin();
  for (uint32_t i = 0; i < count(); ++i) {
    if ((*digest_kinds_)[i] ==
        static_cast<uint64_t>(CaptureDigestKind::kText)) {
      digests_[i] = *text++;
    }
  }
  urls_.resize(url_count == 0 ? 0 : count());
  for (uint32_t i = 0; i < urls_.size(); ++i) {
    if ((*id_skips_)[i] == kStatedUrl) {
      urls_[i] = *text++;
    }
  }
  return absl::OkStatus();
}

SegmentCapture CaptureLeaf::operator[](uint32_t index) const {
  SegmentCapture capture = {
      .key = keys_[index],
      .time_ms = TimeMs(index),
      .ordinal = first_ordinal_ + (*ordinals_)[index],
      .status = static_cast<uint32_t>((*statuses_)[index])};
  const uint64_t skip = (*id_skips_)[index];
  if (skip == kStatedUrl) {
    capture.id_skip_bytes = std::nullopt;
    capture.url = urls_[index];
  } else {
    capture.id_skip_bytes = static_cast<uint32_t>(skip);
  }
  capture.digest =
      (*digest_kinds_)[index] == static_cast<uint64_t>(CaptureDigestKind::kSha1)
          ? FormatSha1Digest(digests_[index])
          : std::string(digests_[index]);
  return capture;
}

uint32_t CaptureLeaf::LowerBound(const SegmentCapturePlace& place) const {
  uint32_t begin = 0;
  uint32_t end = count();
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (Place(middle) < place) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

uint64_t CaptureLeaf::MemoryBytes() const {
  return sizeof(CaptureLeaf) + keys_.MemoryBytes() +
         (digests_.capacity() + urls_.capacity()) * sizeof(absl::string_view);
}

std::string EncodeCaptureLeaf(std::span<const SegmentCapture> captures) {
  const Numbers numbers(captures);
  std::vector<absl::string_view> keys;
  std::vector<uint64_t> kinds;
  std::string hashes;
  // Of digests, and then of URLs.
  std::vector<absl::string_view> digests;
  std::vector<absl::string_view> urls;
  for (const SegmentCapture& capture : captures) {
    keys.push_back(capture.key);
    const std::optional<Sha1> sha1 = ParseSha1Digest(capture.digest);
    if (sha1.has_value()) {
      kinds.push_back(static_cast<uint64_t>(CaptureDigestKind::kSha1));
      absl::StrAppend(&hashes, AsText(*sha1));
    } else if (!capture.digest.empty()) {
      kinds.push_back(static_cast<uint64_t>(CaptureDigestKind::kText));
      digests.emplace_back(capture.digest);
    } else {
      kinds.push_back(static_cast<uint64_t>(CaptureDigestKind::kNone));
    }
    if (!capture.id_skip_bytes.has_value()) {
      urls.push_back(capture.url);
    }
  }
  std::string leaf;
  AppendVarint(captures.size(), leaf);
  AppendCaptureKeys(keys, leaf);
  AppendVarint(ZigZag(numbers.least_time), leaf);
  AppendVarint(numbers.time_unit, leaf);
  AppendColumn(numbers.times, leaf);
  AppendVarint(numbers.least_ordinal, leaf);
  AppendColumn(numbers.ordinals, leaf);
  AppendColumn(numbers.statuses, leaf);
  AppendColumn(numbers.id_skips, leaf);
  AppendColumn(kinds, leaf);
  leaf.append(hashes);
  AppendTexts(digests, leaf);
  AppendTexts(urls, leaf);
  return leaf;
}

}  // namespace quire
