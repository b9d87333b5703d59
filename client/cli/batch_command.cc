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
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include "client/cli/answer_order.h"
#include "client/cli/batch_items.h"
#include "client/cli/shown_text.h"
#include "client/cli/subcommands.h"
#include "client/quire/batch_reader.h"
#include "client/quire/client_status.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Items on their way at once: as many as a server sorts, which on a disk with
// an arm is worth the more the more there are; and the memory that their ids
// take.
constexpr size_t kUnansweredMax = 100'000;
constexpr size_t kUnansweredSizeBytesMax = size_t{64} << 20;
// Ids that are remembered, to tell of those that come again; by 8 bytes each.
constexpr size_t kAskedMax = 4'000'000;
// Damaged blocks that are remembered, to tell of each once.
constexpr size_t kToldBlocksMax = 10'000;
constexpr size_t kReadSizeBytes = size_t{64} << 10;

absl::string_view View(const std::string& text) {
  return {text.data(), text.size()};
}

// The items of a file or of standard input.
class ItemSource {
 public:
  static absl::StatusOr<std::unique_ptr<ItemSource>> Open(
      const CliSettings& settings) {
    int fd = STDIN_FILENO;
    if (settings.items_file != "-") {
      fd = open(settings.items_file.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0) {
        return SystemError("cannot read", View(settings.items_file));
      }
    }
    return std::unique_ptr<ItemSource>(new ItemSource(settings, fd));
  }

  ~ItemSource() {
    if (fd_ != STDIN_FILENO) {
      close(fd_);
    }
  }

  ItemSource(const ItemSource&) = delete;
  ItemSource& operator=(const ItemSource&) = delete;

  bool at_end() const { return at_end_; }

  bool is_terminal() const { return isatty(fd_) == 1; }

  // How many items there are, if the input is a file: it is read for that.
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
      counter.Feed(View(input).substr(0, static_cast<size_t>(size)));
      offset += size;
    }
    return size == 0 ? std::optional<uint64_t>(counter.Count()) : std::nullopt;
  }

  // The next item. Nothing at the end; without `may_wait` also if none is there
  // yet.
  absl::StatusOr<std::optional<ReadTarget>> Next(bool may_wait) {
    for (;;) {
      absl::StatusOr<std::optional<std::string>> item = splitter_.Next();
      if (!item.ok()) {
        return AtItem(item.status());
      }
      if (item->has_value()) {
        absl::StatusOr<ReadTarget> target = ParseBatchItem(form_, View(**item));
        if (!target.ok()) {
          return AtItem(target.status());
        }
        ++item_count_;
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
  ItemSource(const CliSettings& settings, int fd)
      : fd_(fd),
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
      return SystemError("cannot read", View(name_));
    }
    if (size == 0) {
      finished_ = true;
      splitter_.Finish();
    } else if (size > 0) {
      splitter_.Feed(View(input).substr(0, static_cast<size_t>(size)));
    }
    return absl::OkStatus();
  }

  absl::Status AtItem(const absl::Status& status) const {
    return absl::InvalidArgumentError(absl::StrCat(
        name_, ", item ", item_count_ + 1, ": ", status.message()));
  }

  const int fd_;
  const std::string name_;
  const ItemForm form_;
  const bool null_separated_;
  ItemSplitter splitter_;
  uint64_t item_count_ = 0;
  bool finished_ = false;
  bool at_end_ = false;
};

// Different targets have different names, of at most 221 bytes: '@' is in no
// SafeFileName().
std::string FileNameOf(const ReadTarget& target) {
  if (const auto* span = std::get_if<ByteSpan>(&target)) {
    return absl::StrCat(span->offset, "-", span->size_bytes);
  }
  const auto& key = std::get<DocumentKey>(target);
  if (const auto* ordinal = std::get_if<uint64_t>(&key.name)) {
    return absl::StrCat(*ordinal);
  }
  std::string name = SafeFileName(View(std::get<std::string>(key.name)));
  if (key.occurrence.has_value()) {
    absl::StrAppend(&name, "@", *key.occurrence);
  }
  return name;
}

// Where answers go: one after the other to the output, or each to a file.
class AnswerSink {
 public:
  explicit AnswerSink(CliRun& run) : run_(run) {}

