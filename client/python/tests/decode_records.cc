// SPDX-License-Identifier: Apache-2.0
//
// Decodes records for payload_test.py, which compares the results with those of
// the Python package. Standard input has the records, each after its size (4
// bytes, little endian). For each, standard output gets the texts below, each
// after its size.
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "client/quire/payload/payload_decoder.h"
#include "codecs/base/bytes.h"
#include "codecs/base/check.h"

namespace quire {
namespace {

constexpr uint64_t kSizeBytesMax = uint64_t{1} << 20;

void Print(absl::string_view text) {
  for (size_t shift = 0; shift < 32; shift += 8) {
    std::putchar(static_cast<int>(text.size() >> shift & 0xFF));
  }
  QUIRE_CHECK(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void PrintDecoded(absl::string_view record, size_t piece_size) {
  PayloadDecoder decoder(kSizeBytesMax);
  std::string payload;
  const auto sink = [&](ByteView bytes) {
    payload.append(AsText(bytes).data(), bytes.size());
    return absl::OkStatus();
  };
  absl::Status status;
  while (!record.empty() && status.ok()) {
    const absl::string_view piece = record.substr(0, piece_size);
    status = decoder.Feed(AsBytes(piece), sink);
    record.remove_prefix(piece.size());
  }
  if (status.ok()) {
    status = decoder.Finish(sink);
  }
  const WarcFields warc =
      decoder.warc() == nullptr ? WarcFields() : *decoder.warc();
  const HttpFields http =
      decoder.http() == nullptr ? HttpFields() : *decoder.http();
  const std::string status_text(status.message());
  const auto number = [](const auto& value) {
    return value.has_value() ? absl::StrCat(*value) : std::string();
  };
  for (const std::string& text :
       {absl::StatusCodeToString(status.code()), status_text, payload,
        absl::StrCat(decoder.warc() != nullptr, decoder.http() != nullptr),
        warc.type, warc.target_uri, warc.refers_to_target_uri, warc.date,
        warc.refers_to_date, warc.payload_digest, warc.truncated,
        warc.content_type, number(http.status_code), http.content_type,
        number(http.content_length), absl::StrJoin(http.transfer_codings, ","),
        absl::StrJoin(http.content_codings, ",")}) {
    Print(text);
  }
}

int Run() {
  std::string record;
  uint8_t size[4];
  size_t count = 0;
  while (std::fread(size, 1, sizeof(size), stdin) == sizeof(size)) {
    record.resize(size[0] | size_t{size[1]} << 8 | size_t{size[2]} << 16 |
                  size_t{size[3]} << 24);
    QUIRE_CHECK(std::fread(record.data(), 1, record.size(), stdin) ==
                record.size());
    // In pieces of various sizes.
    PrintDecoded(record, 1 + count++ * 997 % 5000);
  }
  return 0;
}

}  // namespace
}  // namespace quire

int main() {
  return quire::Run();
}
