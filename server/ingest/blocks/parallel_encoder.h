// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_PARALLEL_ENCODER_H_
#define QUIRE_SERVER_INGEST_PARALLEL_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"
#include "codecs/payload/payload_codec.h"

namespace quire {

// Encodes blocks on several threads and passes them on in order of arrival, so
// that the output does not depend on the number of threads.
//
// Each encoding is decoded and compared with its text before it is passed on. A
// different one is dropped and its block stored unencoded: a bug of a codec
// costs size, never text. One of SubmitEncoded() is first encoded anew.
//
//   while there is text:
//     buffer = encoder->Acquire()     space for one block
//     fill it
//     encoder->Submit(size)
//   encoder->Drain()
//
// Memory: 2 * threads + 2 blocks, raw and stored, and one block per thread to
// compare. When all are taken, Acquire() waits for the oldest, which keeps a
// fast reader from running ahead.
// Thread-compatible: one thread uses it, and the sink runs on that thread.
class ParallelEncoder {
 public:
  // Receives the blocks in order. The payload is raw if the codec could not
  // make the block smaller, or its encoding does not decode to `raw`. Views are
  // valid during the call.
  using Sink =
      std::function<absl::Status(ByteView raw, const Payload& payload)>;

  // `codec` must outlive the encoder. REQUIRES: threads >= 1.
  // Errors: ResourceExhausted  no memory for the buffers, or no more threads.
  static absl::StatusOr<std::unique_ptr<ParallelEncoder>> Create(
      const PayloadCodec& codec, uint32_t threads, size_t block_size_bytes,
      Sink sink);

  // Discards blocks that are not encoded yet, and joins the threads.
  ~ParallelEncoder();
  ParallelEncoder(const ParallelEncoder&) = delete;
  ParallelEncoder& operator=(const ParallelEncoder&) = delete;

  // Returns space for one block, valid until Submit().
  // Errors: errors of the codec or the sink for an earlier block;
  //         ResourceExhausted  no memory to encode it.
  absl::StatusOr<MutableByteView> Acquire();

  // Submits the first `size_bytes` of the last Acquire() as a block.
  // REQUIRES: 0 < size_bytes <= block size, one Acquire() before each.
  void Submit(size_t size_bytes);

  // The same for a block that is already encoded as `payload`, which is copied.
  // If the payload does not decode to the block's text, the block is encoded
  // like others.
  // REQUIRES: payload.is_raw, or payload.bytes.size() < size_bytes.
  void SubmitEncoded(size_t size_bytes, const Payload& payload);

  // Waits until the sink has received all blocks. Errors: as Acquire().
  absl::Status Drain();

  // Blocks passed to the sink whose encoding did not decode to their text.
  uint64_t mismatch_count() const { return mismatch_count_; }

  // Blocks passed to the sink that were submitted with an encoding that does
  // not decode to their text.
  uint64_t reencoded_count() const { return reencoded_count_; }

 private:
  struct Slot {
    std::vector<uint8_t> raw;
    std::vector<uint8_t> stored;
    size_t raw_size_bytes = 0;
    // A view into `stored` or `raw`, set by the thread that encoded it.
    absl::StatusOr<Payload> payload = Payload{};
    bool encoded = false;
    // Submitted with its encoding.
    bool is_given = false;
    // Its encoding did not decode to its text.
    bool is_mismatched = false;
    // The encoding that it was submitted with did not.
    bool is_reencoded = false;
  };

  // Buffers that a thread reuses; created when first needed.
  struct Workspace {
    std::unique_ptr<PayloadCodec::Scratch> scratch;
    std::vector<uint8_t> decoded;
  };

  ParallelEncoder(const PayloadCodec& codec, Sink sink);

  Slot& SlotOf(uint64_t block_index) {
    return slots_[static_cast<size_t>(block_index % slots_.size())];
  }

  void SubmitBlock(size_t size_bytes, const Payload* payload);
  // Waits for the oldest block and passes it to the sink.
  absl::Status WriteOldest();
  void EncodeLoop();
  absl::StatusOr<Payload> Encode(Slot& slot, Workspace& workspace);
  // True if `payload` decodes to `raw`.
  bool DecodesTo(const Payload& payload, ByteView raw, Workspace& workspace);

  const PayloadCodec& codec_;
  const Sink sink_;
  // A slot belongs to the using thread, except from Submit() until `encoded`.
  std::vector<Slot> slots_;
  std::vector<std::thread> threads_;
  // Blocks passed to the sink; used only by the using thread.
  uint64_t written_count_ = 0;
  uint64_t mismatch_count_ = 0;
  uint64_t reencoded_count_ = 0;

  Mutex mutex_;
  CondVar submitted_;
  CondVar encoded_;
  uint64_t submitted_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Blocks that a thread has taken.
  uint64_t taken_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_PARALLEL_ENCODER_H_
