// SPDX-License-Identifier: GPL-3.0-or-later
//
// The file of an archive's dictionary (FORMAT.md, "Dictionary").
#ifndef QUIRE_SERVER_ARCHIVE_FILES_DICTIONARY_FILE_H_
#define QUIRE_SERVER_ARCHIVE_FILES_DICTIONARY_FILE_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/block_codec.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/section_compression.h"

namespace quire {

// Returns the effort for the dictionary of an archive of this codec and level:
// the most at the codec's highest level, or if it has only one.
const CompressionEffort& DictionaryEffort(const CodecSpec& codec);

// Writes the dictionary's file in the background: compressing it takes some
// seconds per 16 MiB.
// Thread-compatible.
class DictionaryFileWriter {
 public:
  // Starts a thread; if that fails, Finish() does the work. `directory_fd` must
  // stay open until Finish() has returned or the writer is destroyed;
  // `directory` is its path for messages.
  DictionaryFileWriter(int directory_fd, std::string directory,
                       const CodecSpec& codec,
                       std::shared_ptr<const CodecContext> context);
  // Aborts unless Finish() was called, and joins the thread.
  ~DictionaryFileWriter();

  // Waits until the file is written and synced.
  // Errors: as FileWriter.
  absl::StatusOr<ManifestDictionary> Finish();

 private:
  absl::StatusOr<ManifestDictionary> Write() const;

  const int directory_fd_;
  const std::string directory_;
  const CompressionEffort effort_;
  const std::shared_ptr<const CodecContext> context_;
  std::atomic<bool> cancel_ = false;
  // Written by the thread, read after joining it.
  absl::StatusOr<ManifestDictionary> result_;
  // True if started by the thread or Finish().
  bool is_started_ = false;
  std::thread thread_;
};

// Reads and checks the dictionary that the manifest names. Polls `cancel`, if
// given.
// Errors: DataLoss, FailedPrecondition, Unavailable, Cancelled.
absl::StatusOr<std::string> ReadDictionaryFile(
    const ReadableFile& opened, const ManifestDictionary& expected,
    const std::atomic<bool>* cancel = nullptr);

// Checks the file of a dictionary that was read before, without its memory.
// Errors: as ReadDictionaryFile(); those of `before_read`.
absl::Status CheckDictionaryFile(const ReadableFile& opened, uint64_t hash,
                                 const BeforeRead& before_read);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_DICTIONARY_FILE_H_
