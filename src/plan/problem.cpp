// Problems as one line of text: reads them strictly, prints them with every axis spelled out.
#include <cenote/problem.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "core/reject.h"

namespace cenote {
namespace {

constexpr std::string_view index_names[] = {"offset", "plane", "tensor", "tensor_column"};
constexpr std::string_view divisor_names[] = {"window", "valid", "clipped"};
constexpr std::string_view spaces = " \t\r\n";

struct Token {
  std::string_view text;
  std::size_t number = 0, column = 0;
};

std::vector<Token> split(std::string_view text) {
  std::vector<Token> tokens;
  for (std::size_t at = text.find_first_not_of(spaces); at != text.npos; at = text.find_first_not_of(spaces, at)) {
    const std::size_t end = std::min(text.find_first_of(spaces, at), text.size());
    tokens.push_back({text.substr(at, end - at), tokens.size() + 1, at + 1});
    at = end;
  }
  return tokens;
}

template <class... Parts>
[[noreturn]] void fail(const Token& token, const Parts&... parts) {
  reject("problem", "token ", token.number, " \"", token.text, "\" at column ", token.column, ": ", parts...);
}

std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> result;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    result.push_back(text.substr(at, end - at));
    if (end == text.npos) return result;
    at = end + 1;
  }
}

template <class Number>
Number number(const Token& token, std::string_view text, std::string_view allowed) {
  Number value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) fail(token, "\"", text, "\" is out of range: ", allowed);
  if (error != std::errc() || stop != text.data() + text.size())
    fail(token, "\"", text, "\" is not a number: ", allowed);
  return value;
}

Extents integers(const Token& token, std::string_view text, char separator, std::string_view allowed) {
  Extents result;
  for (const std::string_view piece : pieces(text, separator)) {
    if (result.size() == max_rank) fail(token, "more than ", max_rank, " axes: ", allowed);
    result.push_back(number<std::int64_t>(token, piece, allowed));
  }
  return result;
}

template <class Names>
std::size_t choice(const Token& token, std::string_view text, const Names& names) {
  std::size_t i = 0;
  std::string list;
  for (const std::string_view name : names) {
    if (name == text) return i;
    list += (i++ ? ", " : "") + std::string(name);
  }
  fail(token, "\"", text, "\": must be one of ", list);
}

Extents consecutive(int first, int count) {
  Extents axes;
  for (int i = 0; i < count; ++i) axes.push_back(first + i);
  return axes;
}

// The axes that one number stands for: all but the first two, or all but first and last.
Extents spatial_axes(int rank, bool channels_last) { return consecutive(channels_last ? 1 : 2, std::max(rank - 2, 0)); }

// The axes that a list of `count` numbers stands for.
Extents listed_axes(int rank, int count, bool channels_last) {
  return consecutive(rank - count - (channels_last ? 1 : 0), count);
}

bool is_none(const std::vector<Padding::Sides>& sides) {
  return std::all_of(sides.begin(), sides.end(), [](const Padding::Sides& side) { return side == Padding::Sides(0); });
}

// Reads the tokens in any order, then makes the region of what they said.
class Reader {
 public:
  explicit Reader(std::string_view text) : tokens_(split(text)) {}

  Problem read() {
    if (tokens_.size() < 3)
      reject("problem", tokens_.size(),
             " tokens: must begin with a reducer, a type and a shape, such as max f32 32x64x112x112 k3 s2 p1");
    problem_.pooling.reducer = all_reducers[choice(tokens_[0], tokens_[0].text, reducer_names())];
    problem_.type = read_type(tokens_[1], tokens_[1].text);
    constexpr std::string_view extents = "a shape is integers of at least 0 joined by x, such as 32x64x112x112";
    problem_.shape = integers(tokens_[2], tokens_[2].text, 'x', extents);
    for (const std::int64_t extent : problem_.shape)
      if (extent < 0) fail(tokens_[2], extent, " is negative: ", extents);
    for (std::size_t i = 3; i < tokens_.size(); ++i) read_token(tokens_[i]);
    if (find("k"))
      problem_.pooling.region = window();
    else if (find("adaptive"))
      problem_.pooling.region = adaptive();
    else if (find("global"))
      problem_.pooling.region = global();
    else
      reject("problem", "no window: one of k, adaptive= and global must be given");
    return problem_;
  }

