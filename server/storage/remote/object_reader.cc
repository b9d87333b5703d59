// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/object_reader.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace quire {
namespace {

constexpr int kNotModified = 304;
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kNotFound = 404;
constexpr int kPreconditionFailed = 412;
constexpr int kTooManyRequests = 429;
constexpr int kServiceUnavailable = 503;
constexpr int kServerErrorMin = 500;
// At most one GET in so many has a hedge.
constexpr uint64_t kGetsPerHedge = 20;
// Durations of a window that tell what is slow.
constexpr uint32_t kWindowCountMin = 32;
constexpr std::chrono::milliseconds kHedgeDelayMin{5};
constexpr uint64_t kSizeClassBytes = 256 << 10;
// Limit on what is read of the body of an error.
constexpr uint64_t kErrorBodyBytesMax = 64 << 10;

LoopTime Now() {
  return std::chrono::steady_clock::now();
}

bool IsGoodStatus(int status) {
  return status == 200 || status == 206;
}

bool IsWeak(absl::string_view etag) {
  return absl::StartsWith(etag, "W/");
}

StoreOutcome OutcomeOf(TransferEnd end, int status) {
  switch (end) {
    case TransferEnd::kComplete:
      break;
    case TransferEnd::kRefused:
      return StoreOutcome::kRefused;
    case TransferEnd::kNotConnected:
      return StoreOutcome::kNotConnected;
    case TransferEnd::kTimeout:
      return StoreOutcome::kTimeout;
    case TransferEnd::kBroken:
      return StoreOutcome::kBroken;
  }
  switch (status) {
    case kNotModified:
      return StoreOutcome::kNotModified;
    case kUnauthorized:
    case kForbidden:
      return StoreOutcome::kDenied;
    case kNotFound:
      return StoreOutcome::kMissing;
    case kPreconditionFailed:
      return StoreOutcome::kChanged;
    case kTooManyRequests:
    case kServiceUnavailable:
      return StoreOutcome::kThrottled;
    default:
      return IsGoodStatus(status) ? StoreOutcome::kGood : StoreOutcome::kFailed;
  }
}

constexpr char kWordUrl[] = "quire/store-word";
constexpr char kSilentWord[] = "silent";

absl::Status WithWord(absl::Status error, StoreOutcome outcome, int status) {
  switch (outcome) {
    case StoreOutcome::kMissing:
    case StoreOutcome::kChanged:
    case StoreOutcome::kDenied:
      error.SetPayload(kWordUrl, absl::Cord("refused"));
      break;
    case StoreOutcome::kFailed:
      if (status < kServerErrorMin) {
        break;
      }
      [[fallthrough]];
    case StoreOutcome::kThrottled:
    case StoreOutcome::kNotConnected:
    case StoreOutcome::kTimeout:
    case StoreOutcome::kBroken:
      error.SetPayload(kWordUrl, absl::Cord(kSilentWord));
      break;
    default:
      break;
  }
  return error;
}

}  // namespace

StoreWord StoreWordOf(const absl::Status& error) {
  const absl::optional<absl::Cord> word = error.GetPayload(kWordUrl);
  return !word.has_value()      ? StoreWord::kNone
         : *word == kSilentWord ? StoreWord::kSilent
                                : StoreWord::kRefused;
}

const char* StoreOutcomeName(StoreOutcome outcome) {
  constexpr std::array<const char*, kStoreOutcomeCount> kNames = {
      "good",   "not_modified", "missing",   "changed", "denied", "throttled",
      "failed", "refused",      "unreached", "timeout", "broken", "cancelled"};
  return kNames[static_cast<size_t>(outcome)];
}

// One request of a GET.
class ObjectReader::Request final : public TransferReceiver {
 public:
  Request(ActiveGet& get, bool is_hedge) : get_(get), is_hedge_(is_hedge) {}

  void Begin(LoopTime deadline);

  void Cancel(TransferLoop& loop) { loop.Cancel(transfer_id_); }

  bool is_hedge() const { return is_hedge_; }

  LoopTime begun() const { return begun_; }

  uint64_t received_bytes() const { return received_bytes_; }

  // Null if the request was not signed, nor could have been.
  const std::shared_ptr<const StoreCredentials>& credentials() const {
    return credentials_;
  }

  const absl::Status& refusal() const { return refusal_; }

  bool OnHead(const AnswerHead& head) override;
  bool OnBody(ByteView bytes) override;
  void OnEnd(TransferEnd end, const std::string& why,
             const AnswerHead& head) override;

