// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/zstd_decoder.h"

#include <algorithm>
#include <cstring>

#include "codecs/base/check.h"
#include "codecs/base/endian.h"

namespace quire {
namespace {

constexpr uint32_t kMagic = 0xFD2FB528;
constexpr size_t kInnerBlockSizeMax = 128 << 10;

enum BlockType : unsigned { kRaw, kRepeatedByte, kCompressedBlock };

enum LiteralsType : unsigned { kPlain, kOneByte, kCoded, kCodedAsBefore };

// Reads the first `size` bytes of `from` as a number. REQUIRES: they exist.
uint64_t LoadBytes(ByteView from, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value |= uint64_t{from[i]} << 8 * i;
  }
  return value;
}

}  // namespace

struct ZstdDecoder::Frame {
  // Bytes of text that may be appended without exceeding `size`.
  size_t Wanted(size_t count) const { return std::min(count, size - position); }

  // Stored bytes not yet read.
  ByteView rest;
  CopySpace space;
  size_t raw_size = 0;
  // Wanted size and present size, in bytes.
  size_t size = 0;
  size_t position = 0;
  // Upper bound on the text of an inner block.
  size_t block_size_max = 0;
  bool was_last = false;
};

bool ZstdDecoder::Decode(ByteView stored, ByteView dictionary, size_t raw_size,
                         size_t size, MutableByteView output) {
  QUIRE_CHECK(size <= raw_size && size <= output.size());
  Frame frame = {.rest = stored,
                 .space = {.dictionary = dictionary, .output = output},
                 .raw_size = raw_size,
                 .size = size};
  if (!ReadHeader(frame)) {
    return false;
  }
  huffman_.Reset();
  sequences_.Reset();
  const bool is_prefix = size < raw_size;
  while (!frame.was_last) {
    if (!DecodeBlock(frame)) {
      return false;
    }
    if (is_prefix && frame.position == size) {
      return true;
    }
  }
  return frame.rest.empty() && frame.position == raw_size;
}

bool ZstdDecoder::ReadHeader(Frame& frame) {
  constexpr size_t kFixedSize = 5;
  constexpr unsigned kReservedChecksumDictionary = 0b1111;
  constexpr unsigned kWindowLogMax = 31;
  const ByteView stored = frame.rest;
  if (stored.size() < kFixedSize ||
      LoadLittleEndian<uint32_t>(stored.data()) != kMagic) {
    return false;
  }
  const unsigned descriptor = stored[4];
  const bool is_single_segment = (descriptor & 0b100000) != 0;
  const size_t window_size_bytes = is_single_segment ? 0 : 1;
  const size_t raw_size_bytes = descriptor >> 6 == 0
                                    ? (is_single_segment ? 1 : 0)
                                    : size_t{1} << (descriptor >> 6);
  frame.rest = stored.subspan(kFixedSize);
  if ((descriptor & kReservedChecksumDictionary) != 0 ||
      frame.rest.size() < window_size_bytes + raw_size_bytes) {
    return false;
  }
  uint64_t window_size = frame.raw_size;
  if (!is_single_segment) {
    const unsigned log = 10 + (frame.rest[0] >> 3);
    if (log > kWindowLogMax) {
      return false;
    }
    window_size = (uint64_t{1} << log) / 8 * (8 + (frame.rest[0] & 7));
  }
  frame.rest = frame.rest.subspan(window_size_bytes);
  if (raw_size_bytes > 0) {
    const uint64_t base = raw_size_bytes == 2 ? 256 : 0;
    if (LoadBytes(frame.rest, raw_size_bytes) + base != frame.raw_size) {
      return false;
    }
    frame.rest = frame.rest.subspan(raw_size_bytes);
  }
  frame.block_size_max = std::min<uint64_t>(window_size, kInnerBlockSizeMax);
  return true;
}

bool ZstdDecoder::DecodeBlock(Frame& frame) {
  constexpr size_t kHeaderSize = 3;
  if (frame.rest.size() < kHeaderSize) {
    return false;
  }
  const uint64_t header = LoadBytes(frame.rest, kHeaderSize);
  frame.rest = frame.rest.subspan(kHeaderSize);
  frame.was_last = (header & 1) != 0;
  const auto type = static_cast<unsigned>(header >> 1 & 3);
  const size_t size = header >> 3;
  const size_t stored_size = type == kRepeatedByte ? 1 : size;
  if (size > frame.block_size_max || stored_size > frame.rest.size()) {
    return false;
  }
  const ByteView block = frame.rest.first(stored_size);
  if (type == kCompressedBlock) {
    if (!DecodeCompressed(block, frame)) {
      return false;
    }
  } else {
    if (type > kCompressedBlock || size > frame.raw_size - frame.position) {
      return false;
    }
    const size_t wanted = frame.Wanted(size);
    if (wanted > 0) {
      uint8_t* const to = frame.space.output.data() + frame.position;
      if (type == kRaw) {
        std::memcpy(to, block.data(), wanted);
      } else {
        std::memset(to, block.front(), wanted);
      }
    }
    frame.position += wanted;
  }
  frame.rest = frame.rest.subspan(stored_size);
  return true;
}

