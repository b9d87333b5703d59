// SPDX-License-Identifier: GPL-3.0-or-later
//
// Texts as blocks of phrases, for the tests of this directory.
#ifndef QUIRE_LOADTEST_PAPERS_LZ77_LZ77_TEST_BLOCKS_H_
#define QUIRE_LOADTEST_PAPERS_LZ77_LZ77_TEST_BLOCKS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace quire {

// A block of LZ4's high compression.
std::vector<uint8_t> Lz4Block(const std::string& text, int level = 9);

// zlib's parse of `text` at `level`, without its Huffman codes.
std::vector<uint8_t> DeflateParse(const std::string& text, int level = 6);

// Each phrase copies from the one before it: literals, then `count` matches of
// `size` bytes, each at distance `size`.
std::vector<uint8_t> ChainBlock(uint32_t count, uint32_t size,
                                std::string& text);

}  // namespace quire

#endif  // QUIRE_LOADTEST_PAPERS_LZ77_LZ77_TEST_BLOCKS_H_
