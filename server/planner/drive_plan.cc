// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/drive_plan.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/duration_text.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/storage/device/drive_kind.h"
#include "server/storage/model/hard_disk_model.h"
#include "server/storage/model/solid_state_model.h"
#include "server/storage/scheduler/elevator_scheduler.h"
#include "server/storage/simulation/scheduler_simulation.h"

namespace quire {
namespace {

constexpr uint32_t kDriveDepth = 32;
constexpr uint64_t kReadSizeMax = uint64_t{1} << 22;
constexpr uint64_t kExtentMin = uint64_t{1} << 20;
constexpr uint64_t kInFlight = 64;
constexpr uint64_t kSimulatedReads = 1'500;

std::unique_ptr<DriveModel> MakeModel(PlannedDrive::Kind kind) {
  if (kind == PlannedDrive::Kind::kHardDisk) {
    return std::make_unique<HardDiskModel>(HardDiskOptions{});
  }
  return std::make_unique<SolidStateModel>(SolidStateOptions{});
}

absl::Status WrongDrive(const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--disk must be hdd, ssd, an existing path, or s3:LATENCY,RATE such as "
      "s3:30ms,200MB, got ",
      QuotedText(text)));
}

absl::StatusOr<PlannedDrive> ParseObjectStore(const std::string& text,
                                              absl::string_view rest) {
  const std::vector<std::string> parts = absl::StrSplit(rest, ',');
  if (parts.size() != 2) {
    return WrongDrive(text);
  }
  const absl::StatusOr<absl::Duration> latency =
      ParseDurationText(parts[0], {absl::Microseconds(1), absl::Minutes(1)});
  if (!latency.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--disk ", text, ": the latency ", latency.status().message()));
  }
  const absl::StatusOr<uint64_t> rate = ParseByteSize(parts[1]);
  if (!rate.ok() || *rate == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--disk ", text,
        ": the rate must be bytes a second such as 200MB, more than 0, got ",
        QuotedText(parts[1])));
  }
  return PlannedDrive{.kind = PlannedDrive::Kind::kObjectStore,
                      .name = text,
                      .latency_seconds = absl::ToDoubleSeconds(*latency),
                      .bytes_per_second = static_cast<double>(*rate)};
}

}  // namespace

absl::StatusOr<PlannedDrive> ParseDrive(const std::string& text) {
  using Kind = PlannedDrive::Kind;
  if (text == "hdd") {
    return PlannedDrive{.kind = Kind::kHardDisk, .name = text};
  }
  if (text == "ssd") {
    return PlannedDrive{.kind = Kind::kSolidState, .name = text};
  }
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "s3:")) {
    return ParseObjectStore(text, rest);
  }
  // Does not wait for a writer of a FIFO.
  const int fd = open(text.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return WrongDrive(text);
  }
  const DriveKind kind = DetectDrive(fd).drive.kind;
  close(fd);
  return PlannedDrive{
      .kind =
          kind == DriveKind::kRotational ? Kind::kHardDisk : Kind::kSolidState,
      .name = absl::StrCat(text, " (", DriveKindName(kind), ")")};
}

double RandomReadsPerSecond(const PlannedDrive& drive, uint64_t read_bytes,
                            uint64_t extent_bytes) {
  read_bytes = std::clamp<uint64_t>(read_bytes, 1, kReadSizeMax);
  if (drive.kind == PlannedDrive::Kind::kObjectStore) {
    const double transfer =
        static_cast<double>(read_bytes) / drive.bytes_per_second;
    return std::min(kInFlight / (drive.latency_seconds + transfer),
                    1 / transfer);
  }
  ElevatorScheduler::Options options;
  options.pending_requests_max = 1 << 20;
  ElevatorScheduler scheduler(options);
  const std::unique_ptr<DriveModel> model = MakeModel(drive.kind);
  const SimulatedClients clients = {
      .request_count = kSimulatedReads,
      .outstanding = kInFlight,
      .extent_size_bytes =
          std::clamp(extent_bytes, std::max(kExtentMin, 2 * read_bytes),
                     model->capacity_size_bytes()),
      .size_bytes = static_cast<uint32_t>(read_bytes)};
  return Simulate(scheduler, *model, kDriveDepth, {clients}, /*seed=*/1)
      .clients[0]
      .per_second;
}

}  // namespace quire
