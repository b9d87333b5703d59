// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as a compressed file: pieces of any size give the same text,
// up to a limit, and the same error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codecs/base/check.h"
#include "server/ingest/sources/compressed_text.h"
#include "server/ingest/sources/streams/gzip_member_reader.h"

namespace {

constexpr uint64_t kTextSizeBytesMax = 1 << 20;
constexpr uint64_t kWindowSizeBytesMax = uint64_t{8} << 20;

// Returns the text and the message of the error, if any.
std::pair<std::string, std::string> DecodePieces(quire::ByteView file,
                                                 size_t in_size,
                                                 size_t out_size) {
  const auto open =
      [&]() -> absl::StatusOr<std::unique_ptr<quire::ByteStream>> {
    return std::make_unique<quire::MemoryStream>(file, in_size);
  };
  const auto whole = quire::CompressedText::Detect(
      open, "fuzz", kTextSizeBytesMax, kWindowSizeBytesMax);
  if (!whole.ok()) {
    return {"", std::string(whole.status().message())};
  }
  std::pair<std::string, std::string> decoded;
  if (!whole->is_compressed()) {
    return decoded;
  }
  const auto text = whole->Open();
  QUIRE_CHECK(text.ok());
  std::vector<uint8_t> piece(out_size);
  while (true) {
    const absl::StatusOr<size_t> got = (*text)->Read(piece);
    if (!got.ok()) {
      decoded.second = std::string(got.status().message());
    }
    if (!got.ok() || *got == 0) {
      return decoded;
    }
    decoded.first.append(piece.begin(),
                         piece.begin() + static_cast<ptrdiff_t>(*got));
  }
}

// Divides a gzip file into members, of which together there are all bytes and
// all text.
void CheckMembers(quire::ByteView file, const std::string& text) {
  size_t size_bytes = 0;
  std::string found;
  std::string kept;
  const auto on_bytes = [&](quire::ByteView bytes) {
    size_bytes += bytes.size();
  };
  const auto on_text = [&](quire::ByteView piece) {
    found.append(piece.begin(), piece.end());
  };
  quire::GzipMemberReader reader(
      std::make_unique<quire::MemoryStream>(file, 700), kTextSizeBytesMax,
      on_bytes, on_text);
  uint64_t sum = 0;
  while (true) {
    const auto member = reader.Next();
    QUIRE_CHECK(member.ok(), member.status().ToString());
    if (!member->has_value()) {
      break;
    }
    sum += (*member)->size_bytes;
    kept.append((*member)->text.begin(), (*member)->text.end());
    QUIRE_CHECK(!(*member)->is_member ||
                (*member)->bytes.size() == (*member)->size_bytes);
  }
  QUIRE_CHECK(sum == file.size() && size_bytes == file.size());
  QUIRE_CHECK(found == text && kept == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const quire::ByteView file(data + 1, size - 1);
  const auto large = DecodePieces(file, file.size() + 1, 1 << 16);
  const auto small = DecodePieces(file, size_t{1} + data[0], 256);
  // A decoder may find damage before it has produced all text before that.
  const size_t common = std::min(large.first.size(), small.first.size());
  QUIRE_CHECK(large.first.compare(0, common, small.first, 0, common) == 0);
  QUIRE_CHECK(large.second.empty() == small.second.empty());
  QUIRE_CHECK(!large.second.empty() || large.first == small.first);
  if (large.second.empty() && file.size() > 2 && file[0] == 0x1F &&
      file[1] == 0x8B) {
    CheckMembers(file, large.first);
  }
  return 0;
}
