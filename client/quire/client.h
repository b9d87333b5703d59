// SPDX-License-Identifier: Apache-2.0
//
// Client of a Quire server: ranges, documents, batches of them, whole archives,
// listings. Start at Client::Connect(); example.cc is a complete program.
//
//   QUIRE_ASSIGN_OR_RETURN(auto client, Client::Connect({}));
//   QUIRE_ASSIGN_OR_RETURN(ReadResult page, client->ReadDocument(
//       "web", DocumentKey::Id("https://example.org/")));
//
// Properties of every call:
//   - Payloads are verified by their checksums, and answers against the
//     request. Bytes passed to the caller are correct.
//   - Answers are requested in ClientOptions::encoding and decoded; the tables
//     for this are fetched once per client.
//   - A call that the server refuses with a delay (RetryInfo), as it opens the
//     archive (ARCHIVE_OPENING), is busy (SERVER_BUSY) or limits this client
//     (QUOTA_EXCEEDED), is repeated after that delay, until its time limit:
//     ClientOptions::deadline, or stream_idle_max for streams. A longer delay
//     than the rest of the limit fails at once. The error is the server's,
//     with the time that was waited in its message and RetryDelayOf() of
//     client_status.h.
//   - A call that fails otherwise with Unavailable before its first answer is
//     retried (ClientOptions::attempts_max). Scans and batches resume at their
//     position.
//   - Repeated calls have the metadata `quire-attempt`, by which proxies send
//     them to other servers (kAttemptMetadataKey of
//     codecs/base/archive_name.h).
//   - Errors are absl::Status with the server's code (archive.proto documents
//     the meaning and retries) and message; ErrorReasonOf() of client_status.h
//     returns the machine-readable reason. Errors of the client:
//       Unavailable       the server cannot be reached, or disconnected
//       Unauthenticated   the server's certificate is not accepted
//       DeadlineExceeded  no answer in time
//       DataLoss          received bytes do not match their checksum, do not
//                         decode correctly, or are fewer than announced
//       Internal          the server answered something that was not requested
#ifndef QUIRE_CLIENT_QUIRE_CLIENT_H_
#define QUIRE_CLIENT_QUIRE_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/channel_security.h"
#include "client/quire/read_target.h"
#include "client/quire/wire_encoding.h"
#include "codecs/base/bytes.h"

namespace quire {

class BatchReader;
class CaptureIndexLister;
class Connection;
class RetryGovernor;
class WireCall;
class DocumentLister;
struct BatchAnswer;
struct BatchOptions;
struct CaptureListOptions;

struct ClientOptions {
  // --- Affects behaviour.

  // HOST:PORT, [IPV6]:PORT, unix:PATH, or any other gRPC target with a scheme
  // ("ipv4:192.0.2.1:7420,192.0.2.2:7420"). Calls are spread over all addresses
  // that it resolves to, whose servers must have the same archives: each call,
  // stream or attempt goes to the next reachable one.
  std::string address = "127.0.0.1:7420";

  // TLS and tokens; default: neither.
  ChannelSecurity security;

  // Returns the `traceparent` header (W3C Trace Context, section 3.2) of a
  // call, which names its trace in the server's access log. Called for each
  // attempt on the thread that starts it; must be thread-safe. If null, or if
  // the result is not a header of version 00, calls are sent without one.
  std::function<std::string()> trace_parent;

  // Returns the `authorization` header of a call, "Bearer ID.SECRET", for a
  // program that forwards the tokens of others. Called as trace_parent is; if
  // null, or if the result has another form, calls are sent without one. Like a
  // token file, it needs TLS, a unix socket or a server on this machine
  // (CanCarryToken()), and excludes `security.token_file`.
  std::function<std::string()> authorization;

  // Deadline of a call with one answer, including all attempts. Positive;
  // InfiniteDuration() means none.
  absl::Duration deadline = absl::Seconds(30);

  // Streams: maximum wait for the next message, since their duration depends on
  // their size. The time of the caller's sink does not count.
  absl::Duration stream_idle_max = absl::Seconds(30);

