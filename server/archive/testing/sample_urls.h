// SPDX-License-Identifier: GPL-3.0-or-later
//
// URLs as crawls have them, for benchmarks and tests.
#ifndef QUIRE_SERVER_ARCHIVE_TESTING_SAMPLE_URLS_H_
#define QUIRE_SERVER_ARCHIVE_TESTING_SAMPLE_URLS_H_

#include <cstdint>
#include <string>

namespace quire {

// The same URL for the same number. Hosts are some 20,000, a few of which have
// most pages; paths are dates and titles, shops' and forums' numbers, query
// strings, and names of files by hash. About 65 bytes, nearly all different.
std::string SampleUrl(uint64_t number);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_TESTING_SAMPLE_URLS_H_
