// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sources of documents: directories, tars, zips, WARCs, ARCs, WACZs, archives
// of Quire, single files.
//
// Rules for every source:
// - Only regular files become documents. Directories are walked; symbolic links
//   are never followed (except if an input is itself a link). Links, devices,
//   pipes and sockets are skipped and counted.
// - Bytes are preserved. Ids are bytes and are preserved too.
// - Data that cannot be read to its end is an error that names it. Nothing is
//   lost silently: listeners are notified of skipped and doubtful entries
//   (EntryNote).
#ifndef QUIRE_SERVER_INGEST_SOURCES_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/filter/field_value.h"
#include "server/ingest/sources/deposit_source.h"
#include "server/ingest/sources/id_rules.h"
#include "server/ingest/sources/streams/member_stream.h"

namespace quire {

// A field that a source reads of each document.
struct SourceField {
  std::string name;
  // Type of all values; kNull: it is found by the values.
  FieldType type = FieldType::kNull;
};

// A value of a field as a source has it.
struct SourceValue {
  enum class Form {
    kNull,
    // JSON: a string, or another value as it is written.
    kString,
    kNumber,
    kBoolean,
    kNested,
    // Text without a type, as of a CSV.
    kText,
    // `value` has the type of the field, or is null.
    kTyped,
  };

  Form form = Form::kNull;
  std::string text = {};
  FieldValue value = {};
};

// What a record of a crawl says for an index of captures.
struct CrawlRecord {
  // As the record states it, whatever the id of its document becomes.
  std::string url = {};
  // Empty if absent.
  std::string record_id = {};
  std::string concurrent_to = {};
  // Of a response: status of HTTP, 0 without one, and digest, unchanged.
  uint32_t status = 0;
  std::string digest = {};
  // Of a request for which HasMethodKey(): UrlWithMethod(), both of
  // codecs/surt/method_query.h.
  std::string method_url = {};
  // Its key, if the source has it: an archive.
  std::string key = {};
};

// A document, before its bytes are read.
struct SourceDocument {
  // Any bytes.
  std::string id;
  // Size if known in advance; the length of Read() is authoritative.
  std::optional<uint64_t> size_bytes;
  // Modification time of a file or a member of a tar or zip; WARC-Date of a
  // record.
  std::optional<int64_t> capture_time_ms;
  std::string record_type;
  std::string media_type;
  // The input has a mode or an owner for it. Archives have neither.
  bool has_mode = false;
  bool has_owner = false;
  // The id is one that the input gives to records, such as the key of a table:
  // repetitions are noted.
  bool has_given_id = false;
  // One for each of Source::fields(), or none.
  std::vector<SourceValue> fields = {};
  // Set for a record of a crawl with a URL.
  std::optional<CrawlRecord> record = std::nullopt;
  // The file whose text continues with this document, and its path in the
  // input: the same object for all documents of a file. Null for documents that
  // are files themselves, or that no file can be made of.
  std::shared_ptr<const DepositSource> deposit = nullptr;
  std::string deposit_path = {};
};

// Notes about single entries of an input.
enum class EntryNote {
  // Skipped.
  kSymbolicLink,
  // A device, pipe or socket.
  kSpecialFile,
  // A hard link whose target is not in its tar.
  kDanglingLink,
  // Excluded by the user's IdRules.
  kExcluded,
  // A document that is a container and could be expanded.
  kUnexpanded,
  // A document or input whose name does not match its contents.
  kMisnamed,
  // A record without a usable value of a field of LineSplit.
  kBadRecord,
  // A part of an input that was read although it deviates from its format, or
  // that changed during the build.
  kTolerated,
  // A file that is kept as it is, in a format that other programs convert.
  kForeignFormat,
  // A record whose given id an earlier record has.
  kRepeatedId,
  // A record of a crawl that deviates from its format and is kept as it is.
  kIrregularRecord,
};

// `text` names the entry and its file; from kMisnamed on it is a whole
// sentence. Any bytes.
using NoteListener =
    std::function<void(EntryNote note, const std::string& text)>;

// Entries of an input that are not documents. Directories are not counted.
struct SkippedEntries {
  uint64_t symbolic_links = 0;
  // Devices, pipes, sockets.
  uint64_t special_files = 0;
  // Hard links whose target is not in their tar.
  uint64_t dangling_links = 0;
  // Entries below an excluded directory are not counted.
  uint64_t excluded = 0;

