// SPDX-License-Identifier: GPL-3.0-or-later
//
// Requests to S3 that change objects, or ask about them, with retries.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_BUCKET_CLIENT_H_
#define QUIRE_SERVER_STORAGE_REMOTE_BUCKET_CLIENT_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"
#include "server/storage/remote/answer_head.h"
#include "server/storage/remote/request_signature.h"
#include "server/storage/remote/store_address.h"
#include "server/storage/remote/store_credentials.h"
#include "server/storage/remote/transfer_loop.h"
#include "server/storage/remote/xml_answer.h"

namespace quire {

struct BucketRequest {
  // GET, HEAD, PUT, POST or DELETE.
  std::string method = "GET";
  // Encoded, as StoreAddress::PathOf() returns it.
  std::string path;
  HttpQuery query = {};
  HttpHeaders headers = {};
  // Must live until the call returns.
  absl::string_view body = {};
};

struct BucketAnswer {
  AnswerHead head;
  // At most kXmlSizeBytesMax bytes.
  std::string body;
};

// Thread-safe: each call blocks its thread.
class BucketClient {
 public:
  struct Options {
    std::string region;
    // As RemoteStoreOptions::ca_file.
    std::string ca_file = {};
    // Ends waiting; may be null.
    const std::atomic<bool>* cancel = nullptr;
    int tries_max = 6;
    std::chrono::milliseconds retry_delay{100};
  };

  // Finds credentials; starts a thread.
  // Errors: those of FindStoreCredentials() and TransferLoop::Start().
  static absl::StatusOr<std::unique_ptr<BucketClient>> Open(
      const Options& options);
  ~BucketClient();
  BucketClient(const BucketClient&) = delete;
  BucketClient& operator=(const BucketClient&) = delete;

  // Sends a request to the host of `address`, again if the store answers 409,
  // 429 or 5xx, 200 with an error inside, or not at all. Returns an answer of
  // status 2xx. Messages name the request, the status and the store's code.
  // Errors: NotFound            404.
  //         Aborted             412: a condition does not hold.
  //         PermissionDenied    401, 403 or expired credentials, also with
  //                             credentials that were asked for again.
  //         InvalidArgument     any other 3xx or 4xx.
  //         Unavailable         no good answer after all tries.
  //         Cancelled.
  absl::StatusOr<BucketAnswer> Send(const StoreAddress& address,
                                    const BucketRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The same; the answer must be an element of that name.
  // Errors: also Unavailable  it is not.
  absl::StatusOr<XmlElement> SendForXml(const StoreAddress& address,
                                        const BucketRequest& request,
                                        absl::string_view root);

  // Requests after the first of their call.
  uint64_t retry_count() const { return retry_count_; }

 private:
  struct Attempt;

  explicit BucketClient(const Options& options) : options_(options) {}

  absl::StatusOr<StoreCredentials> FindCredentials() const;
  // Asks for credentials again before they expire; keeps those in force if
  // there are no others.
  StoreCredentials CurrentCredentials() ABSL_LOCKS_EXCLUDED(mutex_);
  void SetCredentials(StoreCredentials credentials)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Signs the request.
  TransferRequest MakeTransfer(const StoreAddress& address,
                               const BucketRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends it once. Sets `may_retry` if the error may pass.
  absl::StatusOr<BucketAnswer> TryOnce(const StoreAddress& address,
                                       const BucketRequest& request,
                                       bool& may_retry)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WaitFor(Attempt& attempt) const;
  // Errors: Cancelled.
  absl::Status Pause(int tries) const;

  const Options options_;
  std::atomic<uint64_t> retry_count_ = 0;
  std::unique_ptr<TransferLoop> loop_;
  Mutex mutex_;
  StoreCredentials credentials_ ABSL_GUARDED_BY(mutex_);
  absl::Time renewal_time_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_BUCKET_CLIENT_H_
