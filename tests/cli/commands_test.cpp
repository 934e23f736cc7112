// The other commands as processes: version, help, plan, bench, demo and the progress line.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <cenote/cenote.h>
#include <gtest/gtest.h>
#include <io/png.h>

#include "files.h"
#include "process.h"

namespace cenote::test {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    result.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

void expect_error(const std::vector<std::string>& arguments, int status, const std::string& text) {
  const Outcome outcome = run_cenote(arguments);
  EXPECT_EQ(outcome.status, status) << testing::PrintToString(arguments);
  EXPECT_EQ(outcome.err, "cenote: " + text + "\n");
  EXPECT_EQ(outcome.out, "");
}

TEST(Cenote, TellsItsVersion) {
  const Outcome outcome = run_cenote({"--version"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "cenote " CENOTE_VERSION "\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(Cenote, HelpHasExamplesForEveryCommand) {
  for (const std::string command :
       {"", "pool", "grad", "sparse-pool", "voxelize", "plan", "bench", "sparse-bench", "demo"}) {
    const Outcome outcome = command.empty() ? run_cenote({"--help"}) : run_cenote({command, "--help"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(contains(outcome.out, "Examples:\n  cenote " + command)) << outcome.out;
  }
  const std::string pool = run_cenote({"pool", "-h"}).out;
  for (const char* option : {"--reducer", "--window",      "--stride",     "--padding", "--dilation", "--channels-last",
                             "--ceil",    "--divisor",     "--beta",       "--p ",      "--indices",  "--threads",
                             "--exact",   "--allow-empty", "--index-kind", "--pad ",    "--adaptive", "--global",
                             "--ties",    "--axes",        "--dtype",      "--type"}) {
    EXPECT_TRUE(contains(pool, option)) << option;
  }
  for (const Reducer reducer : all_reducers) EXPECT_TRUE(contains(pool, std::string(name(reducer))));
  const std::string grad = run_cenote({"grad", "-h"}).out;
  for (const char* option : {"--cotangent", "--tangent", "--second", "--output", "--reducer", "--window", "--ties"}) {
    EXPECT_TRUE(contains(grad, option)) << option;
  }
  EXPECT_FALSE(contains(grad, "--indices"));
}

TEST(Cenote, WrongUsageHasStatusTwo) {
  expect_error({}, 2, "A subcommand is required (see cenote --help)");
  expect_error(
      {"fly"}, 2,
      "'fly' is no command: pool, grad, sparse-pool, voxelize, plan, bench, sparse-bench or demo (see cenote --help)");
  expect_error({"--fast"}, 2, "A subcommand is required (see cenote --help)");
  expect_error({"pool"}, 2, "IN is required (see cenote pool --help)");
  expect_error({"pool", "x.npy"}, 2, "OUT is required (see cenote pool --help)");
  expect_error({"plan"}, 2, "PROBLEM is required (see cenote plan --help)");
  expect_error({"bench"}, 2, "a problem or --file is needed (see cenote bench --help)");
  expect_error({"demo", "--size", "1"}, 2,
               "The following arguments were not expected: 1 --size (see cenote demo --help)");
}

TEST(Plan, ExplainsProblems) {
  const Outcome outcome =
      run_cenote({"plan", "max f32 32x64x112x112 k3 s2 p1 idx=offset", "avg f32 8x31x31 adaptive=7x_"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("max f32 32x64x112x112 k3x3")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "\n  output   f32 (32, 64, 56, 56)\n"));
  EXPECT_TRUE(contains(outcome.out, "\n  indices  u8 (32, 64, 56, 56)\n"));
  EXPECT_TRUE(contains(outcome.out, "\n  axis 2   112 cells, window 3, stride 2, dilation 1, padding 1:1 -> 56\n"));
  EXPECT_TRUE(contains(outcome.out, "\n  axis 3   112 cells"));
  EXPECT_TRUE(contains(outcome.out, "\n  moves    134873088 bytes at least"));
}

TEST(Plan, RefusesWhatIsNoProblem) {
  const auto refused = [](const std::string& problem, int status, const std::string& part) {
    const Outcome outcome = run_cenote({"plan", "max f32 8x8 k2x2", problem});
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(lines(outcome.err).size(), 1u);
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  };
  refused("max f32", 2, "[problem] ");
  refused("max f32 8x8 k2x2 q5", 2, "\"q5\"");
  refused("max f33 8x8 k2x2", 2, "f33");
  refused("max i32 8x8 k2x2 vjp", 2, "max i32 8x8 k2x2 vjp: a derivative needs f16, bf16, f32 or f64, not i32");
  refused("max f32 8x8 k2x2 idx=plane jvp", 2, "a derivative has no indices; leave out idx=");
}

TEST(Plan, ExplainsDerivatives) {
  const auto plan = [](const std::string& problem) {
    const Outcome outcome = run_cenote({"plan", problem});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  };
  const std::string max = plan("max f32 2x3x8x8 k2 s2 vjp");
  EXPECT_TRUE(max.starts_with("max f32 2x3x8x8 k2x2 s2x2 vjp -> (2, 3, 8, 8) f32: routed, ")) << max;
  EXPECT_TRUE(contains(max, "\n  output   f32 (2, 3, 4, 4)\n"));
  // gx, gy and one byte of offset per output
  EXPECT_TRUE(contains(max, "\n  moves    2016 bytes at least\n")) << max;
  const auto moves = [&](const std::string& problem, int bytes) {
    EXPECT_TRUE(contains(plan(problem), "\n  moves    " + std::to_string(bytes) + " bytes at least\n"))
        << plan(problem);
  };
  moves("avg f32 2x3x8x8 k2 s2 vjp", 1536 + 384);                   // gx, gy
  moves("max f32 2x3x8x8 k2 s2 ties=split vjp", 2 * (1536 + 384));  // and x, y
  moves("smooth_max f32 2x3x8x8 k2 s2 vjp", 2 * (1536 + 384));
  moves("lp f16 2x3x8x8 k2 s2 vjp", 1536 + 384);
  moves("max f32 2x3x8x8 k2 s2 jvp", 2 * 1536 + 384);  // x, dx, dy
  moves("lp f32 2x3x8x8 k2 s2 jvp", 2 * 1536 + 384);
  moves("sum f32 2x3x8x8 k2 s2 jvp", 1536 + 384);  // dx, dy: x does not matter
  EXPECT_TRUE(plan("sum f32 2x3x8x8 k2 s2 dtype=f64 jvp")
                  .starts_with("sum f32 2x3x8x8 k2x2 s2x2 dtype=f64 jvp -> "
                               "(2, 3, 4, 4) f64: linear, "));
  EXPECT_TRUE(contains(plan("avg f32 2x3x80x80 k3x35 s2x3 vjp"), "; windows along axis 3 are swept, "));
  EXPECT_TRUE(contains(plan("smooth_max f32 2x3x80x80 k9x9 jvp"), "; windows along axes 2 and 3 are swept, "));
  EXPECT_TRUE(contains(plan("lp f32 2x3x8x8 k2 s2 lp=inf vjp"), ": routed, "));
  EXPECT_TRUE(contains(plan("lp f32 2x3x8x8 k2 s2 lp=3 jvp"), ": weighed, "));
}

TEST(Plan, PrintsJson) {
  const Outcome outcome =
      run_cenote({"plan", "--json", "max f32 2x3x8x9 k3x2 s2 p1:0x0 idx=offset", "lp f16 4x9 k3 axes=1 lp=inf vjp"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = lines(outcome.out);
  ASSERT_EQ(rows.size(), 2u) << outcome.out;
  EXPECT_EQ(rows[0].substr(0, rows[0].find(", \"divisor\"")),
            R"({"problem": "max f32 2x3x8x9 k3x2 s2 p1:0x0 idx=offset", "direction": "forward", "reducer": "max", )"
            R"("type": "f32", "shape": [2, 3, 8, 9], "output_type": "f32", "output_shape": [2, 3, 4, 4], )"
            R"("index_type": "u8", "axes": [{"axis": 2, "cells": 8, "window": 3, "stride": 2, "dilation": 1, )"
            R"("padding": [1, 0], "adaptive": false, "outputs": 4}, {"axis": 3, "cells": 9, "window": 2, )"
            R"("stride": 2, "dilation": 1, "padding": [0, 0], "adaptive": false, "outputs": 4}])");
  EXPECT_TRUE(contains(rows[1], R"("direction": "vjp", "reducer": "lp", "type": "f16")")) << rows[1];
  EXPECT_TRUE(contains(rows[1], R"("divisor": "window", "beta": 1, "p": "inf", "pad": "zero", "ties": "first")"));
  EXPECT_TRUE(
      contains(rows[0], R"(, "algorithm": "lines+rows", "reason": "the innermost pooled axis is contiguous, )"));
  EXPECT_TRUE(rows[1].ends_with(
      R"(, "algorithm": "routed", "reason": "each gy goes to the winner of its window, which is found in x"})"))
      << rows[1];
}

TEST(Bench, TimesEveryWayOfAPooling) {
  const Outcome outcome = run_cenote({"bench", "--ways", "max f32 2x4x12x12 k3 p1", "max f32 2x4x12x12 k3 p1 vjp",
                                      "avg f32 1x4x200 k12", "--min-time", "0.001"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = lines(outcome.out);
  const std::vector<std::string> expected{
      "max f32 2x4x12x12 k3 p1 (chosen) ", "max f32 2x4x12x12 k3 p1 (swept) ",      "max f32 2x4x12x12 k3 p1 (turned) ",
      "max f32 2x4x12x12 k3 p1 (plain) ",  "max f32 2x4x12x12 k3 p1 (rows first) ", "max f32 2x4x12x12 k3 p1 vjp ",
      "avg f32 1x4x200 k12 (chosen) ",     "avg f32 1x4x200 k12 (folded) ",         "avg f32 1x4x200 k12 (turned) "};
  ASSERT_EQ(rows.size(), expected.size() + 2) << outcome.out;
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(rows[i + 2].starts_with(expected[i])) << rows[i + 2];
}

TEST(Bench, PrintsTimeBandwidthAndEfficiency) {
  const Outcome outcome = run_cenote(
      {"bench", "max f32 4x8x32x32 k2 s2", "avg bf16 2x16x16x8 k3 s1 p1 last", "--min-time", "0.01", "--threads", "1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto rows = lines(outcome.out);
  ASSERT_EQ(rows.size(), 4u) << outcome.out;
  EXPECT_TRUE(rows[0].starts_with("cenote " CENOTE_VERSION ", ")) << rows[0];
  EXPECT_TRUE(contains(rows[0], "1 thread(s)"));
  for (const char* column : {"problem", "best ms", "median ms", "GB/s", "copy GB/s", "eff."}) {
    EXPECT_TRUE(contains(rows[1], column));
  }
  EXPECT_TRUE(rows[2].starts_with("max f32 4x8x32x32 k2 s2 "));
  double best = 0, median = 0, rate = 0, copy = 0, efficiency = -1;
  const std::string numbers = rows[2].substr(std::string("avg bf16 2x16x16x8 k3 s1 p1 last").size());
  ASSERT_EQ(std::sscanf(numbers.c_str(), "%lf %lf %lf %lf %lf", &best, &median, &rate, &copy, &efficiency), 5)
      << numbers;
  EXPECT_GT(best, 0);
  EXPECT_LE(best, median);
  EXPECT_GT(rate, 0);
  EXPECT_NEAR(efficiency, rate / copy, 0.01 + 0.05 * efficiency);
}

TEST(Bench, ReadsAListAndWritesJson) {
  const TemporaryFolder folder;
  write_bytes(folder / "list.txt", "# a comment\n\n  max f32 2x2x16x16 k2 s2  # behind it\r\nsum u8 64x64 k3x3 p1");
  const Outcome outcome = run_cenote({"bench", "--file", folder / "list.txt", "--json", "--min-time", "0.01"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "\"cenote\": \"" CENOTE_VERSION "\", \"machine\": \""));
  EXPECT_TRUE(contains(outcome.out, "{\"problem\": \"max f32 2x2x16x16 k2 s2\", \"algorithm\": \""));
  EXPECT_TRUE(contains(outcome.out, "{\"problem\": \"sum u8 64x64 k3x3 p1\", \"algorithm\": \""));
  for (const char* key : {"bytes", "runs", "best_seconds", "median_seconds", "gigabytes_per_second",
                          "copy_gigabytes_per_second", "efficiency", "simd", "threads"}) {
    EXPECT_TRUE(contains(outcome.out, "\"" + std::string(key) + "\": ")) << key;
  }
  EXPECT_TRUE(contains(outcome.out, "\"bytes\": 5120,")) << outcome.out;
}

TEST(Bench, TimesDerivatives) {
  std::vector<std::string> problems;
  for (const Reducer reducer : all_reducers) {
    for (const char* rest : {" f32 2x4x12x12 k2 s2 vjp", " f32 2x12x12x4 k3 s2 p1 last vjp", " f64 2x4x12x12 k5 p2 jvp",
                             " bf16 2x12x12x4 k3 s2 p1 last jvp"}) {
      problems.push_back(std::string(name(reducer)) + rest);
    }
  }
  problems.push_back("max f32 2x4x12x12 k3 s2 p1 ties=split vjp");
  problems.push_back("min f16 2x4x12x12 k3 s2 p1 ties=split jvp");
  problems.push_back("lp f32 2x4x12x12 k3 s2 p1 lp=inf vjp");
  problems.push_back("avg f32 2x4x12x12 global vjp");
  std::vector<std::string> arguments{"bench", "--min-time", "0.001"};
  arguments.insert(arguments.end(), problems.begin(), problems.end());
  const Outcome outcome = run_cenote(arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto rows = lines(outcome.out);
  ASSERT_EQ(rows.size(), problems.size() + 2) << outcome.out;
  for (std::size_t i = 0; i < problems.size(); ++i) EXPECT_TRUE(rows[i + 2].starts_with(problems[i] + " ")) << rows[i];

  const Outcome empty = run_cenote({"bench", "--min-time", "0.001", "--json", "max f32 0x3x8x8 k2 s2"});
  EXPECT_EQ(empty.status, 0) << empty.err;
  EXPECT_FALSE(contains(empty.out, "nan")) << empty.out;
  const Outcome json = run_cenote({"bench", "--min-time", "0.001", "--json", "max f32 2x3x8x8 k2 s2 vjp"});
  EXPECT_TRUE(contains(json.out, "\"algorithm\": \"routed\", ")) << json.out;
  EXPECT_TRUE(contains(json.out, "\"bytes\": 2016,")) << json.out;
}

TEST(Bench, HasListsWhoseEveryLineCanBePlanned) {
  for (const auto& [name, least] : {std::pair{"problems", 100}, {"quick", 20}, {"windows", 20}}) {
    std::vector<std::string> arguments{"plan"};
    for (const std::string& line : lines(read_bytes(CENOTE_SOURCE "/benchmarks/" + std::string(name) + ".txt"))) {
      if (!line.empty() && line[0] != '#') arguments.push_back(line);
    }
    EXPECT_GT(static_cast<int>(arguments.size()), least) << name;
    const Outcome outcome = run_cenote(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
}

TEST(Bench, RunsAFixedNumberOfTimesInSilence) {
  const Outcome outcome = run_cenote({"bench", "--runs", "2", "max f32 2x3x8x8 k2 s2", "avg f32 2x3x8x8 k2 s2 vjp"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out + outcome.err, "");
  expect_error({"bench", "--runs", "0", "max f32 8x8 k2x2"}, 2, "--runs 0: at least 1, and without --json");
  expect_error({"bench", "--runs", "1", "--json", "max f32 8x8 k2x2"}, 2, "--runs 1: at least 1, and without --json");
}

TEST(Bench, RefusesBeforeItTimesAnything) {
  const TemporaryFolder folder;
  write_bytes(folder / "list.txt", "max f32 8x8 k2x2\n\nmax f32 8x8 k9x9\n");
  const Outcome outcome = run_cenote({"bench", "--file", folder / "list.txt"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("cenote: " + (folder / "list.txt") + ":3: [max_pool] ")) << outcome.err;
  expect_error({"bench", "--file", folder / "none.txt"}, 1,
               (folder / "none.txt") + ": cannot open: No such file or directory");
  expect_error({"bench", "max f32 8x8 k2x2", "--min-time", "0"}, 2,
               "--min-time 0: more than 0 and at most 3600 seconds");
  expect_error({"bench", "max f32 8x8 k2x2", "sum u8 8x8 k2x2 jvp"}, 2,
               "sum u8 8x8 k2x2 jvp: a derivative needs f16, bf16, f32 or f64, not u8");
}

TEST(Progress, IsShownOnATerminalAfterASecondAndWipedAway) {
  const Outcome slow = run_on_terminal({"bench", "max f32 8x8x8x8 k2 s2", "--min-time", "1.5"});
  EXPECT_EQ(slow.status, 0);
  EXPECT_TRUE(contains(slow.out, "\r\x1b[Kbench 1 of 1: max f32 8x8x8x8 k2 s2 ... ")) << slow.out;
  const Outcome quick = run_on_terminal({"bench", "max f32 8x8x8x8 k2 s2", "--min-time", "0.01"});
  EXPECT_EQ(quick.status, 0);
  EXPECT_FALSE(contains(quick.out, "\x1b")) << quick.out;
  const Outcome elsewhere = run_cenote({"bench", "max f32 8x8x8x8 k2 s2", "--min-time", "1.2"});
  EXPECT_EQ(elsewhere.err, "");
}

TEST(Demo, AgreesWithTheOracleAndDrawsItsSheets) {
  const char* scale = std::getenv("CENOTE_TEST_SCALE");
  if (scale != nullptr && std::atof(scale) < 1) GTEST_SKIP() << "minutes of the slow oracle under a sanitizer";
  const TemporaryFolder folder;
  const Outcome outcome = run_cenote({"demo", "-o", folder / "sheets"});
  EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.err, "");
  EXPECT_FALSE(contains(outcome.out, "WRONG")) << outcome.out;
  for (const Reducer reducer : all_reducers) {
    for (const char* shape : {" f32 1x768x1152x3 ", " f32 1x1x96x96x96 ", " f32 1x1x12288 "}) {
      EXPECT_TRUE(contains(outcome.out, "\n" + std::string(name(reducer)) + shape)) << name(reducer) << shape;
    }
  }
  const auto rows = lines(outcome.out);
  for (const Reducer reducer : all_reducers) {
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const std::string& row) {
      return row.starts_with(std::string(name(reducer)) + " f32 ") && contains(row, " vjp ");
    })) << name(reducer);
  }
  EXPECT_TRUE(contains(outcome.out, " ties=split vjp "));
  for (const Reducer reducer : all_reducers) {
    EXPECT_TRUE(contains(outcome.out, "\nsparse " + std::string(name(reducer)) + " f32 ")) << name(reducer);
  }
  for (const char* sheet :
       {"cenote.png", "picture.png", "winners.png", "gradients.png", "volume.png", "signal.png", "street.png"}) {
    const Array pixels = io::read_png((folder / "sheets") + "/" + sheet);
    EXPECT_EQ(pixels.rank(), 3);
    EXPECT_GT(pixels.shape()[1], 1000);
  }
}

TEST(Demo, SaysWhereItCannotWrite) {
  const TemporaryFolder folder;
  write_bytes(folder / "file", "");
  expect_error({"demo", "-o", folder / "file"}, 1, (folder / "file") + ": cannot create: Not a directory");
}

TEST(Output, ThatCannotBeWrittenIsAFailure) {
  const Outcome outcome = run_cenote({"plan", "max f32 8x8 k2x2"}, {.out = "/dev/full"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "cenote: cannot write to standard output\n");
}

}  // namespace
}  // namespace cenote::test
