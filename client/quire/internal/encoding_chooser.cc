// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/encoding_chooser.h"

#include <algorithm>

#include "codecs/block_codec.h"

namespace quire {
namespace {

// Weight of a window when the next one has come.
constexpr double kFading = 0.85;
// Fewer windows do not separate the time of answers from that of bytes.
constexpr uint64_t kWindowsMin = 4;
// Shorter answers gain nothing: their cost is that of the call.
constexpr double kSizeBytesMin = 1024;
// An encoding is left only for one predicted to take at most this share of its
// time.
constexpr double kGain = 0.9;
// Bytes that protobuf and HTTP/2 add to an answer.
constexpr double kOverheadSizeBytes = 150;
// Lower bound on the time of an answer that no encoding changes.
constexpr double kAnswerNsMin = 10'000;
// Decoding overlaps the transfer: lower bound on the link's share of a window.
constexpr double kLinkShareMin = 0.5;

// Estimates for FSST. Text of a server that shares its cores with much else is
// encoded at 300 MB/s.
constexpr double kFsstRate = 0.5;
constexpr double kFsstEncodeByteNs = 3.5;
constexpr double kFsstDecodeByteNs = 0.5;

constexpr AnswerEncoding kAll[] = {
    AnswerEncoding::kIdentity, AnswerEncoding::kFsst, AnswerEncoding::kStored};

double Count(uint64_t value) {
  return static_cast<double>(value);
}

// Estimated time to decode a byte of a stored block: twice the rounded time for
// blocks of 64 KiB of a web crawl.
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
    // Mostly rlz; the share of xz and of members to be compressed is unknown.
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

void EncodingChooser::LinkFit::Add(double answers, double bytes,
                                   double time_ns) {
  aa = kFading * aa + answers * answers;
  ab = kFading * ab + answers * bytes;
  bb = kFading * bb + bytes * bytes;
  at = kFading * at + answers * time_ns;
  bt = kFading * bt + bytes * time_ns;
}

WireLink EncodingChooser::LinkFit::Solve() const {
  WireLink link{.answer_ns = kAnswerNsMin};
  const double determinant = aa * bb - ab * ab;
  // Windows of equal mean size do not separate the two.
  if (determinant > 1e-3 * aa * bb) {
    link.answer_ns = std::max(kAnswerNsMin, (at * bb - bt * ab) / determinant);
  }
  link.byte_ns = std::max(0.0, (bt - link.answer_ns * ab) / bb);
  return link;
}

EncodingChooser::EncodingChooser() {
  State& identity = state(AnswerEncoding::kIdentity);
  identity.prior.is_possible = true;
  identity.is_measured = true;
}

void EncodingChooser::SetPriors(
    const std::array<EncodingPrior, kAnswerEncodingCount>& priors) {
  for (const AnswerEncoding encoding : kAll) {
    if (!state(encoding).is_measured) {
      state(encoding).prior = priors[IndexOf(encoding)];
    }
  }
}

double EncodingChooser::PredictedNs(const WireLink& link,
                                    AnswerEncoding encoding) const {
  const EncodingPrior& prior = state(encoding).prior;
  const double coded_per_byte =
      1 + Count(prior.surplus_size_bytes) / mean_size_bytes_;
  // Equation 2 without the terms that do not depend on the encoding.
  return link.answer_ns + kOverheadSizeBytes * link.byte_ns +
         mean_size_bytes_ * coded_per_byte *
             (prior.rate * link.byte_ns + prior.encode_byte_ns +
              prior.decode_byte_ns);
}

void EncodingChooser::Take(const WireWindow& window) {
  const WireTraffic& traffic = window.traffic;
  if (traffic.answer_count == 0 || traffic.decoded_size_bytes == 0) {
    return;
  }
  const double answers = Count(traffic.answer_count);
  const double bytes = Count(traffic.decoded_size_bytes);
  const double size = bytes / answers;
  mean_size_bytes_ = mean_size_bytes_ == 0
                         ? size
                         : kFading * mean_size_bytes_ + (1 - kFading) * size;
  decoded_size_bytes_ += bytes;
  expected_size_bytes_ = std::max(0.0, expected_size_bytes_ - bytes);
  State& measured = state(window.encoding);
  EncodingPrior& prior = measured.prior;
  const double coded_bytes = bytes + answers * Count(prior.surplus_size_bytes);
  if (window.encoding != AnswerEncoding::kIdentity) {
    prior.rate = Count(traffic.wire_size_bytes) / coded_bytes;
    prior.decode_byte_ns = Count(traffic.decode_ns) / coded_bytes;
    prior.fetch_size_bytes = 0;
    measured.is_measured = true;
  }
  const double coding_ns =
      coded_bytes * (prior.encode_byte_ns + prior.decode_byte_ns);
  const double busy_ns = Count(window.busy_ns);
  link_.Add(answers,
            Count(traffic.wire_size_bytes) + answers * kOverheadSizeBytes,
            std::max(busy_ns - coding_ns, kLinkShareMin * busy_ns));
  if (++window_count_ >= kWindowsMin) {
    Choose();
  }
}

bool EncodingChooser::IsWorthFetching(const WireLink& link,
                                      AnswerEncoding encoding,
                                      double saved_ns) const {
  const double to_come = std::max(decoded_size_bytes_, expected_size_bytes_);
  return Count(state(encoding).prior.fetch_size_bytes) * link.byte_ns <=
         to_come / mean_size_bytes_ * saved_ns;
}

void EncodingChooser::Choose() {
  if (mean_size_bytes_ < kSizeBytesMin) {
    best_ = AnswerEncoding::kIdentity;
    return;
  }
  const WireLink link = link_.Solve();
  const double current_ns = PredictedNs(link, best_);
  double least_ns = kGain * current_ns;
  for (const AnswerEncoding encoding : kAll) {
    const double predicted_ns = PredictedNs(link, encoding);
    if (state(encoding).prior.is_possible && predicted_ns < least_ns &&
        IsWorthFetching(link, encoding, current_ns - predicted_ns)) {
      best_ = encoding;
      least_ns = predicted_ns;
    }
  }
}

void EncodingChooser::Exclude(AnswerEncoding encoding) {
  if (encoding == AnswerEncoding::kIdentity) {
    return;
  }
  // Later priors do not make it possible again.
  state(encoding) = {.prior = {}, .is_measured = true};
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
  const CodecInfo* const codec = FindCodec(archive.codec());
  std::array<EncodingPrior, kAnswerEncodingCount> priors;
  EncodingPrior& fsst = priors[IndexOf(AnswerEncoding::kFsst)];
  fsst.is_possible = archive.has_symbol_table_hash();
  fsst.rate = kFsstRate;
  // Blocks that are stored in codes are sent without coding.
  fsst.encode_byte_ns =
      codec != nullptr && codec->id == CodecId::kFsst ? 0 : kFsstEncodeByteNs;
  fsst.decode_byte_ns = kFsstDecodeByteNs;
  const uint64_t to_fetch = archive.has_dictionary_hash() && !holds_dictionary
                                ? archive.dictionary_size_bytes()
                                : 0;
  EncodingPrior& stored = priors[IndexOf(AnswerEncoding::kStored)];
  stored.is_possible = codec != nullptr && archive.size_bytes() > 0 &&
                       to_fetch <= dictionary_size_bytes_max;
  stored.rate = Count(archive.stored_size_bytes()) /
                std::max(Count(archive.size_bytes()), 1.0);
  stored.decode_byte_ns = codec != nullptr ? StoredDecodeByteNs(codec->id) : 0;
  stored.surplus_size_bytes = archive.block_size_bytes();
  stored.fetch_size_bytes = to_fetch;
  return priors;
}

}  // namespace quire
