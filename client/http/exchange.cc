// SPDX-License-Identifier: Apache-2.0
#include "client/http/exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/http/request/answer_status.h"
#include "client/http/request/content_headers.h"
#include "codecs/base/memory/free_memory.h"

namespace quire {
namespace {

// Memory of a request, its response and headers in libmicrohttpd.
constexpr size_t kOverheadSizeBytes = size_t{4} << 10;
// A reader that takes longer for a piece is slow.
constexpr std::chrono::seconds kFastPieceTime(1);

}  // namespace

bool Exchange::Charge(size_t head_size_bytes) {
  return fixed_charge_.TryResize(kOverheadSizeBytes + 2 * head_size_bytes) &&
         charge_.TryResize(kPieceSizeBytesMin);
}

void Exchange::Suspend() {
  MHD_suspend_connection(connection_);
}

void Exchange::SetAnswer(Answer answer) {
  answer_ = std::move(answer);
  is_answered_ = true;
}

void Exchange::Deliver(Answer answer) {
  SetAnswer(std::move(answer));
  piece_time_ = Clock::now();
  MHD_resume_connection(connection_);
}

MHD_Response* Exchange::MakeResponse(bool has_body) {
  auto* const self = new std::shared_ptr<Exchange>(shared_from_this());
  MHD_Response* response = nullptr;
  if (!has_body) {
    // A Content-Length of 0 would be wrong with 304 (RFC 9110, section 8.6). An
    // unknown size gives no Content-Length, and must not give chunks: the
    // library would send the last one.
    const uint64_t unset =
        answer_.status == MHD_HTTP_NOT_MODIFIED || !answer_.cut.ok()
            ? MHD_SIZE_UNKNOWN
            : answer_.body.size();
    response = MHD_create_response_from_callback(
        answer_.size_bytes.value_or(unset), /*block_size=*/1, &ReadBody, self,
        &Release);
  } else if (!answer_.cut.ok()) {
    response = MHD_create_response_from_callback(
        answer_.size_bytes.value_or(MHD_SIZE_UNKNOWN), kSendBufferSizeBytes,
        &ReadBody, self, &Release);
  } else if (answer_.rest.size_bytes > 0) {
    response = MHD_create_response_from_callback(
        answer_.body.size() + answer_.rest.size_bytes, kSendBufferSizeBytes,
        &ReadBody, self, &Release);
  } else {
    response = MHD_create_response_from_buffer_with_free_callback_cls(
        answer_.body.size(), answer_.body.data(), &Release, self);
  }
  if (response == nullptr) {
    delete self;
  }
  return response;
}

MHD_Result Exchange::Queue(Submit submit, bool is_head) {
  submit_ = std::move(submit);
  if ((answer_.rest.size_bytes > 0 || !answer_.cut.ok()) && !is_head &&
      !fixed_charge_.TryResize(fixed_charge_.size_bytes() +
                               kSendBufferSizeBytes)) {
    answer_ = AnswerOfStatus(MemoryExhausted());
  }
  const bool has_body = !is_head && answer_.status != MHD_HTTP_NOT_MODIFIED;
  MHD_Response* const response = MakeResponse(has_body);
  if (response == nullptr) {
    return MHD_NO;
  }
  for (const auto& [name, value] : answer_.headers) {
    MHD_add_response_header(response, name, value.c_str());
  }
  if ((answer_.status == MHD_HTTP_NOT_MODIFIED ||
       (is_head && !answer_.cut.ok())) &&
      !answer_.size_bytes) {
    MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT,
                             MHD_RO_END);
  }
  if (answer_.closes) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  }
  if (answer_.rest.size_bytes == 0 && has_body && answer_.cut.ok()) {
    sent_size_bytes_ = answer_.body.size();
  }
  const MHD_Result result = MHD_queue_response(
      connection_, static_cast<unsigned>(answer_.status), response);
  MHD_destroy_response(response);
  return result;
}

void Exchange::Finish() {
  answer_.rest.store.reset();
}

void Exchange::Release(void* self) {
  delete static_cast<std::shared_ptr<Exchange>*>(self);
}

ssize_t Exchange::ReadBody(void* self, uint64_t /*offset*/, char* buffer,
                           size_t size_bytes_max) {
  return (*static_cast<std::shared_ptr<Exchange>*>(self))
      ->Read(buffer, size_bytes_max);
}

ssize_t Exchange::Read(char* buffer, size_t size_bytes_max) {
  const size_t size = std::min(answer_.body.size() - used_, size_bytes_max);
  if (size > 0) {
    std::memcpy(buffer, answer_.body.data() + used_, size);
    used_ += size;
    sent_size_bytes_ += size;
    return static_cast<ssize_t>(size);
  }
  if (fault_.ok() && answer_.rest.size_bytes == 0) {
    fault_ = answer_.cut;
  }
  if (!fault_.ok()) {
    return MHD_CONTENT_READER_END_WITH_ERROR;
  }
  // Before the pool can resume it.
  Suspend();
  submit_([exchange = shared_from_this()] { exchange->FetchPiece(); });
  return 0;
}

void Exchange::FetchPiece() {
  const bool is_slow = Clock::now() - piece_time_ > kFastPieceTime;
  // Freed before the new piece is read.
  FreeMemory(answer_.body);
  used_ = 0;
  // If there is no memory, the charge stays: it is at least the smallest piece.
  charge_.TryResize(PieceSize(*budget_, is_slow));
  BodyRest& rest = answer_.rest;
  const size_t size_bytes = std::min(charge_.size_bytes(), kPieceSizeBytesMax);
  absl::StatusOr<std::string> piece = rest.store->Read(
      rest.offset,
      static_cast<size_t>(std::min<uint64_t>(rest.size_bytes, size_bytes)));
  if (!piece.ok()) {
    fault_ = piece.status();
  } else {
    answer_.body = *std::move(piece);
    rest.offset += answer_.body.size();
    rest.size_bytes -= answer_.body.size();
  }
  piece_time_ = Clock::now();
  MHD_resume_connection(connection_);
}

}  // namespace quire