 private:
  ActiveGet& get_;
  const bool is_hedge_;
  TransferLoop::TransferId transfer_id_ = 0;
  LoopTime begun_;
  std::shared_ptr<const StoreCredentials> credentials_;
  uint64_t received_bytes_ = 0;
  bool has_good_head_ = false;
  // Why the answer was refused.
  absl::Status refusal_;
};

// A GET from its start to its end; deletes itself.
class ObjectReader::ActiveGet {
 public:
  ActiveGet(ObjectReader& reader, ObjectGet get)
      : reader_(reader), get_(std::move(get)) {}

  const ObjectGet& get() const { return get_; }

  ObjectReader& reader() { return reader_; }

  // Begins the next request, or lets it wait for credentials or its turn.
  void Try() {
    if (get_.address->is_s3 && reader_.credentials_.Current() == nullptr) {
      AskForCredentials(nullptr);
      return;
    }
    if (reader_.request_count_ >= reader_.options_.requests_max) {
      reader_.waiting_.push_back(this);
      return;
    }
    BeginRequest(/*is_hedge=*/false);
  }

  void BeginRequest(bool is_hedge) {
    const LoopTime now = Now();
    if (tries_ == 0) {
      deadline_ = now + reader_.options_.time_max;
    }
    if (!is_hedge) {
      ++tries_;
      ++reader_.request_count_;
    }
    requests_.push_back(std::make_unique<Request>(*this, is_hedge));
    requests_.back()->Begin(deadline_);
    if (!is_hedge && tries_ == 1 && get_.may_hedge) {
      if (const auto delay = reader_.HedgeDelay(get_); delay.has_value()) {
        reader_.loop_.RunAfter(
            *delay, [&reader = reader_, get = this, number = number_] {
              // The GET may have ended, and its address may be another one's.
              if (reader.active_.contains(get) && get->number_ == number) {
                get->Hedge();
              }
            });
      }
    }
  }

  void OnRequestEnd(Request& request, TransferEnd end, const std::string& why,
                    const AnswerHead& head);

  // Ends all requests and the GET.
  void Stop() {
    for (const auto& request : requests_) {
      Drop(*request);
    }
    requests_.clear();
    End({.status = absl::UnavailableError(
             "the server stops, and reads no more from the store")});
  }

 private:
  void Hedge() {
    if (requests_.size() == 1 && tries_ == 1 && reader_.MayHedge()) {
      {
        MutexLock lock(&reader_.mutex_);
        ++reader_.stats_.hedges;
      }
      BeginRequest(/*is_hedge=*/true);
    }
  }

  // Cancels a request.
  void Drop(Request& request) {
    request.Cancel(reader_.loop_);
    reader_.request_count_ -= request.is_hedge() ? 0 : 1;
    reader_.Count(StoreOutcome::kCancelled);
  }

  void End(const ObjectGet::End& end) {
    reader_.active_.erase(this);
    std::erase(reader_.waiting_, this);
    const auto on_end = std::move(get_.on_end);
    ObjectReader& reader = reader_;
    delete this;
    on_end(end);
    reader.StartWaiting();
  }

  // Continues once the keeper has answered.
  void AskForCredentials(
      const std::shared_ptr<const StoreCredentials>& refused);
  void OnCredentials(const StoreCredentials* refused);

  absl::Status Describe(StoreOutcome outcome, const Request& request,
                        const std::string& why, int status) const;
  absl::Status DescribeDenial(int status) const;

  ObjectReader& reader_;
  ObjectGet get_;
  // Different for each GET.
  const uint64_t number_ = ++reader_.get_count_;
  std::vector<std::unique_ptr<Request>> requests_;
  int tries_ = 0;
  LoopTime deadline_;
  // Status of a refusal, while other credentials are asked for.
  int refused_status_ = 0;
  bool has_asked_again_ = false;
};