  // Attempts per call that fail with Unavailable, without a delay from the
  // server, 1 to 100: bounds the time until a dead server is reported. For
  // scans and batches, how often in a row the stream may break without a
  // message in between. If this is over 1, a server that has answered this
  // client before may take longer to return: `deadline` for calls with one
  // answer, `stream_idle_max` for streams. Attempts after a delay that the
  // server named are not limited by this.
  int attempts_max = 4;

  // False: a server that has answered before does not get that longer time.
  bool awaits_return = true;

  // Delay before the second attempt; doubles with each further attempt, up to
  // 20 times, with random jitter. At least a millisecond.
  absl::Duration retry_backoff = absl::Milliseconds(100);

  // Waits for a delay that the server named, on the thread of the call, and
  // returns true; or returns false without waiting, and the call fails with the
  // server's error. For programs that must keep threads free. Not called for
  // batches, which wait on a thread of their own. Must be thread-safe. If null,
  // the thread sleeps.
  std::function<bool(absl::Duration)> told_wait;

  // --- Affects performance and memory.

  // Encoding of answers unless the call specifies one. It does not change the
  // decoded bytes.
  EncodingChoice encoding = EncodingChoice::kIdentity;

  // A directory for symbol tables and dictionaries, which are fetched when
  // first needed and kept for later runs. Created if missing; programs may
  // share it. Empty: kept in memory only.
  std::string cache_directory;

  // Upper bound on a dictionary for `stored`, and on all dictionaries in memory
  // with their decoders: the least used are evicted. Larger ones are not
  // fetched, and `auto` does not choose encodings that need them.
  size_t dictionary_size_bytes_max = size_t{256} << 20;

  // Threads that decode messages of one stream while the next ones arrive. A
  // stream of encoded answers has one more thread to receive, and holds at most
  // decode_threads + 2 messages. 0 to 64; 0: as many as the machine runs at
  // once, at most 16.
  int decode_threads = 0;

  // Limit on the size of a message from the server, and on the size that an
  // encoded message decodes to. Must hold an answer of
  // Limits.read_size_bytes_max, which is at most 8 MiB. A larger message fails
  // with ResourceExhausted. A parsed message takes several times its size, up
  // to 32 times if a hostile server makes it of empty parts.
  size_t message_size_bytes_max = size_t{16} << 20;

