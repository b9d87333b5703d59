// SPDX-License-Identifier: Apache-2.0
//
// Uses Quire's own decoder, and libzstd for the rest. Block-by-block
// decompression and dictionaries by reference are in the experimental section
// of libzstd's header, hence the static library.
#define ZSTD_STATIC_LINKING_ONLY
#include "codecs/zstd/zstd_frame.h"

#include <zstd.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/zstd/decoder/sequence_copy.h"
#include "codecs/zstd/decoder/zstd_decoder.h"

namespace quire {
namespace {

struct FreeZstd {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }

  void operator()(ZSTD_DDict* dictionary) const { ZSTD_freeDDict(dictionary); }
};

absl::Status WrongSize(size_t found, size_t expected) {
  return absl::DataLossError(absl::StrCat("decodes to ", found, " bytes where ",
                                          expected, " were expected"));
}

// Reject what libzstd accepts beyond one frame: several frames, skippable
// frames and formats before zstd 1.0.
absl::Status CheckFrame(ByteView stored) {
  if (stored.size() < sizeof(uint32_t) ||
      LoadLittleEndian<uint32_t>(stored.data()) != ZSTD_MAGICNUMBER) {
    return absl::DataLossError("not a zstd frame");
  }
  const size_t size =
      ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(size)) {
    return absl::DataLossError(ZSTD_getErrorName(size));
  }
  if (size != stored.size()) {
    return absl::DataLossError(
        absl::StrCat("its zstd frame ends after ", size));
  }
  return absl::OkStatus();
}

}  // namespace

class ZstdFrameReader::Library {
 public:
  Library() : context_(ZSTD_createDCtx()) {
    // It fails only without memory.
    QUIRE_CHECK(context_ != nullptr);
  }

  absl::Status Decode(ByteView stored, ByteView dictionary,
                      MutableByteView raw) {
    QUIRE_RETURN_IF_ERROR(CheckFrame(stored));
    Use(dictionary);
    const size_t size = ZSTD_decompress_usingDDict(
        context_.get(), raw.data(), raw.size(), stored.data(), stored.size(),
        dictionary_.get());
    if (ZSTD_isError(size)) {
      return absl::DataLossError(ZSTD_getErrorName(size));
    }
    return size == raw.size() ? absl::OkStatus() : WrongSize(size, raw.size());
  }

  // Decodes inner blocks until `text` has its first `end` bytes.
  absl::Status DecodeUpTo(size_t end, ByteView stored, ByteView dictionary,
                          MutableByteView text) {
    QUIRE_RETURN_IF_ERROR(CheckFrame(stored));
    Use(dictionary);
    ZSTD_decompressBegin_usingDDict(context_.get(), dictionary_.get());
    size_t done = 0;
    while (done < end) {
      const size_t take = ZSTD_nextSrcSizeToDecompress(context_.get());
      if (take == 0) {
        return WrongSize(done, text.size());
      }
      if (take > stored.size()) {
        return absl::DataLossError("its zstd frame is cut short");
      }
      const size_t size =
          ZSTD_decompressContinue(context_.get(), text.data() + done,
                                  text.size() - done, stored.data(), take);
      if (ZSTD_isError(size)) {
        return absl::DataLossError(ZSTD_getErrorName(size));
      }
      done += size;
      stored = stored.subspan(take);
    }
    return absl::OkStatus();
  }

 private:
  void Use(ByteView dictionary) {
    if (dictionary.data() == content_.data() &&
        dictionary.size() == content_.size()) {
      return;
    }
    dictionary_.reset();
    content_ = {};
    if (!dictionary.empty()) {
      dictionary_.reset(ZSTD_createDDict_advanced(
          dictionary.data(), dictionary.size(), ZSTD_dlm_byRef,
          ZSTD_dct_rawContent, ZSTD_customMem{}));
      QUIRE_CHECK(dictionary_ != nullptr);
      content_ = dictionary;
    }
  }

  std::unique_ptr<ZSTD_DCtx, FreeZstd> context_;
  // Null without a dictionary. Refers to the content.
  std::unique_ptr<ZSTD_DDict, FreeZstd> dictionary_;
  ByteView content_;
};

ZstdFrameReader::ZstdFrameReader()
    : decoder_(std::make_unique<ZstdDecoder>()) {}

ZstdFrameReader::~ZstdFrameReader() = default;

absl::Status ZstdFrameReader::Decode(ByteView stored, ByteView dictionary,
                                     MutableByteView raw) {
  if (decoder_->Decode(stored, dictionary, raw.size(), raw.size(), raw)) {
    return absl::OkStatus();
  }
  return GetLibrary().Decode(stored, dictionary, raw);
}

absl::Status ZstdFrameReader::DecodeRange(ByteView stored, ByteView dictionary,
                                          size_t raw_size, size_t offset,
                                          MutableByteView out) {
  QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
  if (out.size() == raw_size) {
    return Decode(stored, dictionary, out);
  }
  const size_t end = offset + out.size();
  const MutableByteView text = TextBuffer(raw_size + kCopyExcess);
  if (!decoder_->Decode(stored, dictionary, raw_size, end, text)) {
    Library& library = GetLibrary();
    const MutableByteView whole = text.first(raw_size);
    QUIRE_RETURN_IF_ERROR(
        end == raw_size ? library.Decode(stored, dictionary, whole)
                        : library.DecodeUpTo(end, stored, dictionary, whole));
  }
  std::ranges::copy(text.subspan(offset, out.size()), out.begin());
  return absl::OkStatus();
}

ZstdFrameReader::Library& ZstdFrameReader::GetLibrary() {
  if (library_ == nullptr) {
    library_ = std::make_unique<Library>();
  }
  return *library_;
}

MutableByteView ZstdFrameReader::TextBuffer(size_t size_bytes) {
  if (size_bytes > text_size_bytes_) {
    text_ = std::make_unique_for_overwrite<uint8_t[]>(size_bytes);
    text_size_bytes_ = size_bytes;
  }
  return {text_.get(), size_bytes};
}

}  // namespace quire
