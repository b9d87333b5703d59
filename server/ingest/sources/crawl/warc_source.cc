// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/warc_source.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

#include "codecs/base/status_macros.h"
#include "server/ingest/sources/crawl/file_deposit.h"

namespace quire {
namespace {

class WarcSource final : public Source {
 public:
  WarcSource(std::shared_ptr<const InputFile> file, OpenStream open,
             RecordFormat format, WarcDamage damage)
      : file_(std::move(file)),
        open_(std::move(open)),
        format_(format),
        damage_(damage) {}

  const std::string& name() const override { return file_->name(); }

  const char* kind() const override {
    return format_ == RecordFormat::kWarc ? "warc" : "arc";
  }

  absl::StatusOr<std::optional<uint64_t>> StoredSizeBytes() const override {
    return file_->SizeBytes();
  }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, open_());
    return std::make_unique<WarcReader>(std::move(stream), name(), format_,
                                        damage_, MakeFileDeposit(file_));
  }

 private:
  const std::shared_ptr<const InputFile> file_;
  const OpenStream open_;
  const RecordFormat format_;
  const WarcDamage damage_;
};

}  // namespace

std::unique_ptr<Source> MakeWarcSource(std::shared_ptr<const InputFile> file,
                                       OpenStream open, RecordFormat format,
                                       WarcDamage damage) {
  return std::make_unique<WarcSource>(std::move(file), std::move(open), format,
                                      damage);
}

}  // namespace quire
