// SPDX-License-Identifier: Apache-2.0
#include "client/quire/capture_index_lister.h"

#include <utility>

#include "client/quire/client.h"
#include "client/quire/internal/connection.h"
#include "codecs/base/status_macros.h"

namespace quire {

CaptureIndexLister Client::ListCaptures(absl::string_view archive,
                                        const CaptureListOptions& options) {
  v1::ListCapturesRequest first;
  first.set_archive(std::string(archive));
  if (options.key.has_value()) {
    first.set_key(*options.key);
  } else if (options.url.has_value()) {
    first.set_url(*options.url);
  }
  // A server refuses it without one of them.
  if (first.target_case() != v1::ListCapturesRequest::TARGET_NOT_SET) {
    first.set_match(options.match);
  }
  if (options.from_ms.has_value()) {
    first.set_from_ms(*options.from_ms);
  }
  if (options.until_ms.has_value()) {
    first.set_until_ms(*options.until_ms);
  }
  if (options.closest_ms.has_value()) {
    first.set_closest_ms(*options.closest_ms);
  }
  first.set_newest_first(options.newest_first);
  if (options.filter.has_value()) {
    first.set_filter(*options.filter);
  }
  if (options.archive_uuid.has_value()) {
    first.set_archive_uuid(*options.archive_uuid);
  }
  if (options.page_size.has_value()) {
    first.set_page_size(*options.page_size);
  }
  if (!options.page_token.empty()) {
    first.set_page_token(options.page_token);
  }
  return CaptureIndexLister(connection_, std::move(first));
}

CaptureIndexLister::CaptureIndexLister(std::shared_ptr<Connection> connection,
                                       v1::ListCapturesRequest first)
    : connection_(std::move(connection)), request_(std::move(first)) {}

absl::StatusOr<std::optional<v1::Capture>> CaptureIndexLister::Next() {
  while (status_.ok() && next_ == page_.captures_size()) {
    if (is_last_page_) {
      return std::optional<v1::Capture>();
    }
    status_ = FetchPage();
  }
  QUIRE_RETURN_IF_ERROR(status_);
  return std::optional(std::move(*page_.mutable_captures(next_++)));
}

absl::StatusOr<CapturePage> CaptureIndexLister::NextPage() {
  if (status_.ok() && !is_last_page_) {
    status_ = FetchPage();
  }
  QUIRE_RETURN_IF_ERROR(status_);
  CapturePage page;
  while (next_ < page_.captures_size()) {
    page.captures.push_back(std::move(*page_.mutable_captures(next_++)));
  }
  if (!is_last_page_) {
    page.next_page_token = request_.page_token();
  }
  return page;
}

absl::Status CaptureIndexLister::CheckCapture(
    const v1::Capture& capture) const {
  const v1::Document& document = capture.document();
  const int64_t time_ms = document.capture_time_ms();
  if (capture.key().empty() || !document.has_capture_time_ms() ||
      (request_.has_from_ms() && time_ms < request_.from_ms()) ||
      (request_.has_until_ms() && time_ms > request_.until_ms())) {
    return absl::InternalError(
        "the server listed a capture without a key, or of another time than "
        "was asked for");
  }
  return absl::OkStatus();
}

absl::Status CaptureIndexLister::FetchPage() {
  next_ = 0;
  page_.Clear();
  const absl::Status status =
      connection_->Call(request_.archive(), [&](grpc::ClientContext& context) {
        return connection_->stub().ListCaptures(&context, request_, &page_);
      });
  if (absl::IsUnimplemented(status)) {
    return absl::FailedPreconditionError(
        "the server does not know lists of captures: ask one of a newer "
        "version");
  }
  QUIRE_RETURN_IF_ERROR(status);
  for (const v1::Capture& capture : page_.captures()) {
    QUIRE_RETURN_IF_ERROR(CheckCapture(capture));
  }
  if (!page_.has_next_page_token()) {
    is_last_page_ = true;
    return absl::OkStatus();
  }
  if (page_.next_page_token() == request_.page_token()) {
    return absl::InternalError("the server's list of captures does not end");
  }
  request_.set_page_token(page_.next_page_token());
  return absl::OkStatus();
}

}  // namespace quire
