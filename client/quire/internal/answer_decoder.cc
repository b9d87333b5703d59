// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/answer_decoder.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"

#include "client/quire/client_status.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {
namespace {

// No string on the wire is longer, and a cut leaves at least a byte of it.
constexpr uint32_t kFsstCutSizeBytesMax = kFsstStringSizeMax - 1;
constexpr uint64_t kFsstSymbolSizeBytesMax = 8;

absl::Status BadDetails(absl::string_view encoding, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the server sent an answer in ", encoding, " ", what));
}

// Checks of stored blocks that precede decoding. Afterwards the sizes of all
// blocks add up to those of data and range.
absl::Status CheckStoredDetails(const SentBytes& sent) {
  const v1::EncodingDetails& details = *sent.details;
  uint64_t stored_size_bytes = 0;
  uint64_t size_bytes = 0;
  for (const v1::StoredBlock& block : details.blocks()) {
    if (block.size_bytes() == 0 || block.size_bytes() > kBlockSizeBytesMax) {
      return BadDetails("stored", absl::StrCat("with a block of ",
                                               block.size_bytes(), " bytes"));
    }
    if (block.is_uncoded() && block.stored_size_bytes() != block.size_bytes()) {
      return BadDetails(
          "stored",
          absl::StrCat("with an uncoded block of ", block.size_bytes(),
                       " bytes that takes ", block.stored_size_bytes()));
    }
    if (block.is_uncoded() && block.has_recipe()) {
      return BadDetails("stored", "with an uncoded block that has a recipe");
    }
    stored_size_bytes += block.stored_size_bytes();
    size_bytes += block.size_bytes();
  }
  if (stored_size_bytes != sent.data.size()) {
    return BadDetails(
        "stored", absl::StrCat("of ", sent.data.size(),
                               " bytes with blocks of ", stored_size_bytes));
  }
  const uint64_t front = details.front_cut_size_bytes();
  const uint64_t back = details.back_cut_size_bytes();
  // Checked first, so that the sum cannot overflow.
  if (sent.size_bytes > size_bytes ||
      size_bytes != front + sent.size_bytes + back) {
    return BadDetails(
        "stored",
        absl::StrCat("whose blocks have ", size_bytes, " bytes, not cuts of ",
                     front, " and ", back, " around ", sent.size_bytes));
  }
  if (details.blocks().empty()) {
    return absl::OkStatus();
  }
  if (front >= details.blocks(0).size_bytes() ||
      back >= details.blocks(details.blocks_size() - 1).size_bytes()) {
    return BadDetails("stored", absl::StrCat("that cuts off ", front, " and ",
                                             back, " bytes, a block or more"));
  }
  return absl::OkStatus();
}

std::optional<AnswerEncoding> FromProto(v1::WireEncoding encoding) {
  switch (encoding) {
    case v1::WIRE_ENCODING_IDENTITY:
      return AnswerEncoding::kIdentity;
    case v1::WIRE_ENCODING_FSST:
      return AnswerEncoding::kFsst;
    case v1::WIRE_ENCODING_STORED:
      return AnswerEncoding::kStored;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<DecodedAnswer> AnswerDecoder::Decode(const SentBytes& sent,
                                                    AnswerEncoding asked,
                                                    uint64_t size_bytes_max,
                                                    std::string& buffer) const {
  const std::optional<AnswerEncoding> encoding = FromProto(sent.encoding);
  if (!encoding.has_value() ||
      (*encoding != AnswerEncoding::kIdentity && *encoding != asked)) {
    return absl::InternalError(absl::StrCat("the server sent wire encoding ",
                                            static_cast<int>(sent.encoding),
                                            ", which was not asked for"));
  }
  if (Checksum64(AsBytes(sent.data)) != sent.checksum) {
    return absl::DataLossError("received bytes do not match their checksum");
  }
  DecodedAnswer answer{.encoding = *encoding, .text = sent.data};
  if (*encoding == AnswerEncoding::kIdentity) {
    if (sent.data.size() != sent.size_bytes) {
      return absl::InternalError(
          absl::StrCat("the server sent ", sent.data.size(), " bytes, named ",
                       sent.size_bytes, " bytes"));
    }
    return answer;
  }
  if (sent.size_bytes == 0) {
    answer.text = {buffer.data(), 0};
    return answer;
  }
  if (sent.details == nullptr) {
    return BadDetails(AnswerEncodingName(*encoding), "without its details");
  }
  if (sent.size_bytes > size_bytes_max) {
    return BadDetails(AnswerEncodingName(*encoding),
                      absl::StrCat("for ", sent.size_bytes,
                                   " bytes, over its limit or this "
                                   "client's message_size_bytes_max, ",
                                   size_bytes_max));
  }
  const auto start = std::chrono::steady_clock::now();
  QUIRE_ASSIGN_OR_RETURN(answer.text, *encoding == AnswerEncoding::kFsst
                                          ? DecodeFsst(sent, buffer)
                                          : DecodeStored(sent, buffer));
  answer.decode_ns = static_cast<uint64_t>(
      (std::chrono::steady_clock::now() - start) / std::chrono::nanoseconds(1));
  return answer;
}

absl::StatusOr<absl::string_view> AnswerDecoder::DecodeFsst(
    const SentBytes& sent, std::string& buffer) const {
  const v1::EncodingDetails& details = *sent.details;
  const uint64_t front = details.front_cut_size_bytes();
  const uint64_t back = details.back_cut_size_bytes();
  if (front > kFsstCutSizeBytesMax || back > kFsstCutSizeBytesMax) {
    return BadDetails(
        "fsst", absl::StrCat("that cuts off ", front, " and ", back, " bytes"));
  }
  const uint64_t size_bytes = front + sent.size_bytes + back;
  const uint64_t size_bytes_max = sent.data.size() * kFsstSymbolSizeBytesMax;
  // Checked first, as the sum may have overflowed.
  if (sent.size_bytes > size_bytes_max || size_bytes > size_bytes_max) {
    return BadDetails("fsst",
                      absl::StrCat("of ", sent.data.size(), " bytes for ",
                                   sent.size_bytes, ", more than it can hold"));
  }
  if (!details.has_table_hash()) {
    return BadDetails("fsst", "without the hash of its symbol table");
  }
  QUIRE_ASSIGN_OR_RETURN(
      const auto decoder,
      tables_->GetFsstDecoder(sent.archive, details.table_hash()));
  if (buffer.size() < size_bytes) {
    buffer.resize(size_bytes);
  }
  const MutableByteView out = AsMutableBytes(buffer).first(size_bytes);
  const absl::Status decoded = decoder->DecodeExactly(AsBytes(sent.data), out);
  if (!decoded.ok()) {
    return BadDetails(
        "fsst", absl::StrCat("that does not decode: ", decoded.message()));
  }
  return AsText(out.subspan(front, sent.size_bytes));
}

absl::StatusOr<absl::string_view> AnswerDecoder::DecodeStored(
    const SentBytes& sent, std::string& buffer) const {
  const v1::EncodingDetails& details = *sent.details;
  QUIRE_RETURN_IF_ERROR(CheckStoredDetails(sent));
  const CodecInfo* info = FindCodec(details.codec());
  if (info == nullptr) {
    return BadDetails("stored", "of a codec that this client does not have");
  }
  const uint32_t partition_size = details.partition_size_bytes();
  if (partition_size != 0 && !IsPartitionSize(partition_size)) {
    return BadDetails("stored", absl::StrCat("with partitions of ",
                                             partition_size, " bytes"));
  }
  const auto hash_if = [](bool set, uint64_t hash) {
    return set ? std::optional<uint64_t>(hash) : std::nullopt;
  };
  QUIRE_ASSIGN_OR_RETURN(
      const auto codec,
      tables_->GetStoredCodec(
          sent.archive, *info, partition_size,
          hash_if(details.has_table_hash(), details.table_hash()),
          hash_if(details.has_symbol_table_hash() && info->id == CodecId::kFsst,
                  details.symbol_table_hash())));
  if (buffer.size() < sent.size_bytes) {
    buffer.resize(sent.size_bytes);
  }
  const MutableByteView out = AsMutableBytes(buffer).first(sent.size_bytes);
  ByteView stored = AsBytes(sent.data);
  size_t done = 0;
  size_t front = details.front_cut_size_bytes();
  for (const v1::StoredBlock& block : details.blocks()) {
    const ByteView coded = stored.first(block.stored_size_bytes());
    stored = stored.subspan(coded.size());
    const MutableByteView part = out.subspan(
        done, std::min<size_t>(block.size_bytes() - front, out.size() - done));
    const absl::Status decoded =
        codec->DecodeRange({.bytes = coded,
                            .is_raw = block.is_uncoded(),
                            .has_recipe = block.has_recipe()},
                           block.size_bytes(), front, part);
    if (!decoded.ok()) {
      return BadDetails(
          "stored", absl::StrCat("that does not decode: ", decoded.message()));
    }
    done += part.size();
    front = 0;
  }
  return AsText(out);
}

bool IsTableGone(const absl::Status& status) {
  const std::string reason = ErrorReasonOf(status);
  return reason == v1::ErrorReason_Name(v1::SYMBOL_TABLE_NOT_FOUND) ||
         reason == v1::ErrorReason_Name(v1::DICTIONARY_NOT_FOUND) ||
         status.GetPayload(kTableWithheldPayloadUrl).has_value();
}

}  // namespace quire
