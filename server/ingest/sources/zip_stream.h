// SPDX-License-Identifier: GPL-3.0-or-later
//
// A zip in a file, as libarchive reads it: without the comment at its end, and
// with all of its entries or a few.
#ifndef QUIRE_SERVER_INGEST_SOURCES_ZIP_STREAM_H_
#define QUIRE_SERVER_INGEST_SOURCES_ZIP_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// The bytes of the file up to an offset, and then others. Thread-compatible.
class ZipStream final : public ByteStream {
 public:
  // The whole zip. Errors: Unavailable.
  static absl::StatusOr<std::unique_ptr<ZipStream>> Open(
      std::shared_ptr<const InputFile> file);

  ZipStream(std::shared_ptr<const InputFile> file, uint64_t file_end_offset,
            std::vector<uint8_t> tail)
      : file_(std::move(file)),
        file_end_offset_(file_end_offset),
        tail_(std::move(tail)) {}

  absl::StatusOr<size_t> Read(MutableByteView out) override;
  // Moves the position, without I/O.
  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override;

  std::optional<uint64_t> EndOffset() const override {
    return file_end_offset_ + tail_.size();
  }

  bool Seek(uint64_t offset) override {
    offset_ = offset;
    return true;
  }

  uint64_t offset() const { return offset_; }

 private:
  const std::shared_ptr<const InputFile> file_;
  const uint64_t file_end_offset_;
  const std::vector<uint8_t> tail_;
  uint64_t offset_ = 0;
};

// The list of entries of a zip (its central directory), which finds an entry
// without those before it. Memory: 32 bytes an entry. Immutable, thread-safe.
class ZipDirectory {
 public:
  // Errors: DataLoss     not a list of the entries that the zip says.
  //         Unavailable  the file cannot be read.
  static absl::StatusOr<std::shared_ptr<const ZipDirectory>> Read(
      std::shared_ptr<const InputFile> file);

  // In the order of their headers in the file, as libarchive's.
  uint64_t entry_count() const { return entries_.size(); }

  // True if the name of an entry is in the code page of a PC: a program for
  // such file systems wrote it, and did not mark it as UTF-8. REQUIRES: index <
  // entry_count().
  bool HasPcName(uint64_t index) const {
    return entries_[static_cast<size_t>(index)].has_pc_name;
  }

  // Where the contents of an entry are in the file.
  struct Contents {
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
    // They are the bytes of the entry: neither compressed nor encrypted.
    bool is_stored = false;
  };

  // Reads the header of an entry. REQUIRES: index < entry_count().
  // Errors: DataLoss  there is no header, or the file ends before the contents;
  //         Unavailable.
  absl::StatusOr<Contents> FindContents(uint64_t index) const;

  // Text of the file that is in no entry of the list, such as a zip before this
  // one. Zeros are no text.
  struct Unlisted {
    // Names ranges after the end of the zip, or with the header of an entry;
    // empty without any.
    std::string lost;
    // Names other ranges: signatures of some writers.
    std::string between;
  };

  // Reads the header of each entry. Errors: Unavailable.
  absl::StatusOr<Unlisted> FindUnlisted() const;

  // Returns a zip of the entries from `begin` up to `end`, which are where they
  // were. REQUIRES: begin < end <= entry_count().
  // Errors: Unavailable  the file cannot be read, or became shorter.
  absl::StatusOr<std::unique_ptr<ZipStream>> Part(uint64_t begin,
                                                  uint64_t end) const;

 private:
  struct Entry {
    // Stated offset of its header.
    uint64_t header_offset = 0;
    // Size of its contents in the zip.
    uint64_t stored_size_bytes = 0;
    // In the list.
    uint32_t offset = 0;
    uint32_t size_bytes = 0;
    bool has_pc_name = false;
  };

  // The record that ends the list.
  struct End {
    uint64_t entry_count = 0;
    uint64_t list_size_bytes = 0;
    // Stated offset of the list, and its offset in the file.
    uint64_t stated_offset = 0;
    uint64_t list_offset = 0;
    // Offset after the record, with its comment.
    uint64_t end_offset = 0;
  };

  ZipDirectory(std::shared_ptr<const InputFile> file, const End& end)
      : file_(std::move(file)), end_(end) {}

  static absl::StatusOr<End> ReadEnd(
      const std::shared_ptr<const InputFile>& file);
  absl::Status ReadEntries();

  // Offset of an entry's header in the file: stated ones may be from the start
  // of a zip that follows other bytes.
  uint64_t HeaderOffset(const Entry& entry) const {
    return entry.header_offset + end_.list_offset - end_.stated_offset;
  }

  // Describes the range from `begin` up to `end`.
  absl::Status AddUnlisted(uint64_t begin, uint64_t end, Unlisted& found) const;

  const std::shared_ptr<const InputFile> file_;
  const End end_;
  std::vector<Entry> entries_;
};

// Returns text of code page 437, which zips use unless they say otherwise
// (APPNOTE.TXT of PKWARE, appendix D), as UTF-8. Different texts stay
// different.
std::string Utf8OfCodePage437(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_ZIP_STREAM_H_
