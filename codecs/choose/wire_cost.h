// SPDX-License-Identifier: Apache-2.0
//
// The cost of an answer over a connection in different encodings: the model of
// section 2.1 of "Data Compression for Climate Data" (Kuhn, Kunkel, Ludwig),
// equations 2 and 3, seen from the receiver.
//
// All times are nanoseconds, all sizes bytes; a "rate" is the inverse
// compression ratio, bytes on the wire for each decoded byte, so 0.4 means that
// an answer shrinks to 40 %. Values are measurements: finite, not negative.
// Thread-safe: pure functions.
#ifndef QUIRE_CODECS_CHOOSE_WIRE_COST_H_
#define QUIRE_CODECS_CHOOSE_WIRE_COST_H_

namespace quire {

// Cost of a connection in any encoding.
struct WireLink {
  // Time for an answer of no bytes: round trip and work for a call.
  double answer_ns = 0;
  // Time for a byte on the wire: 1e9 / throughput.
  double byte_ns = 0;
};

// Properties of an encoding.
struct WireRate {
  double rate = 1;
  // Time to encode and to decode a byte: 1e9 / p_c + 1e9 / p_d.
  double coding_byte_ns = 0;
};

// Time for an answer of `size_bytes` decoded bytes: equation 2 without the
// terms that do not depend on the encoding.
double AnswerCostNs(const WireLink& link, const WireRate& encoding,
                    double size_bytes);

// Equation 3: the throughput in bytes per second below which an encoding is
// faster than identity, given speeds of encoding and decoding in decoded bytes
// per second, one after the other:
//   p < p_c p_d / (p_c + p_d) (1 - rate).
// 0 if it never does (rate >= 1). REQUIRES: speeds > 0.
double PaysBelowBytesPerSecond(double encode_bytes_per_second,
                               double decode_bytes_per_second, double rate);

// The same where both work while bytes are on their way:
//   p < min(p_c, p_d) (1 - rate).
double PaysPipelinedBelowBytesPerSecond(double encode_bytes_per_second,
                                        double decode_bytes_per_second,
                                        double rate);

}  // namespace quire

#endif  // QUIRE_CODECS_CHOOSE_WIRE_COST_H_