 private:
  static std::vector<std::string_view> reducer_names() {
    std::vector<std::string_view> names;
    for (const Reducer reducer : all_reducers) names.push_back(name(reducer));
    return names;
  }

  static Type read_type(const Token& token, std::string_view text) {
    std::vector<std::string_view> names;
    for (int i = 0; i < type_count; ++i) names.push_back(name(static_cast<Type>(i)));
    return static_cast<Type>(choice(token, text, names));
  }

  // A token that was given, under the word it begins with.
  struct Given {
    std::string_view word, group;
    Token token;
  };

  const Token* find(std::string_view word) const {
    const auto at = std::find_if(given_.begin(), given_.end(), [&](const Given& g) { return g.word == word; });
    return at == given_.end() ? nullptr : &at->token;
  }

  // Notes a token; of each group there may be one.
  void note(const Token& token, std::string_view word, std::string_view group) {
    for (const Given& other : given_)
      if (other.group == group)
        fail(token, "\"", other.token.text, "\" says the ", group, " already: give one of them");
    given_.push_back({word, group, token});
  }

  void read_token(const Token& token) {
    const std::string_view text = token.text;
    if (const std::size_t equals = text.find('='); equals != text.npos)
      return read_option(token, text.substr(0, equals), text.substr(equals + 1));
    if (text == "same" || text == "same_lower") return note(token, text, "padding");
    if (text == "last") return note(token, text, "axes");
    if (text == "global") return note(token, text, "region");
    if (text == "ceil" || text == "exact" || text == "empty") return note(token, text, text);
    if (text == "jvp" || text == "vjp") {
      note(token, text, "direction");
      problem_.direction = text == "jvp" ? Problem::Direction::jvp : Problem::Direction::vjp;
      return;
    }
    const bool numbers = text.size() > 1 && (text[1] == '-' || (text[1] >= '0' && text[1] <= '9'));
    const std::string_view letter = text.substr(0, 1);
    if (numbers && letter == "k") return read_list(token, size_, letter, "region");
    if (numbers && letter == "s") return read_list(token, stride_, letter, "stride");
    if (numbers && letter == "d") return read_list(token, dilation_, letter, "dilation");
    if (numbers && letter == "p") return read_padding(token);
    fail(
        token,
        "unknown: must be one of kN, sN, dN, pN, same, same_lower, ceil, exact, empty, last, axes=, adaptive=, global, "
        "keepdims=, div=, beta=, lp=, pad=, dtype=, idx=, ties=, jvp, vjp");
  }

  void read_list(const Token& token, Extents& list, std::string_view letter, std::string_view group) {
    note(token, letter, group);
    list = integers(token, token.text.substr(1), 'x', "one integer for all axes, or one per axis joined by x");
  }

  void read_padding(const Token& token) {
    note(token, "p", "padding");
    constexpr std::string_view allowed = "N for both sides or LO:HI, once for all axes or per axis joined by x";
    for (const std::string_view piece : pieces(token.text.substr(1), 'x')) {
      const auto sides = pieces(piece, ':');
      if (sides.size() > 2) fail(token, "\"", piece, "\" has more than two sides: ", allowed);
      sides_.push_back(
          {number<std::int64_t>(token, sides.front(), allowed), number<std::int64_t>(token, sides.back(), allowed)});
    }
  }

  // An option of some reducers only.
  void option_of(const Token& token, std::string_view word, std::initializer_list<Reducer> reducers) {
    std::string owners;
    for (const Reducer reducer : reducers) {
      if (reducer == problem_.pooling.reducer) return note(token, word, word);
      owners += (owners.empty() ? "" : " and ") + std::string(name(reducer));
    }
    fail(token, word, " is an option of ", owners, ", not of ", name(problem_.pooling.reducer));
  }

