// Runs the command line as a process.
#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>

namespace cenote::test {
namespace {

const char* program() {
  const char* path = std::getenv("CENOTE_CLI");
  if (path == nullptr) throw std::runtime_error("CENOTE_CLI must name the program to test");
  return path;
}

[[noreturn]] void become_cenote(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  std::vector<char*> argv{const_cast<char*>("cenote")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const char* path = program();
  if (!surroundings.out.empty()) ::dup2(::open(surroundings.out.c_str(), O_WRONLY), STDOUT_FILENO);
  if (!surroundings.folder.empty() && ::chdir(surroundings.folder.c_str()) != 0) ::_exit(126);
  if (surroundings.file_limit > 0) {
    const rlimit limit{surroundings.file_limit, surroundings.file_limit};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(126);
  }
  ::execv(path, argv.data());
  ::_exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Appends what can be read; false at the end. A terminal ends with an error once its last writer is gone.
bool read_some(int descriptor, std::string& text) {
  char buffer[4096];
  const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
  if (count <= 0) return count < 0 && errno == EINTR;
  text.append(buffer, static_cast<std::size_t>(count));
  return true;
}

}  // namespace

Outcome run_cenote(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    become_cenote(arguments, surroundings);
  }
  ::close(out[1]);
  ::close(err[1]);
  Outcome outcome;
  pollfd pipes[] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* texts[] = {&outcome.out, &outcome.err};
  for (int open = 2; open > 0;) {
    ::poll(pipes, 2, -1);
    for (int i = 0; i < 2; ++i) {
      if (pipes[i].revents == 0 || read_some(pipes[i].fd, *texts[i])) continue;
      ::close(pipes[i].fd);
      pipes[i].fd = -1;
      --open;
    }
  }
  outcome.status = wait_for(child);
  return outcome;
}

Outcome run_on_terminal(const std::vector<std::string>& arguments) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) throw std::runtime_error("forkpty");
  if (child == 0) become_cenote(arguments, {});
  Outcome outcome;
  while (read_some(terminal, outcome.out)) {
  }
  outcome.status = wait_for(child);
  ::close(terminal);
  return outcome;
}

}  // namespace cenote::test
