// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/transfer_loop.h"

#include <curl/curl.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"

namespace quire {
namespace {

// One call of the receiver for so much of a body.
constexpr long kBufferSizeBytes = 64 << 10;  // NOLINT(google-runtime-int)
constexpr int kWaitMsMax = 1000;
// A file of certificates is read again after this time.
constexpr long kCaFileSecondsMax = 60;  // NOLINT(google-runtime-int)

// Returns the kind of a failed transfer.
TransferEnd EndOf(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return TransferEnd::kComplete;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return TransferEnd::kNotConnected;
    case CURLE_OPERATION_TIMEDOUT:
      return TransferEnd::kTimeout;
    case CURLE_WRITE_ERROR:
      return TransferEnd::kRefused;
    default:
      return TransferEnd::kBroken;
  }
}

void InitCurlOnce() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  QUIRE_CHECK(code == CURLE_OK, "libcurl does not start");
}

}  // namespace

struct TransferLoop::Transfer {
  ~Transfer() {
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
  }

  TransferId id = 0;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  TransferReceiver* receiver = nullptr;
  AnswerHead head;
  bool is_head_given = false;
  std::array<char, CURL_ERROR_SIZE> error{};
};

TransferLoop::TransferLoop(const Options& options) : options_(options) {}

absl::StatusOr<std::unique_ptr<TransferLoop>> TransferLoop::Start(
    const Options& options) {
  InitCurlOnce();
  std::unique_ptr<TransferLoop> loop(new TransferLoop(options));
  // As Amazon's tools do. The environment does not change.
  const char* ca_file =
      std::getenv("AWS_CA_BUNDLE");  // NOLINT(concurrency-mt-unsafe)
  loop->ca_file_ = !options.ca_file.empty() ? options.ca_file
                   : ca_file == nullptr     ? ""
                                            : ca_file;
  loop->multi_ = curl_multi_init();
  if (loop->multi_ == nullptr) {
    return absl::ResourceExhaustedError("no memory for libcurl");
  }
  curl_multi_setopt(loop->multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  curl_multi_setopt(loop->multi_, CURLMOPT_MAXCONNECTS,
                    // NOLINTNEXTLINE(google-runtime-int): libcurl's type.
                    static_cast<long>(options.connections_max));
  try {
    loop->thread_ = std::thread([l = loop.get()] {
      pthread_setname_np(pthread_self(), "quire-store");
      // OpenSSL writes to sockets that the peer has closed.
      sigset_t pipe_signal;
      sigemptyset(&pipe_signal);
      sigaddset(&pipe_signal, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
      l->Run();
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start a thread for object stores: ", error.what()));
  }
  return loop;
}

TransferLoop::~TransferLoop() {
  if (thread_.joinable()) {
    stopping_ = true;
    curl_multi_wakeup(multi_);
    thread_.join();
  }
  for (const auto& [id, transfer] : transfers_) {
    curl_multi_remove_handle(multi_, transfer->easy);
  }
  transfers_.clear();
  if (multi_ != nullptr) {
    curl_multi_cleanup(multi_);
  }
}

void TransferLoop::Post(std::function<void()> task) {
  {
    MutexLock lock(&mutex_);
    posted_.push_back(std::move(task));
    if (posted_.size() > 1) {
      return;
    }
  }
  curl_multi_wakeup(multi_);
}

void TransferLoop::RunAfter(LoopDuration delay, std::function<void()> task) {
  timers_.emplace(std::chrono::steady_clock::now() + delay, std::move(task));
}

TransferLoop::TransferId TransferLoop::Begin(const TransferRequest& request,
                                             TransferReceiver* receiver) {
  auto transfer = std::make_unique<Transfer>();
  transfer->id = next_id_++;
  transfer->receiver = receiver;
  transfer->easy = curl_easy_init();
  QUIRE_CHECK(transfer->easy != nullptr, "libcurl has no memory");
  CURL* easy = transfer->easy;
  for (const auto& [name, value] : request.headers) {
    transfer->headers = curl_slist_append(
        transfer->headers, absl::StrCat(name, ": ", value).c_str());
  }
  const auto set = [easy](CURLoption option, auto value) {
    const CURLcode code = curl_easy_setopt(easy, option, value);
    QUIRE_CHECK(code == CURLE_OK, "libcurl refuses option ",
                static_cast<int>(option));
  };
  // NOLINTBEGIN(google-runtime-int): libcurl's type.
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_HTTPHEADER, transfer->headers);
  set(CURLOPT_USERAGENT, "quired");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_BUFFERSIZE, kBufferSizeBytes);
  set(CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(options_.connect_time_max.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.silence_max.count()));
  set(CURLOPT_TIMEOUT_MS,
      static_cast<long>(std::max<int64_t>(request.time_max.count(), 1)));
  set(CURLOPT_CA_CACHE_TIMEOUT, kCaFileSecondsMax);
  set(CURLOPT_FRESH_CONNECT, request.on_fresh_connection ? 1L : 0L);
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET") {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  if (request.method == "PUT" || request.method == "POST") {
    set(CURLOPT_POSTFIELDSIZE_LARGE,
        static_cast<curl_off_t>(request.body.size()));
    // Without a pointer, libcurl would read standard input.
    set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    // libcurl would add them.
    for (const char* header : {"Expect:", "Content-Type:"}) {
      transfer->headers = curl_slist_append(transfer->headers, header);
    }
    set(CURLOPT_HTTPHEADER, transfer->headers);
  }
  // Do not wait for the thread that resolves the name: a name server that does
  // not answer would hold up this thread.
  set(CURLOPT_QUICK_EXIT, 1L);
  // NOLINTEND(google-runtime-int)
  set(CURLOPT_HEADERFUNCTION, &OnHeaderLine);
  set(CURLOPT_HEADERDATA, transfer.get());
  set(CURLOPT_WRITEFUNCTION, &OnBodyPart);
  set(CURLOPT_WRITEDATA, transfer.get());
  set(CURLOPT_ERRORBUFFER, transfer->error.data());
  set(CURLOPT_PRIVATE, transfer.get());
  if (!ca_file_.empty()) {
    set(CURLOPT_CAINFO, ca_file_.c_str());
  }
  const CURLMcode added = curl_multi_add_handle(multi_, easy);
  QUIRE_CHECK(added == CURLM_OK, "libcurl takes no transfer");
  const TransferId id = transfer->id;
  transfers_.emplace(id, std::move(transfer));
  return id;
}

void TransferLoop::Cancel(TransferId id) {
  const auto found = transfers_.find(id);
  if (found != transfers_.end()) {
    curl_multi_remove_handle(multi_, found->second->easy);
    transfers_.erase(found);
  }
}

size_t TransferLoop::OnHeaderLine(char* bytes, size_t size, size_t count,
                                  void* transfer) {
  Transfer& to = *static_cast<Transfer*>(transfer);
  // Fields after the body are not those that the receiver has checked.
  if (!to.is_head_given) {
    to.head.AddLine({bytes, size * count});
  }
  return size * count;
}

size_t TransferLoop::OnBodyPart(char* bytes, size_t size, size_t count,
                                void* transfer) {
  Transfer& to = *static_cast<Transfer*>(transfer);
  if (!std::exchange(to.is_head_given, true) && !to.receiver->OnHead(to.head)) {
    return 0;
  }
  const absl::string_view part(bytes, size * count);
  return part.empty() || to.receiver->OnBody(AsBytes(part)) ? part.size() : 0;
}

void TransferLoop::Run() {
  while (true) {
    RunPosted();
    RunTimers();
    int running = 0;
    curl_multi_perform(multi_, &running);
    TakeEnds();
    if (stopping_) {
      // Those posted before the stop.
      RunPosted();
      return;
    }
    curl_multi_poll(multi_, nullptr, 0, WaitMs(), nullptr);
  }
}

void TransferLoop::RunPosted() {
  std::vector<std::function<void()>> tasks;
  {
    MutexLock lock(&mutex_);
    tasks.swap(posted_);
  }
  for (const std::function<void()>& task : tasks) {
    task();
  }
}

void TransferLoop::RunTimers() {
  const LoopTime now = std::chrono::steady_clock::now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const std::function<void()> task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    task();
  }
}

void TransferLoop::TakeEnds() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) {
      continue;
    }
    const CURLcode code = message->data.result;
    Transfer* ended = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &ended);
    const auto found = transfers_.find(ended->id);
    // The message is invalid from here on.
    curl_multi_remove_handle(multi_, ended->easy);
    const std::unique_ptr<Transfer> transfer = std::move(found->second);
    transfers_.erase(found);
    const std::string why = code == CURLE_OK ? ""
                            : transfer->error[0] != '\0'
                                ? transfer->error.data()
                                : curl_easy_strerror(code);
    transfer->receiver->OnEnd(EndOf(code), why, transfer->head);
  }
}

int TransferLoop::WaitMs() const {
  if (timers_.empty()) {
    return kWaitMsMax;
  }
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
      timers_.begin()->first - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(wait.count(), 0, kWaitMsMax));
}

}  // namespace quire