  absl::Status Prepare() {
    const std::string& directory = run_.settings().output_dir;
    if (!directory.empty() && mkdir(directory.c_str(), 0777) != 0 &&
        errno != EEXIST) {
      return SystemError("cannot create", View(directory));
    }
    return absl::OkStatus();
  }

  // The tag is the item's place in the input, from 0. Only what makes it
  // useless to go on is returned; other failures are told and counted.
  absl::Status Take(BatchAnswer answer) {
    const uint64_t number = answer.tag;
    // What the server would not hold for a batch, it gives alone.
    if (!answer.result.ok() &&
        absl::IsResourceExhausted(answer.result.status())) {
      answer.result = run_.Read(answer.target);
    }
    const absl::Status status = answer.result.status();
    if (IsOfOtherContents(status)) {
      return status;
    }
    if (!status.ok()) {
      if (!IsKnownDamage(status)) {
        run_.Complain(absl::StrCat("item ", number + 1, ", ",
                                   DescribeTarget(answer.target)),
                      WhyNotRead(answer.target, status));
      }
      run_.progress().AddFailed();
    } else {
      run_.progress().Add(answer.result->data.size(), 1);
    }
    NoteRepetition(answer.target);
    if (!run_.settings().output_dir.empty()) {
      return status.ok() ? WriteFile(answer) : absl::OkStatus();
    }
    if (run_.settings().json) {
      return run_.output().Write(View(absl::StrCat(
          "{\"item\":", number + 1, ",",
          status.ok() ? JsonResult(*answer.result) : JsonError(status),
          "}\n")));
    }
    return status.ok() ? run_.WriteData(AsBytes(answer.result->data))
                       : absl::OkStatus();
  }

  // Says how many items failed by damage that was told of one item alone.
  void SumUp() {
    for (const auto& [message, count] : untold_counts_) {
      if (count != 0) {
        run_.Complain(
            absl::StrCat(count, count == 1 ? " more item" : " more items",
                         " of the same block (-v names each)"),
            absl::DataLossError(message));
      }
    }
  }

  // Makes the files outlast a crash of the machine, and tells of items that
  // were given again.
  absl::Status Finish() {
    if (repeated_count_ > 0) {
      run_.Note(absl::StrCat(
          FormatCounted(repeated_count_, "item is", "items are"),
          " the same as an earlier one and read the same document again. To "
          "read each of several documents of an id, give ID<TAB>@N, as quire "
          "ls prints it"));
    }
    const std::string& directory = run_.settings().output_dir;
    if (directory.empty()) {
      return absl::OkStatus();
    }
    const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || syncfs(fd) != 0) {
      const absl::Status status =
          SystemError("cannot write to", View(directory));
      if (fd >= 0) {
        close(fd);
      }
      return status;
    }
    close(fd);
    return absl::OkStatus();
  }

 private:
  // Whether an item before failed by the same block, whose number is in the
  // message: a damaged block may hold hundreds of documents.
  bool IsKnownDamage(const absl::Status& status) {
    if (run_.settings().verbose ||
        ErrorReasonOf(status) != v1::ErrorReason_Name(v1::BLOCK_DAMAGED)) {
      return false;
    }
    const std::string message(status.message());
    const auto found = untold_counts_.find(message);
    if (found != untold_counts_.end()) {
      ++found->second;
      return true;
    }
    if (untold_counts_.size() < kToldBlocksMax) {
      untold_counts_.emplace(message, 0);
    }
    return false;
  }

  absl::Status WriteFile(const BatchAnswer& answer) {
    QUIRE_ASSIGN_OR_RETURN(
        const std::unique_ptr<OutputFile> file,
        OutputFile::Open(absl::StrCat(run_.settings().output_dir, "/",
                                      FileNameOf(answer.target))));
    QUIRE_RETURN_IF_ERROR(file->Write(View(answer.result->data)));
    return file->Commit(/*sync=*/false);
  }

  // A list of ids without their occurrences has an id once for each of its
  // documents, and reads but one of these.
  void NoteRepetition(const ReadTarget& target) {
    const auto* key = std::get_if<DocumentKey>(&target);
    if (key == nullptr || !std::holds_alternative<std::string>(key->name)) {
      return;
    }
    const uint64_t hash = Checksum64(AsBytes(View(FileNameOf(target))));
    if (asked_.contains(hash)) {
      ++repeated_count_;
    } else if (asked_.size() < kAskedMax) {
      asked_.insert(hash);
    }
  }

  CliRun& run_;
  // Hashes of the ids that were asked for.
  absl::flat_hash_set<uint64_t> asked_;
  uint64_t repeated_count_ = 0;
  // By the message about a damaged block: items that failed and were not told.
  std::map<std::string, uint64_t> untold_counts_;
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

