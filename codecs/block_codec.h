// SPDX-License-Identifier: Apache-2.0
//
// The interface of codecs, and the registry of all codecs.
//
// An archive's text is cut into blocks of one size; each block is encoded on
// its own, against a context that all blocks share (the dictionary of relative
// Lempel-Ziv, see "Access Time Tradeoffs in Archive Compression", section 2).
// A codec is therefore a pure function of (context, level, block): equal input
// gives equal output, on every machine and from any number of threads.
//
// Start at MakeBlockCodec().
#ifndef QUIRE_CODECS_BLOCK_CODEC_H_
#define QUIRE_CODECS_BLOCK_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/numbered_work.h"

namespace quire {

// The number by which archives name their codec. Written to disk: never
// renumbered, never reused. Those that AllCodecs() does not list are reserved.
enum class CodecId : uint32_t {
  kUnspecified = 0,
  kCopy = 1,
  kLz4 = 2,
  kZlib = 4,
  kZstd = 5,
  kXz = 10,
  kNumeric = 11,
  kAuto = 12,
  kRlzUv = 16,
  kRlzPv = 17,
  kRlzZz = 18,
  kRlzZzz = 19,
  kZlibPrimed = 21,
  kRlz = 22,
  kFsst = 32,
};

// The largest block, in bytes of text, that any codec is asked to encode.
inline constexpr size_t kBlockSizeBytesMax = size_t{1} << 20;

// A block may be divided into partitions of this many bytes of text, the last
// one shorter, each of which is decoded without the others
// (payload/payload_codec.h): a power of two within these bounds.
inline constexpr uint32_t kPartitionSizeBytesMin = 4 << 10;
inline constexpr uint32_t kPartitionSizeBytesMax = 1 << 20;
bool IsPartitionSize(uint64_t size_bytes);

// Data that all blocks of an archive are coded against.
// Immutable, hence thread-safe; shared by all codecs made from it.
struct CodecContext {
  // The dictionary's text; empty for codecs that use none. At most 2 GiB - 1.
  std::string dictionary = {};
  // An FSST table as the published library serialises it (fsst/symbol_table.h
  // reads it); empty where there is none.
  std::string symbol_table = {};
  // They build the index structures of a codec that encodes.
  Workers workers = {};
};

// Properties of a codec, known without making one.
struct CodecInfo {
  CodecId id = CodecId::kUnspecified;
  // As people write it: lower case, no colon.
  absl::string_view name;
  absl::string_view summary;
  // Levels trade encoding time for size and change nothing for the decoder. A
  // codec without levels has level_min == level_max == 0.
  int level_min = 0;
  int level_default = 0;
  int level_max = 0;
  bool needs_dictionary = false;
  // Its context must have a symbol table.
  bool needs_symbol_table = false;
  // Partitions of its blocks save time. Otherwise a block is stored as its text
  // or has parts of its own that are decoded alone.
  bool takes_partitions = true;
};

// Bytes of a block's text.
struct TextRange {
  size_t offset = 0;
  size_t size = 0;
};

class BlockCodec {
 public:
  // Working memory that calls on one codec reuse: allocated by the first call,
  // kept for the next. Belongs to the codec that made it; used by one thread at
  // a time.
  class Scratch {
   public:
    virtual ~Scratch() = default;

    // Room for `size_bytes` of text, with unspecified contents: where a codec
    // that cannot decode a range alone puts the whole. Valid until the next
    // call.
    MutableByteView TextBuffer(size_t size_bytes);

   private:
    std::unique_ptr<uint8_t[]> text_;
    size_t text_size_bytes_ = 0;
  };

  virtual ~BlockCodec() = default;

  virtual const CodecInfo& info() const = 0;

  // An upper bound of Encode()'s result for a block of `raw_size` bytes.
  virtual size_t StoredSizeMax(size_t raw_size) const = 0;

  virtual std::unique_ptr<Scratch> NewScratch() const = 0;

  // Bytes of memory that the codec holds beyond its context: index structures
  // for encoding, tables for decoding. Scratch is not included.
  virtual size_t MemoryBytes() const = 0;

