// SPDX-License-Identifier: GPL-3.0-or-later
//
// A store of one object, for tests within one process.
#ifndef QUIRE_TESTING_STORAGE_TINY_OBJECT_SERVER_H_
#define QUIRE_TESTING_STORAGE_TINY_OBJECT_SERVER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "codecs/base/mutex.h"

namespace quire {

// Answers every GET with the asked range of its bytes, on a free port of the
// loopback, a thread for each connection. Thread-safe.
class TinyObjectServer {
 public:
  explicit TinyObjectServer(std::string bytes);
  ~TinyObjectServer();
  TinyObjectServer(const TinyObjectServer&) = delete;
  TinyObjectServer& operator=(const TinyObjectServer&) = delete;

  // "http://127.0.0.1:PORT".
  const std::string& url() const { return url_; }

  // Number of requests so far.
  uint64_t request_count() const { return request_count_; }

  // One request in so many is answered with 503; 0: none.
  void FailEvery(uint64_t count) { fail_every_ = count; }

  // Changes the ETag.
  void Replace() { ++version_; }

  // Sends bodies in chunks from now on, followed by another ETag.
  void SendTrailers() { sends_trailers_ = true; }

  // Answers requests without a range by the whole object, as stores do, instead
  // of by a range of all of it.
  void SendWholeObjects() { sends_whole_ = true; }

  // Answers 404 from now on, with the object as a body that does not end.
  void MissEndlessly() { misses_ = true; }

  // Changes the ETag after each answer from now on.
  void ReplaceAlways() { is_replaced_always_ = true; }

 private:
  void Accept();
  void Serve(int fd);
  // Returns an answer to the head of a request.
  std::string Answer(const std::string& head);

  const std::string bytes_;
  std::string url_;
  int listener_ = -1;
  std::atomic<uint64_t> request_count_ = 0;
  std::atomic<uint64_t> fail_every_ = 0;
  std::atomic<uint64_t> version_ = 1;
  std::atomic<bool> is_replaced_always_ = false;
  std::atomic<bool> sends_trailers_ = false;
  std::atomic<bool> sends_whole_ = false;
  std::atomic<bool> misses_ = false;
  Mutex mutex_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<int> connections_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace quire

#endif  // QUIRE_TESTING_STORAGE_TINY_OBJECT_SERVER_H_
