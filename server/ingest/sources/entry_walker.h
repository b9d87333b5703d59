// SPDX-License-Identifier: GPL-3.0-or-later
//
// Iterates over the entries of a tar or zip: libarchive with every result
// checked and every error named.
#ifndef QUIRE_SERVER_INGEST_SOURCES_ENTRY_WALKER_H_
#define QUIRE_SERVER_INGEST_SOURCES_ENTRY_WALKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/container_source.h"
#include "server/ingest/sources/libarchive_input.h"

struct archive_entry;

namespace quire {

// Thread-compatible.
class EntryWalker {
 public:
  enum class Kind { kFile, kHardLink, kSymbolicLink, kDirectory, kSpecial };

  // Starts at byte `offset` of the container, where a header must be; 0 if
  // input.file is null.
  static absl::StatusOr<std::unique_ptr<EntryWalker>> Open(
      const ContainerInput& input, LibarchiveInput::Format format,
      uint64_t offset = 0);

  // Starts at entry `begin` of the zip with this directory, and ends before
  // entry `end`. REQUIRES: begin < end <= directory.entry_count().
  static absl::StatusOr<std::unique_ptr<EntryWalker>> OpenPart(
      const std::string& name, std::shared_ptr<const ZipDirectory> directory,
      uint64_t begin, uint64_t end);

  // Moves to the next entry; false after the last.
  // Errors: DataLoss, Unavailable.
  absl::StatusOr<bool> Next();

  const std::string& container_name() const { return name_; }

  // Like SourceReader::Place(), for the current entry.
  std::string Place() const;

  // Kind of the current entry. REQUIRES: Next() returned true.
  Kind kind() const { return kind_; }

  const std::string& entry_name() const { return entry_name_; }

  // True if the name is converted from code page 437 to UTF-8: a program of PCs
  // wrote it to the zip, not as UTF-8.
  bool is_name_converted() const { return is_name_converted_; }

  // Target of a hard link.
  const std::string& link_target() const { return link_target_; }

  // Size, if the container has it.
  std::optional<uint64_t> size_bytes() const { return size_bytes_; }

  // Modification time, in milliseconds since 1970-01-01 UTC, if the container
  // has it.
  std::optional<int64_t> time_ms() const { return time_ms_; }

  // True if the container has these for the entry. Every tar has both. In a zip
  // a mode of 0664 and the owner 0 are taken for absent.
  bool has_mode() const { return has_mode_; }

  bool has_owner() const { return has_owner_; }

  // Number of entries before this one.
  uint64_t index() const { return index_; }

  // Number of entries up to the current one, with those before a part.
  uint64_t entry_count() const { return entry_count_; }

  // Offset of its header in the decompressed container.
  uint64_t header_offset() const { return header_offset_; }

  // After the last entry: true if the blocks of zeros that end a tar are
  // missing.
  bool lacks_end() const { return lacks_end_; }

  // Like SourceReader::AwaitedCheck().
  std::shared_ptr<const TextCheck> AwaitedCheck() const {
    return input_->AwaitedCheck();
  }

  // Like SourceReader::CanContinue().
  bool can_continue() const { return can_continue_; }

  // Reads the next bytes of the current entry, holes as zeros; 0 at its end.
  // REQUIRES: !out.empty(), kind() == kFile.
  absl::StatusOr<size_t> Read(MutableByteView out);

 private:
  EntryWalker(std::unique_ptr<LibarchiveInput> input,
              LibarchiveInput::Format format, bool is_seekable,
              std::string name, uint64_t offset);

  absl::Status TakeEntry(archive_entry* entry);
  // Converts the name if it is in the code page of a PC.
  void ConvertName();
  // libarchive finds no entry where the offset of the list is wrong, without an
  // error.
  absl::Status CheckIsEmpty() const;
  absl::Status HeaderFailure() const;
  // Errors: DataLoss  it has text, and is not a file.
  absl::Status CheckHasNoOtherText(archive_entry* entry) const;
  absl::Status NextPiece();
  absl::Status Failure() const;

  const std::unique_ptr<LibarchiveInput> input_;
  const LibarchiveInput::Format format_;
  const bool is_seekable_;
  const std::string name_;
  const uint64_t start_offset_;
  // Of a zip that is seekable; the directory once it is needed.
  std::shared_ptr<const InputFile> zip_file_;
  std::shared_ptr<const ZipDirectory> directory_;

  std::string entry_name_;
  std::string link_target_;
  std::optional<uint64_t> size_bytes_;
  std::optional<int64_t> time_ms_;
  uint64_t index_ = 0;
  uint64_t entry_count_ = 0;
  uint64_t header_offset_ = 0;
  Kind kind_ = Kind::kDirectory;
  bool is_name_converted_ = false;
  bool has_mode_ = false;
  bool has_owner_ = false;
  bool can_continue_ = false;
  bool lacks_end_ = false;

  // The last piece from libarchive, not yet read, and its offset in the entry;
  // the gap before it is a hole.
  ByteView piece_;
  uint64_t piece_offset_ = 0;
  uint64_t position_ = 0;
  bool pieces_ended_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_ENTRY_WALKER_H_
