// SPDX-License-Identifier: Apache-2.0
//
// quire batch: items in, answers out, in the order asked although the server
// answers in its own, with bounded memory.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include "client/cli/batch_items.h"
#include "client/cli/document_filter.h"
#include "client/cli/item_batch.h"
#include "client/cli/output_file.h"
#include "client/cli/subcommands.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Upper bound on the ids that are remembered, to count duplicates; 8 bytes
// each.
constexpr size_t kAskedMax = 4'000'000;
constexpr size_t kReadSizeBytes = size_t{64} << 10;

// The items of a file or of standard input.
class InputItems final : public ItemSource {
 public:
  // `filter` must outlive the items.
  static absl::StatusOr<std::unique_ptr<InputItems>> Open(
      const CliSettings& settings, const DocumentFilter& filter) {
    int fd = STDIN_FILENO;
    if (settings.items_file != "-") {
      fd = open(settings.items_file.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0) {
        return SystemError("cannot read", settings.items_file);
      }
    }
    return std::unique_ptr<InputItems>(new InputItems(settings, filter, fd));
  }

  ~InputItems() override {
    if (fd_ != STDIN_FILENO) {
      close(fd_);
    }
  }

  InputItems(const InputItems&) = delete;
  InputItems& operator=(const InputItems&) = delete;

  bool at_end() const override { return at_end_; }

  bool is_terminal() const { return isatty(fd_) == 1; }

  // Number of items if the input is a file, which is read to count them.
  std::optional<uint64_t> CountItems() const {
    struct stat info = {};
    if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
      return std::nullopt;
    }
    ItemCounter counter(null_separated_);
    std::string input(kReadSizeBytes, '\0');
    off_t offset = lseek(fd_, 0, SEEK_CUR);
    ssize_t size = 0;
    while ((size = pread(fd_, input.data(), input.size(), offset)) > 0) {
      counter.Feed(
          absl::string_view(input).substr(0, static_cast<size_t>(size)));
      offset += size;
    }
    return size == 0 ? std::optional<uint64_t>(counter.Count()) : std::nullopt;
  }

  absl::StatusOr<std::optional<ReadTarget>> Next(bool may_wait) override {
    for (;;) {
      absl::StatusOr<std::optional<std::string>> item = splitter_.Next();
      if (!item.ok()) {
        return AtItem(item.status());
      }
      if (item->has_value()) {
        absl::StatusOr<ReadTarget> target = ParseBatchItem(form_, **item);
        if (!target.ok()) {
          return AtItem(target.status());
        }
        ++item_count_;
        if (auto* key = std::get_if<DocumentKey>(&*target)) {
          filter_.Select(*key);
        }
        return std::optional<ReadTarget>(*std::move(target));
      }
      if (finished_) {
        at_end_ = true;
        return std::optional<ReadTarget>();
      }
      struct pollfd ready = {.fd = fd_, .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, may_wait ? -1 : 0) == 0) {
        return std::optional<ReadTarget>();
      }
      QUIRE_RETURN_IF_ERROR(ReadSome());
    }
  }

 private:
  InputItems(const CliSettings& settings, const DocumentFilter& filter, int fd)
      : filter_(filter),
        fd_(fd),
        name_(settings.items_file == "-" ? "standard input"
                                         : settings.items_file),
        form_(settings.ranges       ? ItemForm::kRange
              : settings.by_ordinal ? ItemForm::kOrdinal
                                    : ItemForm::kId),
        null_separated_(settings.null_separated),
        splitter_(settings.null_separated) {}

  absl::Status ReadSome() {
    std::string input(kReadSizeBytes, '\0');
    const ssize_t size = read(fd_, input.data(), input.size());
    // EAGAIN: another process with the same pipe or terminal made it
    // non-blocking.
    if (size < 0 && errno != EINTR && errno != EAGAIN) {
      return SystemError("cannot read", name_);
    }
    if (size == 0) {
      finished_ = true;
      splitter_.Finish();
    } else if (size > 0) {
      splitter_.Feed(
          absl::string_view(input).substr(0, static_cast<size_t>(size)));
    }
    return absl::OkStatus();
  }

  absl::Status AtItem(const absl::Status& status) const {
    return absl::InvalidArgumentError(absl::StrCat(
        name_, ", item ", item_count_ + 1, ": ", status.message()));
  }

  const DocumentFilter& filter_;
  const int fd_;
  const std::string name_;
  const ItemForm form_;
  const bool null_separated_;
  ItemSplitter splitter_;
  uint64_t item_count_ = 0;
  bool finished_ = false;
  bool at_end_ = false;
};

// Writes answers one after the other to the output, or each to a file.
class AnswerSink {
 public:
  explicit AnswerSink(CliRun& run) : run_(run) {}

  absl::Status Prepare() {
    const std::string& path = run_.settings().output_dir;
    if (!path.empty()) {
      QUIRE_ASSIGN_OR_RETURN(directory_, OutputDirectory::Create(path));
    }
    return absl::OkStatus();
  }

  // Returns only errors that end the batch; others are reported and counted.
  absl::Status Take(const ItemAnswer& answer) {
    NoteRepetition(answer.target);
    if (answer.is_left_out) {
      ++left_out_count_;
      run_.progress().Add(0, 1);
      return absl::OkStatus();
    }
    absl::Status status = answer.result.status();
    if (status.ok() || IsTooLargeForBatch(status)) {
      status = Write(answer);
    }
    if (status.ok()) {
      run_.progress().Add(0, 1);
      return status;
    }
    if (EndsRun(status)) {
      return status;
    }
    run_.ComplainOfItem(
        NameOf(answer),
        WhyNotRead(answer.target, status,
                   "without --payload the whole record is written"));
    run_.progress().AddFailed();
    return run_.settings().json ? WriteLine(answer.tag, JsonError(status))
                                : absl::OkStatus();
  }

