// SPDX-License-Identifier: Apache-2.0
//
// State shared by the subcommands of `quire`: the client, the output, messages,
// the exit code.
#ifndef QUIRE_CLIENT_CLI_CLI_RUN_H_
#define QUIRE_CLIENT_CLI_CLI_RUN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "client/cli/cli_settings.h"
#include "client/cli/output_file.h"
#include "client/quire/client.h"
#include "client/quire/payload_reader.h"
#include "codecs/base/progress_meter.h"

namespace quire {

// Thread-compatible.
class CliRun {
 public:
  CliRun(const CliSettings& settings, std::unique_ptr<Client> client,
         std::unique_ptr<OutputFile> output);

  const CliSettings& settings() const { return settings_; }

  Client& client() { return *client_; }

  OutputFile& output() { return *output_; }

  ProgressMeter& progress() { return progress_; }

  // Reports a failure and sets its exit code. `subject`, which may be empty,
  // names the failed part.
  void Complain(absl::string_view subject, const absl::Status& status);

  // Complain() about one of many items. Damage of a block is named once, unless
  // --verbose is set; Finish() reports how many more items it affects.
  void ComplainOfItem(absl::string_view subject, const absl::Status& status);

  // Prints a message without changing the exit code; silent with --quiet.
  void Note(absl::string_view message);

  // True if anything failed because the server was unreachable, or refused a
  // call until the time limit.
  bool unreachable() const { return exit_code_ == kExitUnreachable; }

  // Declares that output before a failure is valid, and that `command` writes
  // the rest. Then Finish() keeps a file as FILE.partial and prints both.
  void SetContinuation(std::string command) {
    continuation_ = std::move(command);
  }

  // Declares that the output is valid apart from the reported parts. Then
  // Finish() commits it despite complaints.
  void KeepOutputDespiteComplaints() { keeps_output_ = true; }

  // Commits the output, unless something failed: then an existing file is
  // unchanged. `status` is the subcommand's own outcome. Returns the exit code.
  int Finish(const absl::Status& status);

  // Writes the bytes of one target, or with `payload` the payload of a crawl
  // record, to the output; with --json a line. As Stream().
  absl::Status Print(const ReadTarget& target, bool payload);

  // Reads a target of any size, or its payload, in pieces. `on_begin`, called
  // before the first byte, gets the document or the payload's origin; it is not
  // called for ranges. REQUIRES: with `payload` the target is a document.
  absl::Status Stream(const ReadTarget& target, bool payload,
                      PayloadOriginSink on_begin, PayloadSink sink);

  // Writes data to the output, which may buffer them.
  // Errors: those of OutputFile::Write(), and
  //   FailedPrecondition  binary data would go to a terminal, without --force.
  absl::Status WriteData(ByteView data);

  // Restricts reads to the contents that --uuid names or PinContents()
  // selected; otherwise reads any contents.
  ReadOptions read_options() const { return {.archive_uuid = archive_uuid_}; }

  // Restricts later reads to the contents `uuid`, unless --uuid names some.
  void PinContents(const std::string& uuid) {
    if (!archive_uuid_.has_value()) {
      archive_uuid_ = uuid;
    }
  }

  // The same with the present contents.
  // Errors: as Client::GetArchive().
  absl::Status PinContents();

  // Notes that `document` is not of the time that `target` names.
  void NoteTime(const ReadTarget& target, const v1::Document& document);

  // As Client::Read().
  absl::StatusOr<ReadResult> Read(const ReadTarget& target);

 private:
  void NoteOrigin(const ReadTarget& target, const PayloadOrigin& origin);

  const CliSettings& settings_;
  std::optional<std::string> archive_uuid_;
  const std::unique_ptr<Client> client_;
  const std::unique_ptr<OutputFile> output_;
  ProgressMeter progress_;
  int exit_code_ = kExitGood;
  // Empty: none.
  std::string continuation_;
  bool keeps_output_ = false;
  // By the message about a damaged block: items that failed and were not named.
  std::map<std::string, uint64_t> unnamed_counts_;

  void NoteOutputOfFailure();
  void NoteUnnamedItems();
};

// Returns the exit code for `status`. Thread-safe.
int ExitCodeFor(const absl::Status& status);

// Returns the reason why `target` could not be read, for a message that begins
// with DescribeTarget(target): the server's own message would repeat the id.
// `record_hint` says how to get the record of an incomplete payload.
// Thread-safe.
absl::Status WhyNotRead(const ReadTarget& target, const absl::Status& status,
                        absl::string_view record_hint);

// Returns one line for people, ending with a newline, without bytes that
// disturb a terminal. Thread-safe.
std::string MessageFor(absl::string_view subject, const absl::Status& status,
                       const CliSettings& settings);

// Describes the received traffic in one line. Thread-safe.
std::string DescribeTraffic(const WireStats& stats);

// Returns members of a JSON object, without braces, separated by commas, that
// describe the bytes `data` of `target`. A range has a default `origin`.
// Thread-safe.
std::string JsonData(const ReadTarget& target, const PayloadOrigin& origin,
                     absl::string_view data);

// The same for a target that could not be read. Thread-safe.
std::string JsonError(const absl::Status& status);

// True if `status`, of reading and writing one of several targets, concerns
// them all: the output failed, or the archive has other contents than
// read_options() name. Thread-safe.
bool EndsRun(const absl::Status& status);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_CLI_RUN_H_
