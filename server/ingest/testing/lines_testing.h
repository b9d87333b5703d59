// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reads the lines of files; for tests only.
#ifndef QUIRE_SERVER_INGEST_TESTING_LINES_TESTING_H_
#define QUIRE_SERVER_INGEST_TESTING_LINES_TESTING_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "server/ingest/sources/lines/line_source.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/memory_source.h"

namespace quire {

// Documents of a LineReader, and its notes.
struct Lines {
  IdsAndContents documents;
  std::vector<std::string> bad_records;
  std::vector<std::string> tolerated;
  std::vector<std::string> foreign;
};

// Reads all documents that `split` makes of `files`. Errors: those of
// LineReader. A note of another kind fails the test.
inline absl::StatusOr<Lines> ReadLines(std::unique_ptr<SourceReader> files,
                                       const LineSplit& split = {}) {
  LineReader reader(std::move(files), "input", split, nullptr, std::nullopt);
  Lines lines;
  reader.Listen([&lines](EntryNote note, const std::string& text) {
    std::vector<std::string>* const notes =
        note == EntryNote::kBadRecord       ? &lines.bad_records
        : note == EntryNote::kTolerated     ? &lines.tolerated
        : note == EntryNote::kForeignFormat ? &lines.foreign
                                            : nullptr;
    ASSERT_NE(notes, nullptr) << text;
    notes->push_back(text);
  });
  absl::StatusOr<std::vector<IngestedDocument>> documents =
      ReadAllDocuments(reader);
  if (!documents.ok()) {
    return documents.status();
  }
  for (IngestedDocument& document : *documents) {
    lines.documents.emplace_back(std::move(document.document.id),
                                 std::move(document.contents));
  }
  return lines;
}

// The same for files in memory, each with its name.
inline absl::StatusOr<Lines> ReadLines(const IdsAndContents& files,
                                       const LineSplit& split = {}) {
  return ReadLines(*FixedSource(files)->Open(), split);
}

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_TESTING_LINES_TESTING_H_
