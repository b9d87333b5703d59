// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/streams/zstd_dictionary.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/endian.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr uint32_t kZstdMagic = 0xFD2FB528;
constexpr uint32_t kSkippableMagic = 0x184D2A50;
constexpr uint32_t kSkippableMagicMask = 0xFFFFFFF0;
constexpr uint32_t kDictionaryFrameMagic = 0x184D2A5D;
constexpr uint32_t kDictionaryMagic = 0xEC30A437;
// Magic number and size of a skippable frame.
constexpr size_t kFrameHeaderSizeBytes = 8;
// Length of unexpected text in messages.
constexpr size_t kShownMagicSizeBytes = 8;

bool HasMagic(ByteView bytes, uint32_t magic, uint32_t mask = UINT32_MAX) {
  return bytes.size() >= kZstdMagicSizeBytes &&
         (LoadLittleEndian<uint32_t>(bytes.data()) & mask) == magic;
}

struct ContextDeleter {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

absl::Status TooLarge(uint64_t size_bytes) {
  return absl::DataLossError(
      absl::StrCat("its dictionary must be at most ",
                   FormatByteSize(kZstdDictionarySizeBytesMax), ", got ",
                   size_bytes > kZstdDictionarySizeBytesMax + 1
                       ? FormatCounted(size_bytes, "byte", "bytes")
                       : "more"));
}

// Decodes `frame`, which must be one frame.
absl::StatusOr<std::vector<uint8_t>> DecodeFrame(ByteView frame) {
  const std::unique_ptr<ZSTD_DCtx, ContextDeleter> context(ZSTD_createDCtx());
  if (context == nullptr) {
    return absl::ResourceExhaustedError("no memory to decode its dictionary");
  }
  std::vector<uint8_t> text(std::min<size_t>(
      kZstdDictionarySizeBytesMax + 1, std::max<size_t>(frame.size() * 4, 64)));
  ZSTD_inBuffer in = {frame.data(), frame.size(), 0};
  ZSTD_outBuffer out = {text.data(), text.size(), 0};
  while (true) {
    const size_t result = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(result) != 0) {
      return absl::DataLossError(
          absl::StrCat("the zstd frame with its dictionary is damaged: ",
                       ZSTD_getErrorName(result)));
    }
    if (out.pos > kZstdDictionarySizeBytesMax) {
      return TooLarge(out.pos);
    }
    if (result == 0) {
      break;
    }
    if (out.pos < out.size) {
      return absl::DataLossError(
          "the zstd frame with its dictionary is truncated");
    }
    text.resize(std::min(kZstdDictionarySizeBytesMax + 1, text.size() * 2));
    out.dst = text.data();
    out.size = text.size();
  }
  if (in.pos != in.size) {
    return absl::DataLossError(absl::StrCat(
        "its dictionary must be one zstd frame, got ",
        FormatCounted(in.size - in.pos, "byte", "bytes"), " after the frame"));
  }
  text.resize(out.pos);
  return text;
}

}  // namespace

bool IsZstdFrame(ByteView bytes) {
  return HasMagic(bytes, kZstdMagic);
}

bool IsSkippableFrame(ByteView bytes) {
  return HasMagic(bytes, kSkippableMagic, kSkippableMagicMask);
}

absl::StatusOr<std::shared_ptr<const ZstdDictionary>> ZstdDictionary::Parse(
    ByteView contents) {
  std::vector<uint8_t> decoded;
  if (IsZstdFrame(contents)) {
    QUIRE_ASSIGN_OR_RETURN(decoded, DecodeFrame(contents));
    contents = decoded;
  }
  if (!HasMagic(contents, kDictionaryMagic)) {
    return absl::DataLossError(absl::StrCat(
        "its dictionary frame must hold a zstd dictionary, plain or in a zstd ",
        "frame; found ", QuotedText(AsText(contents), kShownMagicSizeBytes)));
  }
  ZSTD_DDict* const dictionary =
      ZSTD_createDDict(contents.data(), contents.size());
  if (dictionary == nullptr) {
    return absl::DataLossError("its zstd dictionary is damaged");
  }
  return std::shared_ptr<const ZstdDictionary>(new ZstdDictionary(dictionary));
}

absl::StatusOr<std::shared_ptr<const ZstdDictionary>> ReadZstdDictionary(
    ByteStream& stream, const std::string& name) {
  std::array<uint8_t, kFrameHeaderSizeBytes> header = {};
  QUIRE_ASSIGN_OR_RETURN(const size_t header_size, ReadFully(stream, header));
  if (!HasMagic(ByteView(header).first(header_size), kDictionaryFrameMagic)) {
    return nullptr;
  }
  const auto failure = [&name](absl::string_view message) {
    return absl::DataLossError(absl::StrCat(name, ": ", message));
  };
  const auto size_bytes =
      LoadLittleEndian<uint32_t>(header.data() + kZstdMagicSizeBytes);
  if (header_size == header.size() &&
      size_bytes > kZstdDictionarySizeBytesMax) {
    return failure(TooLarge(size_bytes).message());
  }
  std::vector<uint8_t> contents(size_bytes);
  QUIRE_ASSIGN_OR_RETURN(const size_t got, ReadFully(stream, contents));
  if (header_size < header.size() || got < contents.size()) {
    return failure("the file ends inside its dictionary (is it truncated?)");
  }
  absl::StatusOr<std::shared_ptr<const ZstdDictionary>> dictionary =
      ZstdDictionary::Parse(contents);
  if (!dictionary.ok()) {
    return absl::Status(
        dictionary.status().code(),
        absl::StrCat(name, ": ", dictionary.status().message()));
  }
  return dictionary;
}

}  // namespace quire
