// SPDX-License-Identifier: GPL-3.0-or-later
//
// Typical URLs of crawls, for benchmarks and tests.
#ifndef QUIRE_TESTING_ARCHIVE_SAMPLE_URLS_H_
#define QUIRE_TESTING_ARCHIVE_SAMPLE_URLS_H_

#include <cstdint>
#include <string>

namespace quire {

// Returns the same URL for the same number. There are about 20,000 hosts, a few
// of which have most pages; paths are dates and titles, numbers of shops and
// forums, query strings, and names of files by hash. About 65 bytes, nearly all
// different.
std::string SampleUrl(uint64_t number);

}  // namespace quire

#endif  // QUIRE_TESTING_ARCHIVE_SAMPLE_URLS_H_
