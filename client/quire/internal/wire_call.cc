// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/wire_call.h"

#include <charconv>

#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"

namespace quire {
namespace {

uint64_t ParseHash(const std::string& hash) {
  uint64_t value = 0;
  std::from_chars(hash.data(), hash.data() + hash.size(), value, 16);
  return value;
}

}  // namespace

bool WireState::IsSmallerStored(const v1::ArchiveDescription& archive,
                                uint64_t size_bytes) const {
  const CodecInfo* const codec = FindCodec(archive.codec());
  if (codec == nullptr || archive.size_bytes() == 0) {
    return false;
  }
  const bool is_here =
      !archive.has_dictionary_hash() ||
      tables_.HoldsDictionary(*codec, ParseHash(archive.dictionary_hash()));
  const uint64_t to_fetch_bytes = is_here ? 0 : archive.dictionary_size_bytes();
  const double rate = static_cast<double>(archive.stored_size_bytes()) /
                      static_cast<double>(archive.size_bytes());
  return to_fetch_bytes <= options_.dictionary_size_bytes_max &&
         static_cast<double>(to_fetch_bytes) +
                 rate * static_cast<double>(size_bytes) <
             static_cast<double>(size_bytes);
}

void WireState::Count(AnswerEncoding encoding, const WireTraffic& traffic) {
  Counters& counters = counters_[IndexOf(encoding)];
  counters.answer_count += traffic.answer_count;
  counters.wire_size_bytes += traffic.wire_size_bytes;
  counters.decoded_size_bytes += traffic.decoded_size_bytes;
  counters.decode_ns += traffic.decode_ns;
}

WireStats WireState::Stats() const {
  WireStats stats;
  for (size_t i = 0; i < kAnswerEncodingCount; ++i) {
    const Counters& counters = counters_[i];
    stats.traffic[i] = {.answer_count = counters.answer_count,
                        .wire_size_bytes = counters.wire_size_bytes,
                        .decoded_size_bytes = counters.decoded_size_bytes,
                        .decode_ns = counters.decode_ns};
  }
  tables_.Describe(stats);
  return stats;
}

absl::StatusOr<DecodedAnswer> WireCall::Decode(const SentBytes& sent,
                                               std::string& buffer) {
  SentBytes routed = sent;
  routed.archive = archive_;
  QUIRE_ASSIGN_OR_RETURN(const DecodedAnswer answer,
                         state_->decoder().Decode(
                             routed, asked(), answer_size_bytes_max_, buffer));
  const WireTraffic traffic{.answer_count = 1,
                            .wire_size_bytes = sent.data.size(),
                            .decoded_size_bytes = sent.size_bytes,
                            .decode_ns = answer.decode_ns};
  state_->Count(answer.encoding, traffic);
  return answer;
}

AnswerEncoding EncodingOf(EncodingChoice choice) {
  switch (choice) {
    case EncodingChoice::kFsst:
      return AnswerEncoding::kFsst;
    case EncodingChoice::kStored:
      return AnswerEncoding::kStored;
    case EncodingChoice::kIdentity:
    case EncodingChoice::kAuto:
      break;
  }
  return AnswerEncoding::kIdentity;
}

}  // namespace quire
