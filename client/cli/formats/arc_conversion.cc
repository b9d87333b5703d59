// SPDX-License-Identifier: Apache-2.0
#include "client/cli/formats/arc_conversion.h"

#include <openssl/evp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/cli/shown_text.h"
#include "client/quire/payload/record_header.h"
#include "codecs/base/arc_line.h"
#include "codecs/base/header_fields.h"

namespace quire {
namespace {

// Returns `text` without bytes that a header line must not have.
std::string HeaderText(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ' ' || absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppendFormat(&escaped, "%%%02X", static_cast<unsigned char>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// Size of the lines of a description about the format of the ARC.
uint64_t FormatLinesSize(absl::string_view block) {
  const size_t first = block.find('\n');
  const size_t second =
      first == absl::string_view::npos ? first : block.find('\n', first + 1);
  return second == absl::string_view::npos ? block.size() : second + 1;
}

// Size of the HTTP header that `block` begins with; 0 if it has none.
uint64_t HttpHeaderSize(absl::string_view block) {
  const size_t blank_size = BlankLinesSize(block);
  if (!absl::StartsWith(block.substr(blank_size), kHttpMagic)) {
    return 0;
  }
  const std::optional<size_t> size =
      FindHeaderEnd(AsBytes(block.substr(blank_size)));
  return size.has_value() ? blank_size + *size : block.size();
}

}  // namespace

ArcConversion::ArcConversion()
    : block_digest_(std::make_unique<RecordDigest>(EVP_sha1())),
      payload_digest_(std::make_unique<RecordDigest>(EVP_sha1())) {}

ArcConversion::~ArcConversion() = default;
ArcConversion::ArcConversion(ArcConversion&&) noexcept = default;

std::optional<ArcConversion> ArcConversion::Start(const v1::Document& document,
                                                  absl::string_view head,
                                                  bool takes_rest) {
  const size_t line_size = std::min(head.find('\n'), head.size() - 1) + 1;
  const std::optional<ArcLine> line = ParseArcLine(head.substr(0, line_size));
  if (!line.has_value()) {
    return std::nullopt;
  }
  // It is the rest of the document if the line does not say.
  uint64_t length = 0;
  if (!absl::SimpleAtoi(line->length, &length) || takes_rest) {
    length = UINT64_MAX;
  }
  ArcConversion arc;
  arc.is_description_ = absl::StartsWith(line->url, kArcMagic);
  arc.url_ = HeaderText(line->url);
  arc.address_ = HeaderText(line->address);
  arc.type_ = HeaderText(line->type);
  if (document.has_capture_time_ms()) {
    arc.date_ = ArcDateAsWarcDate(line->date);
  }
  // A length may be wrong.
  length =
      std::min(length, document.range().size_bytes() - uint64_t{line_size});
  const absl::string_view block = head.substr(line_size).substr(0, length);
  const uint64_t left_out =
      arc.is_description_ ? FormatLinesSize(block) : uint64_t{0};
  arc.block_offset_ = line_size + left_out;
  arc.block_size_bytes_ = length - left_out;
  arc.payload_offset_ = line_size + HttpHeaderSize(block);
  return arc;
}

void ArcConversion::Add(ByteView bytes) {
  const auto add = [&](uint64_t from, RecordDigest& digest) {
    const uint64_t end = position_ + bytes.size();
    from = std::clamp(from, position_, end);
    const uint64_t to =
        std::clamp(block_offset_ + block_size_bytes_, from, end);
    digest.Add(bytes.subspan(static_cast<size_t>(from - position_),
                             static_cast<size_t>(to - from)));
  };
  add(block_offset_, *block_digest_);
  add(payload_offset_, *payload_digest_);
  const uint64_t block_end =
      std::max(position_, block_offset_ + block_size_bytes_) - position_;
  has_text_after_block_ =
      has_text_after_block_ ||
      (block_end < bytes.size() &&
       AsText(bytes.subspan(static_cast<size_t>(block_end)))
               .find_first_not_of("\r\n") != absl::string_view::npos);
  position_ += bytes.size();
}

std::string ArcConversion::Header(absl::string_view record_id, int64_t now_ms) {
  absl::string_view url = url_;
  if (is_description_) {
    url.remove_prefix(kArcMagic.size());
  }
  std::string header = absl::StrCat(
      "WARC/1.0\r\nWARC-Type: ", is_description_ ? "warcinfo" : "response",
      "\r\nWARC-Record-ID: ", record_id, "\r\n",
      is_description_ ? "WARC-Filename: " : "WARC-Target-URI: ", url,
      "\r\nWARC-IP-Address: ", address_,
      "\r\nWARC-Date: ", date_.empty() ? FormatTimeMs(now_ms) : date_,
      "\r\nContent-Type: ",
      is_description_ ? absl::string_view(type_) : kArcContentType,
      "\r\nContent-Length: ", block_size_bytes_, "\r\n");
  if (!is_description_) {
    absl::StrAppend(
        &header, "WARC-Payload-Digest: ", payload_digest_->Sha1Text(), "\r\n");
  }
  absl::StrAppend(&header, "WARC-Block-Digest: ", block_digest_->Sha1Text(),
                  "\r\n\r\n");
  return header;
}

}  // namespace quire