  // Interval of probes on a connection without traffic while calls wait on it;
  // it is closed after keepalive_timeout without an echo. At least 10 seconds:
  // servers disconnect clients that probe more often.
  absl::Duration keepalive_interval = absl::Seconds(60);
  absl::Duration keepalive_timeout = absl::Seconds(20);
};

struct ReadResult {
  // Offset of data[0] in the archive's logical space.
  uint64_t offset = 0;
  // Set if a document was requested.
  std::optional<v1::Document> document;
  std::string data;
  // Uuid of the contents that were read, if ReadOptions named none. Empty for
  // batches, and for what is over Limits.read_size_bytes_max.
  std::string archive_uuid = {};
  // With the same limits, if a range was read: the hash of the ranges of these
  // contents that read as zeros because documents were withdrawn. Differs if
  // the ranges do; 0 if there are none.
  uint64_t zeros_hash = 0;
};

struct ReadOptions {
  // Uuid of the state of the archive to read (ArchiveDescription.uuid, or one
  // of its history): documents that were appended later do not exist. If the
  // archive does not have it, the call fails with FailedPrecondition
  // (IsOfOtherContents() of client_status.h). Unset: the present state. Set it
  // where several calls must read the same contents.
  std::optional<std::string> archive_uuid = {};
  // Unset: ClientOptions::encoding.
  std::optional<EncodingChoice> encoding = {};
};

struct ScanOptions {
  // Offset in the archive's logical space; ignored with a resume token.
  uint64_t offset = 0;
  // Unset: to the end of the archive. Not together with a resume token.
  std::optional<uint64_t> size_bytes;
  // From ScanPiece: resumes after its piece, up to the end of its scan.
  std::string resume_token;
  // See ReadOptions. The messages of one scan are always of the same contents.
  std::optional<std::string> archive_uuid = {};
  // Unset: ClientOptions::encoding.
  std::optional<EncodingChoice> encoding = {};
  // Scans the archive in the fastest order for the server if text is stored in
  // another order than its own (`quired build --reorder`): pieces then have
  // places. Excludes `offset` and `size_bytes`.
  bool stored_order = false;
};

// Position of some bytes of a piece.
struct ScanPlace {
  // Offset in the archive's logical space.
  uint64_t offset = 0;
  ByteView data;
};

// One piece of a scan. Valid during the sink's call.
struct ScanPiece {
  // Offset in the archive's logical space; meaningless if there are places.
  uint64_t offset = 0;
  ByteView data;
  // Resumes after this piece while the archive has the same contents; may be
  // stored on
  // disk.
  absl::string_view resume_token;
  // In stored order, if the archive has one: positions of the bytes. The places
  // of all pieces cover each byte of the archive once; otherwise the scan fails
  // at the end (DataLoss). A scan resumed by the caller's token does not know
  // the earlier ones. Empty for other archives and servers.
  absl::Span<const ScanPlace> places = {};
};

struct ListOptions {
  // Documents whose id starts with it.
  std::string prefix = {};
  // Lists documents whose id has this after `prefix` as their common prefixes.
  // 1 to 256 bytes; unset: lists all documents.
  std::optional<std::string> delimiter = {};
  // Lists documents in the order of the archive, from this ordinal on, without
  // those that are withdrawn. Excludes `prefix` and `delimiter`. Unset: by id,
  // then ordinal.
  std::optional<uint64_t> first_ordinal = {};
  // See ReadOptions. The pages of one listing are always of the same contents.
  std::optional<std::string> archive_uuid = {};
  // Entries of a page, 1 to Limits.page_size_max, which also bounds larger
  // values. Unset: the server chooses.
  std::optional<uint32_t> page_size = {};
  // From ListPage: continues the same listing. Empty: from the start.
  std::string page_token = {};
  // Also lists documents that `quired redact` removed, which have the record
  // type kWithdrawnRecordType. Otherwise they are skipped and counted.
  bool with_withdrawn = false;
  // Names of fields (ArchiveDescription.fields): each document has their
  // values, in this order, in Document.fields.
  std::vector<std::string> fields = {};
  // Lists only documents that match this filter (codecs/filter/filter.h), which
  // the server evaluates. Withdrawn documents that do not match are not
  // counted.
  std::optional<std::string> filter = {};
};

// Stands for all documents whose id starts with it: the id up to the end of the
// first delimiter after the prefix of the listing.
struct CommonPrefix {
  std::string text;
};

using ListEntry = std::variant<v1::Document, CommonPrefix>;

struct ListPage {
  // May be empty, also on other pages than the last.
  std::vector<ListEntry> entries;
  // For ListOptions; empty on the last page.
  std::string next_page_token;
  // Withdrawn documents of the page that were skipped.
  uint64_t withdrawn_count = 0;
};

// Receives the next bytes of a stream and their offset (in the archive's
// logical space, or in the dictionary); never empty. If its result is not OK,
// it ends the stream and is the call's result. Runs on the calling thread.
using ByteSink = absl::FunctionRef<absl::Status(uint64_t offset, ByteView)>;
using ScanSink = absl::FunctionRef<absl::Status(const ScanPiece&)>;
// Receives a document's description, before its first byte.
using DocumentSink = absl::FunctionRef<absl::Status(const v1::Document&)>;
// The same for a deposited file.
using DepositedFileSink =
    absl::FunctionRef<absl::Status(const v1::DepositedFile&)>;

// A connection to one server, or to several behind one gRPC target or proxy.
// Calls for an archive carry its name in the metadata `quire-archive`, by which
// a proxy selects a server, and repeated ones `quire-attempt`; ListArchives()
// has no archive. Servers behind one proxy
// must have the same limits.
// Thread-safe: any number of calls may run at once. All calls block the calling
// thread until they complete. Batches and listers keep the connection open if
// the client is destroyed.
class Client {
 public:
  // Reads the files of ClientOptions::security. Does not contact the server:
  // the first call does, and reports if no server listens.
  // Errors: InvalidArgument     an option out of its range.
  //         FailedPrecondition  a file of `security` is unusable.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);

  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Lists all archives of the server, by name.
  absl::StatusOr<std::vector<v1::ArchiveDescription>> ListArchives();

