// SPDX-License-Identifier: GPL-3.0-or-later
//
// A source without files, for tests of the users of sources.
#ifndef QUIRE_SERVER_INGEST_TESTING_MEMORY_SOURCE_H_
#define QUIRE_SERVER_INGEST_TESTING_MEMORY_SOURCE_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/ingest/sources/source.h"
#include "server/ingest/testing/ingest_testing.h"

namespace quire {

// Documents in memory, which may differ in each pass, like inputs that change
// during a build. Readers return at most 3,000 bytes per call, so that
// documents come in pieces. Thread-compatible; readers own their documents and
// may outlive the source.
class MemorySource final : public Source {
 public:
  using Documents = IdsAndContents;
  // Returns the documents of pass number `pass`, from 0.
  using PassContents = std::function<Documents(int pass)>;

  explicit MemorySource(PassContents contents)
      : contents_(std::move(contents)) {}

  const std::string& name() const override { return name_; }

  const char* kind() const override { return "memory"; }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    return std::make_unique<Reader>(contents_(pass_count_++));
  }

 private:
  class Reader final : public SourceReader {
   public:
    explicit Reader(Documents documents) : documents_(std::move(documents)) {}

    absl::StatusOr<std::optional<SourceDocument>> Next() override {
      if (next_ == documents_.size()) {
        return std::nullopt;
      }
      SourceDocument document;
      document.id = documents_[next_].first;
      contents_ = AsBytes(documents_[next_++].second);
      return document;
    }

    std::string Place() const override {
      return absl::StrCat("document ", next_ - 1);
    }

    absl::StatusOr<size_t> Read(MutableByteView out) override {
      const size_t size =
          std::min({out.size(), contents_.size(), size_t{3000}});
      std::copy_n(contents_.begin(), size, out.begin());
      contents_ = contents_.subspan(size);
      return size;
    }

   private:
    const Documents documents_;
    size_t next_ = 0;
    ByteView contents_;
  };

  const std::string name_ = "memory";
  const PassContents contents_;
  mutable int pass_count_ = 0;
};

// Returns the same documents in every pass.
inline std::unique_ptr<Source> FixedSource(const IdsAndContents& documents) {
  return std::make_unique<MemorySource>([documents](int) { return documents; });
}

// Returns a list of one, the form that BuildArchive() takes.
inline std::vector<std::unique_ptr<Source>> Sources(
    std::unique_ptr<Source> source) {
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::move(source));
  return sources;
}

inline std::vector<std::unique_ptr<Source>> OneSource(
    const IdsAndContents& documents) {
  return Sources(FixedSource(documents));
}

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_TESTING_MEMORY_SOURCE_H_
