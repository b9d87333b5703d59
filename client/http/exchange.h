// SPDX-License-Identifier: Apache-2.0
//
// One HTTP request, which the HTTP thread reads and a thread of a pool answers.
// Internal to http_daemon.cc.
#ifndef QUIRE_CLIENT_HTTP_EXCHANGE_H_
#define QUIRE_CLIENT_HTTP_EXCHANGE_H_

#include <microhttpd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/http/bodies/memory_budget.h"
#include "client/http/request/http_answer.h"

namespace quire {

// libmicrohttpd copies bodies in pieces into a buffer of this size.
inline constexpr size_t kSendBufferSizeBytes = size_t{8} << 10;

// Thread-compatible: used by the HTTP thread, or, while the connection is
// suspended, by one thread of a pool.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  using Clock = std::chrono::steady_clock;
  // Runs a function in a pool.
  using Submit = std::function<void(std::function<void()>)>;

  Exchange(MHD_Connection* connection, MemoryBudget* budget)
      : connection_(connection),
        budget_(budget),
        charge_(budget),
        fixed_charge_(budget) {}

  // Charges the request itself, of `head_size_bytes`, and the smallest piece.
  // Returns false if there is no memory for it.
  bool Charge(size_t head_size_bytes);

  // Suspends the connection until Deliver().
  void Suspend();

  // Sets the answer. Deliver() is called on another thread, and makes the HTTP
  // thread continue.
  void SetAnswer(Answer answer);
  void Deliver(Answer answer);

  bool is_answered() const { return is_answered_; }

  // REQUIRES: is_answered().
  bool closes() const { return answer_.closes; }

  // Passes the answer to libmicrohttpd. Pieces are fetched in the pool.
  MHD_Result Queue(Submit submit, bool is_head);

  // The connection is done with the request, whether or not all was sent.
  void Finish();

  MemoryCharge& charge() { return charge_; }

  int status() const { return answer_.status; }

  // Bytes of the body that were passed on.
  uint64_t sent_size_bytes() const { return sent_size_bytes_; }

  // Not OK if the body could not be produced.
  const absl::Status& fault() const { return fault_; }

  const Clock::time_point start = Clock::now();
  HttpRequest request;
  std::string method;
  std::string origin;

 private:
  // Callbacks of libmicrohttpd; `self` is a std::shared_ptr<Exchange>*.
  static ssize_t ReadBody(void* self, uint64_t offset, char* buffer,
                          size_t size_bytes_max);
  static void Release(void* self);

  ssize_t Read(char* buffer, size_t size_bytes_max);
  void FetchPiece();
  MHD_Response* MakeResponse(bool has_body);

  MHD_Connection* const connection_;
  MemoryBudget* const budget_;
  // The piece of the body, or the whole of it.
  MemoryCharge charge_;
  // The request and libmicrohttpd's buffer.
  MemoryCharge fixed_charge_;
  Submit submit_;
  Answer answer_;
  bool is_answered_ = false;
  // Bytes of answer_.body that were passed on.
  size_t used_ = 0;
  uint64_t sent_size_bytes_ = 0;
  absl::Status fault_;
  Clock::time_point piece_time_ = start;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_EXCHANGE_H_