  // Encodes `raw` to the front of `stored`; returns how many bytes it wrote.
  // Deterministic.
  // REQUIRES: 0 < raw.size() <= kBlockSizeBytesMax,
  //           stored.size() >= StoredSizeMax(raw.size()).
  // Errors: FailedPrecondition  made with CodecUse::kDecode.
  //         Internal            the compression library refused.
  // Thread-safe, given a scratch of its own.
  virtual absl::StatusOr<size_t> Encode(ByteView raw, MutableByteView stored,
                                        Scratch& scratch) const = 0;

  // Decodes a whole block. `stored` is untrusted; `raw` must have exactly the
  // block's size. On failure the contents of `raw` are unspecified.
  // Errors: DataLoss  `stored` is not an encoding of exactly raw.size() bytes
  //                   in this context.
  // Thread-safe, given a scratch of its own.
  virtual absl::Status Decode(ByteView stored, MutableByteView raw,
                              Scratch& scratch) const = 0;

  // Decodes bytes [offset, offset + out.size()) of a block of `raw_size` bytes.
  // This default decodes the whole block and cuts; codecs that can stop early
  // or start late override it, and may then miss damage outside the range.
  // REQUIRES: offset + out.size() <= raw_size <= kBlockSizeBytesMax.
  // Errors: as Decode().
  // Thread-safe, given a scratch of its own.
  virtual absl::Status DecodeRange(ByteView stored, size_t raw_size,
                                   size_t offset, MutableByteView out,
                                   Scratch& scratch) const;

  // The text around such a range that is decoded without any other: what a
  // cache may as well keep. The whole block, or the partitions that the range
  // touches; an empty one touches none.
  // REQUIRES: range.offset + range.size <= raw_size <= kBlockSizeBytesMax.
  virtual TextRange DecodedRange(size_t raw_size, TextRange range) const;
};

// Codec and level, as people write it: "zstd", "zstd:19"; and what else a
// codec is made with.
struct CodecSpec {
  CodecId id = CodecId::kUnspecified;
  // Always within the codec's limits.
  int level = 0;
  // IsPartitionSize() of it, or 0: blocks are not divided. MakeBlockCodec()
  // does not look at it: its codec codes one partition.
  uint32_t partition_size_bytes = 0;
};

// With the codec's default level, and without partitions.
CodecSpec DefaultCodecSpec(const CodecInfo& info);

// Sets the partition size to 0 where blocks are not larger than partitions.
void FitPartitions(uint64_t block_size_bytes, CodecSpec& spec);

// Reads NAME[:LEVEL]; without a level, the codec's default. LEVEL is a number,
// or "fast", "default" or "max": the codec's fastest, default and smallest.
// All other fields are those of DefaultCodecSpec(). Errors:
// InvalidArgument  no such codec (the message lists them), or a level
//                          out of its range.
absl::StatusOr<CodecSpec> ParseCodecSpec(absl::string_view text);

// "zstd:19"; the name alone for codecs without levels. Of a codec that is not
// registered, "codec#" and its number, which ParseCodecSpec() does not read.
std::string FormatCodecSpec(const CodecSpec& spec);

// All codecs, in order of id; valid for ever.
std::span<const CodecInfo> AllCodecs();

// Null if there is none.
const CodecInfo* FindCodec(absl::string_view name);
const CodecInfo* FindCodec(CodecId id);

enum class CodecUse {
  kDecode,           // leaves out index structures that only encoding needs
  kEncodeAndDecode,  // builds them now: for a large dictionary this takes time
  kTrial,            // as kEncodeAndDecode, for sizes that are only compared:
                     // levels that can save time at the cost of size do
};

// Upper bound, in bytes, on the memory of a BlockCodec::Scratch that has only
// decoded partitions of at most `partition_size_bytes_max` of text.
size_t PartitionScratchBytesMax(CodecId codec, size_t partition_size_bytes_max);

// `context` may be null for codecs that need neither dictionary nor symbol
// table. A dictionary may be empty, as that of an empty archive is; a table may
// have no symbols, but must be there.
// Errors: InvalidArgument  unknown codec, level out of range, dictionary or
//                          symbol table missing, dictionary too large for the
//                          codec, symbol table malformed.
absl::StatusOr<std::unique_ptr<BlockCodec>> MakeBlockCodec(
    const CodecSpec& spec, std::shared_ptr<const CodecContext> context,
    CodecUse use);

}  // namespace quire

#endif  // QUIRE_CODECS_BLOCK_CODEC_H_
