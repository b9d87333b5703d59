// SPDX-License-Identifier: GPL-3.0-or-later
//
// The captures among the documents of a build: their keys, by URL or, for
// answers to POST and PUT, by what was sent.
#ifndef QUIRE_SERVER_INGEST_BUILD_CAPTURES_H_
#define QUIRE_SERVER_INGEST_BUILD_CAPTURES_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"

#include "server/archive/format/archive_description.h"
#include "server/ingest/sources/source.h"

namespace quire {

// Captures are the responses, revisits, resources and conversions of a crawl
// with a URL and a time of the years 1 to 9999. Holds the URL and the body's
// arguments of each POST and PUT request. Thread-compatible.
class BuildCaptures {
 public:
  // Takes the next document of the first pass: a response and the request next
  // to it, where one names the other (WARC-Concurrent-To), belong together.
  void Count(const SourceDocument& document);

  // Returns the capture that a document is; nothing for others. Valid until the
  // next call, and as long as the document.
  std::optional<NewCapture> Convert(const SourceDocument& document);

 private:
  // The last record, unless it has its request or response.
  struct Last {
    CrawlRecord record;
    bool is_request = false;
  };

  std::optional<Last> last_;
  // URLs with method and body, by the ids of responses.
  absl::flat_hash_map<std::string, std::string> method_urls_;
  std::string key_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BUILD_CAPTURES_H_
