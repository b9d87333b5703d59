// SPDX-License-Identifier: Apache-2.0
//
// The rule of EncodingChoice::kAuto: the encoding in which answers of one
// archive should come over one connection. Internal to the client library.
//
// Traffic is divided into windows, in each of which all calls ask for the same
// encoding. The windows give the link's time for an answer and for a byte on
// the wire, by least squares. Equation 2 of "Data Compression for Climate Data"
// then predicts the time of an answer in each encoding from its compression
// rate and coding speed. The encoding changes where the prediction is at least
// a tenth better; nothing is tried out, and short answers stay in identity.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_ENCODING_CHOOSER_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_ENCODING_CHOOSER_H_

#include <array>
#include <cstdint>

#include "client/quire/wire_encoding.h"

namespace quire {

// Traffic while all answers were requested in `encoding`.
struct WireWindow {
  AnswerEncoding encoding = AnswerEncoding::kIdentity;
  // Time during which any call waited for an answer or for its decoding.
  uint64_t busy_ns = 0;
  WireTraffic traffic = {};
};

// Properties of an encoding: estimates until answers in it are measured.
struct EncodingPrior {
  // True if server, archive and client support it.
  bool is_possible = false;
  // Bytes on the wire per coded byte of text.
  double rate = 1;
  // Time per coded byte of text, at the server and at the client.
  double encode_byte_ns = 0;
  double decode_byte_ns = 0;
  // Text that is coded with each answer in addition to its own: for stored
  // answers the rest of the blocks at its ends.
  uint64_t surplus_size_bytes = 0;
  // Size of the dictionary if it must be fetched first.
  uint64_t fetch_size_bytes = 0;
};

// Cost of a connection in any encoding.
struct WireLink {
  // Time for an answer of no bytes: round trip and work for a call.
  double answer_ns = 0;
  // Time for a byte on the wire: 1e9 / throughput.
  double byte_ns = 0;
};

// Deterministic: a function of the calls before, without clock or randomness.
// Thread-compatible.
class EncodingChooser {
 public:
  // Only identity is possible.
  EncodingChooser();

  // Properties by IndexOf(AnswerEncoding). Those of identity, and measured
  // rates and speeds, are not replaced.
  void SetPriors(const std::array<EncodingPrior, kAnswerEncodingCount>& priors);

  // The encoding for the next window; identity before anything was measured.
  AnswerEncoding best() const { return best_; }

  // Takes a window that has ended, in any encoding.
  void Take(const WireWindow& window);

  // Never chooses `encoding` again: the server answers in another one. Identity
  // is always possible.
  void Exclude(AnswerEncoding encoding);

  // Announces that at least this much text will be read. Without it the chooser
  // expects as much as was read already: then a dictionary is fetched late, and
  // at most about twice too early.
  void Expect(uint64_t decoded_size_bytes);

 private:
  struct State {
    EncodingPrior prior;
    bool is_measured = false;
  };

  // Least squares of time = answers * answer_ns + bytes * byte_ns over the last
  // windows; older ones fade.
  struct LinkFit {
    void Add(double answers, double bytes, double time_ns);
    WireLink Solve() const;

    double aa = 0, ab = 0, bb = 0, at = 0, bt = 0;
  };

  State& state(AnswerEncoding encoding) { return states_[IndexOf(encoding)]; }

  const State& state(AnswerEncoding encoding) const {
    return states_[IndexOf(encoding)];
  }

  // For an answer of the mean size.
  double PredictedNs(const WireLink& link, AnswerEncoding encoding) const;
  bool IsWorthFetching(const WireLink& link, AnswerEncoding encoding,
                       double saved_ns) const;
  void Choose();

  std::array<State, kAnswerEncodingCount> states_;
  AnswerEncoding best_ = AnswerEncoding::kIdentity;
  LinkFit link_;
  uint64_t window_count_ = 0;
  double mean_size_bytes_ = 0;
  double decoded_size_bytes_ = 0;
  double expected_size_bytes_ = 0;
};

// Priors of an archive for a client. `holds_dictionary`: the client need not
// fetch it. `dictionary_size_bytes_max`: larger dictionaries are not fetched.
std::array<EncodingPrior, kAnswerEncodingCount> PriorsOf(
    const v1::ArchiveDescription& archive, bool holds_dictionary,
    uint64_t dictionary_size_bytes_max);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_ENCODING_CHOOSER_H_