void ObjectReader::Request::Begin(LoopTime deadline) {
  begun_ = Now();
  const ObjectGet& get = get_.get();
  UnsignedRequest request;
  request.host = get.address->host;
  request.path = get.address->PathOf(get.object);
  if (get.wanted.range.has_value()) {
    request.headers.emplace_back(
        "Range", absl::StrCat("bytes=", get.wanted.range->first, "-",
                              get.wanted.range->last));
  }
  // A weak ETag never matches; the answer's is compared.
  if (!get.wanted.etag.empty() && !IsWeak(get.wanted.etag)) {
    request.headers.emplace_back("If-Match", get.wanted.etag);
  }
  if (!get.none_match.empty()) {
    request.headers.emplace_back("If-None-Match", get.none_match);
  }
  TransferRequest transfer;
  transfer.url = get.address->origin + request.path;
  transfer.on_fresh_connection = is_hedge_;
  transfer.time_max =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - begun_);
  transfer.headers = request.headers;
  ObjectReader& reader = get_.reader();
  if (get.address->is_s3) {
    credentials_ = reader.credentials_.Current();
    if (credentials_->is_set()) {
      transfer.headers = SignRequest(request, *credentials_,
                                     reader.options_.region, absl::Now());
    }
  }
  transfer_id_ = reader.loop_.Begin(transfer, this);
}

bool ObjectReader::Request::OnHead(const AnswerHead& head) {
  if (!IsGoodStatus(head.status)) {
    // The body explains an error in words that are not needed, but read so that
    // the connection can be used again.
    return true;
  }
  refusal_ = CheckAnswerHead(head, get_.get().wanted);
  has_good_head_ = refusal_.ok();
  return has_good_head_;
}

bool ObjectReader::Request::OnBody(ByteView bytes) {
  if (!has_good_head_) {
    received_bytes_ += bytes.size();
    return received_bytes_ <= kErrorBodyBytesMax;
  }
  const WantedAnswer& wanted = get_.get().wanted;
  const uint64_t size_bytes_max =
      wanted.range.has_value() ? wanted.range->last - wanted.range->first + 1
                               : wanted.size_bytes_max;
  if (bytes.size() > size_bytes_max - received_bytes_) {
    refusal_ = absl::Status(
        wanted.range.has_value() ? absl::StatusCode::kInternal
                                 : absl::StatusCode::kResourceExhausted,
        absl::StrCat("the store sent more than ", size_bytes_max, " bytes"));
    return false;
  }
  get_.get().on_body(received_bytes_, bytes);
  received_bytes_ += bytes.size();
  return true;
}

void ObjectReader::Request::OnEnd(TransferEnd end, const std::string& why,
                                  const AnswerHead& head) {
  // The rest of an explanation.
  if (end == TransferEnd::kRefused && !IsGoodStatus(head.status)) {
    end = TransferEnd::kComplete;
  }
  // An answer without a body.
  if (end == TransferEnd::kComplete && IsGoodStatus(head.status) &&
      !has_good_head_) {
    refusal_ = CheckAnswerHead(head, get_.get().wanted);
  }
  if (head.status == kNotModified && get_.get().none_match.empty()) {
    refusal_ = absl::InternalError(
        "the store answered 304 to a request without a condition");
  }
  const auto& range = get_.get().wanted.range;
  if (end == TransferEnd::kComplete && IsGoodStatus(head.status) &&
      refusal_.ok() && range.has_value() &&
      received_bytes_ != range->last - range->first + 1) {
    get_.OnRequestEnd(
        *this, TransferEnd::kBroken,
        absl::StrCat("the answer ended after ", received_bytes_, " of ",
                     range->last - range->first + 1, " bytes"),
        head);
    return;
  }
  get_.OnRequestEnd(*this, refusal_.ok() ? end : TransferEnd::kRefused, why,
                    head);
}

absl::Status ObjectReader::ActiveGet::Describe(StoreOutcome outcome,
                                               const Request& request,
                                               const std::string& why,
                                               int status) const {
  const std::string object =
      absl::StrCat(get_.address->url, "/", get_.object, ": ");
  switch (outcome) {
    case StoreOutcome::kRefused:
      return absl::Status(absl::IsResourceExhausted(request.refusal())
                              ? absl::StatusCode::kResourceExhausted
                              : absl::StatusCode::kUnavailable,
                          absl::StrCat(object, request.refusal().message()));
    case StoreOutcome::kMissing:
      return absl::NotFoundError(
          absl::StrCat(object, "the store does not have it (404)"));
    case StoreOutcome::kChanged:
      return absl::AbortedError(absl::StrCat(
          object, "has changed in the store since the archive was opened"));
    case StoreOutcome::kDenied:
      return DescribeDenial(status);
    case StoreOutcome::kThrottled:
    case StoreOutcome::kFailed:
      return absl::UnavailableError(
          absl::StrCat(object, "the store answered ", status,
                       status >= 300 && status < 400
                           ? "; check --store-region and the address"
                           : ""));
    default:
      return absl::UnavailableError(absl::StrCat(object, why));
  }
}

