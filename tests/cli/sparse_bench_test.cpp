// cenote sparse-bench as a process: its table and its file have a line for everything asked for.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "files.h"
#include "process.h"

namespace cenote::test {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

TEST(SparseBench, PrintsALineForEveryCloudOrderKernelAndWidth) {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_cenote({"sparse-bench", "--voxels", "300,1000", "--channels", "1,3", "--kernel", "k2s2,k3s1,k2s2t",
                  "--min-time", "0.0001", "--threads", "1", "--json", folder / "sparse.json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const std::string json = read_bytes(folder / "sparse.json");
  for (const std::string& text : {outcome.out, json}) {
    // Three clouds of two sizes, three kernels, two orders.
    EXPECT_EQ(count(text, "with edges"), 36u) << text;
    EXPECT_EQ(count(text, "max C=1"), 36u);
    EXPECT_EQ(count(text, "max C=3"), 36u);
    EXPECT_EQ(count(text, "Morton sort"), 6u);
    for (const char* name : {"lidar", "surface", "cube", "morton", "unsorted", "k3s1", "k2s2t"})
      EXPECT_GT(count(text, name), 0u) << name;
  }
  EXPECT_EQ(count(outcome.out, "\n"), 2u + 6u * 2u + 4u * 36u);
  EXPECT_EQ(count(json, "\"nanoseconds_per_voxel\""), 6u * 2u + 4u * 36u);
  EXPECT_EQ(count(json, "\"efficiency\""), 2u * 36u);
  EXPECT_EQ(count(json, "\"map_nanoseconds_per_voxel\""), 2u * 24u);
  EXPECT_EQ(std::count(json.begin(), json.end(), '{'), std::count(json.begin(), json.end(), '}'));
}

TEST(SparseBench, WrongValuesAreNamed) {
  const auto error = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "sparse-bench");
    const Outcome outcome = run_cenote(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_EQ(error({"--voxels", "0"}), "cenote: --voxels 0: every number must be from 1 to 100000000\n");
  EXPECT_EQ(error({"--cloud", "fog"}), "cenote: --cloud fog: one of lidar surface cube\n");
  EXPECT_EQ(error({"--order", "any"}), "cenote: --order any: one of morton unsorted\n");
  EXPECT_EQ(error({"--kernel", "3"}), "cenote: --kernel 3: such as k2s2 or k2s2t\n");
  EXPECT_EQ(error({"--channels", "4,0"}), "cenote: --channels 4,0: every number must be at least 1\n");
}

}  // namespace
}  // namespace cenote::test
