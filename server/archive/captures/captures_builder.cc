// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/captures/captures_builder.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/archive/captures/capture_digest.h"
#include "server/archive/captures/capture_node.h"
#include "server/archive/captures/segment_captures.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

constexpr size_t kChunkSizeBytes = size_t{1} << 20;
// A part ends after the capture or child with which it has one of these. A
// look-up decodes one leaf, which compresses the better the larger it is.
constexpr uint32_t kPartCount = 256;
constexpr size_t kPartSizeBytes = size_t{64} << 10;

// A level of the tree while it is written.
struct Level {
  // Keys of the children, which are not those of the captures.
  std::vector<std::string> keys;
  std::vector<CaptureChild> children;

  void Add(std::string key, const CaptureChild& child) {
    keys.push_back(std::move(key));
    children.push_back(child);
  }

  // The children with their keys, which must not move any more.
  std::vector<CaptureChild> Borrowed() const {
    std::vector<CaptureChild> borrowed = children;
    for (size_t i = 0; i < borrowed.size(); ++i) {
      borrowed[i].place.key = keys[i];
    }
    return borrowed;
  }
};

// The shortest key above `last` and at most `first`, or `first` if they are
// equal.
std::string Separator(absl::string_view last, absl::string_view first) {
  return std::string(first.substr(0, SharedPrefixSize(last, first) + 1));
}

absl::StatusOr<Level> AppendNodes(const Level& below, ContainerData& data) {
  const std::vector<CaptureChild> children = below.Borrowed();
  Level level;
  for (size_t first = 0; first < children.size();) {
    size_t end = first;
    size_t key_bytes = 0;
    uint64_t capture_count = 0;
    // At least two, so that there are fewer nodes than children.
    while (end < children.size() &&
           (end < first + 2 ||
            (end < first + kPartCount && key_bytes < kPartSizeBytes))) {
      key_bytes += children[end].place.key.size();
      capture_count += children[end].capture_count;
      ++end;
    }
    const std::string node =
        EncodeCaptureNode({children.data() + first, end - first});
    CaptureChild child = children[first];
    child.capture_count = capture_count;
    QUIRE_ASSIGN_OR_RETURN(child.part, data.Append(AsBytes(node)));
    level.Add(std::string(child.place.key), child);
    first = end;
  }
  return level;
}

}  // namespace

char* CapturesBuilder::Allocate(size_t size_bytes) {
  if (size_bytes > chunk_left_) {
    const size_t chunk = std::max(size_bytes, kChunkSizeBytes);
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(chunk));
    chunk_next_ = chunks_.back().get();
    chunk_left_ = chunk;
  }
  char* const place = chunk_next_;
  chunk_next_ += size_bytes;
  chunk_left_ -= size_bytes;
  return place;
}

absl::Status CapturesBuilder::Add(const SegmentCapture& capture) {
  if (capture.key.empty() || capture.key.size() > kCaptureKeySizeBytesMax ||
      capture.url.size() > kDocumentIdSizeBytesMax ||
      capture.id_skip_bytes.value_or(0) > kDocumentIdSizeBytesMax ||
      capture.status > kHttpStatusMax ||
      capture.digest.size() > kAttributeSizeBytesMax ||
      capture.ordinal > kSegmentDocumentCountMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a capture has a key of ", capture.key.size(), " bytes, a URL of ",
        capture.url.size(), ", a digest of ", capture.digest.size(),
        " and status ", capture.status, ", which is over a limit"));
  }
  const std::optional<Sha1> sha1 = ParseSha1Digest(capture.digest);
  const absl::string_view digest =
      sha1.has_value() ? AsText(*sha1) : absl::string_view(capture.digest);
  const bool has_url = !capture.id_skip_bytes.has_value();
  const absl::string_view url = has_url ? capture.url : absl::string_view();
  char* const text = Allocate(capture.key.size() + digest.size() + url.size());
  std::copy(url.begin(), url.end(),
            std::copy(digest.begin(), digest.end(),
                      std::copy(capture.key.begin(), capture.key.end(), text)));
  entries_.push_back(
      {.text = text,
       .time_ms = capture.time_ms,
       .key_size_bytes = static_cast<uint32_t>(capture.key.size()),
       .ordinal = static_cast<uint32_t>(capture.ordinal),
       .url_size_bytes = static_cast<uint32_t>(url.size()),
       .id_skip_bytes = capture.id_skip_bytes.value_or(kStatedUrl),
       .status = static_cast<uint16_t>(capture.status),
       .digest_size_bytes = static_cast<uint16_t>(digest.size()),
       .has_sha1 = sha1.has_value()});
  return absl::OkStatus();
}

SegmentCapture CapturesBuilder::CaptureOf(const Entry& entry) {
  const absl::string_view digest(entry.text + entry.key_size_bytes,
                                 entry.digest_size_bytes);
  SegmentCapture capture = {.key = KeyOf(entry),
                            .time_ms = entry.time_ms,
                            .ordinal = entry.ordinal,
                            .status = entry.status,
                            .digest = entry.has_sha1 ? FormatSha1Digest(digest)
                                                     : std::string(digest)};
  if (entry.id_skip_bytes == kStatedUrl) {
    capture.id_skip_bytes = std::nullopt;
    capture.url = {digest.data() + digest.size(), entry.url_size_bytes};
  } else {
    capture.id_skip_bytes = entry.id_skip_bytes;
  }
  return capture;
}

absl::StatusOr<std::string> CapturesBuilder::Build(ContainerData& data) {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) {
              const int order = KeyOf(a).compare(KeyOf(b));
              return order != 0 ? order < 0
                                : std::tie(a.time_ms, a.ordinal) <
                                      std::tie(b.time_ms, b.ordinal);
            });
  Level level;
  for (size_t first = 0; first < entries_.size();) {
    std::vector<SegmentCapture> captures;
    size_t text_bytes = 0;
    size_t end = first;
    while (end < entries_.size() && captures.size() < kPartCount &&
           text_bytes < kPartSizeBytes) {
      captures.push_back(CaptureOf(entries_[end]));
      text_bytes += captures.back().key.size() + captures.back().url.size() +
                    captures.back().digest.size();
      ++end;
    }
    CaptureChild child = {.place = captures.front().place(),
                          .capture_count = captures.size()};
    QUIRE_ASSIGN_OR_RETURN(child.part,
                           data.Append(AsBytes(EncodeCaptureLeaf(captures))));
    level.Add(first == 0
                  ? ""
                  : Separator(KeyOf(entries_[first - 1]), captures.front().key),
              child);
    first = end;
  }
  SegmentCaptures head = {.capture_count = entries_.size()};
  while (level.children.size() > 1) {
    QUIRE_ASSIGN_OR_RETURN(level, AppendNodes(level, data));
    ++head.level_count;
  }
  head.root = level.children.front().part;
  return head.Encode();
}

}  // namespace quire