absl::Status ObjectReader::ActiveGet::DescribeDenial(int status) const {
  std::string reason = "it must be readable without credentials";
  if (get_.address->is_s3) {
    const auto credentials = reader_.credentials_.Current();
    const absl::Status error = reader_.credentials_.last_error();
    reason =
        !credentials->is_set()
            ? absl::StrCat(
                  "there are no credentials in AWS_ACCESS_KEY_ID or "
                  "~/.aws, and no role gives any",
                  credentials->source.empty() ? "" : ": ", credentials->source)
        : credentials->expiry <= absl::Now()
            ? absl::StrCat("the credentials of ", credentials->source,
                           " have expired")
            : absl::StrCat("check the credentials (", credentials->source,
                           "), --store-region and this machine's clock");
    if (!error.ok()) {
      absl::StrAppend(&reason, "; there are no new ones: ", error.message());
    }
  }
  return absl::PermissionDeniedError(
      absl::StrCat(get_.address->url, "/", get_.object,
                   ": the store refuses access (", status, "); ", reason));
}

void ObjectReader::ActiveGet::AskForCredentials(
    const std::shared_ptr<const StoreCredentials>& refused) {
  reader_.credentials_.Ask(
      refused, [&reader = reader_, get = this, number = number_, refused] {
        reader.loop_.Post([&reader, get, number, refused] {
          if (reader.active_.contains(get) && get->number_ == number) {
            get->OnCredentials(refused.get());
          }
        });
      });
}

void ObjectReader::ActiveGet::OnCredentials(const StoreCredentials* refused) {
  const auto current = reader_.credentials_.Current();
  if (current == nullptr) {
    const absl::Status error = reader_.credentials_.last_error();
    // Of codes that describe a configuration, callers know none.
    End({.status = absl::Status(
             absl::IsUnavailable(error) || absl::IsCancelled(error)
                 ? absl::StatusCode::kUnavailable
                 : absl::StatusCode::kPermissionDenied,
             absl::StrCat(get_.address->url, "/", get_.object,
                          ": no credentials: ", error.message()))});
  } else if (refused != nullptr && current->HasKeysOf(*refused)) {
    End({.status = DescribeDenial(refused_status_)});
  } else {
    Try();
  }
}

void ObjectReader::ActiveGet::OnRequestEnd(Request& request, TransferEnd end,
                                           const std::string& why,
                                           const AnswerHead& head) {
  // A store that ignores If-Match.
  const StoreOutcome outcome = absl::IsAborted(request.refusal())
                                   ? StoreOutcome::kChanged
                                   : OutcomeOf(end, head.status);
  const auto found = std::find_if(
      requests_.begin(), requests_.end(),
      [&](const auto& candidate) { return candidate.get() == &request; });
  const std::unique_ptr<Request> ended = std::move(*found);
  requests_.erase(found);
  reader_.request_count_ -= ended->is_hedge() ? 0 : 1;
  {
    MutexLock lock(&reader_.mutex_);
    reader_.stats_.received_bytes += ended->received_bytes();
  }
  reader_.Count(outcome);
  const bool is_good =
      outcome == StoreOutcome::kGood || outcome == StoreOutcome::kNotModified;
  if (is_good) {
    if (outcome == StoreOutcome::kGood) {
      reader_.CountGood(get_, Now() - ended->begun());
    }
    for (const auto& loser : requests_) {
      Drop(*loser);
    }
    requests_.clear();
    End({.status = absl::OkStatus(),
         .is_not_modified = outcome == StoreOutcome::kNotModified,
         .etag = head.etag});
    return;
  }
  if (!requests_.empty()) {
    // The other one may succeed.
    return;
  }
  // A rotated key is not a failure.
  if (outcome == StoreOutcome::kDenied && get_.address->is_s3 &&
      !std::exchange(has_asked_again_, true)) {
    --tries_;
    refused_status_ = head.status;
    AskForCredentials(ended->credentials());
    reader_.StartWaiting();
    return;
  }
  const bool is_final =
      outcome == StoreOutcome::kDenied || outcome == StoreOutcome::kMissing ||
      outcome == StoreOutcome::kChanged || outcome == StoreOutcome::kRefused ||
      (outcome == StoreOutcome::kFailed && head.status < kServerErrorMin);
  // Half of the delay is random: clients must not return together.
  std::uniform_real_distribution<double> jitter(0.5, 1);
  const auto delay = std::chrono::duration_cast<LoopDuration>(
      (reader_.options_.retry_delay * (1 << (tries_ - 1))) *
      jitter(reader_.random_));
  if (is_final || tries_ >= reader_.options_.tries_max ||
      Now() + delay >= deadline_) {
    absl::Status status = Describe(outcome, *ended, why, head.status);
    if (!is_final) {
      status = absl::Status(status.code(),
                            absl::StrCat(status.message(), " (tried ", tries_,
                                         tries_ == 1 ? " time)" : " times)"));
    }
    End({.status = WithWord(std::move(status), outcome, head.status)});
    return;
  }
  {
    MutexLock lock(&reader_.mutex_);
    ++reader_.stats_.retries;
  }
  reader_.loop_.RunAfter(
      delay, [&reader = reader_, get = this, number = number_] {
        if (reader.active_.contains(get) && get->number_ == number) {
          get->Try();
        }
      });
  reader_.StartWaiting();
}

