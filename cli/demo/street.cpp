// Houses, trees and cars made of boxes, balls and posts, and scanners that look at them along many rays.
#include "street.h"

#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

#include "noise.h"
#include "parallel.h"

namespace cenote::demo {
namespace {

struct Vector {
  float x = 0, y = 0, z = 0;
  friend Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend Vector operator*(float s, Vector v) { return {s * v.x, s * v.y, s * v.z}; }
};

float dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

struct Ray {
  Vector from, along;
  Vector at(float t) const { return from + t * along; }
};

enum class Stuff { wall, roof, car, glass, trunk, leaves, lamp };

struct Box {
  Vector low, high;
  Stuff stuff = Stuff::wall;
  Color color{};
};
struct Roof {
  float x0, x1, y0, y1, z, rise;
  Color color{};
};
struct Ball {
  Vector centre;
  float radius;
};
struct Post {
  float x, y, radius, top;
  Stuff stuff = Stuff::trunk;
};
struct Street {
  std::vector<Box> boxes;
  std::vector<Roof> roofs;
  std::vector<Ball> crowns;
  std::vector<Post> posts;
};

struct Hit {
  float t;
  Color color;
};

constexpr float road = 4, kerb = 7, facade = 9;

void add_house(Street& street, float x, float width, int number) {
  constexpr std::array<Color, 5> paints{
      {{226, 196, 140}, {206, 122, 96}, {168, 190, 202}, {232, 222, 204}, {190, 170, 210}}};
  const float height = 5 + 2.6f * hash(number, 1, 211), depth = facade + 6.5f;
  const Color paint = paints[static_cast<std::size_t>(number) % paints.size()];
  street.boxes.push_back({{x, facade, 0}, {x + width, depth, height}, Stuff::wall, paint});
  street.roofs.push_back({x - 0.3f, x + width + 0.3f, facade - 0.4f, depth + 0.4f, height, 2.6f,
                          mix({150, 62, 46}, {92, 84, 88}, hash(number, 2, 211))});
  street.boxes.push_back(
      {{x + 0.45f * width, facade - 0.5f, 0}, {x + 0.45f * width + 1.3f, facade, 2.3f}, Stuff::trunk, {110, 74, 52}});
}

void add_car(Street& street, float x, float y, Color paint) {
  street.boxes.push_back({{x, y, 0.35f}, {x + 4.2f, y + 1.8f, 0.95f}, Stuff::car, paint});
  street.boxes.push_back({{x + 0.9f, y + 0.15f, 0.95f}, {x + 3.3f, y + 1.65f, 1.5f}, Stuff::glass, paint});
}

void add_tree(Street& street, float x, float y, int number) {
  const float height = 3.2f + 1.6f * hash(number, 3, 223);
  street.posts.push_back({x, y, 0.2f, height, Stuff::trunk});
  for (int i = 0; i < 4; ++i) {
    const float angle = 1.6f * static_cast<float>(i) + 6 * hash(number, i, 227);
    street.crowns.push_back(
        {{x + 0.8f * std::cos(angle), y + 0.8f * std::sin(angle), height + 0.5f + 1.1f * hash(number, i, 229)},
         1.1f + 0.5f * hash(number, i, 233)});
  }
}

Street build_street() {
  Street street;
  float x = 1.5f;
  for (int house = 0; x < street_length - 7; ++house) {
    const float width = 6.5f + 3 * hash(house, 0, 211);
    add_house(street, x, width, house);
    x += width + (house % 2 == 0 ? 0.0f : 2.2f);
  }
  for (int tree = 0; tree < 6; ++tree) add_tree(street, 4 + 7.5f * static_cast<float>(tree), 5.6f, tree);
  for (int tree = 6; tree < 13; ++tree) {
    add_tree(street, 1.5f + 7 * static_cast<float>(tree - 6), -8 - 4.5f * hash(tree, 4, 223), tree);
  }
  for (int lamp = 0; lamp < 4; ++lamp)
    street.posts.push_back({8 + 11 * static_cast<float>(lamp), -4.6f, 0.09f, 5.5f, Stuff::lamp});
  add_car(street, 6, 1.9f, {196, 44, 40});
  add_car(street, 13, 1.9f, {236, 236, 232});
  add_car(street, 27, 1.9f, {40, 84, 168});
  add_car(street, 36, -3.3f, {236, 196, 48});
  add_car(street, 18, -3.3f, {70, 78, 84});
  return street;
}

float ground_height(float x, float y) {
  if (std::abs(y) < road) return 0;
  if (y > 0) return 0.15f;
  const float meadow = smooth(-kerb, -kerb - 4, y);
  return 0.15f + 1.6f * meadow * fractal(x * 0.12f, y * 0.12f, 3, 239);
}

Color ground_color(float x, float y) {
  const float grain = fractal(x * 3, y * 3, 3, 241);
  if (std::abs(y) < road) {
    const bool line = std::abs(y) < 0.14f && x - 4 * std::floor(x / 4) < 2;
    const bool crossing = x > 22.5f && x < 25.5f && y - std::floor(y) < 0.5f;
    return line || crossing ? Color{236, 236, 226} : (0.8f + 0.3f * grain) * Color{74, 78, 86};
  }
  if (std::abs(y) < kerb) return (0.8f + 0.3f * grain) * Color{164, 158, 148};
  if (y > 0) return (0.7f + 0.5f * grain) * Color{120, 132, 84};
  return mix({62, 104, 48}, {136, 158, 72}, grain);
}

Color wall_color(const Box& box, Vector p) {
  const float u = p.x - box.low.x, row = (p.z - 0.9f) / 2.6f, column = u / 2.1f;
  const float in_row = row - std::floor(row), in_column = column - std::floor(column);
  const bool window =
      in_row > 0.1f && in_row < 0.6f && in_column > 0.3f && in_column < 0.75f && p.z < box.high.z - 0.5f;
  if (window && p.y < facade + 0.01f) return {52, 70, 92};
  return (0.85f + 0.2f * fractal(p.x * 2, p.z * 2, 3, 251)) * box.color;
}

Color color_of(Stuff stuff, Color paint, Vector p) {
  switch (stuff) {
    case Stuff::glass: return {60, 74, 88};
    case Stuff::trunk: return (0.8f + 0.4f * fractal(p.x * 5, p.z * 2, 2, 257)) * Color{104, 78, 56};
    case Stuff::lamp: return p.z > 5.2f ? Color{255, 240, 190} : Color{120, 126, 130};
    default: return paint;
  }
}

std::optional<float> meet(const Box& box, const Ray& ray) {
  const float from[] = {ray.from.x, ray.from.y, ray.from.z}, along[] = {ray.along.x, ray.along.y, ray.along.z};
  const float low[] = {box.low.x, box.low.y, box.low.z}, high[] = {box.high.x, box.high.y, box.high.z};
  float enter = 0, leave = 1e9f;
  for (int a = 0; a < 3; ++a) {
    const float s = (low[a] - from[a]) / along[a], t = (high[a] - from[a]) / along[a];
    enter = std::max(enter, std::min(s, t));
    leave = std::min(leave, std::max(s, t));
  }
  if (!(enter > 0 && enter < leave)) return std::nullopt;
  return enter;
}

// Two slopes that meet above the middle.
std::optional<float> meet(const Roof& roof, const Ray& ray) {
  const float middle = 0.5f * (roof.y0 + roof.y1), steep = roof.rise / (roof.y1 - middle);
  std::optional<float> nearest;
  for (const float side : {-1.0f, 1.0f}) {
    // z = roof.z + rise - steep * side * (y - middle)
    const float slope = ray.along.z + steep * side * ray.along.y;
    const float t = (roof.z + roof.rise - steep * side * (ray.from.y - middle) - ray.from.z) / slope;
    const Vector p = ray.at(t);
    const bool on =
        t > 0 && p.x > roof.x0 && p.x < roof.x1 && side * (p.y - middle) >= 0 && p.y > roof.y0 && p.y < roof.y1;
    if (on && (!nearest || t < *nearest)) nearest = t;
  }
  return nearest;
}

std::optional<float> meet(const Ball& ball, const Ray& ray) {
  const Vector away = ray.from - ball.centre;
  const float b = dot(away, ray.along), c = dot(away, away) - ball.radius * ball.radius, d = b * b - c;
  if (d < 0 || -b - std::sqrt(d) <= 0) return std::nullopt;
  return -b - std::sqrt(d);
}

std::optional<float> meet(const Post& post, const Ray& ray) {
  const float dx = ray.from.x - post.x, dy = ray.from.y - post.y;
  const float a = ray.along.x * ray.along.x + ray.along.y * ray.along.y, b = dx * ray.along.x + dy * ray.along.y;
  const float d = b * b - a * (dx * dx + dy * dy - post.radius * post.radius);
  if (d < 0 || a == 0) return std::nullopt;
  const float t = (-b - std::sqrt(d)) / a;
  const float z = ray.at(t).z;
  if (t <= 0 || z < 0 || z > post.top) return std::nullopt;
  return t;
}

// The ground is nearly flat: a few steps towards its height find it.
std::optional<float> meet_ground(const Ray& ray) {
  if (ray.along.z >= -0.02f) return std::nullopt;
  float t = -ray.from.z / ray.along.z;
  for (int i = 0; i < 4; ++i) {
    const Vector p = ray.at(t);
    t = (ground_height(p.x, p.y) - ray.from.z) / ray.along.z;
  }
  return t;
}

// What a ray meets first. Leaves let it in a little, differently for every ray.
std::optional<Hit> first_hit(const Street& street, const Ray& ray, float chance) {
  std::optional<Hit> best;
  const auto take = [&](std::optional<float> t, const auto& color) {
    if (t && (!best || *t < best->t)) best = Hit{*t, color(ray.at(*t))};
  };
  take(meet_ground(ray), [](Vector p) { return ground_color(p.x, p.y); });
  for (const Box& box : street.boxes) {
    take(meet(box, ray),
         [&](Vector p) { return box.stuff == Stuff::wall ? wall_color(box, p) : color_of(box.stuff, box.color, p); });
  }
  for (const Roof& roof : street.roofs) {
    take(meet(roof, ray), [&](Vector p) { return (0.75f + 0.4f * fractal(p.x * 4, p.y * 1.5f, 3, 263)) * roof.color; });
  }
  for (const Post& post : street.posts) {
    take(meet(post, ray), [&](Vector p) { return color_of(post.stuff, {}, p); });
  }
  for (const Ball& crown : street.crowns) {
    auto t = meet(crown, ray);
    if (t) *t += 0.8f * crown.radius * chance * chance;
    take(t, [&](Vector p) {
      return mix({36, 84, 34}, {140, 184, 70}, 0.6f * fractal(p.x * 4, p.y * 4 + p.z, 2, 269) + 0.4f * chance);
    });
  }
  return best;
}

struct Scanner {
  Vector at;
  /// The sines of the lowest and the highest direction.
  float low, high;
};

void scan(const Street& street, const Scanner& scanner, int number, int rays, std::vector<float>& points) {
  constexpr float turn = 2 * std::numbers::pi_v<float>, golden = 0.61803399f;
  for (int i = 0; i < rays; ++i) {
    const float part = (static_cast<float>(i) + hash(i, number, 271)) / static_cast<float>(rays);
    const float up = between(scanner.low, scanner.high, part), flat = std::sqrt(1 - up * up);
    const float around = turn * (static_cast<float>(i % 987) * golden + hash(i, number, 277));
    const Ray ray{scanner.at, {flat * std::cos(around), flat * std::sin(around), up}};
    const auto hit = first_hit(street, ray, hash(i, number, 281));
    if (!hit) continue;
    const Vector p = ray.at(hit->t + 0.02f * (hash(i, number, 283) - 0.5f));
    if (p.x < 0 || p.x > street_length || p.y < street_near || p.y > street_far) continue;
    for (const float value : {p.x, p.y, p.z}) points.push_back(value);
    for (const float value : {hit->color.r, hit->color.g, hit->color.b})
      points.push_back(std::clamp(std::round(value), 0.0f, 255.0f));
  }
}

}  // namespace

Array street_scan() {
  const Street street = build_street();
  std::vector<Scanner> scanners;
  for (int i = 0; i < 8; ++i) {
    const float x = 3 + 6 * static_cast<float>(i);
    scanners.push_back({{x, -1, 2.1f}, -0.5f, 0.75f});
    scanners.push_back({{x, -10, 24}, -0.99f, -0.5f});
    scanners.push_back({{x, 20, 26}, -0.99f, -0.6f});
  }
  std::vector<std::vector<float>> found(scanners.size());
  in_parallel(static_cast<std::int64_t>(scanners.size()), [&](std::int64_t s) {
    const auto number = static_cast<std::size_t>(s);
    scan(street, scanners[number], static_cast<int>(s), 30000, found[number]);
  });
  std::vector<float> all;
  for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
  return Array({static_cast<std::int64_t>(all.size() / 6), 6}, all);
}

}  // namespace cenote::demo
