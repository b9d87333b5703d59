// SPDX-License-Identifier: Apache-2.0
#include "codecs/choose/wire_cost.h"

#include <algorithm>

namespace quire {

double AnswerCostNs(const WireLink& link, const WireRate& encoding,
                    double size_bytes) {
  return link.answer_ns +
         size_bytes * (encoding.rate * link.byte_ns + encoding.coding_byte_ns);
}

double PaysBelowBytesPerSecond(double encode_bytes_per_second,
                               double decode_bytes_per_second, double rate) {
  // As a quotient of sums of times, so that an infinite speed is none at all.
  return std::max(0.0, 1 - rate) /
         (1 / encode_bytes_per_second + 1 / decode_bytes_per_second);
}

double PaysPipelinedBelowBytesPerSecond(double encode_bytes_per_second,
                                        double decode_bytes_per_second,
                                        double rate) {
  return std::max(0.0, 1 - rate) *
         std::min(encode_bytes_per_second, decode_bytes_per_second);
}

}  // namespace quire