  SkippedEntries& operator+=(const SkippedEntries& other) {
    symbolic_links += other.symbolic_links;
    special_files += other.special_files;
    dangling_links += other.dangling_links;
    excluded += other.excluded;
    return *this;
  }
};

// One pass over the documents of an input, in the same order in every pass. All
// calls block on I/O.
// Thread-compatible.
class SourceReader {
 public:
  virtual ~SourceReader() = default;

  // Moves to the next document, skipping the rest of the current one; nullopt
  // after the last.
  // Errors: DataLoss     the input is malformed or truncated; names file and
  //                      position.
  //         ResourceExhausted  it decompresses to more than OpenSource()
  //                            allows.
  //         Unavailable  it cannot be read.
  // After an error the reader is unusable unless CanContinue().
  virtual absl::StatusOr<std::optional<SourceDocument>> Next() = 0;

  // Position of the current document in the input, for messages: "record 3
  // (from 0) at byte 512 of the uncompressed WARC". Safe to print.
  // REQUIRES: Next() returned a document.
  virtual std::string Place() const = 0;

  // Reads the next bytes of the current document; 0 at its end. May return
  // fewer than requested before that.
  // REQUIRES: !out.empty(); Next() returned a document.
  // Errors: as Next().
  virtual absl::StatusOr<size_t> Read(MutableByteView out) = 0;

  // Skips up to `size_bytes` of the current document, cheaper than Read() if
  // the input is seekable. Returns the number skipped: fewer than requested
  // only at the document's end.
  // REQUIRES: Next() returned a document.
  // Errors: as Next().
  virtual absl::StatusOr<uint64_t> Skip(uint64_t size_bytes);

  // Returns the check that the text of the current document awaits, such as the
  // checksum at the end of a compressed file; null if it was checked, or there
  // is no check.
  // REQUIRES: the document was read or skipped to its end.
  virtual std::shared_ptr<const TextCheck> AwaitedCheck() const {
    return nullptr;
  }

  // True if Next() may be called after an error of the last call: it continues
  // after the failed entry. Every pass gives the same result after the same
  // error.
  virtual bool CanContinue() const { return false; }

  // Entries skipped so far.
  virtual SkippedEntries skipped() const { return skipped_; }

  // Calls `listener` with each note from now on. Without a listener kUnexpanded
  // and kMisnamed are not determined: in directories they cost an open file
  // each.
  virtual void Listen(NoteListener listener) {
    listener_ = std::move(listener);
  }

 protected:
  // Counts a skipped entry and notifies the listener.
  void Note(EntryNote note, const std::string& text);

  const NoteListener& listener() const { return listener_; }

 private:
  SkippedEntries skipped_;
  NoteListener listener_;
};

// Inputs, files and records that could not be read.
struct UnreadInputs {
  uint64_t count = 0;
  // Why, for people; of the first of them.
  std::vector<std::string> messages = {};
};

// An input that can be read several times: building takes passes to count, to
// sample the dictionary and to encode. Immutable, thread-safe; readers keep
// their resources alive.
class Source {
 public:
  virtual ~Source() = default;

  // The path from the user, for messages.
  virtual const std::string& name() const = 0;

  // Detected kind: "directory", "tar", "zip", "warc", "arc", "wacz",
  // "archive", "parquet", "file".
  virtual const char* kind() const = 0;

  // Fields of its documents.
  virtual std::vector<SourceField> fields() const { return {}; }

  // Inputs that could not be read when an archive was built, which is one now.
  virtual UnreadInputs unread_inputs() const { return {}; }

  // Size on disk if the documents may be larger: for all containers.
  // Errors: Unavailable.
  virtual absl::StatusOr<std::optional<uint64_t>> StoredSizeBytes() const {
    return std::nullopt;
  }

  // Errors: NotFound, PermissionDenied, Unavailable  it cannot be opened (any
  //   more).
  virtual absl::StatusOr<std::unique_ptr<SourceReader>> Open() const = 0;
};

// Ids for documents of containers in directories.
enum class MemberIds {
  // The container's path in the directory, a slash, and the document's id in
  // the container. These ids are unique: the container is a file, so no other
  // file is below it.
  kPathAndMember,
  // The id in the container alone, as if it were a separate input.
  kMember,
};

// Lines as documents (line_source.h). Empty names: no such field.
struct LineSplit {
  std::string id_field = {};
  std::string text_field = {};
  // Has the capture time: a string as ParseFieldTime() takes.
  std::string time_field = {};