ObjectReader::ObjectReader(const Options& options,
                           CredentialKeeper& credentials, TransferLoop& loop)
    : options_(options), credentials_(credentials), loop_(loop) {}

ObjectReader::~ObjectReader() = default;

void ObjectReader::Start(ObjectGet get) {
  auto* active = new ActiveGet(*this, std::move(get));
  active_.insert(active);
  if (stopped_) {
    active->Stop();
  } else {
    active->Try();
  }
}

void ObjectReader::StartWaiting() {
  while (!stopped_ && !waiting_.empty() &&
         request_count_ < options_.requests_max) {
    ActiveGet* next = waiting_.front();
    waiting_.pop_front();
    next->BeginRequest(/*is_hedge=*/false);
  }
}

void ObjectReader::SetStopTime(LoopTime time) {
  loop_.Post([this, time] {
    loop_.RunAfter(std::max(LoopDuration::zero(), time - Now()),
                   [this] { StopNow(); });
  });
}

void ObjectReader::StopNow() {
  stopped_ = true;
  // Ends may start others, which then end at once.
  while (!active_.empty()) {
    (*active_.begin())->Stop();
  }
}

ObjectReaderStats ObjectReader::GetStats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

ObjectReader::Window& ObjectReader::WindowOf(const ObjectGet& get) {
  const auto& range = get.wanted.range;
  const uint64_t size_bytes =
      range.has_value() ? range->last - range->first + 1 : 0;
  return windows_[std::min<size_t>(
      static_cast<size_t>(std::bit_width(size_bytes / kSizeClassBytes)),
      windows_.size() - 1)];
}

std::optional<std::chrono::microseconds> ObjectReader::HedgeDelay(
    const ObjectGet& get) {
  const Window& window = WindowOf(get);
  if (window.count < kWindowCountMin) {
    return std::nullopt;
  }
  std::array<uint32_t, 64> sorted = window.durations_us;
  const size_t count = std::min<size_t>(window.count, sorted.size());
  const auto p95 = sorted.begin() + static_cast<ptrdiff_t>(count * 95 / 100);
  std::nth_element(sorted.begin(), p95,
                   sorted.begin() + static_cast<ptrdiff_t>(count));
  return std::max<std::chrono::microseconds>(std::chrono::microseconds(*p95),
                                             kHedgeDelayMin);
}

bool ObjectReader::MayHedge() {
  if ((hedge_count_ + 1) * kGetsPerHedge > get_count_) {
    return false;
  }
  ++hedge_count_;
  return true;
}

void ObjectReader::Count(StoreOutcome outcome) {
  MutexLock lock(&mutex_);
  ++stats_.requests[static_cast<size_t>(outcome)];
}

void ObjectReader::CountGood(const ObjectGet& get, LoopDuration duration) {
  Window& window = WindowOf(get);
  const int64_t us =
      std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  window.durations_us[window.count % window.durations_us.size()] =
      static_cast<uint32_t>(std::clamp<int64_t>(us, 0, UINT32_MAX));
  // Stays large once the window is full.
  window.count = window.count + 1 == UINT32_MAX
                     ? static_cast<uint32_t>(window.durations_us.size())
                     : window.count + 1;
  MutexLock lock(&mutex_);
  stats_.durations.Add(duration);
}

}  // namespace quire
