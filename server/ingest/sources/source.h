// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where documents come from: directories, tars, zips, WARCs, single files.
//
// What every source keeps to:
// - Only regular files become documents. Directories are walked; symbolic links
//   are never followed (but an input that is itself a link is); links,
//   devices, pipes and sockets are left out and counted.
// - Bytes are kept as they are, ids are bytes and are kept as they are.
// - What cannot be read to its end is an error that names it. Nothing is lost
//   in silence: what is left out or may not be as was meant is told to whoever
//   listens (EntryNote).
#ifndef QUIRE_SERVER_INGEST_SOURCES_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/id_rules.h"

namespace quire {

// A document, before its bytes are read.
struct SourceDocument {
  // Any bytes.
  std::string id;
  // If known beforehand; what Read() returns counts.
  std::optional<uint64_t> size_bytes;
  // Of a file, and of a member of a tar or zip, when it was last changed.
  std::optional<int64_t> capture_time_ms;
  std::string record_type;
  std::string media_type;
};

// What is said of single entries of an input.
enum class EntryNote {
  // Left out.
  kSymbolicLink,
  // A device, pipe or socket.
  kSpecialFile,
  // A hard link of a tar whose target is not in that tar.
  kDanglingLink,
  // By the user's IdRules.
  kExcluded,
  // A document that is a tar, zip or WARC, and could be many.
  kUnexpanded,
  // A document, or an input, that is not what its name says.
  kMisnamed,
};

// `text` names the entry and its file, of kMisnamed it is a whole sentence. Any
// bytes.
using NoteListener =
    std::function<void(EntryNote note, const std::string& text)>;

// Entries of an input that are no documents. Directories are not counted.
struct SkippedEntries {
  uint64_t symbolic_links = 0;
  // Devices, pipes, sockets.
  uint64_t special_files = 0;
  // Hard links of a tar whose target is not in that tar.
  uint64_t dangling_links = 0;
  // What was below an excluded directory is not counted.
  uint64_t excluded = 0;

  SkippedEntries& operator+=(const SkippedEntries& other) {
    symbolic_links += other.symbolic_links;
    special_files += other.special_files;
    dangling_links += other.dangling_links;
    excluded += other.excluded;
    return *this;
  }
};

// One pass over the documents of an input, in an order that is the same in
// every pass. All calls block on I/O.
// Thread-compatible.
class SourceReader {
 public:
  virtual ~SourceReader() = default;

  // Goes to the next document, over what is left of the current one; nullopt
  // after the last.
  // Errors: DataLoss     the input is malformed or truncated; names file and
  //                      place.
  //         ResourceExhausted  it decompresses to more than OpenSource()
  //         allows. Unavailable  it cannot be read.
  // After an error the reader is of no more use unless CanContinue().
  virtual absl::StatusOr<std::optional<SourceDocument>> Next() = 0;

  // Where in the input the current document is, for messages: "record 3 (from
  // 0) at byte 512 of the uncompressed WARC". Fit for terminals.
  // REQUIRES: Next() returned a document.
  virtual std::string Place() const = 0;

  // Reads on in the current document; 0 at its end. May return less than asked
  // for before that.
  // REQUIRES: !out.empty(); Next() returned a document.
  // Errors: as Next().
  virtual absl::StatusOr<size_t> Read(MutableByteView out) = 0;

  // Passes over up to `size_bytes` of the current document, cheaper than
  // Read() where the input can be sought in. Returns how many there were: fewer
  // than asked for only at the document's end.
  // REQUIRES: Next() returned a document.
  // Errors: as Next().
  virtual absl::StatusOr<uint64_t> Skip(uint64_t size_bytes);

  // Whether Next() may be called once more after an error of the last call: it
  // goes on with what follows the entry that failed. After the same error every
  // pass answers the same.
  virtual bool CanContinue() const { return false; }

  // What was left out up to now.
  virtual SkippedEntries skipped() const { return skipped_; }

  // From now on `listener` is called with each note. Looking for kUnexpanded
  // and kMisnamed in directories costs an open file each, and is done only for
  // a listener.
  virtual void Listen(NoteListener listener) {
    listener_ = std::move(listener);
  }