  void read_option(const Token& token, std::string_view word, std::string_view value) {
    Pooling& pooling = problem_.pooling;
    if (word == "axes") {
      note(token, word, "axes");
      axes_ = integers(token, value, ',', "numbers of axes joined by commas");
    } else if (word == "adaptive") {
      note(token, word, "region");
      read_outputs(token, value);
    } else if (word == "keepdims") {
      note(token, word, word);
      keepdims_ = choice(token, value, std::initializer_list<std::string_view>{"yes", "no"}) == 0;
    } else if (word == "div") {
      option_of(token, word, {Reducer::avg});
      const auto* rule = std::find(std::begin(divisor_names), std::end(divisor_names), value);
      if (rule == std::end(divisor_names))
        pooling.divisor = number<double>(token, value, "must be window, valid, clipped or a number");
      else
        pooling.divisor = static_cast<Divisor::Rule>(rule - divisor_names);
    } else if (word == "beta") {
      option_of(token, word, {Reducer::smooth_max});
      pooling.beta = number<double>(token, value, "must be a number");
    } else if (word == "lp") {
      option_of(token, word, {Reducer::lp});
      pooling.p = number<double>(token, value, "must be a number or inf");
    } else if (word == "pad") {
      option_of(token, word, {Reducer::smooth_max});
      pooling.pad =
          static_cast<SmoothPadding>(choice(token, value, std::initializer_list<std::string_view>{"zero", "ignore"}));
    } else if (word == "dtype") {
      option_of(token, word, {Reducer::sum});
      pooling.dtype = read_type(token, value);
    } else if (word == "idx") {
      option_of(token, word, {Reducer::max, Reducer::min});
      pooling.indices = static_cast<IndexKind>(choice(token, value, index_names));
    } else if (word == "ties") {
      option_of(token, word, {Reducer::max, Reducer::min});
      pooling.ties = static_cast<Ties>(choice(token, value, std::initializer_list<std::string_view>{"first", "split"}));
    } else {
      fail(token, "unknown option: must be axes=, adaptive=, keepdims=, div=, beta=, lp=, pad=, dtype=, idx= or ties=");
    }
  }

  void read_outputs(const Token& token, std::string_view text) {
    for (const std::string_view piece : pieces(text, 'x')) {
      if (piece == "_")
        outputs_.emplace_back();
      else
        outputs_.emplace_back(
            number<std::int64_t>(token, piece, "must be integers, or _ for a kept axis, joined by x"));
    }
  }

  void refuse(std::initializer_list<std::string_view> words, std::string_view with) const {
    for (const std::string_view word : words)
      if (const Token* token = find(word)) fail(*token, "belongs to a window: must not be given with ", with);
  }

  // The pooled axes of a region whose token lists `count` of them; one stands for all.
  Extents pooled_axes(const Token& token, int count) const {
    const int rank = problem_.shape.size();
    const bool last = find("last") != nullptr;
    if (const Token* named = find("axes")) {
      const Extents axes = named_axes(*named);
      if (count > 1 && count != axes.size())
        fail(*named, "names ", axes.size(), " axes: must be ", count, ", as many as ", token.text);
      return axes;
    }
    if (count > 1) {
      if (count > rank - (last ? 1 : 0))
        fail(token, "has ", count, " axes: the shape has ", rank, last ? ", and last keeps one of them" : "");
      return listed_axes(rank, count, last);
    }
    if (rank < 3) {
      const std::string_view one =
          token.text.substr(std::min(token.text.find_first_of("-0123456789_"), token.text.size()));
      const std::string both = rank == 2 && !one.empty() ? ", or list both: " + std::string(token.text) + "x" : "";
      fail(token, "pools every axis but two, and the shape has ", rank,
           ": name the pooled axes, such as axes=", rank - 1, both, both.empty() ? "" : one);
    }
    return spatial_axes(rank, last);
  }

  Extents named_axes(const Token& token) const {
    const int rank = problem_.shape.size();
    Extents axes = axes_;
    for (int i = 0; i < axes.size(); ++i) {
      if (axes[i] < -rank || axes[i] >= rank)
        fail(token, axes[i], " is not an axis: must be from ", -rank, " to ", rank - 1);
      if (axes[i] < 0) axes[i] += rank;
      if (i > 0 && axes[i] <= axes[i - 1]) fail(token, "must be distinct and increasing");
    }
    return axes;
  }

  // One value per pooled axis; where all are the default, the default itself.
  PerAxis spread(std::string_view word, const Extents& list, int count) const {
    if (list.empty()) return 1;
    if (list.size() > 1 && list.size() != count)
      fail(*find(word), "has ", list.size(), " entries: must have ", count, ", one per pooled axis, or one for all");
    const Extents values = list.size() == 1 ? Extents::filled(count, list[0]) : list;
    const bool plain = word != "k" && std::all_of(values.begin(), values.end(), [](auto value) { return value == 1; });
    return plain ? PerAxis(1) : PerAxis(values);
  }

