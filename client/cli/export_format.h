// SPDX-License-Identifier: Apache-2.0
//
// Text around the documents of an export, by the file's format.
#ifndef QUIRE_CLIENT_CLI_EXPORT_FORMAT_H_
#define QUIRE_CLIENT_CLI_EXPORT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/cli/gzip_members.h"
#include "client/cli/output_file.h"
#include "codecs/base/bytes.h"

namespace quire {

// Documents that messages name; more are only counted.
inline constexpr uint64_t kNamedDocumentsMax = 20;

// Text of a document that is held back, at most.
inline constexpr size_t kHeldTextSizeBytesMax = size_t{8} << 20;

// The file of an export, compressed or not. Thread-compatible.
class ExportOutput {
 public:
  // `file` must outlive it.
  ExportOutput(OutputFile& file, bool is_compressed);

  // Errors: those of OutputFile::Write() and of zlib.
  absl::Status Write(ByteView bytes);
  absl::Status WriteZeros(uint64_t size_bytes);

  // Ends the gzip member of a compressed file.
  absl::Status EndMember();

 private:
  OutputFile* file_;
  // Null: not compressed.
  std::unique_ptr<GzipMembers> gzip_;
};

// Passes all bytes of the current document to `sink`, before any is written.
// Errors: those of reading it, and the results of `sink`.
using WholeDocument = absl::FunctionRef<absl::Status(
    absl::FunctionRef<absl::Status(ByteView)> sink)>;

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
                                              WholeDocument whole) = 0;

  // Text after the last document.
  virtual std::string End() = 0;

  // True if each record of a compressed file is a gzip member.
  virtual bool has_members() const { return false; }

  // Notes for readers of the file, each for a separate message.
  virtual std::vector<std::string> Notes() const = 0;
};

// Writes documents one after the other. Thread-compatible.
class DocumentWriter {
 public:
  // Both must outlive it.
  DocumentWriter(ExportFormat& format, ExportOutput& output)
      : format_(format), output_(output) {}

  // As of the format.
  size_t HeadSizeBytes(const v1::Document& document,
                       absl::string_view head) const {
    return format_.HeadSizeBytes(document, head);
  }

  // Begins a document. Errors: as ExportFormat::Frame(), ExportOutput::Write().
  absl::Status Begin(const v1::Document& document, absl::string_view head,
                     WholeDocument whole);

  // Writes the next bytes of the document, or zeros in place of them.
  absl::Status Write(ByteView bytes);
  absl::Status WriteZeros(uint64_t size_bytes);

  absl::Status EndDocument();

  // Ends the file.
  absl::Status End();

 private:
  absl::Status WriteText(const std::string& text);
  absl::Status EndRecord();
  // Moves on by `size_bytes` of the document; returns the part of these that is
  // written.
  std::pair<uint64_t, uint64_t> Pass(uint64_t size_bytes);

  ExportFormat& format_;
  ExportOutput& output_;
  DocumentFrame frame_;
  uint64_t position_ = 0;
};

// Documents as members with their ids as names and their times. Of names that
// come again 8 bytes each are kept, of four million at most.
std::unique_ptr<ExportFormat> MakeTarExport();

// Records of a WARC as they are, those of an ARC as arc_conversion.h makes
// them, other documents in records of type `resource`, before the first of
// which there is one of type `warcinfo`. So the export of a crawl is what its
// uncompressed WARCs were, one after the other. `now_ms` is the time of
// documents that have none.
std::unique_ptr<ExportFormat> MakeWarcExport(v1::ArchiveDescription archive,
                                             int64_t now_ms);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_EXPORT_FORMAT_H_
