// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/build_captures.h"

#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"

#include "codecs/surt/surt_key.h"

namespace quire {
namespace {

// Years 1 to 9999.
constexpr int64_t kTimeMsMin = -62'135'596'800'000;
constexpr int64_t kTimeMsEnd = 253'402'300'800'000;

bool IsIndexed(const SourceDocument& document) {
  const absl::string_view type = document.record_type;
  return document.record.has_value() && document.capture_time_ms.has_value() &&
         *document.capture_time_ms >= kTimeMsMin &&
         *document.capture_time_ms < kTimeMsEnd &&
         (type == "response" || type == "revisit" || type == "resource" ||
          type == "conversion");
}

}  // namespace

void BuildCaptures::Count(const SourceDocument& document) {
  const bool is_request = document.record_type == "request";
  if (!document.record.has_value() ||
      (!is_request && document.record_type != "response")) {
    last_.reset();
    return;
  }
  const CrawlRecord& record = *document.record;
  const bool is_pair = last_.has_value() && last_->is_request != is_request &&
                       last_->record.url == record.url &&
                       !record.concurrent_to.empty() &&
                       record.concurrent_to == last_->record.record_id;
  if (!is_pair) {
    last_ = Last{.record = record, .is_request = is_request};
    return;
  }
  const CrawlRecord& request = is_request ? record : last_->record;
  const CrawlRecord& response = is_request ? last_->record : record;
  if (!request.method_url.empty() && !response.record_id.empty()) {
    method_urls_[response.record_id] = request.method_url;
  }
  last_.reset();
}

std::optional<NewCapture> BuildCaptures::Convert(
    const SourceDocument& document) {
  if (!IsIndexed(document)) {
    return std::nullopt;
  }
  const CrawlRecord& record = *document.record;
  if (!record.key.empty()) {
    key_ = record.key;
  } else {
    const auto posted = method_urls_.find(record.record_id);
    key_ = SurtKey(posted == method_urls_.end() ? record.url : posted->second);
  }
  return NewCapture{.key = key_,
                    .url = record.url,
                    .status = record.status,
                    .digest = record.digest};
}

}  // namespace quire
