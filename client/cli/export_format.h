// SPDX-License-Identifier: Apache-2.0
//
// Text around the documents of an export, by the file's format.
#ifndef QUIRE_CLIENT_CLI_EXPORT_FORMAT_H_
#define QUIRE_CLIENT_CLI_EXPORT_FORMAT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/cli/gzip_members.h"
#include "client/cli/output_file.h"
#include "codecs/base/bytes.h"

namespace quire {

// Documents that messages name; more are only counted.
inline constexpr uint64_t kNamedDocumentsMax = 20;

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

// Called for each document in turn: Before(), then, with its bytes written,
// After(); and End() once at the end. Thread-compatible.
class ExportFormat {
 public:
  virtual ~ExportFormat() = default;

  // Text before the document's bytes.
  virtual std::string Before(const v1::Document& document) = 0;

  // Text after the document's bytes.
  virtual std::string After(const v1::Document& document) = 0;

  // Text after the last document.
  virtual std::string End() = 0;

  // Required first bytes of the document. Valid as long as the format.
  virtual absl::string_view MustBeginWith(const v1::Document& document) const {
    static_cast<void>(document);
    return {};
  }

  // Checks `part`, the bytes of the document from `offset` on, against
  // MustBeginWith().
  // Errors: DataLoss  names the document.
  absl::Status CheckPart(const v1::Document& document, uint64_t offset,
                         absl::string_view part) const;

  // True if each record of a compressed file is a gzip member. A record ends
  // with the text that Before() or After() returned.
  virtual bool has_members() const { return false; }

  // Notes for readers of the file, each for a separate message.
  virtual std::vector<std::string> Notes() const = 0;
};

// Documents as members with their ids as names and their times. Of names that
// come again 8 bytes each are kept, of four million at most.
std::unique_ptr<ExportFormat> MakeTarExport();

// Records of a crawl as they are, other documents in records of type
// `resource`, before the first of which there is one of type `warcinfo`. So the
// export of a crawl is what its uncompressed WARCs were, one after the other.
// `now_ms` is the time of documents that have none.
std::unique_ptr<ExportFormat> MakeWarcExport(v1::ArchiveDescription archive,
                                             int64_t now_ms);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_EXPORT_FORMAT_H_