 protected:
  // Counts what the note is about, if it is left out, and tells the listener.
  void Note(EntryNote note, const std::string& text);

  const NoteListener& listener() const { return listener_; }

 private:
  SkippedEntries skipped_;
  NoteListener listener_;
};

// An input that can be read several times: building takes passes to count, to
// sample the dictionary and to encode.
// Immutable, thread-safe; readers keep what they need of it alive.
class Source {
 public:
  virtual ~Source() = default;

  // For messages: the path as the user gave it.
  virtual const std::string& name() const = 0;

  // What the input was taken for: "directory", "tar", "zip", "warc", "file".
  virtual const char* kind() const = 0;

  // What the input takes where it lies, if its documents may hold more than
  // that: of tars, zips and WARCs. Errors: Unavailable.
  virtual absl::StatusOr<std::optional<uint64_t>> StoredSizeBytes() const {
    return std::nullopt;
  }

  // Errors: NotFound, PermissionDenied, Unavailable  it cannot be opened (any
  //         more).
  virtual absl::StatusOr<std::unique_ptr<SourceReader>> Open() const = 0;
};

// How the documents of containers in directories are named.
enum class MemberIds {
  // The container's path in the directory, a slash, and the id that the
  // document has in the container. No two containers share such ids, nor does a
  // file of the directory have one: the container is a file, so nothing can be
  // below it.
  kPathAndMember,
  // The id in the container alone, as if it were an input by itself.
  kMember,
};

struct SourceOptions {
  // For what must be read more than once and cannot.
  std::string spool_directory = {};
  // What the user allows a compressed input, or standard input, to hold in all,
  // decompressed, headers included; for the default see input_limits.h. What
  // goes over it is an error of Open() or of the reader.
  std::optional<uint64_t> input_size_bytes_max = std::nullopt;
  // Whether tars, zips and WARCs in directories are read as such. Of zips only
  // those that are called so: office documents and programs are zips too.
  bool expand = false;
  MemberIds member_ids = MemberIds::kPathAndMember;
  // Whether documents behind what cannot be read are read, where there is a way
  // to: WARCs that are gzipped record by record.
  bool skip_damage = false;
  // Null: all documents, by the ids that they have.
  std::shared_ptr<const IdRules> id_rules = nullptr;
};

// Looks at what `path` is, by its contents and not its name, and returns its
// source:
//   directory   every regular file below it is a document, ordered bytewise by
//            its path below the directory, which is its id. Its time is in
//            whole seconds, as tars and zips have it. With
//            SourceOptions::expand, tars, zips and WARCs among them are
//            replaced by their documents.
//   tar, zip every regular file in it, in its order, with its name as id, less
//            any "./" that it begins with. A hard link is a document with the
//            contents of its target.
//   WARC     1.0 or 1.1; every record, from its version line to the two line
//            ends behind its block: all documents together are the
//            (uncompressed) WARC, byte for byte.
//   other    one document, whose id is the last part of the path, with the
//            file's time as in a directory.
// Tars, zips and WARCs may be compressed as a whole: by gzip, in any number of
// members, or bzip2, compress, lz4, lzip, lzma, lzop, xz or zstd. A compressed
// file of anything else is one document, as it is. Inside tars and zips nothing
// is unpacked. The file is opened now and read through the
// same descriptor in every pass, so that renaming or deleting it does no harm.
//
// "-" is a tar (zip, WARC) on standard input, which is spooled to an unnamed
// file in the spool directory because it is read more than once. Blocks until
// the input ends. The targets of hard links of a compressed tar are spooled
// there too, when the first of these links is met.
//
// Errors: NotFound         no such file.
//         InvalidArgument  neither file nor directory; or standard input is
//                          none of the three.
//         ResourceExhausted  standard input is over the limit.
//         DataLoss         begins like a compressed file or a tar, but is
//                          damaged from the start.
absl::StatusOr<std::unique_ptr<Source>> OpenSource(
    const std::string& path, const SourceOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_SOURCE_H_
