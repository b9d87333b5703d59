// SPDX-License-Identifier: GPL-3.0-or-later
//
// The text of an archive from some offset on, in logical order.
#ifndef QUIRE_SERVER_INGEST_SOURCES_ARCHIVE_TEXT_H_
#define QUIRE_SERVER_INGEST_SOURCES_ARCHIVE_TEXT_H_

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/archive.h"

namespace quire {

// Decodes ahead on its own threads, so that a slow codec (xz) does not delay
// the reader. Memory: some megabytes per thread.
// Thread-compatible: one thread uses it.
class ArchiveText {
 public:
  // REQUIRES: threads >= 1, offset <= archive.info().size_bytes.
  // Errors: ResourceExhausted  no memory, or no threads.
  static absl::StatusOr<std::unique_ptr<ArchiveText>> Create(
      std::shared_ptr<const Archive> archive, uint32_t threads,
      uint64_t offset);

  // Number of objects that the process has created. Thread-safe.
  static uint64_t created_count();

  // Joins the threads.
  ~ArchiveText();
  ArchiveText(const ArchiveText&) = delete;
  ArchiveText& operator=(const ArchiveText&) = delete;

  // Returns some of the next bytes, valid until the next call. Empty at the
  // end.
  // Errors: DataLoss  a block is damaged; names segment and block.
  absl::StatusOr<ByteView> Peek();

  // Size of the text that is decoded ahead: passing over less of it costs less
  // than another object at the new offset.
  uint64_t ahead_size_bytes() const;

  // REQUIRES: size <= that of the last Peek() result.
  void Take(size_t size) { used_ += size; }

 private:
  // A part of the text, which ends with a block if possible.
  struct Slot {
    std::vector<uint8_t> text;
    // Set by the thread that decoded it.
    absl::Status status;
    bool decoded = false;
  };

  ArchiveText(std::shared_ptr<const Archive> archive, uint64_t offset);

  void DecodeLoop();
  // Returns the part that begins at `offset`.
  LogicalRange PartFrom(uint64_t offset) const;
  // If a block is damaged, `text` gets the text before it.
  absl::Status Decode(LogicalRange range, std::vector<uint8_t>& text,
                      std::vector<uint8_t>& block,
                      PayloadCodec::Scratch& scratch) const;

  Slot& SlotOf(uint64_t part_index) {
    return slots_[static_cast<size_t>(part_index % slots_.size())];
  }

  const std::shared_ptr<const Archive> archive_;
  std::vector<Slot> slots_;
  std::vector<std::thread> threads_;
  // Bytes taken from the oldest part.
  size_t used_ = 0;

  Mutex mutex_;
  CondVar freed_;
  CondVar decoded_;
  // Number of parts that are fully read.
  uint64_t read_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number of parts that a thread has taken, and the offset of the next one.
  uint64_t taken_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_offset_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_ARCHIVE_TEXT_H_
