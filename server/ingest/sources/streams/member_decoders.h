// SPDX-License-Identifier: GPL-3.0-or-later
//
// Decoders of compressed files whose members are not searched for after damage.
// All of them return null without memory.
#ifndef QUIRE_SERVER_INGEST_SOURCES_STREAMS_MEMBER_DECODERS_H_
#define QUIRE_SERVER_INGEST_SOURCES_STREAMS_MEMBER_DECODERS_H_

#include <cstdint>
#include <memory>

#include "codecs/base/bytes.h"
#include "server/ingest/sources/streams/member_stream.h"

namespace quire {

// Streams of bzip2. Takes 4 MiB.
std::unique_ptr<MemberDecoder> NewBzip2Decoder();

// Formats of liblzma.
enum class LzmaFormat {
  // Streams of xz, with any of its checks.
  kXz,
  // Members of lzip.
  kLzip,
  // One stream of lzma_alone, without a checksum.
  kLzma,
};

// Takes the memory of the dictionary that a member requires; a member that
// needs more than `dictionary_size_bytes_max` is an error.
std::unique_ptr<MemberDecoder> NewLzmaDecoder(
    LzmaFormat format, uint64_t dictionary_size_bytes_max);

// Frames of lz4, skippable ones, and those of its legacy format, which take
// 16 MiB and have no end mark.
std::unique_ptr<MemberDecoder> NewLz4Decoder();

// One stream of compress (.Z), without a checksum or an end mark.
std::unique_ptr<MemberDecoder> NewLzwDecoder();

// Size of the start of a file that the next functions need.
inline constexpr size_t kCompressedMagicSizeBytes = 13;

// True if a file that begins with `start` is in that format.
bool IsBzip2Start(ByteView start);
bool IsXzStart(ByteView start);
bool IsLzipStart(ByteView start);
// lzma has no magic number: true for the settings that its programs write.
bool IsLzmaStart(ByteView start);
bool IsLz4Start(ByteView start);
bool IsLzwStart(ByteView start);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_STREAMS_MEMBER_DECODERS_H_
