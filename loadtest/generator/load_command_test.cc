// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/load_command.h"

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Parses `arguments`; an error of the parser itself is InvalidArgument, too,
// with its text.
absl::StatusOr<LoadCommand> Parse(const std::string& arguments) {
  CLI::App app("", "quire-loadtest");
  LoadCommandLine line(app);
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return line.Complete();
}

LoadCommand MustParse(const std::string& arguments) {
  absl::StatusOr<LoadCommand> command = Parse(arguments);
  EXPECT_TRUE(command.ok()) << arguments << ": " << command.status();
  return command.ok() ? *std::move(command) : LoadCommand();
}

TEST(LoadCommandTest, TheEnvironmentNamesTheServerUnlessTheLineDoes) {
  setenv("QUIRE_SERVER", "there:1", 1);
  EXPECT_EQ(MustParse("web").server, "there:1");
  EXPECT_EQ(MustParse("web --server here:2").server, "here:2");
  unsetenv("QUIRE_SERVER");
}

TEST(LoadCommandTest, AnArchiveIsEnough) {
  unsetenv("QUIRE_SERVER");
  const LoadCommand command = MustParse("web");
  EXPECT_EQ(command.load.archive, "web");
  EXPECT_EQ(command.server, "localhost:7420");
  EXPECT_EQ(command.connection_count, 1u);
  EXPECT_EQ(command.load.mode, LoadMode::kRandom);
  EXPECT_EQ(command.load.what, LoadKind::kRanges);
  EXPECT_EQ(command.load.range_size_bytes, 16u << 10);
  EXPECT_EQ(command.load.request_count, 10'000u);
  EXPECT_EQ(command.load.duration, milliseconds(600'000));
  EXPECT_EQ(command.load.in_flight, 64u);
  EXPECT_FALSE(command.load.requests_per_second.has_value());
  EXPECT_EQ(command.load.encoding, AnswerEncoding::kIdentity);
  EXPECT_FALSE(command.is_json);
}

TEST(LoadCommandTest, TakesEveryOption) {
  const LoadCommand command = MustParse(
      "--server unix:/run/q --mode batch --what documents --seed 9 "
      "--source web.raw --index web.tsv --requests 500 --duration 2.5 "
      "--warmup 4 --batch-size 25 --in-flight 3 --connections 4 "
      "--encoding stored --deadline 1.5s --json web");
  EXPECT_EQ(command.server, "unix:/run/q");
  EXPECT_EQ(command.connection_count, 4u);
  EXPECT_EQ(command.source, "web.raw");
  EXPECT_EQ(command.index, "web.tsv");
  EXPECT_TRUE(command.is_json);
  const LoadOptions& load = command.load;
  EXPECT_EQ(load.mode, LoadMode::kBatch);
  EXPECT_EQ(load.what, LoadKind::kDocuments);
  EXPECT_EQ(load.seed, 9u);
  EXPECT_EQ(load.request_count, 500u);
  EXPECT_EQ(load.duration, milliseconds(2'500));
  EXPECT_EQ(load.warmup, milliseconds(4'000));
  EXPECT_EQ(load.batch_size, 25u);
  EXPECT_EQ(load.in_flight, 3u);
  EXPECT_EQ(load.encoding, AnswerEncoding::kStored);
  EXPECT_EQ(load.deadline, milliseconds(1'500));
}

TEST(LoadCommandTest, ReadsSizesAndTimes) {
  const LoadOptions load =
      MustParse("web --range-size 64KiB --warmup 1.5s --rate 2.5").load;
  EXPECT_EQ(load.range_size_bytes, 65'536u);
  EXPECT_EQ(load.warmup, milliseconds(1'500));
  EXPECT_EQ(load.requests_per_second, 2.5);
}

TEST(LoadCommandTest, EndsWhenItIsTold) {
  const struct {
    const char* arguments;
    std::optional<uint64_t> request_count;
    std::optional<milliseconds> duration;
  } cases[] = {
      {"web --requests 7", 7, milliseconds(600'000)},
      {"web --duration 3", std::nullopt, milliseconds(3'000)},
      {"web --duration 3s", std::nullopt, milliseconds(3'000)},
      {"web --duration 0.25s", std::nullopt, milliseconds(250)},
      {"web --duration 2m", std::nullopt, milliseconds(120'000)},
      {"web --duration 1h30m", std::nullopt, milliseconds(5'400'000)},
      {"web --duration 3 --requests 7", 7, milliseconds(3'000)},
      // All of the archive, however long it takes; or repeatedly.
      {"web --mode full", std::nullopt, std::nullopt},
      {"web --mode full --duration 3", std::nullopt, milliseconds(3'000)},
  };

  for (const auto& c : cases) {
    const LoadOptions load = MustParse(c.arguments).load;
    EXPECT_EQ(load.request_count, c.request_count) << c.arguments;
    EXPECT_EQ(load.duration, c.duration) << c.arguments;
  }
}

TEST(LoadCommandTest, CallsAtOnceDependOnTheMode) {
  EXPECT_EQ(MustParse("web --mode batch").load.in_flight, 1u);
  EXPECT_EQ(MustParse("web --mode full").load.in_flight, 1u);
  EXPECT_EQ(MustParse("web --mode full --in-flight 4").load.in_flight, 4u);
  // Enough for all waiting calls.
  EXPECT_EQ(MustParse("web --rate 5").load.in_flight, 10'000u);
  EXPECT_EQ(MustParse("web --rate 5 --in-flight 3").load.in_flight, 3u);
}

TEST(LoadCommandTest, RefusesWhatIsNoValue) {
  const struct {
    const char* arguments;
    // Name in the error message.
    const char* about;
  } cases[] = {
      {"", "ARCHIVE"},
      {"web second", "second"},
      {"web --bogus", "--bogus"},
      {"web --json report.json", "report.json"},
      {"web --mode sideways", "--mode"},
      {"web --what pages", "--what"},
      {"web --encoding gzip", "--encoding"},
      {"web --seed x", "--seed"},
      {"web --requests -1", "--requests"},
      {"web --requests 0", "--requests"},
      {"web --requests many", "--requests"},
      {"web --duration 0", "--duration"},
      {"web --duration nan", "--duration"},
      {"web --duration 1e9", "--duration"},
      {"web --rate 0", "--rate"},
      {"web --rate nan", "--rate"},
      {"web --rate 2e6", "--rate"},
      {"web --in-flight 0", "--in-flight"},
      {"web --in-flight 100001", "--in-flight"},
      {"web --batch-size 0", "--batch-size"},
      {"web --connections 0", "--connections"},
      {"web --range-size 0", "--range-size"},
      {"web --range-size some", "--range-size"},
      {"web --warmup soon", "--warmup"},
      {"web --warmup -1s", "--warmup"},
      {"web --warmup nans", "--warmup"},
      {"web --warmup 1e9s", "--warmup"},
      {"web --warmup 5x", "--warmup must be a time from 1ms"},
      {"web --duration 2x", "--duration must be a time from 1ms"},
      {"web --duration 1us", "--duration"},
      {"web --deadline 0", "--deadline must be a time from 1ms"},
      {"web --deadline soon", "got \"soon\""},
      {"web --server here", "--server: 'here' is no server address"},
      {"web --rate fast", "--rate: must be 0.001 to 1e+06, got \"fast\""},
  };

  for (const auto& c : cases) {
    EXPECT_THAT(
        Parse(c.arguments),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr(c.about)))
        << c.arguments;
  }
}

TEST(LoadCommandTest, RefusesWhatDoesNotGoTogether) {
  const char* const full = "--mode full reads the text from end to end";

  const struct {
    const char* arguments;
    const char* reason;
  } cases[] = {
      {"--mode full --rate 5", "--rate requires --mode random"},
      {"--mode batch --rate 5", "--rate requires --mode random"},
      {"--mode full --requests 5", full},
      {"--mode full --warmup 5", full},
      {"--mode full --what documents", "reads text, not documents"},
      {"--index web.tsv", "--index requires --source"},
      {"--what documents --source web.raw", "requires --index"},
  };

  for (const auto& c : cases) {
    EXPECT_THAT(
        Parse(absl::StrCat("web ", c.arguments)),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr(c.reason)))
        << c.arguments;
  }
}

}  // namespace
}  // namespace quire