  // Makes the files outlast a crash of the machine, and reports how many items
  // were repeated, left out, or replaced by another capture.
  absl::Status Finish() {
    if (repeated_count_ > 0) {
      run_.Note(absl::StrCat(
          FormatCounted(repeated_count_, "item is", "items are"),
          " the same as an earlier one and read the same document again. To "
          "read each of several documents of an id, give ID<TAB>@N, as quire "
          "ls prints it"));
    }
    if (left_out_count_ > 0) {
      run_.Note(
          absl::StrCat(FormatCounted(left_out_count_, "item does", "items do"),
                       " not pass the filters and ",
                       left_out_count_ == 1 ? "is" : "are", " left out"));
    }
    if (unresolved_count_ > 0) {
      run_.Note(absl::StrCat(
          FormatCounted(unresolved_count_, "item is a revisit",
                        "items are revisits"),
          " of a record that the archive does not hold; the newest response "
          "in the archive is used instead (-v names each)"));
    }
    return directory_.has_value() ? directory_->Sync() : absl::OkStatus();
  }

 private:
  absl::Status Write(const ItemAnswer& answer) {
    const CliSettings& settings = run_.settings();
    PayloadOrigin origin;
    std::string json_data;
    const auto pass = [&](PayloadSink sink) {
      return PassData(
          run_, answer, settings.payload,
          [&](const PayloadOrigin& found) {
            origin = found;
            return absl::OkStatus();
          },
          sink);
    };
    QUIRE_RETURN_IF_ERROR(
        directory_.has_value()
            ? directory_->WriteFile(FileNameOf(answer.target), pass)
            : pass([&](ByteView bytes) {
                if (!settings.json) {
                  return run_.WriteData(bytes);
                }
                json_data.append(AsText(bytes).data(), bytes.size());
                return absl::OkStatus();
              }));
    if (!origin.unresolved.empty()) {
      ++unresolved_count_;
      if (settings.verbose) {
        run_.Note(absl::StrCat(NameOf(answer), ": ", origin.unresolved));
      }
    }
    return settings.json ? WriteLine(answer.tag,
                                     JsonData(answer.target, origin, json_data))
                         : absl::OkStatus();
  }

  absl::Status WriteLine(uint64_t tag, const std::string& members) {
    return run_.output().Write(
        absl::StrCat("{\"item\":", tag + 1, ",", members, "}\n"));
  }

  static std::string NameOf(const ItemAnswer& answer) {
    return absl::StrCat("item ", answer.tag + 1, ", ",
                        DescribeTarget(answer.target));
  }

  // A list of ids without occurrences reads the same document for each copy of
  // an id.
  void NoteRepetition(const ReadTarget& target) {
    const auto* key = std::get_if<DocumentKey>(&target);
    if (key == nullptr || !std::holds_alternative<std::string>(key->name)) {
      return;
    }
    const uint64_t hash = Checksum64(AsBytes(FileNameOf(target)));
    if (asked_.contains(hash)) {
      ++repeated_count_;
    } else if (asked_.size() < kAskedMax) {
      asked_.insert(hash);
    }
  }

  CliRun& run_;
  // Set for --output-dir.
  std::optional<OutputDirectory> directory_;
  // Hashes of the requested ids.
  absl::flat_hash_set<uint64_t> asked_;
  uint64_t repeated_count_ = 0;
  uint64_t left_out_count_ = 0;
  uint64_t unresolved_count_ = 0;
};

absl::Status CheckSettings(const CliSettings& settings) {
  if (!settings.output_dir.empty() &&
      (settings.unordered || settings.json || settings.output != "-")) {
    return absl::InvalidArgumentError(
        "--output-dir writes files and goes with none of --unordered, --json "
        "and --output");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunBatch(CliRun& run) {
  const CliSettings& settings = run.settings();
  QUIRE_RETURN_IF_ERROR(CheckSettings(settings));
  QUIRE_ASSIGN_OR_RETURN(const DocumentFilter filter,
                         DocumentFilter::Make(settings.filter));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<InputItems> source,
                         InputItems::Open(settings, filter));
  // A missing archive is one error, not one per item.
  QUIRE_RETURN_IF_ERROR(run.client().GetArchive(settings.archive).status());
  if (source->is_terminal()) {
    run.Note("reading items from the terminal, one a line; Ctrl-D ends them");
  }
  if (run.progress().enabled()) {
    const std::optional<uint64_t> count = source->CountItems();
    if (count.has_value()) {
      run.progress().SetItemTotal(*count);
    }
  }
  AnswerSink sink(run);
  QUIRE_RETURN_IF_ERROR(sink.Prepare());
  QUIRE_RETURN_IF_ERROR(ReadItems(
      run, *source,
      {.payload = settings.payload,
       .filter = filter.is_set() ? &filter : nullptr,
       // Files have no order.
       .ordered = !settings.unordered && settings.output_dir.empty()},
      [&sink](const ItemAnswer& answer) { return sink.Take(answer); }));
  return sink.Finish();
}

}  // namespace quire
