// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parts of a collection, evenly spread, for figures that stand for all of it.
#ifndef QUIRE_SERVER_PLANNER_COLLECTION_SAMPLE_H_
#define QUIRE_SERVER_PLANNER_COLLECTION_SAMPLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "server/ingest/sources/source.h"

namespace quire {

// How hard a text is to compress. What a sample has too much or too little of
// what came compressed is what most misleads.
struct Compressibility {
  // Of its units of 16 KiB those that LZ4 does not make a tenth smaller: what
  // came compressed, or is random.
  double incompressible_share = 0;
  // LZ4's size of all units over theirs; of one that does not shrink its own.
  double lz4_share = 0;
};

// The documents one after the other, cut into pieces of kPieceSizeBytes, of
// which every n-th is kept, n a power of two; the last may be shorter. With n =
// 1 it is the whole text.
struct CollectionSample {
  static constexpr uint64_t kPieceSizeBytes = uint64_t{256} << 10;

  // Of all documents.
  uint64_t text_size_bytes = 0;
  uint64_t document_count = 0;
  uint64_t id_size_bytes = 0;
  // Of all text.
  Compressibility compressibility;
  // In the order of the text.
  std::vector<std::string> pieces;
  // How long reading the sources took.
  double read_seconds = 0;

  uint64_t size_bytes() const;

  bool is_whole() const { return size_bytes() == text_size_bytes; }
};

// Measures text.
// Thread-compatible.
class CompressibilityMeter {
 public:
  CompressibilityMeter();
  ~CompressibilityMeter();

  // What follows; units go on from one part to the next.
  void Add(ByteView text);
  // Of all since the last call, what is left of a unit too; zeros of nothing.
  Compressibility Take();

 private:
  void EndUnit();

  const std::unique_ptr<BlockCodec> codec_;
  const std::unique_ptr<BlockCodec::Scratch> scratch_;
  std::vector<uint8_t> unit_;
  std::vector<uint8_t> stored_;
  uint64_t size_bytes_ = 0;
  uint64_t incompressible_bytes_ = 0;
  uint64_t lz4_bytes_ = 0;
};

// Takes the next part of a text.
using TextSink = std::function<absl::Status(ByteView)>;

// Gives all text to the sink, in order and in parts of any size; the same each
// time. `input_size_bytes_max` bounds what all sources hold together, as for a
// build (BuildOptions). Blocks on the disk.
// Errors: those of the sources, of the sink and of InputLimits.
absl::Status ReadText(
    std::span<const std::unique_ptr<Source>> sources, const TextSink& sink,
    std::optional<uint64_t> input_size_bytes_max = std::nullopt);

// Reads all sources once and holds at most `size_bytes_max`, or two pieces if
// that is more. `input_size_bytes_max` is as above. Blocks on the disk.
// Errors: as ReadText(); InvalidArgument if they hold no text.
absl::StatusOr<CollectionSample> SampleCollection(
    std::span<const std::unique_ptr<Source>> sources, uint64_t size_bytes_max,
    std::optional<uint64_t> input_size_bytes_max = std::nullopt);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_COLLECTION_SAMPLE_H_
