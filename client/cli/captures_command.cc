// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

#include "client/cli/capture_choice.h"
#include "client/cli/document_filter.h"
#include "client/cli/shown_text.h"
#include "client/cli/subcommands.h"
#include "client/quire/capture_index_lister.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr char kCapturesHeader[] = "%-24s  %6s  %-10s  %10s  %s\n";
// Captures of one answer of the server.
constexpr uint64_t kCapturesPageSizeMax = 1000;

v1::CaptureMatch MatchOf(absl::string_view name) {
  return name == "prefix"   ? v1::CAPTURE_MATCH_PREFIX
         : name == "host"   ? v1::CAPTURE_MATCH_HOST
         : name == "domain" ? v1::CAPTURE_MATCH_DOMAIN
                            : v1::CAPTURE_MATCH_EXACT;
}

// Errors: InvalidArgument names the option.
absl::StatusOr<CaptureListOptions> ListOptionsOf(const CliSettings& settings) {
  const CaptureSettings& captures = settings.captures;
  CaptureListOptions options = {.match = MatchOf(captures.match),
                                .newest_first = captures.newest_first,
                                .filter = settings.filter.where,
                                .archive_uuid = settings.archive_uuid};
  (captures.by_key ? options.key : options.url) = captures.url;
  if (settings.filter.from.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(const CapturePeriod from,
                           ParseNamedTime("--from", *settings.filter.from));
    options.from_ms = from.first_ms;
  }
  if (settings.filter.to.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(const CapturePeriod to,
                           ParseNamedTime("--to", *settings.filter.to));
    options.until_ms = to.last_ms;
  }
  if (captures.closest.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(const CapturePeriod closest,
                           ParseNamedTime("--closest", *captures.closest));
    options.closest_ms = closest.first_ms;
  }
  options.page_size = static_cast<uint32_t>(std::min(
      captures.limit.value_or(kCapturesPageSizeMax), kCapturesPageSizeMax));
  return options;
}

std::string CaptureLine(const v1::Capture& capture, const CliRun& run,
                        bool is_terminal) {
  const v1::Document& document = capture.document();
  if (run.settings().json) {
    std::string line = absl::StrCat("{", JsonBytes("key", capture.key()), ",",
                                    JsonBytes("url", capture.url()));
    if (capture.has_status()) {
      absl::StrAppend(&line, ",\"http_status\":", capture.status());
    }
    if (capture.has_digest()) {
      absl::StrAppend(&line, ",", JsonBytes("digest", capture.digest()));
    }
    return absl::StrCat(line, ",", JsonDocument(document), "}\n");
  }
  return absl::StrFormat(
      kCapturesHeader, FormatTimeMs(document.capture_time_ms()),
      capture.has_status() ? absl::StrCat(capture.status()) : "-",
      PrintableText(document.record_type()), absl::StrCat(document.ordinal()),
      is_terminal ? PrintableText(capture.url()) : capture.url());
}

}  // namespace

absl::Status RunCaptures(CliRun& run) {
  const CliSettings& settings = run.settings();
  QUIRE_ASSIGN_OR_RETURN(const CaptureListOptions options,
                         ListOptionsOf(settings));
  CaptureIndexLister lister =
      run.client().ListCaptures(settings.archive, options);
  uint64_t count = 0;
  while (count < settings.captures.limit.value_or(UINT64_MAX)) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<v1::Capture> capture,
                           lister.Next());
    if (!capture.has_value()) {
      break;
    }
    if (count == 0 && !settings.json) {
      QUIRE_RETURN_IF_ERROR(run.output().Write(absl::StrFormat(
          kCapturesHeader, "TIME", "STATUS", "TYPE", "NUMBER", "URL")));
    }
    ++count;
    QUIRE_RETURN_IF_ERROR(run.output().Write(
        CaptureLine(*capture, run, run.output().is_terminal())));
  }
  if (const std::string unindexed = DescribeUnindexed(lister);
      !unindexed.empty()) {
    QUIRE_RETURN_IF_ERROR(run.output().Flush());
    run.KeepOutputDespiteComplaints();
    run.Complain("", absl::DataLossError(unindexed));
  }
  if (count == 0) {
    const FilterSettings& filter = settings.filter;
    const bool is_filtered = filter.from.has_value() || filter.to.has_value() ||
                             filter.where.has_value();
    const std::optional<std::string>& url = settings.captures.url;
    return absl::NotFoundError(absl::StrCat(
        "the index has no capture",
        url.has_value() ? absl::StrCat(" of ", QuotedText(*url)) : "",
        is_filtered ? " that passes --from, --to, --where and --rule" : "",
        url.has_value() && absl::EndsWith(*url, "*")
            ? "; * is no wildcard here: use --match prefix"
            : ""));
  }
  return absl::OkStatus();
}

}  // namespace quire
