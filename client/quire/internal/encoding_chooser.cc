// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/encoding_chooser.h"

#include <algorithm>

#include "codecs/block_codec.h"

namespace quire {
namespace {

// What a window counts for when the next one of its encoding has come.
constexpr double kFading = 0.75;
constexpr int kTrialWindows = 2;
// A trial must be predicted, and must prove, to take at most this part of
// the time that the best one takes.
constexpr double kPredictedGain = 0.95;
constexpr double kPredictedGainOfLoser = 0.75;
constexpr double kProvenGain = 0.9;
// A link has changed if windows take more or less by this factor.
constexpr double kShift = 1.6;
// Without any reason an encoding is tried again after so many windows, doubling
// up to the most; and only if it is predicted to take at most twice as long.
constexpr uint64_t kPatienceFirst = 64;
constexpr uint64_t kPatienceMost = 1024;
constexpr double kUnreasonable = 2;
// A window with a good prediction behind it need not wait this long.
constexpr uint64_t kTrialDistance = 4;

// A speed that this kind of machine reaches at least, until it is measured.
constexpr double kFsstDecodeByteNs = 0.5;
// Text shrinks to this or less in FSST.
constexpr double kFsstRate = 0.5;

constexpr AnswerEncoding kAll[] = {
    AnswerEncoding::kIdentity, AnswerEncoding::kFsst, AnswerEncoding::kStored};

double Count(uint64_t value) {
  return static_cast<double>(value);
}

// What a decoded byte of a stored block takes, likewise: twice the rounded time
// of blocks of 64 KiB of a web crawl (loadtest/codec_bench.py).
double StoredDecodeByteNs(CodecId codec) {
  switch (codec) {
    case CodecId::kCopy:
      return 0.1;
    case CodecId::kRlzUv:
    case CodecId::kRlzPv:
    case CodecId::kFsst:
      return 0.4;
    case CodecId::kLz4:
      return 0.6;
    case CodecId::kRlz:
      return 0.7;
    case CodecId::kZstd:
      return 1.2;
    case CodecId::kRlzZz:
    case CodecId::kRlzZzz:
      return 1.6;
    case CodecId::kNumeric:
    case CodecId::kZlib:
    case CodecId::kZlibPrimed:
    // Mostly rlz; nobody but the archive's owner knows how much of it is xz, or
    // members to be compressed again.
    case CodecId::kAuto:
      return 2;
    case CodecId::kXz:
      return 20;
    case CodecId::kUnspecified:
      break;
  }
  return 1;
}

}  // namespace

void EncodingChooser::LineFit::Add(double answers, double bytes, double time) {
  aa_ = kFading * aa_ + answers * answers;
  ab_ = kFading * ab_ + answers * bytes;
  bb_ = kFading * bb_ + bytes * bytes;
  at_ = kFading * at_ + answers * time;
  bt_ = kFading * bt_ + bytes * time;
}

EncodingChooser::LineFit::Line EncodingChooser::LineFit::Solve() const {
  const double determinant = aa_ * bb_ - ab_ * ab_;
  // Windows of one and the same mean size do not tell the two apart.
  if (determinant > 1e-3 * aa_ * bb_) {
    const Line line{(at_ * bb_ - bt_ * ab_) / determinant,
                    (bt_ * aa_ - at_ * ab_) / determinant};
    if (line.answer_ns >= 0 && line.byte_ns >= 0) {
      return line;
    }
    if (line.byte_ns < 0) {
      return {at_ / aa_, 0};
    }
  }
  return bb_ > 0 ? Line{0, bt_ / bb_} : Line{aa_ > 0 ? at_ / aa_ : 0, 0};
}

EncodingChooser::EncodingChooser() {
  State& identity = state(AnswerEncoding::kIdentity);
  identity.prior.is_possible = true;
  identity.is_known = true;
}

void EncodingChooser::SetPriors(
    const std::array<EncodingPrior, kAnswerEncodingCount>& priors) {
  for (const AnswerEncoding encoding : kAll) {
    if (!state(encoding).is_known) {
      state(encoding).prior = priors[IndexOf(encoding)];
    }
  }
}

double EncodingChooser::MeasuredNs(AnswerEncoding encoding) const {
  const LineFit::Line line = state(encoding).fit.Solve();
  return line.answer_ns + mean_size_bytes_ * line.byte_ns;
}

WireLink EncodingChooser::Link() const {
  const State& shown = state(best_);
  const LineFit::Line line = shown.fit.Solve();
  const WireRate& rate = shown.prior.rate;
  return {line.answer_ns, std::max(0.0, line.byte_ns - rate.decode_byte_ns) /
                              std::max(rate.rate, 1e-6)};
}

WireRate EncodingChooser::RateOf(const State& state) const {
  const double surplus = 1 + Count(state.prior.surplus_size_bytes) /
                                 std::max(mean_size_bytes_, 1.0);
  return {state.prior.rate.rate * surplus,
          state.prior.rate.decode_byte_ns * surplus};
}

double EncodingChooser::PredictedNs(AnswerEncoding encoding) const {
  const State& guessed = state(encoding);
  return guessed.misprediction *
         AnswerCostNs(Link(), RateOf(guessed), mean_size_bytes_);
}

void EncodingChooser::Take(const WireWindow& window) {
  if (window.traffic.answer_count == 0) {
    return;
  }
  const double answers = Count(window.traffic.answer_count);
  const double bytes = Count(window.traffic.decoded_size_bytes);
  const double size = bytes / answers;
  mean_size_bytes_ = mean_size_bytes_ == 0
                         ? size
                         : kFading * mean_size_bytes_ + (1 - kFading) * size;
  decoded_size_bytes_ += bytes;
  expected_size_bytes_ = std::max(0.0, expected_size_bytes_ - bytes);
  for (const AnswerEncoding encoding : kAll) {
    ++state(encoding).windows_since_trial;
  }
  State& measured = state(window.encoding);
  if (window.encoding != AnswerEncoding::kIdentity && bytes > 0) {
    measured.prior.rate = {Count(window.traffic.wire_size_bytes) / bytes,
                           Count(window.traffic.decode_ns) / bytes};
    measured.is_known = true;
    measured.prior.surplus_size_bytes = 0;
    // Whatever was to be fetched is there.
    measured.prior.fetch_size_bytes = 0;
  }
  if (window.encoding == best_ && HasShifted(window)) {
    StartOver(window);
  } else {
    measured.fit.Add(answers, bytes, Count(window.busy_ns));
  }
  if (trial_.has_value()) {
    if (window.encoding == *trial_ && --trial_windows_left_ == 0) {
      EndTrial();
    }
    return;
  }
  if (!state(best_).fit.empty()) {
    StartTrial();
  }
}

bool EncodingChooser::HasShifted(const WireWindow& window) {
  const LineFit& fit = state(window.encoding).fit;
  if (fit.empty()) {
    return false;
  }
  const LineFit::Line line = fit.Solve();
  const double expected =
      Count(window.traffic.answer_count) * line.answer_ns +
      Count(window.traffic.decoded_size_bytes) * line.byte_ns;
  const double ratio = Count(window.busy_ns) / std::max(expected, 1.0);
  shifted_in_row_ =
      ratio > kShift || ratio < 1 / kShift ? shifted_in_row_ + 1 : 0;
  return shifted_in_row_ == 2;
}

// What was measured under other circumstances says nothing now, but for rates
// and decoding speeds.
void EncodingChooser::StartOver(const WireWindow& window) {
  shifted_in_row_ = 0;
  for (const AnswerEncoding encoding : kAll) {
    State& forgotten = state(encoding);
    forgotten.fit.Forget();
    forgotten.misprediction = 1;
    forgotten.patience = 0;
    forgotten.windows_since_trial = kTrialDistance;
  }
  state(window.encoding)
      .fit.Add(Count(window.traffic.answer_count),
               Count(window.traffic.decoded_size_bytes), Count(window.busy_ns));
}

void EncodingChooser::EndTrial() {
  State& tried = state(*trial_);
  const double measured_ns = MeasuredNs(*trial_);
  const double best_ns = MeasuredNs(best_);
  tried.misprediction = 1;
  tried.misprediction = measured_ns / std::max(PredictedNs(*trial_), 1.0);
  tried.windows_since_trial = 0;
  if (measured_ns < kProvenGain * best_ns) {
    // The one that was best lost its place, and is left alone as a loser is;
    // how wrong a prediction of it would be is known now.
    const AnswerEncoding before = best_;
    best_ = *trial_;
    tried.patience = 0;
    state(before).misprediction = 1;
    state(before).misprediction = best_ns / std::max(PredictedNs(before), 1.0);
    state(before).windows_since_trial = 0;
    state(before).patience = kPatienceFirst;
    shifted_in_row_ = 0;
  } else {
    tried.patience =
        std::clamp(2 * tried.patience, kPatienceFirst, kPatienceMost);
  }
  trial_.reset();
}

bool EncodingChooser::IsWorthFetching(AnswerEncoding encoding,
                                      double saved_ns) const {
  const double fetch_bytes = Count(state(encoding).prior.fetch_size_bytes);
  if (fetch_bytes == 0) {
    return true;
  }
  const double to_come = std::max(decoded_size_bytes_, expected_size_bytes_);
  return fetch_bytes * Link().byte_ns <=
         to_come / std::max(mean_size_bytes_, 1.0) * saved_ns;
}

bool EncodingChooser::IsWorthTrying(AnswerEncoding encoding) const {
  const State& guessed = state(encoding);
  if (encoding == best_ || !guessed.prior.is_possible ||
      guessed.windows_since_trial < kTrialDistance) {
    return false;
  }
  const double best_ns = MeasuredNs(best_);
  const double predicted_ns = PredictedNs(encoding);
  const bool is_time = guessed.windows_since_trial >= guessed.patience;
  if (predicted_ns <
      (is_time ? kPredictedGain : kPredictedGainOfLoser) * best_ns) {
    return IsWorthFetching(encoding, best_ns - predicted_ns);
  }
  // Predictions may be wrong, but a dictionary is not fetched to see that.
  return is_time && guessed.patience != 0 &&
         guessed.prior.fetch_size_bytes == 0 &&
         predicted_ns < kUnreasonable * best_ns;
}

void EncodingChooser::StartTrial() {
  for (const AnswerEncoding encoding : kAll) {
    if (IsWorthTrying(encoding) &&
        (!trial_.has_value() || PredictedNs(encoding) < PredictedNs(*trial_))) {
      trial_ = encoding;
    }
  }
  if (trial_.has_value()) {
    State& tried = state(*trial_);
    tried.fit.Forget();
    trial_windows_left_ = kTrialWindows;
  }
}

void EncodingChooser::Exclude(AnswerEncoding encoding) {
  if (encoding == AnswerEncoding::kIdentity) {
    return;
  }
  state(encoding).prior.is_possible = false;
  if (trial_ == encoding) {
    trial_.reset();
  }
  if (best_ == encoding) {
    best_ = AnswerEncoding::kIdentity;
  }
}

void EncodingChooser::Expect(uint64_t decoded_size_bytes) {
  expected_size_bytes_ =
      std::max(expected_size_bytes_, Count(decoded_size_bytes));
}

std::array<EncodingPrior, kAnswerEncodingCount> PriorsOf(
    const v1::ArchiveDescription& archive, bool holds_dictionary,
    uint64_t dictionary_size_bytes_max) {
  std::array<EncodingPrior, kAnswerEncodingCount> priors;
  priors[IndexOf(AnswerEncoding::kIdentity)].is_possible = true;
  priors[IndexOf(AnswerEncoding::kFsst)] = {
      .is_possible = archive.has_symbol_table_hash(),
      .rate = {kFsstRate, kFsstDecodeByteNs},
      .fetch_size_bytes = 0};
  const uint64_t to_fetch = archive.has_dictionary_hash() && !holds_dictionary
                                ? archive.dictionary_size_bytes()
                                : 0;
  const CodecInfo* const codec =
      FindCodec({archive.codec().data(), archive.codec().size()});
  EncodingPrior& stored = priors[IndexOf(AnswerEncoding::kStored)];
  stored.is_possible = codec != nullptr && archive.size_bytes() > 0 &&
                       to_fetch <= dictionary_size_bytes_max;
  stored.rate = {Count(archive.stored_size_bytes()) /
                     std::max(Count(archive.size_bytes()), 1.0),
                 codec != nullptr ? StoredDecodeByteNs(codec->id) : 0};
  stored.surplus_size_bytes = archive.block_size_bytes();
  stored.fetch_size_bytes = to_fetch;
  return priors;
}

}  // namespace quire
