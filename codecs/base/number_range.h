// SPDX-License-Identifier: Apache-2.0
//
// Checks of numbers on a command line. CLI11's CLI::Range accepts text that is
// not a number in every range, and shows the range in --help as a type.
#ifndef QUIRE_CODECS_BASE_NUMBER_RANGE_H_
#define QUIRE_CODECS_BASE_NUMBER_RANGE_H_

#include <cstdint>

#include "CLI/CLI.hpp"

namespace quire {

// For CLI::Option::check(): a whole number from `min` to `max`. The message is
// 'must be 1 to 64, got "0"'; CLI11 prefixes the option's name.
CLI::Validator CountInRange(uint64_t min, uint64_t max);

// The same for a number that may have a fraction.
CLI::Validator NumberInRange(double min, double max);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_NUMBER_RANGE_H_
