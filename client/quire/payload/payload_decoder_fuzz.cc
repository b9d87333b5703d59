// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary records in arbitrary pieces: the payload or the error is the same,
// within the limit. The first bytes choose the pieces; the record gets a header
// that fits the rest, or none.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

#include "client/quire/payload/payload_decoder.h"
#include "client/quire/payload/record_header.h"
#include "codecs/base/bytes.h"
#include "codecs/base/check.h"

namespace quire {
namespace {

constexpr uint64_t kSizeBytesMax = 1 << 20;

struct Decoded {
  std::string payload;
  absl::Status status;
  // Unset: the decoder found no HTTP response.
  std::optional<int> http_status;
};

Decoded Decode(absl::string_view record, size_t piece_size) {
  const absl::string_view whole = record;
  PayloadDecoder decoder(kSizeBytesMax);
  Decoded decoded;
  const auto sink = [&](ByteView bytes) {
    QUIRE_CHECK(!bytes.empty());
    decoded.payload.append(AsText(bytes).data(), bytes.size());
    return absl::OkStatus();
  };
  while (!record.empty() && decoded.status.ok()) {
    const absl::string_view piece = record.substr(0, piece_size);
    decoded.status = decoder.Feed(AsBytes(piece), sink);
    record.remove_prefix(piece.size());
  }
  if (decoded.status.ok()) {
    decoded.status = decoder.Finish(sink);
  }
  if (const auto plain = decoder.plain_payload();
      plain.has_value() && decoded.status.ok()) {
    QUIRE_CHECK(whole.substr(plain->offset, plain->size_bytes) ==
                absl::string_view(decoded.payload));
  }
  if (decoder.http() != nullptr && decoder.warc()->type == "response") {
    decoded.http_status = decoder.http()->status_code;
  }
  return decoded;
}

// Checks that a status decided by a prefix of the record is that of the whole
// record and of the decoder.
void CheckStatus(absl::string_view record, size_t prefix_size,
                 std::optional<int> decoded) {
  const HttpStatusSearch whole = FindHttpStatus(AsBytes(record));
  const HttpStatusSearch part =
      FindHttpStatus(AsBytes(record.substr(0, prefix_size)));
  QUIRE_CHECK(!part.is_decided || part.code == whole.code);
  QUIRE_CHECK(decoded.value_or(0) <= 0 || !whole.is_decided ||
              whole.code == decoded);
}

std::string WarcHeader(size_t block_size) {
  return absl::StrCat(
      "WARC/1.1\r\nWARC-Type: response\r\nContent-Type: application/http\r\n"
      "Content-Length: ",
      block_size, "\r\n\r\n");
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  const absl::string_view rest(reinterpret_cast<const char*>(data) + 2,
                               size - 2);
  const char* const headers[] = {
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
      ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip, br\r\n"
       "Transfer-Encoding: deflate, chunked\r\n\r\n"),
      ""};
  std::string record;
  const size_t choice = data[0] % (std::size(headers) + 1);
  if (choice < std::size(headers)) {
    const std::string block = absl::StrCat(headers[choice], rest);
    // In a WARC, or in an ARC.
    record =
        data[1] % 2 == 0
            ? absl::StrCat(quire::WarcHeader(block.size()), block, "\r\n\r\n")
            : absl::StrCat("http://e.org/ 1.2.3.4 20050622190850 t/h ",
                           block.size(), "\n", block, "\n");
  } else {
    record = std::string(rest);
  }
  const quire::Decoded whole = quire::Decode(record, record.size() + 1);
  quire::CheckStatus(record, data[1] * size_t{8}, whole.http_status);
  const quire::Decoded pieces = quire::Decode(record, 1u + data[1]);
  QUIRE_CHECK(whole.status.ok() == pieces.status.ok(), whole.status.ToString(),
              " against ", pieces.status.ToString());
  QUIRE_CHECK(whole.payload.size() <= quire::kSizeBytesMax + record.size());
  if (whole.status.ok()) {
    QUIRE_CHECK(whole.payload == pieces.payload);
  }
  return 0;
}