// What an item takes while it is on its way.
size_t ItemSizeBytes(const ReadTarget& target) {
  const auto* key = std::get_if<DocumentKey>(&target);
  const auto* id =
      key == nullptr ? nullptr : std::get_if<std::string>(&key->name);
  return sizeof(ReadTarget) + (id == nullptr ? 0 : id->size());
}

// Hands over items and takes answers until both are at their end.
class BatchRun {
 public:
  BatchRun(CliRun& run, ItemSource& source, AnswerOrder& order)
      : run_(run),
        source_(source),
        order_(order),
        batch_(run.client().StartBatch(
            View(run.settings().archive),
            {.archive_uuid = run.settings().archive_uuid})) {}

  absl::Status Run() {
    while (!run_.unreachable()) {
      QUIRE_RETURN_IF_ERROR(HandOver());
      std::optional<BatchAnswer> answer = batch_->Next();
      if (answer.has_value()) {
        on_their_way_size_bytes_ -= ItemSizeBytes(answer->target);
        QUIRE_RETURN_IF_ERROR(order_.Take(*std::move(answer)));
      } else if (source_.at_end()) {
        break;
      }
      // A reader of the output should not wait for what follows much later.
      if (batch_->unanswered_count() == 0) {
        QUIRE_RETURN_IF_ERROR(run_.output().Flush());
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status HandOver() {
    std::vector<BatchReader::Item> items;
    const size_t unanswered_count = batch_->unanswered_count();
    while (!source_.at_end() && order_.has_room() &&
           unanswered_count + items.size() < kUnansweredMax &&
           on_their_way_size_bytes_ < kUnansweredSizeBytesMax) {
      // With nothing on its way there is nothing else to wait for.
      QUIRE_ASSIGN_OR_RETURN(
          std::optional<ReadTarget> target,
          source_.Next(/*may_wait=*/unanswered_count + items.size() == 0));
      if (!target.has_value()) {
        break;
      }
      on_their_way_size_bytes_ += ItemSizeBytes(*target);
      const uint64_t number = order_.Ask(*target);
      items.push_back({.tag = number, .target = *std::move(target)});
    }
    if (!items.empty()) {
      batch_->AddAll(std::move(items));
    }
    if (source_.at_end() && !closed_) {
      batch_->CloseAdds();
      closed_ = true;
    }
    return absl::OkStatus();
  }

  CliRun& run_;
  ItemSource& source_;
  AnswerOrder& order_;
  const std::unique_ptr<BatchReader> batch_;
  size_t on_their_way_size_bytes_ = 0;
  bool closed_ = false;
};

}  // namespace

absl::Status RunBatch(CliRun& run) {
  const CliSettings& settings = run.settings();
  QUIRE_RETURN_IF_ERROR(CheckSettings(settings));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ItemSource> source,
                         ItemSource::Open(settings));
  // Says it once, and not for each item, if there is no such archive.
  QUIRE_RETURN_IF_ERROR(
      run.client().GetArchive(View(settings.archive)).status());
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
  AnswerOrderOptions options;
  // Files have no order.
  options.ordered = !settings.unordered && settings.output_dir.empty();
  AnswerOrder order(
      options,
      [&sink](BatchAnswer answer) { return sink.Take(std::move(answer)); },
      [&run](const ReadTarget& target) { return run.Read(target); });
  const absl::Status status = BatchRun(run, *source, order).Run();
  sink.SumUp();
  QUIRE_RETURN_IF_ERROR(status);
  return sink.Finish();
}

}  // namespace quire
