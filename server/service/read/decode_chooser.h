// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_READ_DECODE_CHOOSER_H_
#define QUIRE_SERVER_SERVICE_READ_DECODE_CHOOSER_H_

#include <chrono>
#include <cstdint>

namespace quire {

// What reads of a block in partitions take. A time that is 0 is not known yet.
struct PartCosts {
  // Of the drive, for one read.
  std::chrono::nanoseconds read_time{0};
  // Of a thread, to decode 1 MiB of text in partitions.
  std::chrono::nanoseconds decode_time_per_mib{0};
};

// With how many partitions in a row, cached and just before the one that a read
// asks for, all of the block is to be decoded rather than that one: a client
// reads on through the block, and by then its reads have cost as much as
// decoding the block does. Such a rule, to buy once the rent has come to the
// price, needs no guess of how far the client goes on: what it costs is at most
// three times what is possible with that knowledge, while single partitions
// alone may cost as many times as much as a block has partitions. (Karlin et
// al., "Competitive snoopy caching", Algorithmica 1988, section 1.)
// UINT32_MAX: never.
uint32_t PartsBeforeWhole(uint64_t block_size_bytes, const PartCosts& costs);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_DECODE_CHOOSER_H_