  // Errors: NotFound.
  absl::StatusOr<v1::ArchiveDescription> GetArchive(absl::string_view archive);

  // Returns the server's limits. Asks it once, then answers from memory. Behind
  // a proxy the server of `archive` is asked, if one is given.
  absl::StatusOr<v1::Limits> GetLimits(absl::string_view archive = {});

  // Reads one range or document into memory. A range over
  // Limits.read_size_bytes_max is streamed internally.
  // Errors: NotFound, OutOfRange, InvalidArgument, FailedPrecondition,
  //   DataLoss, and as above.
  absl::StatusOr<ReadResult> Read(absl::string_view archive,
                                  const ReadTarget& target,
                                  const ReadOptions& options = {});

  // Starts a Read() of at most Limits.read_size_bytes_max, in identity, and
  // does not wait. `done` gets the result, once, on a thread that all such
  // calls share, and must not block it; if the system gives no thread, before
  // this returns. The call is not repeated, whatever the server asks for: if it
  // fails, Read() may succeed.
  // The client must outlive the call of `done`.
  using ReadDone = std::function<void(absl::StatusOr<ReadResult>)>;
  void StartRead(absl::string_view archive, ReadTarget target,
                 const ReadOptions& options, ReadDone done);

  // Read() of one document.
  absl::StatusOr<ReadResult> ReadDocument(absl::string_view archive,
                                          const DocumentKey& key,
                                          const ReadOptions& options = {});

  // Reads one range or document of any size, in pieces, in bounded memory. For
  // a document, `on_document` is called first. Bytes passed to `sink` are
  // correct even if the call fails. It is not resumed after the first piece,
  // since the archive might have been replaced.
  absl::Status ReadStream(absl::string_view archive, const ReadTarget& target,
                          DocumentSink on_document, ByteSink sink,
                          const ReadOptions& options = {});

  // Reads an archive, or a range of it, in logical order. After Unavailable it
  // resumes with the last token, so that `sink` sees each byte once.
  // Errors: NotFound, OutOfRange, DataLoss, InvalidArgument,
  //   FailedPrecondition (also: the archive has other contents than the resume
  //   token, or no longer the stored order of it (IsOfOtherContents()), or has
  //   withdrawn documents (IsWithdrawn()): scan again), and as above.
  absl::Status Scan(absl::string_view archive, const ScanOptions& options,
                    ScanSink sink);

  // Begins a batch; see batch_reader.h. Does not block.
  std::unique_ptr<BatchReader> StartBatch(absl::string_view archive,
                                          const BatchOptions& options);

  // Reads all of `items`; calls `on_answer` once for each, in order of arrival.
  // BatchAnswer::tag is the index in `items`. Each answer has its item's
  // result.
  // Errors: the result of `on_answer`, which ends the batch.
  absl::Status ReadBatch(
      absl::string_view archive, std::vector<ReadTarget> items,
      absl::FunctionRef<absl::Status(BatchAnswer)> on_answer);

  // Lists documents. Does not block: the lister requests pages as needed.
  DocumentLister ListDocuments(absl::string_view archive,
                               const ListOptions& options = {});

  // Lists captures of a crawl by URL; see capture_index_lister.h. Does not
  // block.
  CaptureIndexLister ListCaptures(absl::string_view archive,
                                  const CaptureListOptions& options);

  // Lists deposited files whose path starts with `prefix`, by path: calls
  // `on_file` for each. Errors: NotFound, and as above.
  absl::Status ListFiles(absl::string_view archive, absl::string_view prefix,
                         DepositedFileSink on_file,
                         const ReadOptions& options = {});

