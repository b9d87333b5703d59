// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/crawl_record.h"

#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

#include "codecs/base/header_fields.h"
#include "codecs/surt/method_query.h"

namespace quire {
namespace {

// With empty lines before it.
constexpr size_t kFirstLineSizeBytes = 256;

bool HasStatus(const WarcHeader& header) {
  return header.record_type == "response" || header.record_type == "revisit";
}

std::string MethodOf(ByteView block) {
  const absl::string_view text = AsText(block);
  return std::string(text.substr(0, text.find(' ')));
}

bool HasBody(const WarcHeader& header, ByteView start) {
  return header.record_type == "request" && HasMethodQuery(MethodOf(start));
}

// The URL with the method and the body of an HTTP request.
std::string MethodUrl(const WarcHeader& header, ByteView block) {
  const size_t head_size = FindHeaderEnd(block).value_or(block.size());
  absl::string_view head = AsText(block.first(head_size));
  TakeHeaderLine(head);
  std::string content_type;
  while (const std::optional<HeaderField> field = TakeHeaderField(head)) {
    if (absl::EqualsIgnoreCase(field->name, "Content-Type")) {
      content_type = field->value;
    }
  }
  const absl::string_view body = AsText(block.subspan(head_size));
  return UrlWithMethod(header.target_uri, MethodOf(block), content_type,
                       body.substr(0, kMethodBodySizeBytesMax));
}

}  // namespace

size_t CrawlRecordSize(const WarcHeader& header, ByteView start) {
  if (HasBody(header, start)) {
    return kWarcHeaderSizeBytesMax + kMethodBodySizeBytesMax;
  }
  return header.record_type == "request" || HasStatus(header)
             ? kFirstLineSizeBytes
             : 0;
}

CrawlRecord MakeCrawlRecord(const WarcHeader& header, ByteView block) {
  CrawlRecord record = {.url = header.target_uri,
                        .record_id = header.record_id,
                        .concurrent_to = header.concurrent_to,
                        .digest = header.payload_digest};
  if (HasStatus(header)) {
    record.status = HttpStatus(block);
  } else if (header.record_type == "request" && HasMethodKey(MethodOf(block))) {
    record.method_url = MethodUrl(header, block);
  }
  return record;
}

}  // namespace quire
