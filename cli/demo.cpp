// cenote demo: makes a picture, a volume, a signal and a scan of a street, pools and differentiates them every way,
// checks all of it, and draws it.
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include <fmt/core.h>

#include <cenote/cenote.h>
#include <io/npy.h>
#include <io/ply.h>
#include <io/png.h>

#include "arguments.h"
#include "commands.h"
#include "demo/scene.h"
#include "demo/sheets.h"
#include "demo/street.h"
#include "numbers.h"
#include "progress.h"
#include "sparse_rows.h"

namespace cenote::cli {
namespace {

struct Options {
  std::string folder = "demo";
  std::optional<int> threads;
};

// The scan as a .ply file has it: colours are bytes.
io::PointCloud cloud_of(const Array& scan) {
  constexpr const char* names[] = {"x", "y", "z", "red", "green", "blue"};
  io::PointCloud cloud;
  for (std::int64_t c = 0; c < 6; ++c) {
    const View column(scan.values<float>().data() + c, Type::f32, {scan.shape()[0]}, {6});
    cloud.properties.push_back(
        {names[c], c < 3 ? Array(column) : from_doubles(to_doubles(names[c], column), Type::u8)});
  }
  return cloud;
}

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
  progress.say("demo: a scan of a street");
  const Array scan = demo::street_scan();
  const SparseTensor voxels = demo::street_voxels(scan);
  keep("street.png", demo::street_sheet(lab, scan, voxels).pixels());
  const std::string points = (folder / "street.ply").string(), rows = (folder / "street.npy").string();
  io::write_ply(points, cloud_of(scan));
  io::write_npy(rows, joined(voxels.coords(), voxels.feats()));
  progress.hide();
  fmt::print("{} of {} results agree with the oracle.\n", lab.results() - lab.wrong(), lab.results());
  fmt::print("Pictures to look at:{}\n", written);
  fmt::print("Points to play with: {} for cenote voxelize, {} for cenote sparse-pool\n", points, rows);
  if (lab.wrong() > 0) throw std::runtime_error(fmt::format("{} results differ from the oracle", lab.wrong()));
}

}  // namespace

void add_demo(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      *app.add_subcommand("demo", "Pool a picture, a volume, a signal and a street, check and draw them");
  command.footer(
      "Examples:\n"
      "  cenote demo\n"
      "  cenote demo -o /tmp/sheets --threads 1");
  command.add_option("-o,--output", options->folder, "The folder for pictures and points (demo)")->type_name("DIR");
  command.add_option("--threads", options->threads, "The most threads to use")->type_name("N");
  command.callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace cenote::cli
