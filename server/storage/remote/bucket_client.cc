// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/bucket_client.h"

#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/storage/remote/credential_chain.h"
#include "server/storage/remote/credential_keeper.h"

namespace quire {
namespace {

constexpr int kConflict = 409;
constexpr int kSlowDown = 429;
constexpr std::chrono::milliseconds kAnswerPollInterval{20};
// A store computes for some time before it answers the end of an upload.
constexpr std::chrono::seconds kSilenceMax{120};
constexpr std::chrono::milliseconds kRequestTimeMax{900'000};
// Requests of one archive at a time are few.
constexpr uint32_t kConnectionsMax = 8;

std::string NameOf(const StoreAddress& address, const BucketRequest& request) {
  return absl::StrCat(
      request.method, " ", address.origin, request.path,
      request.query.empty() ? "" : "?" + EncodeStoreQuery(request.query));
}

// Returns the code and the message of an error in XML; empty for other text.
std::string ExplainError(absl::string_view body, std::string& code) {
  const absl::StatusOr<XmlElement> error = ParseXmlAnswer(body);
  if (!error.ok() || error->name != "Error") {
    return "";
  }
  code = error->TextOf("Code");
  return absl::StrCat(" (", PrintableText(code), ": ",
                      PrintableText(error->TextOf("Message")), ")");
}

absl::StatusCode CodeOf(int status) {
  switch (status) {
    case 401:
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 412:
      return absl::StatusCode::kAborted;
    default:
      return status >= 500 || status == kSlowDown || status == kConflict
                 ? absl::StatusCode::kUnavailable
                 : absl::StatusCode::kInvalidArgument;
  }
}

}  // namespace

// One request on the loop.
struct BucketClient::Attempt : TransferReceiver {
  bool OnHead(const AnswerHead& /*head*/) override { return true; }

  bool OnBody(ByteView bytes) override {
    if (bytes.size() > kXmlSizeBytesMax - answer.body.size()) {
      return false;
    }
    answer.body.append(AsText(bytes).data(), bytes.size());
    return true;
  }

  void OnEnd(TransferEnd how, const std::string& text,
             const AnswerHead& head) override {
    MutexLock lock(&mutex);
    answer.head = head;
    end = how;
    why = text;
    is_done = true;
    done.NotifyAll();
  }

