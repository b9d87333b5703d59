// SPDX-License-Identifier: Apache-2.0
//
// Reading from a Quire server: ranges, documents, batches of them, whole
// archives, listings. Start at Client::Connect(); example.cc is a whole
// program.
//
//   QUIRE_ASSIGN_OR_RETURN(auto client, Client::Connect({}));
//   QUIRE_ASSIGN_OR_RETURN(ReadResult page, client->ReadDocument(
//       "web", DocumentKey::Id("https://example.org/")));
//
// What every call does on its own:
//   - Payloads are checked against their checksums, and answers against what
//     was asked. Bytes that are handed out are right.
//   - Answers are asked for in ClientOptions::encoding and decoded; tables that
//     this takes are fetched once per client.
//   - A call that fails with Unavailable before its first answer is tried again
//     (ClientOptions::attempts_max), by gRPC's retry policy. Scan and batches
//     go on from where they were, too, and also where the server is busy
//     (SERVER_BUSY), when it has said they should; other calls return that,
//     with RetryDelayOf() of client_status.h.
//   - Failures are absl::Status with the server's code (see archive.proto for
//     what each means and whether to retry) and message; ErrorReasonOf() of
//     client_status.h gives the machine-readable reason. Besides:
//       Unavailable       the server cannot be reached, or went away
//       Unauthenticated   the server's certificate is not accepted
//       DeadlineExceeded  no answer in time
//       DataLoss          received bytes do not match their checksum, do not
//                         decode to what they must, or fewer came than were
//                         announced
//       Internal          the server answered something that was not asked
#ifndef QUIRE_CLIENT_QUIRE_CLIENT_H_
#define QUIRE_CLIENT_QUIRE_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
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
class Connection;
class WireCall;
class DocumentLister;
struct BatchAnswer;
struct BatchOptions;

struct ClientOptions {
  // --- Affects behaviour.

  // HOST:PORT, [IPV6]:PORT, unix:PATH, or any other gRPC target with a scheme
  // ("ipv4:192.0.2.1:7420,192.0.2.2:7420"). Calls are spread over all addresses
  // that it resolves to, which must be of servers of the same archives: each
  // call, stream or attempt of one goes to the next that can be reached.
  std::string address = "127.0.0.1:7420";

  // TLS and tokens; without them neither.
  ChannelSecurity security;

  // The `traceparent` header (W3C Trace Context, section 3.2) of a call, by
  // which the server's access log names the trace that the call belongs to.
  // Asked for each attempt of a call by the thread that starts it; must be
  // thread-safe. Null, or if what it returns is no header of version 00: calls
  // are sent without one.
  std::function<std::string()> trace_parent;

  // Of one call with one answer, all attempts together. Positive;
  // InfiniteDuration() waits for ever.
  absl::Duration deadline = absl::Seconds(30);

  // Of streams, whose length depends on their size: how long to wait for the
  // next message. The time that the caller's own sink takes does not count.
  absl::Duration stream_idle_max = absl::Seconds(30);

  // Of one call, the first included: 1 to 5 (gRPC allows no more). For scans
  // and batches, how often in a row the stream may break without a message in
  // between. A server that has answered this client before is given longer to
  // come back, if this is over 1: `deadline` for calls with one answer,
  // `stream_idle_max` for streams.
  int attempts_max = 4;

  // Wait before the second attempt; doubles with each further one, up to 20
  // times as long, and is varied at random. At least a millisecond.
  absl::Duration retry_backoff = absl::Milliseconds(100);

  // --- Affects performance and memory.

  // How answers should travel, where the call does not say. What is handed out
  // is the same with all.
  EncodingChoice encoding = EncodingChoice::kIdentity;

  // A directory where symbol tables and dictionaries, which are fetched when
  // the first answer needs them, are kept for later runs; it is made if need
  // be, and may be shared by programs. Empty: they are kept in memory alone.
  std::string cache_directory;

  // Of a dictionary for `stored`, and of all that are held in memory together
  // with their decoders: what is used least goes. A larger one is not fetched,
  // and `auto` does not ask for what needs it.
  size_t dictionary_size_bytes_max = size_t{256} << 20;

