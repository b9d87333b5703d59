// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/process_figures.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace quire {
namespace {

std::string ReadAll(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Number of entries of /proc/self/fd, without ".", ".." and the descriptor used
// here.
std::optional<double> OpenFiles() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"),
                                                      closedir);
  if (directory == nullptr) {
    return std::nullopt;
  }
  double count = -3;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this function owns the directory.
  while (readdir(directory.get()) != nullptr) {
    ++count;
  }
  return count;
}

std::optional<double> OpenFilesMax() {
  rlimit files{};
  return getrlimit(RLIMIT_NOFILE, &files) == 0
             ? std::optional(static_cast<double>(files.rlim_cur))
             : std::nullopt;
}

std::optional<double> CpuSeconds() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) {
    return std::nullopt;
  }
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Returns field `number` of /proc/self/stat, numbered from 1 as in proc(5).
// REQUIRES: number > 2.
std::optional<double> StatField(absl::string_view stat, size_t number) {
  // The second field is the program's name in parentheses, with any bytes.
  const size_t end = stat.rfind(") ");
  if (end == absl::string_view::npos) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> fields =
      absl::StrSplit(stat.substr(end + 2), ' ');
  uint64_t value = 0;
  return number - 3 < fields.size() &&
                 absl::SimpleAtoi(fields[number - 3], &value)
             ? std::optional(static_cast<double>(value))
             : std::nullopt;
}

// Seconds since 1970.
std::optional<double> BootTime() {
  const std::string stat = ReadAll("/proc/stat");
  for (const absl::string_view line : absl::StrSplit(stat, '\n')) {
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    uint64_t seconds = 0;
    if (words.first == "btime" && absl::SimpleAtoi(words.second, &seconds)) {
      return static_cast<double>(seconds);
    }
  }
  return std::nullopt;
}

// Returns x * factor + offset; nothing if x or offset is unknown.
std::optional<double> Scaled(std::optional<double> x, double factor,
                             std::optional<double> offset = 0) {
  return x.has_value() && offset.has_value()
             ? std::optional(*x * factor + *offset)
             : std::nullopt;
}

}  // namespace

std::vector<ProcessFigure> ReadProcessFigures() {
  constexpr size_t kStartTime = 22;
  constexpr size_t kVirtualBytes = 23;
  constexpr size_t kResidentPages = 24;
  const std::string stat = ReadAll("/proc/self/stat");
  std::vector<ProcessFigure> figures;
  const auto add = [&](const char* name, const char* help,
                       std::optional<double> value, bool is_counter = false) {
    if (value.has_value()) {
      figures.push_back({name, help, is_counter, *value});
    }
  };
  add("process_cpu_seconds_total", "CPU time of user and system", CpuSeconds(),
      /*is_counter=*/true);
  add("process_open_fds", "Open file descriptors", OpenFiles());
  add("process_max_fds", "File descriptors that may be open at once",
      OpenFilesMax());
  add("process_virtual_memory_bytes", "Size of the address space",
      StatField(stat, kVirtualBytes));
  add("process_resident_memory_bytes", "Resident memory",
      Scaled(StatField(stat, kResidentPages),
             static_cast<double>(sysconf(_SC_PAGESIZE))));
  add("process_start_time_seconds",
      "Start of the process, in seconds since 1970",
      Scaled(StatField(stat, kStartTime),
             1 / static_cast<double>(sysconf(_SC_CLK_TCK)), BootTime()));
  return figures;
}

}  // namespace quire
