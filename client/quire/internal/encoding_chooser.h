// SPDX-License-Identifier: Apache-2.0
//
// The rule of EncodingChoice::kAuto: which encoding answers of one archive on
// one connection should have. Internal to the client library.
//
// Traffic is cut into windows, in each of which all calls ask for the same
// encoding. Of each window it is known how long it took while anybody waited,
// how many answers came, of how many bytes on the wire and decoded, and what
// decoding them took. Per encoding a line is fitted through its last windows:
//
//   time = answers * a + decoded bytes * b,
//
// so that windows of small and of large answers can be compared; what a window
// takes has everything in it that the encoding can change: transfer, decoding,
// and the server's work. The one that takes least for answers of the present
// size is best.
//
// What it would take in an encoding that has not been tried, or not of late, is
// predicted by equation 3 of "Data Compression for Climate Data" (see
// codecs/choose/wire_cost.h) from the link as the present encoding shows it,
// the rate and decoding speed that were measured before (or a cautious guess),
// and by how much the last prediction was wrong. Only an encoding that is
// predicted to be better is tried, for two windows, and it is kept if it was
// 10 % better. One that lost is left alone until the prediction or the link
// changes by as much, or for a time that doubles with each time it loses.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_ENCODING_CHOOSER_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_ENCODING_CHOOSER_H_

#include <array>
#include <cstdint>
#include <optional>

#include "client/quire/wire_encoding.h"
#include "codecs/choose/wire_cost.h"

namespace quire {

// What was measured while all answers were asked for in `encoding`.
struct WireWindow {
  AnswerEncoding encoding = AnswerEncoding::kIdentity;
  // How long any call waited for an answer, or for its decoding.
  uint64_t busy_ns = 0;
  WireTraffic traffic = {};
};

// What is known of an encoding before it was tried.
struct EncodingPrior {
  // Whether server, archive and client can have it at all.
  bool is_possible = false;
  WireRate rate = {};
  // Decoded bytes that come with an answer besides its own, at the same rate:
  // of stored answers those of the blocks that it cuts.
  uint64_t surplus_size_bytes = 0;
  // Of what must be fetched first: the dictionary, where it is not held.
  uint64_t fetch_size_bytes = 0;
};

// Deterministic: a function of the calls made before, without clock or chance.
// Thread-compatible.
class EncodingChooser {
 public:
  // Identity alone is possible.
  EncodingChooser();

  // What else is, by IndexOf(AnswerEncoding); identity always is, has rate 1
  // and costs nothing to decode, whatever is given for it. What was measured
  // before stays; rates of encodings that were tried are not replaced.
  void SetPriors(const std::array<EncodingPrior, kAnswerEncodingCount>& priors);

  // What the next window should be in: the best one, or one being tried.
  AnswerEncoding next() const { return trial_.value_or(best_); }

  // The best one so far. Identity before anything was measured.
  AnswerEncoding best() const { return best_; }

  // A window has ended. Windows of another encoding than next(), left over from
  // before, are learnt from as well.
  void Take(const WireWindow& window);

  // The server answers in another encoding than this one that was asked for: it
  // is not tried again.
  void Exclude(AnswerEncoding encoding);

  // At least so many decoded bytes will be read yet, as far as known. Without
  // it the chooser supposes as many as were read already: then a dictionary is
  // fetched as late as possible, and at most about twice too early.
  void Expect(uint64_t decoded_size_bytes);

 private:
  // Least squares of time = answers * a + bytes * b, old windows fading.
  class LineFit {
   public:
    void Add(double answers, double bytes, double time);

    void Forget() { *this = LineFit(); }

    bool empty() const { return aa_ == 0; }

    // Both are at least 0.
    struct Line {
      double answer_ns = 0;
      double byte_ns = 0;
    };

    Line Solve() const;

   private:
    double aa_ = 0, ab_ = 0, bb_ = 0, at_ = 0, bt_ = 0;
  };

  struct State {
    EncodingPrior prior;
    // The prior's rate was measured.
    bool is_known = false;
    LineFit fit;
    // Measured time over predicted time, when it was tried last.
    double misprediction = 1;
    // Windows since it was tried, and how many must pass before it is tried
    // again although nothing speaks for it.
    uint64_t windows_since_trial = 0;
    uint64_t patience = 0;
  };

  State& state(AnswerEncoding encoding) { return states_[IndexOf(encoding)]; }

  const State& state(AnswerEncoding encoding) const {
    return states_[IndexOf(encoding)];
  }

  // Of an answer of the present mean size.
  double MeasuredNs(AnswerEncoding encoding) const;
  double PredictedNs(AnswerEncoding encoding) const;
  WireLink Link() const;
  // As known, or as to be expected of answers of the present mean size.
  WireRate RateOf(const State& state) const;
  // Whether the window took much more or less than its encoding's line says,
  // twice in a row.
  bool HasShifted(const WireWindow& window);
  void StartOver(const WireWindow& window);
  void EndTrial();
  void StartTrial();
  bool IsWorthFetching(AnswerEncoding encoding, double saved_ns) const;
  bool IsWorthTrying(AnswerEncoding encoding) const;

  std::array<State, kAnswerEncodingCount> states_;
  AnswerEncoding best_ = AnswerEncoding::kIdentity;
  std::optional<AnswerEncoding> trial_;
  // Of the trial, yet to come.
  int trial_windows_left_ = 0;
  int shifted_in_row_ = 0;
  double mean_size_bytes_ = 0;
  double decoded_size_bytes_ = 0;
  double expected_size_bytes_ = 0;
};

// Priors of an archive for a client; no encoding but identity is possible where
// it lacks what it needs. `holds_dictionary`: the client need not fetch it.
// `dictionary_size_bytes_max`: larger ones are not fetched.
std::array<EncodingPrior, kAnswerEncodingCount> PriorsOf(
    const v1::ArchiveDescription& archive, bool holds_dictionary,
    uint64_t dictionary_size_bytes_max);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_ENCODING_CHOOSER_H_
