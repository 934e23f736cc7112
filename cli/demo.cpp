// cenote demo: makes a picture, a volume and a signal, pools and differentiates them every way, checks all of it,
// and draws it.
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include <fmt/core.h>

#include <cenote/cenote.h>
#include <io/png.h>

#include "arguments.h"
#include "commands.h"
#include "demo/scene.h"
#include "demo/sheets.h"
#include "progress.h"

namespace cenote::cli {
namespace {

struct Options {
  std::string folder = "demo";
  std::optional<int> threads;
};

void run(const Options& options) {
  use_threads(options.threads);
  const std::filesystem::path folder(options.folder);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(fmt::format("{}: cannot create: {}", options.folder, error.message()));

  Progress progress("demo");
  demo::Lab lab(progress);
  fmt::print("cenote {}, {}, {} thread(s). Each result is held against a slow oracle; a copy has efficiency 1.\n",
             version(), simd_target(), threads());
  lab.print_head();
  std::string written;
  const auto keep = [&](const char* name, const View& pixels) {
    const std::string path = (folder / name).string();
    io::write_png(path, pixels);
    written += " " + path;
  };
  const Array picture = demo::cenote_picture(768, 1152);
  keep("cenote.png", View(picture.data(), picture.type(), {768, 1152, 3}));
  keep("picture.png", demo::picture_sheet(lab, picture).pixels());
  keep("winners.png", demo::winner_sheet(lab, picture).pixels());
  keep("gradients.png", demo::gradient_sheet(lab, picture).pixels());
  keep("volume.png", demo::volume_sheet(lab).pixels());
  keep("signal.png", demo::signal_sheet(lab).pixels());
  progress.hide();
  fmt::print("{} of {} results agree with the oracle.\n", lab.results() - lab.wrong(), lab.results());
  fmt::print("Pictures to look at:{}\n", written);
  if (lab.wrong() > 0) throw std::runtime_error(fmt::format("{} results differ from the oracle", lab.wrong()));
}

}  // namespace

void add_demo(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("demo", "Pool a picture, a volume and a signal, check and draw the results");
  command.footer(
      "Examples:\n"
      "  cenote demo\n"
      "  cenote demo -o /tmp/sheets --threads 1");
  command.add_option("-o,--output", options->folder, "The folder for the pictures (demo)")->type_name("DIR");
  command.add_option("--threads", options->threads, "The most threads to use")->type_name("N");
  command.callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace cenote::cli
