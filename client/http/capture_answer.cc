// SPDX-License-Identifier: Apache-2.0
#include "client/http/capture_answer.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/http/part_answer.h"
#include "client/http/request/content_headers.h"
#include "client/quire/capture_index_lister.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kBodySizeBytesMax = size_t{16} << 20;
// A page of captures, as a message and parsed. The thread of a call has the
// memory of one; those of further archives are charged.
constexpr uint64_t kPageSizeBytes = uint64_t{2} << 20;
// Captures that are asked for at once.
constexpr uint64_t kPageSizeMax = 1000;

// The captures of one archive, with the next one at hand.
class CaptureStream {
 public:
  CaptureStream(const NamedArchive& archive, CaptureIndexLister lister)
      : archive_(archive), lister_(std::move(lister)) {}

  absl::Status Advance() {
    QUIRE_ASSIGN_OR_RETURN(next_, lister_.Next());
    return absl::OkStatus();
  }

  // Unset at the end.
  const std::optional<v1::Capture>& next() const { return next_; }

  const CaptureIndexLister& lister() const { return lister_; }

  CdxCapture Take() const {
    const v1::Document& document = next_->document();
    CdxCapture capture = {
        .key = next_->key(),
        .time_ms = document.capture_time_ms(),
        .url = next_->url(),
        .mime = document.record_type() == "revisit" ? "warc/revisit"
                                                    : document.media_type(),
        .digest = next_->digest(),
        .length = document.range().size_bytes(),
        .offset = document.range().offset(),
        .file_name =
            absl::StrCat(archive_.name, "@", lister_.archive_uuid(), "/space")};
    if (next_->has_status()) {
      capture.status = absl::StrCat(next_->status());
    }
    return capture;
  }

 private:
  const NamedArchive archive_;
  CaptureIndexLister lister_;
  std::optional<v1::Capture> next_;
};

CaptureListOptions OptionsOf(const CdxQuery& query,
                             const NamedArchive& archive) {
  CaptureListOptions options = {.from_ms = query.from_ms,
                                .until_ms = query.until_ms};
  if (query.key.empty()) {
    options.url = query.url;
  } else {
    options.key = query.key;
  }
  switch (query.match) {
    case SurtMatch::kExact:
      options.match = v1::CAPTURE_MATCH_EXACT;
      break;
    case SurtMatch::kPrefix:
      options.match = v1::CAPTURE_MATCH_PREFIX;
      break;
    case SurtMatch::kHost:
      options.match = v1::CAPTURE_MATCH_HOST;
      break;
    case SurtMatch::kDomain:
      options.match = v1::CAPTURE_MATCH_DOMAIN;
      break;
  }
  if (query.sort == CdxSort::kClosest) {
    options.closest_ms = query.closest_ms;
  }
  options.newest_first = query.sort == CdxSort::kReverse;
  if (!archive.uuid.empty()) {
    options.archive_uuid = archive.uuid;
  }
  // With filters more captures are looked at than are sent.
  options.page_size = static_cast<uint32_t>(
      query.filters.empty()
          ? std::min(query.limit.value_or(kPageSizeMax), kPageSizeMax)
          : kPageSizeMax);
  return options;
}

// True if `a` precedes `b` in the order of the query; streams come in the order
// of the archives.
bool Precedes(const v1::Capture& a, const v1::Capture& b,
              const CdxQuery& query) {
  const int64_t time_a = a.document().capture_time_ms();
  const int64_t time_b = b.document().capture_time_ms();
  switch (query.sort) {
    case CdxSort::kKey:
      return std::tie(a.key(), time_a) < std::tie(b.key(), time_b);
    case CdxSort::kReverse:
      return time_a > time_b;
    case CdxSort::kClosest:
      break;
  }
  const auto distance = [&query](int64_t time_ms) {
    return time_ms > *query.closest_ms ? time_ms - *query.closest_ms
                                       : *query.closest_ms - time_ms;
  };
  return std::tuple(distance(time_a), time_a) <
         std::tuple(distance(time_b), time_b);
}

CaptureStream* FirstOf(std::vector<CaptureStream>& streams,
                       const CdxQuery& query) {
  CaptureStream* first = nullptr;
  for (CaptureStream& stream : streams) {
    if (stream.next().has_value() &&
        (first == nullptr || Precedes(*stream.next(), *first->next(), query))) {
      first = &stream;
    }
  }
  return first;
}

// Charges the lines in addition to what is charged.
absl::StatusOr<std::string> Lines(std::vector<CaptureStream>& streams,
                                  const CdxQuery& query, MemoryCharge& charge) {
  const uint64_t pages_bytes = charge.size_bytes();
  std::string lines;
  uint64_t count = 0;
  while (!query.limit.has_value() || count < *query.limit) {
    CaptureStream* const stream = FirstOf(streams, query);
    if (stream == nullptr) {
      break;
    }
    const CdxCapture capture = stream->Take();
    const bool is_match =
        std::all_of(query.filters.begin(), query.filters.end(),
                    [&capture](const CdxFilter& filter) {
                      return filter.Matches(capture);
                    });
    if (is_match) {
      lines += CdxLine(capture, query);
      ++count;
      if (lines.size() > kBodySizeBytesMax) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the answer has more than ", FormatByteSize(kBodySizeBytesMax),
            "; ask for less, by limit, from, to or a longer url, or list the "
            "captures by the API"));
      }
      const uint64_t held_bytes = pages_bytes + lines.capacity();
      if (held_bytes > charge.size_bytes() && !charge.TryResize(held_bytes)) {
        return MemoryExhausted();
      }
    }
    QUIRE_RETURN_IF_ERROR(stream->Advance());
  }
  return lines;
}

}  // namespace

absl::StatusOr<Answer> AnswerCaptures(const HttpRequest& request,
                                      Client& client, MemoryCharge& charge) {
  const CdxQuery& query = request.target.cdx;
  if (!charge.TryResize(charge.size_bytes() +
                        (request.target.archives.size() - 1) *
                            kPageSizeBytes)) {
    return MemoryExhausted();
  }
  std::vector<CaptureStream> streams;
  uint64_t unindexed_count = 0;
  for (const NamedArchive& archive : request.target.archives) {
    streams.emplace_back(
        archive, client.ListCaptures(archive.name, OptionsOf(query, archive)));
    QUIRE_RETURN_IF_ERROR(streams.back().Advance());
    unindexed_count += streams.back().lister().unindexed_document_count();
  }
  Answer answer;
  QUIRE_ASSIGN_OR_RETURN(answer.body, Lines(streams, query, charge));
  answer.headers = {{"Content-Type", query.output == CdxOutput::kJson
                                         ? "application/x-ndjson"
                                         : "text/plain; charset=utf-8"},
                    {"X-Content-Type-Options", "nosniff"}};
  if (unindexed_count > 0) {
    answer.headers.emplace_back("Quire-Unindexed-Documents",
                                absl::StrCat(unindexed_count));
  }
  AddCaching(request, answer);
  return answer;
}

}  // namespace quire