  // Threads that decode messages of one stream while the next ones come; a
  // stream of encoded answers has one more to receive, and holds at most
  // decode_threads + 2 messages. 0 to 64; 0: as many as the machine runs at
  // once, at most 16.
  int decode_threads = 0;

  // Limit on the size of a message from the server, and on the size that an
  // encoded message decodes to. Must hold an answer of
  // Limits.read_size_bytes_max, which is at most 8 MiB. A larger message fails
  // with ResourceExhausted. A parsed message takes several times its size, up
  // to 32 times if a hostile server makes it of empty parts.
  size_t message_size_bytes_max = size_t{16} << 20;

  // A connection without traffic is probed this often while calls wait on it,
  // and given up after keepalive_timeout without an echo. At least 10 seconds:
  // servers cut off clients that probe more often.
  absl::Duration keepalive_interval = absl::Seconds(60);
  absl::Duration keepalive_timeout = absl::Seconds(20);
};

struct ReadResult {
  // Of data[0] in the archive's logical space.
  uint64_t offset = 0;
  // Set if a document was asked for.
  std::optional<v1::Document> document;
  std::string data;
};

struct ReadOptions {
  // Unset: ClientOptions::encoding.
  std::optional<EncodingChoice> encoding = {};
};

struct ScanOptions {
  // Of the archive's logical space; ignored with a resume token.
  uint64_t offset = 0;
  // Unset: to the end of the archive. Not together with a resume token.
  std::optional<uint64_t> size_bytes;
  // From ScanPiece, to go on after the piece that it came with, to the end that
  // its scan had.
  std::string resume_token;
  // Unset: ClientOptions::encoding. With `auto` a scan changes its encoding on
  // its way.
  std::optional<EncodingChoice> encoding = {};
  // All of the archive, in the order that is quickest for the server where text
  // is stored in another order than its own (`quired build --reorder`): pieces
  // then have places. Not together with `offset` and `size_bytes`.
  bool stored_order = false;
};

// Where some bytes of a piece belong.
struct ScanPlace {
  // Of the archive's logical space.
  uint64_t offset = 0;
  ByteView data;
};

// One piece of a scan. Valid during the sink's call.
struct ScanPiece {
  // Of the archive's logical space; without meaning where there are places.
  uint64_t offset = 0;
  ByteView data;
  // Goes on after this piece, as long as the archive stays the same; may be
  // kept on disk.
  absl::string_view resume_token;
  // In stored order, of an archive that has another one than its own: where
  // the bytes belong. Those of all pieces make up the archive, each byte once,
  // or the scan fails in the end (DataLoss); one that goes on by a resume token
  // of the caller's does not know of those before. Servers that know no such
  // order, and other archives, give none.
  absl::Span<const ScanPlace> places = {};
};

// Takes the next bytes of a stream and their offset (in the archive's logical
// space, or in the dictionary); never empty. What it returns, if not OK, ends
// the stream and is the call's result. Runs on the calling thread.
using ByteSink = absl::FunctionRef<absl::Status(uint64_t offset, ByteView)>;
using ScanSink = absl::FunctionRef<absl::Status(const ScanPiece&)>;
// Takes a document's description, before its first byte.
using DocumentSink = absl::FunctionRef<absl::Status(const v1::Document&)>;

// A connection to one server (or to several behind one gRPC target).
// Thread-safe: any number of calls may run at once. All calls block the calling
// thread until they are done. Destroying a client does not disturb its batches
// and listers, which keep the connection open.
class Client {
 public:
  // Reads the files of ClientOptions::security. Does not reach for the server:
  // that happens with the first call, which is also the first to say so if no
  // one listens.
  // Errors: InvalidArgument     an option out of its range.
  //         FailedPrecondition  a file of `security` is of no use.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);

  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // All archives of the server, by name.
  absl::StatusOr<std::vector<v1::ArchiveDescription>> ListArchives();

  // Errors: NotFound.
  absl::StatusOr<v1::ArchiveDescription> GetArchive(absl::string_view archive);

  // What the server grants. Asks it once; later calls answer from memory.
  absl::StatusOr<v1::Limits> GetLimits();

