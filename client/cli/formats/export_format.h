// SPDX-License-Identifier: Apache-2.0
//
// Text around the documents of an export, by the file's format.
#ifndef QUIRE_CLIENT_CLI_EXPORT_FORMAT_H_
#define QUIRE_CLIENT_CLI_EXPORT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/cli/formats/member_compressor.h"
#include "codecs/base/bytes.h"

namespace quire {

// Upper bound on the text of a document that is held back.
inline constexpr size_t kHeldTextSizeBytesMax = size_t{8} << 20;

using FileSink = absl::FunctionRef<absl::Status(ByteView)>;

// Passes all bytes of the current document to `sink`.
// Errors: those of reading it, and the results of `sink`.
using WholeDocument = std::function<absl::Status(FileSink sink)>;

// A document in the file.
struct DocumentFrame {
  // A whole record that precedes the document's.
  std::string record_before = {};
  std::string before = {};
  // The part of the document that is written.
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  std::string after = {};
};

// Text around documents. Frame() is called for each in turn, and End() once at
// the end. Thread-compatible.
class ExportFormat {
 public:
  virtual ~ExportFormat() = default;

  // Size of the document's beginning that Frame() needs, which begins with
  // `head`. Never depends on more of it.
  virtual size_t HeadSizeBytes(const v1::Document& document,
                               absl::string_view head) const {
    static_cast<void>(document);
    static_cast<void>(head);
    return 0;
  }

  // `head`: at least HeadSizeBytes(), or the whole document.
  // Errors: DataLoss  the document cannot be written in this format; names it.
  //         Those of `whole`.
  virtual absl::StatusOr<DocumentFrame> Frame(const v1::Document& document,
                                              absl::string_view head,
                                              const WholeDocument& whole) = 0;

  // Text after the last document.
  virtual std::string End() = 0;

  // True if each record of a compressed file is a member.
  virtual bool has_members() const { return false; }

  // Notes for readers of the file, each for a separate message.
  virtual std::vector<std::string> Notes() const = 0;
};

// Writes documents one after the other to the file of an export. Holds back the
// beginning of each until the format knows its header. Thread-compatible.
class DocumentWriter {
 public:
  // Takes the bytes of the file.
  using Output = std::function<absl::Status(ByteView)>;

  // `format` must outlive it. Without `compressor` the file is not compressed.
  DocumentWriter(ExportFormat& format,
                 std::unique_ptr<MemberCompressor> compressor, Output output);

  // Starts a document; nothing is written of an earlier one that has not begun.
  // `whole`, which may read the document again, is not called after
  // EndDocument(). With `holds_text` all of the text is held back, up to
  // kHeldTextSizeBytesMax.
  void Start(const v1::Document& document, WholeDocument whole,
             bool holds_text = false);

  // True if a part of the current document is in the file.
  bool has_begun() const { return has_begun_; }

  // Writes the next bytes of the document.
  // Errors: as ExportFormat::Frame(), and those of the output.
  absl::Status Write(ByteView bytes);

  // Writes zeros in place of its next bytes. REQUIRES: has_begun().
  absl::Status WriteZeros(uint64_t size_bytes);

  // Errors: as Write().
  absl::Status EndDocument();

  // Ends the file.
  absl::Status End();

 private:
  // True if `head` is enough of the document to begin it.
  bool HasHead(absl::string_view head) const;
  // Writes what precedes the document, and `head`.
  absl::Status Begin(absl::string_view head);
  // Writes the part of `bytes`, the next ones of the document, that the format
  // keeps.
  absl::Status WritePart(ByteView bytes);
  absl::Status Put(ByteView bytes);
  absl::Status EndMember();

  ExportFormat& format_;
  const Output output_;
  // Null: not compressed.
  const std::unique_ptr<MemberCompressor> compressor_;
  v1::Document document_;
  WholeDocument whole_;
  bool holds_text_ = false;
  bool has_begun_ = false;
  // Text before the document begins.
  std::string held_;
  // Frame of the document that has begun, and the position in it.
  DocumentFrame frame_;
  uint64_t position_ = 0;
};

// Documents as members with their ids as names and their times. Holds 8 bytes
// for each name, up to four million, to count duplicates.
std::unique_ptr<ExportFormat> MakeTarExport();

// Records of a WARC unchanged, those of an ARC as arc_conversion.h makes them,
// other documents in records of type `resource`; one of type `warcinfo`
// precedes the first of these. So the export of a crawl equals its uncompressed
// WARCs, concatenated. `now_ms` is the time of documents that have none. With
// `revisits_duplicates` responses with the payload of an earlier one become
// revisits of it (duplicate_revisits.h).
std::unique_ptr<ExportFormat> MakeWarcExport(v1::ArchiveDescription archive,
                                             int64_t now_ms,
                                             bool revisits_duplicates = false);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_EXPORT_FORMAT_H_
