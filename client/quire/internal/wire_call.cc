// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/wire_call.h"

#include <charconv>
#include <chrono>

#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"

namespace quire {
namespace {

constexpr size_t kMetersMax = 1000;

int64_t NowNs() {
  return std::chrono::steady_clock::now().time_since_epoch() /
         std::chrono::nanoseconds(1);
}

uint64_t ParseHash(const std::string& hash) {
  uint64_t value = 0;
  std::from_chars(hash.data(), hash.data() + hash.size(), value, 16);
  return value;
}

}  // namespace

std::shared_ptr<WireMeter> WireState::MeterOf(absl::string_view archive) {
  MutexLock lock(&mutex_);
  const std::string name(archive);
  if (const auto found = meters_.find(name); found != meters_.end()) {
    return found->second;
  }
  if (meters_.size() == kMetersMax) {
    return nullptr;
  }
  return meters_[name] = std::make_shared<WireMeter>();
}

void WireState::SetPriors(WireMeter& meter,
                          const v1::ArchiveDescription& archive) const {
  const CodecInfo* info = FindCodec(archive.codec());
  const bool holds =
      info != nullptr && archive.has_dictionary_hash() &&
      tables_.HoldsDictionary(*info, ParseHash(archive.dictionary_hash()));
  meter.SetPriors(PriorsOf(archive, holds, options_.dictionary_size_bytes_max));
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

WireCall::WireCall(WireState* state, absl::string_view archive,
                   EncodingChoice choice, uint64_t message_size_bytes_max,
                   Describe describe)
    : state_(state),
      archive_(archive),
      answer_size_bytes_max_(message_size_bytes_max) {
  switch (choice) {
    case EncodingChoice::kIdentity:
      return;
    case EncodingChoice::kFsst:
      call_.asked = AnswerEncoding::kFsst;
      return;
    case EncodingChoice::kStored:
      call_.asked = AnswerEncoding::kStored;
      return;
    case EncodingChoice::kAuto:
      break;
  }
  meter_ = state_->MeterOf(archive);
  if (meter_ == nullptr) {
    return;
  }
  if (meter_->TakePriorsWanted()) {
    // If it is not available, the call itself reports why.
    const absl::StatusOr<v1::ArchiveDescription> description = describe();
    if (description.ok()) {
      state_->SetPriors(*meter_, *description);
    }
  }
  call_ = meter_->Begin(NowNs());
}

WireCall::~WireCall() {
  Pause();
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
  if (meter_ != nullptr) {
    meter_->Answer(call_, answer.encoding, traffic, NowNs());
  }
  return answer;
}

void WireCall::FallBack() {
  Pause();
  meter_.reset();
  call_ = {};
}

void WireCall::Renew() {
  if (meter_ != nullptr) {
    Pause();
    call_ = meter_->Begin(NowNs());
    is_paused_ = false;
  }
}

bool WireCall::wants_another() const {
  return meter_ != nullptr && meter_->next() != asked();
}

void WireCall::Expect(const v1::ArchiveDescription& archive,
                      uint64_t decoded_size_bytes) {
  if (meter_ != nullptr) {
    state_->SetPriors(*meter_, archive);
    meter_->Expect(decoded_size_bytes);
  }
}

void WireCall::Pause() {
  if (meter_ != nullptr && !is_paused_) {
    meter_->Pause(NowNs());
    is_paused_ = true;
  }
}

void WireCall::Resume() {
  if (meter_ != nullptr && is_paused_) {
    meter_->Resume(NowNs());
    is_paused_ = false;
  }
}

}  // namespace quire