  // One range or document, whole in memory. A large one, over
  // Limits.read_size_bytes_max, is streamed underneath.
  // Errors: NotFound, OutOfRange, InvalidArgument, DataLoss, and as above.
  absl::StatusOr<ReadResult> Read(absl::string_view archive,
                                  const ReadTarget& target,
                                  const ReadOptions& options = {});

  // Read() of one document.
  absl::StatusOr<ReadResult> ReadDocument(absl::string_view archive,
                                          const DocumentKey& key,
                                          const ReadOptions& options = {});

  // One range or document of any size, in pieces, in bounded memory. Of a
  // document, `on_document` is called first. Bytes that `sink` has had are
  // right even if the call fails; it is not taken up again by itself once the
  // first piece is there, since the archive might have been replaced.
  absl::Status ReadStream(absl::string_view archive, const ReadTarget& target,
                          DocumentSink on_document, ByteSink sink,
                          const ReadOptions& options = {});

  // All of an archive, or a stretch of it, in logical order. After Unavailable
  // it goes on with the last resume token, so that `sink` sees each byte once.
  // Errors: NotFound, OutOfRange, DataLoss, InvalidArgument (a resume token of
  // an archive that is no longer the same), and as above.
  absl::Status Scan(absl::string_view archive, const ScanOptions& options,
                    ScanSink sink);

  // Begins a batch; see batch_reader.h. Does not block.
  std::unique_ptr<BatchReader> StartBatch(absl::string_view archive,
                                          const BatchOptions& options);

  // Reads all of `items`; `on_answer` is called once for each, in the order in
  // which the answers come. BatchAnswer::tag is the item's place in `items`.
  // The outcome of each item is in its answer.
  // Errors: what `on_answer` returned, which ends the batch.
  absl::Status ReadBatch(
      absl::string_view archive, std::vector<ReadTarget> items,
      absl::FunctionRef<absl::Status(BatchAnswer)> on_answer);

  // Documents whose id starts with `prefix`, by id, then ordinal; all if empty.
  // Does not block: pages are asked for as the lister reaches them.
  DocumentLister ListDocuments(absl::string_view archive,
                               absl::string_view prefix);

  // All documents from an ordinal on, in the order of the archive, as a scan
  // has them. Otherwise as ListDocuments().
  DocumentLister ListDocumentsFrom(absl::string_view archive,
                                   uint64_t first_ordinal);

  // A dictionary's text, by the hash of an ArchiveDescription; goes on by
  // itself after Unavailable. `sink` gets it in order.
  // Errors: NotFound, and as above.
  absl::Status GetDictionary(absl::string_view hash, ByteSink sink);

  // What has come so far, in which encodings. Does not block.
  WireStats GetWireStats() const;

 private:
  explicit Client(std::shared_ptr<Connection> connection);

  absl::StatusOr<ReadResult> ReadLarge(absl::string_view archive,
                                       const ReadTarget& target,
                                       const ReadOptions& options);
  absl::Status StreamOnce(WireCall& call, absl::string_view archive,
                          const ReadTarget& target, DocumentSink on_document,
                          ByteSink sink, bool& has_begun);

  const std::shared_ptr<Connection> connection_;
};

// Walks through a listing, page by page.
// Thread-compatible. Obtained from Client::ListDocuments().
class DocumentLister {
 public:
  // Of `first`: the archive, and which of its documents.
  DocumentLister(std::shared_ptr<Connection> connection,
                 v1::ListDocumentsRequest first);

  // The next document, or nothing at the end. Blocks when a page is used up.
  // After an error every further call gives the same error.
  // Errors: NotFound         no such archive.
  //         InvalidArgument  the archive was replaced by other contents since
  //                          the first page.
  //         And as all calls.
  absl::StatusOr<std::optional<v1::Document>> Next();

 private:
  absl::Status FetchPage();

  const std::shared_ptr<Connection> connection_;
  v1::ListDocumentsRequest request_;
  v1::ListDocumentsResponse page_;
  int next_index_ = 0;
  // In a list in the order of the archive.
  uint64_t next_ordinal_ = 0;
  bool last_page_ = false;
  absl::Status status_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_CLIENT_H_
