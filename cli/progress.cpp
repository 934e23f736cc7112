// The progress line: a thread that redraws it a few times a second.
#include "progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include <fmt/core.h>

namespace cenote::cli {

using namespace std::chrono_literals;

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (!::isatty(STDERR_FILENO)) return;
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, 1s, [this] { return done_; })) return;
    do draw();
    while (!wake_.wait_for(lock, 200ms, [this] { return done_; }));
  });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    erase();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Progress::say(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void Progress::hide() {
  const std::lock_guard lock(mutex_);
  erase();
}

void Progress::draw() {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  // Short enough for one row of the narrowest usual terminal: a wrapped line could not be erased.
  fmt::print(stderr, "\r\x1b[K{:.60} ... {:.0f} s", what_, seconds);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::erase() {
  if (!std::exchange(shown_, false)) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace cenote::cli
