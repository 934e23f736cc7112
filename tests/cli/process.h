// Runs the command line as a process and catches what it says.
#pragma once

#include <string>
#include <vector>

namespace cenote::test {

struct Outcome {
  /// The exit status, or minus the signal that ended it.
  int status = 0;
  std::string out, err;
};

struct Surroundings {
  /// The folder to run in; empty for this one.
  std::string folder{};
  /// The largest file that may be written, in bytes; 0 for no limit.
  unsigned long file_limit = 0;
  /// Where standard output goes instead of being caught.
  std::string out{};
};

/// The program that the CENOTE_CLI variable names, with these arguments and nothing on standard input.
Outcome run_cenote(const std::vector<std::string>& arguments, const Surroundings& surroundings = {});

/// The same with a terminal for output and errors alike; all of it is in `out`.
Outcome run_on_terminal(const std::vector<std::string>& arguments);

}  // namespace cenote::test
