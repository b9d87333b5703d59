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
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/cli/batch_items.h"
#include "client/cli/shown_text.h"
#include "client/cli/verbs.h"
#include "client/quire/batch_reader.h"
#include "client/quire/client_status.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Items on their way at once: enough for a server to sort, few enough to hold.
constexpr size_t kUnansweredMax = 4096;
// Answers that wait for one before them. Past either bound the one that is
// missing is read by itself, so that the others can go.
constexpr size_t kWaitingSizeBytesMax = size_t{128} << 20;
constexpr size_t kWaitingCountMax = 65536;
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
      if (!may_wait && poll(&ready, 1, 0) == 0) {
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
        splitter_(settings.null_separated) {}

  absl::Status ReadSome() {
    std::string input(kReadSizeBytes, '\0');
    const ssize_t size = read(fd_, input.data(), input.size());
    if (size < 0 && errno != EINTR) {
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
  ItemSplitter splitter_;
  uint64_t item_count_ = 0;
  bool finished_ = false;
  bool at_end_ = false;
};

// Where answers go: one after the other to the output, or each to a file.
class AnswerSink {
 public:
  explicit AnswerSink(CliRun& run) : run_(run) {}

  absl::Status Prepare() {
    const std::string& folder = run_.settings().output_dir;
    if (!folder.empty() && mkdir(folder.c_str(), 0777) != 0 &&
        errno != EEXIST) {
      return SystemError("cannot create", View(folder));
    }
    return absl::OkStatus();
  }

  // `number` is the item's place in the input, from 0. Only what makes it
  // useless to go on is returned; other failures are told and counted.
  absl::Status Take(uint64_t number, BatchAnswer answer) {
    // What the server would not hold for a batch, it gives alone.
    if (!answer.result.ok() &&
        absl::IsResourceExhausted(answer.result.status())) {
      answer.result = run_.Read(answer.target);
    }
    const absl::Status status = answer.result.status();
    if (!status.ok()) {
      run_.Complain(absl::StrCat("item ", number + 1, ", ",
                                 DescribeTarget(answer.target)),
                    status);
    } else {
      run_.progress().Add(answer.result->data.size(), 1);
    }
    if (!run_.settings().output_dir.empty()) {
      return status.ok() ? WriteFile(answer) : absl::OkStatus();
    }
    if (run_.settings().json) {
      return run_.output().Write(View(absl::StrCat(
          "{\"item\":", number + 1, ",",
          status.ok() ? JsonResult(*answer.result) : JsonError(status),
          "}\n")));
    }
    return status.ok() ? run_.output().Write(View(answer.result->data))
                       : absl::OkStatus();
  }

  // Makes the files outlast a crash of the machine.
  absl::Status Finish() {
    const std::string& folder = run_.settings().output_dir;
    if (folder.empty()) {
      return absl::OkStatus();
    }
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || syncfs(fd) != 0) {
      const absl::Status status = SystemError("cannot write to", View(folder));
      if (fd >= 0) {
        close(fd);
      }
      return status;
    }
    close(fd);
    return absl::OkStatus();
  }

 private:
  absl::Status WriteFile(const BatchAnswer& answer) {
    std::string name;
    if (const auto* span = std::get_if<ByteSpan>(&answer.target)) {
      name = absl::StrCat(span->offset, "-", span->size_bytes);
    } else {
      const auto& key = std::get<DocumentKey>(answer.target);
      const auto* ordinal = std::get_if<uint64_t>(&key.name);
      name = ordinal != nullptr
                 ? absl::StrCat(*ordinal)
                 : SafeFileName(View(std::get<std::string>(key.name)));
    }
    QUIRE_ASSIGN_OR_RETURN(
        const std::unique_ptr<OutputFile> file,
        OutputFile::Open(absl::StrCat(run_.settings().output_dir, "/", name)));
    QUIRE_RETURN_IF_ERROR(file->Write(View(answer.result->data)));
    return file->Commit(/*sync=*/false);
  }

  CliRun& run_;
};

// Puts answers into the order of their items.
class AnswerOrder {
 public:
  // Nothing waits if answers may go as they come.
  AnswerOrder(CliRun& run, AnswerSink& sink, bool ordered)
      : run_(run), sink_(sink), ordered_(ordered) {}

  // The next item goes out to be asked for.
  uint64_t Ask(const ReadTarget& target) {
    if (ordered_) {
      asked_.emplace(asked_count_, target);
    }
    return asked_count_++;
  }

  bool has_room() const { return waiting_.size() < kWaitingCountMax; }

  absl::Status Take(BatchAnswer answer) {
    const uint64_t number = answer.tag;
    if (!ordered_) {
      return sink_.Take(number, std::move(answer));
    }
    if (read_alone_.erase(number) != 0) {
      return absl::OkStatus();
    }
    if (answer.result.ok()) {
      waiting_size_bytes_ += answer.result->data.size();
    }
    waiting_.emplace(number, std::move(answer));
    return PassOn();
  }

 private:
  absl::Status PassOn() {
    for (;;) {
      const auto first = waiting_.begin();
      if (first == waiting_.end()) {
        return absl::OkStatus();
      }
      if (first->first == next_) {
        BatchAnswer answer = std::move(first->second);
        waiting_.erase(first);
        if (answer.result.ok()) {
          waiting_size_bytes_ -= answer.result->data.size();
        }
        QUIRE_RETURN_IF_ERROR(Emit(std::move(answer)));
        continue;
      }
      if (waiting_size_bytes_ <= kWaitingSizeBytesMax &&
          waiting_.size() < kWaitingCountMax) {
        return absl::OkStatus();
      }
      // Its answer from the batch is passed over when it comes.
      BatchAnswer alone{.tag = next_, .target = asked_.at(next_)};
      alone.result = run_.Read(alone.target);
      read_alone_.insert(next_);
      QUIRE_RETURN_IF_ERROR(Emit(std::move(alone)));
    }
  }

  absl::Status Emit(BatchAnswer answer) {
    asked_.erase(next_);
    return sink_.Take(next_++, std::move(answer));
  }

  CliRun& run_;
  AnswerSink& sink_;
  const bool ordered_;
  uint64_t asked_count_ = 0;
  // The item whose answer goes out next.
  uint64_t next_ = 0;
  // Items whose answer has not gone out.
  std::map<uint64_t, ReadTarget> asked_;
  std::map<uint64_t, BatchAnswer> waiting_;
  size_t waiting_size_bytes_ = 0;
  std::set<uint64_t> read_alone_;
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
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ItemSource> source,
                         ItemSource::Open(settings));
  // Says it once, and not for each item, if there is no such archive.
  QUIRE_RETURN_IF_ERROR(
      run.client().GetArchive(View(settings.archive)).status());
  if (source->is_terminal()) {
    run.Note("reading items from the terminal, one a line; Ctrl-D ends them");
  }
  AnswerSink sink(run);
  QUIRE_RETURN_IF_ERROR(sink.Prepare());
  AnswerOrder order(run, sink,
                    !settings.unordered && settings.output_dir.empty());
  const std::unique_ptr<BatchReader> batch =
      run.client().StartBatch(View(settings.archive), {});
  while (!run.unreachable()) {
    std::vector<BatchReader::Item> items;
    size_t unanswered_count = batch->unanswered_count();
    while (!source->at_end() && order.has_room() &&
           unanswered_count + items.size() < kUnansweredMax) {
      // With nothing on its way there is nothing else to wait for.
      QUIRE_ASSIGN_OR_RETURN(
          std::optional<ReadTarget> target,
          source->Next(/*may_wait=*/unanswered_count + items.size() == 0));
      if (!target.has_value()) {
        break;
      }
      const uint64_t number = order.Ask(*target);
      items.push_back({.tag = number, .target = *std::move(target)});
    }
    batch->AddAll(std::move(items));
    if (source->at_end()) {
      batch->CloseAdds();
    }
    std::optional<BatchAnswer> answer = batch->Next();
    if (answer.has_value()) {
      QUIRE_RETURN_IF_ERROR(order.Take(*std::move(answer)));
    } else if (source->at_end()) {
      break;
    }
    // A reader of the output should not wait for what follows much later.
    if (batch->unanswered_count() == 0) {
      QUIRE_RETURN_IF_ERROR(run.output().Flush());
    }
  }
  return sink.Finish();
}

}  // namespace quire
