// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/wire_meter.h"

namespace quire {

void WireMeter::PassTime(int64_t now_ns) {
  if (waiting_count_ > 0 && is_running_ && now_ns > last_ns_) {
    window_.busy_ns += static_cast<uint64_t>(now_ns - last_ns_);
  }
  last_ns_ = now_ns;
}

WireMeter::Call WireMeter::Begin(int64_t now_ns) {
  MutexLock lock(&mutex_);
  PassTime(now_ns);
  ++waiting_count_;
  return {window_.encoding, epoch_};
}

void WireMeter::Pause(int64_t now_ns) {
  MutexLock lock(&mutex_);
  PassTime(now_ns);
  --waiting_count_;
}

void WireMeter::Resume(int64_t now_ns) {
  MutexLock lock(&mutex_);
  PassTime(now_ns);
  ++waiting_count_;
}

void WireMeter::Answer(const Call& call, AnswerEncoding got,
                       const WireTraffic& traffic, int64_t now_ns) {
  MutexLock lock(&mutex_);
  PassTime(now_ns);
  if (call.epoch != epoch_) {
    return;
  }
  has_what_was_asked_ = has_what_was_asked_ || got == call.asked;
  if (!is_running_) {
    is_running_ = true;
    return;
  }
  WireTraffic& sum = window_.traffic;
  sum.answer_count += traffic.answer_count;
  sum.wire_size_bytes += traffic.wire_size_bytes;
  sum.decoded_size_bytes += traffic.decoded_size_bytes;
  sum.decode_ns += traffic.decode_ns;
  if (window_.busy_ns >= kWindowBusyNs &&
      (sum.answer_count >= kWindowAnswers ||
       sum.decoded_size_bytes >= kWindowSizeBytes)) {
    EndWindow();
  }
}

void WireMeter::EndWindow() {
  if (has_what_was_asked_) {
    chooser_.Take(window_);
  } else {
    chooser_.Exclude(window_.encoding);
  }
  priors_wanted_ = !has_priors_;
  const AnswerEncoding next = chooser_.best();
  if (next != window_.encoding) {
    ++epoch_;
    is_running_ = false;
    has_what_was_asked_ = false;
  }
  window_ = {.encoding = next};
}

AnswerEncoding WireMeter::next() const {
  MutexLock lock(&mutex_);
  return window_.encoding;
}

bool WireMeter::TakePriorsWanted() {
  MutexLock lock(&mutex_);
  const bool wanted = priors_wanted_ && !has_priors_;
  // Only the caller that got true does it.
  has_priors_ = has_priors_ || wanted;
  return wanted;
}

void WireMeter::SetPriors(
    const std::array<EncodingPrior, kAnswerEncodingCount>& priors) {
  MutexLock lock(&mutex_);
  has_priors_ = true;
  chooser_.SetPriors(priors);
}

void WireMeter::Expect(uint64_t decoded_size_bytes) {
  MutexLock lock(&mutex_);
  chooser_.Expect(decoded_size_bytes);
}

}  // namespace quire
