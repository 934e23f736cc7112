// A line on the terminal that says what is going on, when it goes on for more than a second.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace cenote::cli {

/// Shows nothing within the first second, nor where standard error is not a terminal. Gone when destroyed.
class Progress {
 public:
  explicit Progress(std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Says what is going on from now on.
  void say(std::string what);
  /// Takes the line away, so that something can be printed; it comes back by itself.
  void hide();

 private:
  void draw();
  void erase();

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string what_;
  bool shown_ = false;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace cenote::cli