  // Reads a deposited file, or a part of it, in pieces. `on_file` is called
  // first. After Unavailable it resumes, if the file is still the same.
  // Errors: NotFound, OutOfRange, PermissionDenied (IsWithdrawn()), Aborted
  //   (the file was replaced meanwhile), DataLoss, and as above.
  absl::Status ReadFile(absl::string_view archive, absl::string_view path,
                        std::optional<ByteSpan> part, DepositedFileSink on_file,
                        ByteSink sink, const ReadOptions& options = {});

  // Describes a deposited file. Errors: as ReadFile().
  absl::StatusOr<v1::DepositedFile> DescribeFile(
      absl::string_view archive, absl::string_view path,
      const ReadOptions& options = {});

  // Reads a dictionary's text, by the hash of an ArchiveDescription; resumes
  // after Unavailable. `sink` receives it in order. Behind a proxy the server
  // of `archive` is asked, if one is given. Errors: NotFound, and as above.
  absl::Status GetDictionary(absl::string_view hash, ByteSink sink,
                             absl::string_view archive = {});

  // Returns the traffic so far, by encoding. Does not block.
  WireStats GetWireStats() const;

 private:
  explicit Client(std::shared_ptr<Connection> connection);

  absl::StatusOr<ReadResult> ReadLarge(absl::string_view archive,
                                       const ReadTarget& target,
                                       const ReadOptions& options);
  // As ReadStream(), with the attempts of `governor`; `has_begun`: a message
  // has arrived.
  absl::Status StreamUntilBegun(RetryGovernor& governor,
                                absl::string_view archive,
                                const ReadTarget& target,
                                DocumentSink on_document, ByteSink sink,
                                const ReadOptions& options, bool& has_begun);
  absl::Status StreamOnce(WireCall& call, const v1::ReadRequest& request,
                          int attempt, const ReadTarget& target,
                          DocumentSink on_document, ByteSink sink,
                          bool& has_begun);

  const std::shared_ptr<Connection> connection_;
};

// Iterates over a listing, page by page.
// Thread-compatible. Obtained from Client::ListDocuments().
class DocumentLister {
 public:
  // `first` has the archive and the selection of documents.
  DocumentLister(std::shared_ptr<Connection> connection,
                 v1::ListDocumentsRequest first, bool with_withdrawn);

  // Returns the next entry, or nothing at the end. Documents and common
  // prefixes come in one order, by their bytes. Blocks to fetch a page. After
  // an error every further call gives the same error.
  // Errors: NotFound            no such archive.
  //         FailedPrecondition  the archive was replaced by other contents
  //                             since the first page, or has others than
  //                             ListOptions::archive_uuid; or the server does
  //                             not know fields or filters.
  //         InvalidArgument     an unknown field, or a malformed filter.
  //         And as all calls.
  absl::StatusOr<std::optional<ListEntry>> NextEntry();

  // Returns the next document; skips common prefixes. Otherwise as NextEntry().
  absl::StatusOr<std::optional<v1::Document>> Next();

  // Returns the next page, for programs that hand out its token; REQUIRES: only
  // this is called. Otherwise as NextEntry().
  absl::StatusOr<ListPage> NextPage();

  // Withdrawn documents that were skipped so far.
  uint64_t withdrawn_count() const { return withdrawn_count_; }

 private:
  bool has_entry() const {
    return next_document_ < page_.documents_size() ||
           next_prefix_ < page_.common_prefixes_size();
  }

  // Returns the next entry of the page, or nothing if it was skipped.
  // REQUIRES: has_entry().
  absl::StatusOr<std::optional<ListEntry>> TakeEntry();
  // Error if the server did not answer the request.
  absl::Status CheckDocument(const v1::Document& document);
  absl::Status CheckCommonPrefix(const std::string& prefix);
  absl::Status FetchPage();

  const std::shared_ptr<Connection> connection_;
  const bool with_withdrawn_;
  v1::ListDocumentsRequest request_;
  v1::ListDocumentsResponse page_;
  int next_document_ = 0;
  int next_prefix_ = 0;
  std::string last_prefix_;
  // In a listing in archive order: the least ordinal that may follow.
  uint64_t next_ordinal_ = 0;
  uint64_t withdrawn_count_ = 0;
  bool last_page_ = false;
  absl::Status status_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_CLIENT_H_