  Padding padding(int count) const {
    if (find("same")) return same;
    if (find("same_lower")) return same_lower;
    if (sides_.empty()) return valid;
    if (sides_.size() > 1 && sides_.size() != static_cast<std::size_t>(count))
      fail(*find("p"), "has ", sides_.size(), " entries: must have ", count, ", one per pooled axis, or one for all");
    std::vector<Padding::Sides> sides = sides_;
    sides.resize(static_cast<std::size_t>(count), sides_[0]);
    return is_none(sides) ? valid : Padding(sides);
  }

  // Says which axes are pooled by layout where that is enough, and by number otherwise.
  template <class Region, class Axes>
  static void set_axes(Region& region, const Extents& axes, bool channels_last, const Axes& by_layout) {
    region.channels_last = channels_last || (axes != by_layout(false) && axes == by_layout(true));
    if (axes != by_layout(region.channels_last)) region.axes = axes;
  }

  template <class Region>
  void set_listed_axes(Region& region, const Extents& axes) const {
    set_axes(region, axes, find("last") != nullptr,
             [&](bool last) { return listed_axes(problem_.shape.size(), axes.size(), last); });
  }

  Window window() const {
    if (const Token* token = find("keepdims")) fail(*token, "belongs to global: must not be given with k");
    const Extents axes = pooled_axes(*find("k"), size_.size());
    const int count = axes.size();
    Window window{.size = spread("k", size_, count),
                  .stride = spread("s", stride_, count),
                  .dilation = spread("d", dilation_, count),
                  .padding = padding(count),
                  .ceil = find("ceil") != nullptr,
                  .exact = find("exact") != nullptr,
                  .allow_empty = find("empty") != nullptr};
    set_listed_axes(window, axes);
    return window;
  }

  Adaptive adaptive() const {
    refuse({"s", "d", "p", "same", "same_lower", "ceil", "exact", "empty"}, "adaptive=");
    if (const Token* token = find("keepdims")) fail(*token, "belongs to global: must not be given with adaptive=");
    const auto listed = static_cast<int>(std::min<std::size_t>(outputs_.size(), max_rank + 1));
    const Extents axes = pooled_axes(*find("adaptive"), listed);
    Adaptive adaptive{.output = outputs_};
    adaptive.output.resize(static_cast<std::size_t>(axes.size()), outputs_[0]);
    set_listed_axes(adaptive, axes);
    return adaptive;
  }

  Global global() const {
    refuse({"s", "d", "p", "same", "same_lower", "ceil", "exact", "empty"}, "global");
    Global global{.keepdims = keepdims_};
    set_axes(global, pooled_axes(*find("global"), 1), find("last") != nullptr,
             [&](bool last) { return spatial_axes(problem_.shape.size(), last); });
    return global;
  }

  std::vector<Token> tokens_;
  std::vector<Given> given_;
  Problem problem_;
  Extents size_, stride_, dilation_, axes_;
  std::vector<Padding::Sides> sides_;
  std::vector<std::optional<std::int64_t>> outputs_;
  bool keepdims_ = true;
};

