// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/resume_parameters.h"

#include <array>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"
#include "codecs/base/printable_text.h"
#include "codecs/block_codec.h"

namespace quire {

std::string EncodingParameters(const BuildOptions& options) {
  const CodecSpec& codec = options.archive.codec;
  const CodecInfo* const info = FindCodec(codec.id);
  std::string lines = absl::StrCat(
      "objective ", ObjectiveName(options.objective), "\ncodec ",
      FormatCodecSpec(codec), "\nblock size ",
      FormatByteSizeExact(options.archive.block_size_bytes), "\nsegment size ",
      FormatByteSizeExact(options.segment_size_bytes), "\nreorder ",
      ReorderModeName(options.reorder), "\ninflate ",
      options.inflate ? "auto" : "off", "\nsymbol table ",
      options.symbol_table ? "yes" : "no", "\n");
  if (options.reorder != ReorderMode::kOff) {
    // Depends on the drive.
    absl::StrAppend(&lines, "seek cost ",
                    FormatByteSizeExact(options.seek_cost_bytes), "\n");
  }
  if (options.inflate) {
    absl::StrAppend(&lines, "inflate member size ",
                    FormatByteSizeExact(options.inflate_member_size_bytes_max),
                    "\n");
  }
  absl::StrAppend(&lines, "partition size ",
                  FormatByteSizeExact(codec.partition_size_bytes), "\n");
  if (info != nullptr && info->needs_dictionary) {
    absl::StrAppend(&lines, "dictionary size ",
                    options.dictionary_size_bytes.has_value()
                        ? FormatByteSizeExact(*options.dictionary_size_bytes)
                        : "auto",
                    "\ndictionary method ",
                    options.dictionary_method == DictionaryMethod::kUniform
                        ? "uniform"
                        : "coverage",
                    "\n");
  }
  return lines;
}

void SourceDigest::Add(const SourceDocument& document, uint64_t size_bytes,
                       uint64_t checksum) {
  ++document_count_;
  size_bytes_ += size_bytes;
  AddText(document.id);
  AddText(document.record_type);
  AddText(document.media_type);
  AddNumber(static_cast<int64_t>(size_bytes));
  AddNumber(static_cast<int64_t>(checksum));
  AddNumber(document.capture_time_ms.value_or(-1));
}

std::string SourceDigest::Line() const {
  return absl::StrCat("input ", QuotedText(name_), " of ", document_count_,
                      " documents, ", size_bytes_, " bytes, digest ",
                      FormatChecksum(checksum_.Get()), "\n");
}

void SourceDigest::AddNumber(int64_t number) {
  std::array<uint8_t, sizeof(number)> bytes = {};
  StoreLittleEndian(static_cast<uint64_t>(number), bytes.data());
  checksum_.Add(bytes);
}

void SourceDigest::AddText(const std::string& text) {
  AddNumber(static_cast<int64_t>(text.size()));
  checksum_.Add(AsBytes(text));
}

}  // namespace quire