bool ZstdDecoder::DecodeCompressed(ByteView block, Frame& frame) {
  // An incompressible block is stored raw; libzstd refuses one of this size.
  if (block.size() >= kInnerBlockSizeMax || !ReadLiterals(frame, block) ||
      !sequences_.Open(block)) {
    return false;
  }
  SequenceProgress progress = {
      .position = frame.position,
      .position_max =
          std::min(frame.raw_size, frame.position + frame.block_size_max),
      .wanted_end = frame.size,
      .literal_count = literals_.size()};
  const uint8_t* literals = literals_.data();
  while (sequences_.left() > 0) {
    if (progress.position == frame.size) {
      // All wanted text is present; if that is the whole text, there are too
      // many sequences.
      frame.position = frame.size;
      return frame.size < frame.raw_size;
    }
    if (!sequences_.ReadBatch(frame.space, progress)) {
      return false;
    }
    frame.position = AppendSequences(sequences_.batch(), frame.space,
                                     frame.position, literals);
  }
  if (progress.literal_count > progress.position_max - progress.position) {
    return false;
  }
  const size_t wanted = frame.Wanted(progress.literal_count);
  if (wanted > 0) {
    std::memcpy(frame.space.output.data() + frame.position, literals, wanted);
  }
  frame.position += wanted;
  return true;
}

bool ZstdDecoder::ReadLiterals(const Frame& frame, ByteView& block) {
  if (block.empty()) {
    return false;
  }
  const unsigned type = block.front() & 3;
  return type == kPlain || type == kOneByte ? ReadPlainLiterals(frame, block)
                                            : ReadCodedLiterals(frame, block);
}

bool ZstdDecoder::ReadPlainLiterals(const Frame& frame, ByteView& block) {
  const unsigned type = block.front() & 3;
  const unsigned form = block.front() >> 2 & 3;
  const size_t header_size = form == 1 ? 2 : form == 3 ? 3 : 1;
  if (block.size() < header_size) {
    return false;
  }
  const size_t size =
      LoadBytes(block, header_size) >> (header_size == 1 ? 3 : 4);
  block = block.subspan(header_size);
  const size_t stored_size = type == kOneByte ? 1 : size;
  if (size > frame.block_size_max || stored_size > block.size()) {
    return false;
  }
  // Copies may read excess bytes up to the end of frame.rest.
  const uint8_t* const stored_end = frame.rest.data() + frame.rest.size();
  literals_ = block.first(stored_size);
  if (type == kOneByte) {
    uint8_t* const buffer = LiteralBuffer();
    std::memset(buffer, block.front(), size);
    literals_ = {buffer, size};
  } else if (stored_end - literals_.data() <
             static_cast<ptrdiff_t>(size + kCopyExcess)) {
    uint8_t* const buffer = LiteralBuffer();
    std::copy_n(literals_.begin(), size, buffer);
    literals_ = {buffer, size};
  }
  block = block.subspan(stored_size);
  return true;
}

bool ZstdDecoder::ReadCodedLiterals(const Frame& frame, ByteView& block) {
  constexpr size_t kHeaderSizeMax = 5;
  // By form: header size, and bits of each number in it.
  constexpr uint8_t kHeaderSizes[] = {3, 3, 4, 5};
  constexpr uint8_t kBits[] = {10, 10, 14, 18};
  if (block.size() < kHeaderSizeMax) {
    return false;
  }
  const unsigned type = block.front() & 3;
  const unsigned form = block.front() >> 2 & 3;
  const uint64_t numbers = LoadBytes(block, kHeaderSizes[form]) >> 4;
  const uint64_t mask = (uint64_t{1} << kBits[form]) - 1;
  const size_t size = numbers & mask;
  const size_t stored_size = numbers >> kBits[form] & mask;
  block = block.subspan(kHeaderSizes[form]);
  if (size == 0 || size > frame.block_size_max || stored_size > block.size()) {
    return false;
  }
  ByteView stored = block.first(stored_size);
  block = block.subspan(stored_size);
  if (type == kCoded) {
    const size_t table_size = huffman_.ReadTable(stored);
    if (table_size == 0) {
      return false;
    }
    stored = stored.subspan(table_size);
  } else if (!huffman_.has_table()) {
    return false;
  }
  const MutableByteView out(LiteralBuffer(), size);
  literals_ = out;
  return form == 0 ? huffman_.DecodeOne(stored, out)
                   : huffman_.DecodeFour(stored, out);
}

uint8_t* ZstdDecoder::LiteralBuffer() {
  if (literal_buffer_ == nullptr) {
    literal_buffer_ = std::make_unique_for_overwrite<uint8_t[]>(
        kInnerBlockSizeMax + kCopyExcess);
  }
  return literal_buffer_.get();
}

}  // namespace quire