std::string print(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string print(const Extents& values, char separator) {
  std::string text;
  for (const std::int64_t value : values) {
    if (!text.empty()) text += separator;
    text += std::to_string(value);
  }
  return text;
}

std::string print(const PerAxis& values, int count) {
  return print(values.is_scalar() ? Extents::filled(count, values.values()[0]) : values.values(), 'x');
}

bool is_plain(const PerAxis& values) {
  return std::all_of(values.values().begin(), values.values().end(), [](std::int64_t value) { return value == 1; });
}

std::string print(const Padding& padding, int count) {
  if (padding.rule() == Padding::Rule::valid) return "";
  if (padding.rule() == Padding::Rule::same) return " same";
  if (padding.rule() == Padding::Rule::same_lower) return " same_lower";
  std::vector<Padding::Sides> sides(padding.sides().begin(), padding.sides().end());
  if (padding.is_scalar()) sides.resize(static_cast<std::size_t>(count), sides[0]);
  if (is_none(sides) && sides.size() == static_cast<std::size_t>(count)) return "";
  std::string text;
  for (const auto [low, high] : sides) {
    text += (text.empty() ? " p" : "x") + std::to_string(low);
    if (low != high) text += ":" + std::to_string(high);
  }
  return text;
}

// Which axes are pooled, as shortly as it can be said: `implied` gives those that need no word but, perhaps, last.
template <class Region, class Axes>
std::string print_axes(const Region& region, Extents pooled, int rank, const Axes& implied) {
  if (region.axes) pooled = *region.axes;
  for (int i = 0; i < pooled.size(); ++i)
    if (pooled[i] < 0 && pooled[i] >= -rank) pooled[i] += rank;
  const std::string named = " axes=" + print(pooled, ',');
  if (region.axes && region.channels_last) return " last" + named;
  return pooled == implied(false) ? "" : pooled == implied(true) ? " last" : named;
}

// For a list of `count` numbers, of which a single one stands for all spatial axes.
template <class Region>
std::string print_listed_axes(const Region& region, int rank, int count) {
  return print_axes(region, listed_axes(rank, count, region.channels_last), rank,
                    [&](bool last) { return count == 1 ? spatial_axes(rank, last) : listed_axes(rank, count, last); });
}

std::string print(const Window& window, int rank) {
  const int count = window.size.is_scalar() && window.axes ? window.axes->size() : window.size.values().size();
  std::string text = " k" + print(window.size, count);
  if (!is_plain(window.stride)) text += " s" + print(window.stride, count);
  if (!is_plain(window.dilation)) text += " d" + print(window.dilation, count);
  text += print(window.padding, count);
  if (window.ceil) text += " ceil";
  if (window.exact) text += " exact";
  if (window.allow_empty) text += " empty";
  return text + print_listed_axes(window, rank, count);
}

std::string print(const Adaptive& adaptive, int rank) {
  std::string text;
  for (const auto& output : adaptive.output)
    text += (text.empty() ? " adaptive=" : "x") + (output ? std::to_string(*output) : "_");
  const auto count = static_cast<int>(std::min<std::size_t>(adaptive.output.size(), max_rank));
  return text + print_listed_axes(adaptive, rank, count);
}

std::string print(const Global& global, int rank) {
  const bool last = global.channels_last;
  const int count = std::clamp(global.rank.value_or(0), 0, max_rank);
  const Extents pooled = global.rank ? listed_axes(rank, count, last) : spatial_axes(rank, last);
  return " global" + print_axes(global, pooled, rank, [&](bool l) { return spatial_axes(rank, l); }) +
         (global.keepdims ? "" : " keepdims=no");
}

// The options of the reducer; those of others mean nothing and are not printed.
std::string print_options(const Pooling& pooling) {
  std::string text;
  if (pooling.reducer == Reducer::avg && pooling.divisor.rule() != Divisor::Rule::window) {
    const auto rule = static_cast<std::size_t>(pooling.divisor.rule());
    text += " div=" +
            (rule < std::size(divisor_names) ? std::string(divisor_names[rule]) : print(pooling.divisor.number()));
  }
  if (pooling.reducer == Reducer::smooth_max) {
    text += " beta=" + print(pooling.beta);
    if (pooling.pad == SmoothPadding::ignore) text += " pad=ignore";
  }
  if (pooling.reducer == Reducer::lp) text += " lp=" + print(pooling.p);
  if (pooling.reducer == Reducer::sum && pooling.dtype) text += " dtype=" + std::string(name(*pooling.dtype));
  if (pooling.reducer == Reducer::max || pooling.reducer == Reducer::min) {
    if (pooling.indices) text += " idx=" + std::string(index_names[static_cast<std::size_t>(*pooling.indices)]);
    if (pooling.ties == Ties::split) text += " ties=split";
  }
  return text;
}

}  // namespace

Problem parse_problem(std::string_view text) { return Reader(text).read(); }

std::string to_string(const Problem& problem) {
  const int rank = problem.shape.size();
  std::string text(name(problem.pooling.reducer));
  text += " " + std::string(name(problem.type)) + " " + print(problem.shape, 'x');
  text += std::visit([&](const auto& region) { return print(region, rank); }, problem.pooling.region);
  text += print_options(problem.pooling);
  if (problem.direction == Problem::Direction::jvp) text += " jvp";
  if (problem.direction == Problem::Direction::vjp) text += " vjp";
  return text;
}

}  // namespace cenote