  BucketAnswer answer;
  TransferEnd end = TransferEnd::kBroken;
  std::string why;
  TransferLoop::TransferId id = 0;
  Mutex mutex;
  CondVar done;
  bool is_done ABSL_GUARDED_BY(mutex) = false;
  // The loop has cancelled it.
  bool is_left ABSL_GUARDED_BY(mutex) = false;
};

absl::StatusOr<std::unique_ptr<BucketClient>> BucketClient::Open(
    const Options& options) {
  std::unique_ptr<BucketClient> client(new BucketClient(options));
  QUIRE_ASSIGN_OR_RETURN(StoreCredentials found, client->FindCredentials());
  {
    MutexLock lock(&client->mutex_);
    client->SetCredentials(std::move(found));
  }
  QUIRE_ASSIGN_OR_RETURN(
      client->loop_, TransferLoop::Start({.connections_max = kConnectionsMax,
                                          .ca_file = options.ca_file,
                                          .silence_max = kSilenceMax}));
  return client;
}

BucketClient::~BucketClient() = default;

absl::StatusOr<StoreCredentials> BucketClient::FindCredentials() const {
  static const std::atomic<bool> never = false;
  return FindStoreCredentials(options_.region, options_.cancel == nullptr
                                                   ? never
                                                   : *options_.cancel)
      .credentials;
}

void BucketClient::SetCredentials(StoreCredentials credentials) {
  credentials_ = std::move(credentials);
  renewal_time_ =
      credentials_.expiry < absl::InfiniteFuture()
          ? CredentialKeeper::NextTime(absl::Now(), credentials_.expiry)
          : absl::InfiniteFuture();
}

StoreCredentials BucketClient::CurrentCredentials() {
  {
    MutexLock lock(&mutex_);
    if (absl::Now() < renewal_time_) {
      return credentials_;
    }
  }
  absl::StatusOr<StoreCredentials> found = FindCredentials();
  MutexLock lock(&mutex_);
  SetCredentials(found.ok() ? *std::move(found) : credentials_);
  return credentials_;
}

absl::Status BucketClient::WaitFor(Attempt& attempt) const {
  MutexLock lock(&attempt.mutex);
  while (!attempt.is_done) {
    if (options_.cancel != nullptr && *options_.cancel) {
      return absl::CancelledError("a request to the store was cancelled");
    }
    attempt.done.WaitFor(&attempt.mutex, kAnswerPollInterval);
  }
  return absl::OkStatus();
}

TransferRequest BucketClient::MakeTransfer(const StoreAddress& address,
                                           const BucketRequest& request) {
  const UnsignedRequest plain = {.method = request.method,
                                 .host = address.host,
                                 .path = request.path,
                                 .headers = request.headers,
                                 .query = request.query,
                                 .body = request.body};
  TransferRequest transfer;
  transfer.method = request.method;
  transfer.url = absl::StrCat(
      address.origin, request.path,
      request.query.empty() ? "" : "?" + EncodeStoreQuery(request.query));
  transfer.body = request.body;
  transfer.time_max = kRequestTimeMax;
  transfer.headers = request.headers;
  if (address.is_s3) {
    const StoreCredentials credentials = CurrentCredentials();
    if (credentials.is_set()) {
      transfer.headers =
          SignRequest(plain, credentials, options_.region, absl::Now());
    }
  }
  return transfer;
}

absl::StatusOr<BucketAnswer> BucketClient::TryOnce(const StoreAddress& address,
                                                   const BucketRequest& request,
                                                   bool& may_retry) {
  const TransferRequest transfer = MakeTransfer(address, request);
  Attempt attempt;
  loop_->Post([this, &attempt, &transfer] {
    attempt.id = loop_->Begin(transfer, &attempt);
  });
  if (absl::Status waited = WaitFor(attempt); !waited.ok()) {
    // The loop uses the attempt and the body until it has cancelled them.
    loop_->Post([this, &attempt] {
      loop_->Cancel(attempt.id);
      MutexLock left_lock(&attempt.mutex);
      attempt.is_left = true;
      attempt.done.NotifyAll();
    });
    MutexLock lock(&attempt.mutex);
    while (!attempt.is_left) {
      attempt.done.Wait(&attempt.mutex);
    }
    return waited;
  }
  const int status = attempt.answer.head.status;
  const std::string name = NameOf(address, request);
  if (attempt.end != TransferEnd::kComplete) {
    may_retry = attempt.end != TransferEnd::kRefused;
    return absl::UnavailableError(absl::StrCat(
        name, ": ",
        attempt.end == TransferEnd::kRefused ? "the store's answer is too large"
                                             : attempt.why));
  }
  std::string code;
  const std::string explained = ExplainError(attempt.answer.body, code);
  if (status / 100 == 2 && explained.empty()) {
    return std::move(attempt.answer);
  }
  // An error may follow a 200 that was sent before the work.
  const absl::StatusCode error =
      status / 100 == 2        ? absl::StatusCode::kUnavailable
      : code == "ExpiredToken" ? absl::StatusCode::kPermissionDenied
                               : CodeOf(status);
  may_retry = error == absl::StatusCode::kUnavailable;
  return absl::Status(
      code == "NoSuchUpload" ? absl::StatusCode::kNotFound : error,
      absl::StrCat(name, ": the store answered ", status, explained));
}

absl::Status BucketClient::Pause(int tries) const {
  static thread_local std::minstd_rand random(std::random_device{}());
  std::uniform_real_distribution<double> jitter(0.5, 1);
  const auto end =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::milliseconds>(
          options_.retry_delay * (1 << (tries - 1)) * jitter(random));
  while (std::chrono::steady_clock::now() < end) {
    if (options_.cancel != nullptr && *options_.cancel) {
      return absl::CancelledError("a request to the store was cancelled");
    }
    std::this_thread::sleep_for(kAnswerPollInterval);
  }
  return absl::OkStatus();
}

absl::StatusOr<BucketAnswer> BucketClient::Send(const StoreAddress& address,
                                                const BucketRequest& request) {
  bool has_new_credentials = false;
  for (int tries = 1;; ++tries) {
    bool may_retry = false;
    absl::StatusOr<BucketAnswer> answer = TryOnce(address, request, may_retry);
    if (absl::IsPermissionDenied(answer.status()) &&
        !std::exchange(has_new_credentials, true)) {
      // Keys are rotated.
      QUIRE_ASSIGN_OR_RETURN(StoreCredentials found, FindCredentials());
      MutexLock lock(&mutex_);
      if (!found.HasKeysOf(credentials_)) {
        SetCredentials(std::move(found));
        may_retry = true;
      }
    }
    if (answer.ok() || !may_retry) {
      return answer;
    }
    if (tries >= options_.tries_max) {
      return absl::Status(answer.status().code(),
                          absl::StrCat(answer.status().message(), " (tried ",
                                       tries, " times)"));
    }
    ++retry_count_;
    QUIRE_RETURN_IF_ERROR(Pause(tries));
  }
}

absl::StatusOr<XmlElement> BucketClient::SendForXml(
    const StoreAddress& address, const BucketRequest& request,
    absl::string_view root) {
  QUIRE_ASSIGN_OR_RETURN(const BucketAnswer answer, Send(address, request));
  absl::StatusOr<XmlElement> element = ParseXmlAnswer(answer.body);
  if (!element.ok() || element->name != root) {
    return absl::UnavailableError(
        absl::StrCat(NameOf(address, request), ": the store answered ",
                     element.ok() ? PrintableText(element->name)
                                  : std::string(element.status().message()),
                     ", expected the element ", root));
  }
  return element;
}

}  // namespace quire