  // A field of the documents, and where its value is: the path of a member, or
  // a column.
  struct Field {
    std::string name;
    std::string path;
  };

  std::vector<Field> fields = {};

  // True if fields of records are read.
  bool has_fields() const {
    return !id_field.empty() || !text_field.empty() || !time_field.empty() ||
           !fields.empty();
  }

  // Between the fields of a CSV. Default: that of its line "sep=", or a comma.
  std::optional<char> delimiter = std::nullopt;
};

struct SourceOptions {
  // For inputs that must be read more than once but cannot.
  std::string spool_directory = {};
  // Maximum decompressed size of a compressed input, or of standard input,
  // including headers. Default: see input_limits.h. More is an error of Open()
  // or of the reader.
  std::optional<uint64_t> input_size_bytes_max = std::nullopt;
  // Largest window or dictionary of a compressed input; it takes as much
  // memory.
  uint64_t window_size_bytes_max = kWindowSizeBytesDefault;
  // Expand containers in directories. Zips and WACZs only by name: office
  // documents and programs are zips too.
  bool expand = false;
  MemberIds member_ids = MemberIds::kPathAndMember;
  // Read documents after damage where possible: in WARCs and ARCs, and between
  // the members of WACZs.
  bool skip_damage = false;
  // Null: all documents, with unchanged ids.
  std::shared_ptr<const IdRules> id_rules = nullptr;
  // Set: what would be a document is split into lines.
  std::optional<LineSplit> split = std::nullopt;
  // Threads that decode an input that is an archive, at least 1.
  uint32_t decode_threads = 1;
};

// Looks at what `path` is, by its contents and not its name, and returns its
// source:
//   directory   every regular file below it is a document, in bytewise order of
//               its relative path, which is its id. Its time is in whole
//               seconds, as in tars and zips. SourceOptions::expand replaces
//               containers by their documents.
//   archive     a directory with the manifest of an archive: its documents,
//               with their ids and attributes, in their order.
//   tar, zip    every regular file in it, in its order, with its name as id,
//               without leading "./". A hard link is a document with the
//               contents of its target.
//   WARC        1.0 or 1.1, or the drafts 0.17 and 0.18; every record, from its
//               version line to the two line ends after its block: all
//               documents together are the (uncompressed) WARC, byte for byte.
//   ARC         version 1 or 2; every record, from its header line to the next
//               one: all documents together are the (uncompressed) ARC.
//   WACZ        the records of all WARCs in its archive/, in bytewise order of
//               the names of these (wacz_source.h).
//   Parquet     with fields of SourceOptions::split: its rows, as JSON Lines
//               that a child process writes (packed_source.h).
//   other       one document; its id is the last component of the path, its
//               time as in a directory.
// Tars, zips, WARCs and ARCs may be compressed as a whole: by gzip or zstd, in
// any number of members, or bzip2, compress, lz4, lzip, lzma or xz. Zstd
// may begin with a dictionary (zstd_dictionary.h). Any other compressed file is
// one unchanged document. Files inside tars and zips are not decompressed. The
// file is opened now, and every pass uses the same descriptor: renaming or
// deleting it has no effect.
//
// "-" is a container on standard input. It is spooled to an unnamed file
// in the spool directory because it is read more than once. Blocks until the
// input ends. The targets of hard links of a compressed tar are spooled there
// too, at the first such link.
//
// With SourceOptions::split each of these documents is split into lines, also
// in compressed files and of other text on standard input, whose id is
// "standard input". IdRules exclude files, and rename both files and ids from
// fields.
//
// Errors: NotFound           no such file.
//         InvalidArgument    not a file or directory; standard input is not a
//                            container, nor to be split; or a WARC or an
//                            archive is to be split.
//         ResourceExhausted  standard input is over the limit.
//         FailedPrecondition  an archive that this program cannot read whole.
//         DataLoss           a damaged archive; or begins like a compressed
//         file or a tar, but is
//                            damaged from the start.
absl::StatusOr<std::unique_ptr<Source>> OpenSource(
    const std::string& path, const SourceOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_SOURCE_H_
