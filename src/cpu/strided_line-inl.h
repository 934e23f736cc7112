// Lines of cells whose windows lie several cells apart, made pack by pack in the order of their addresses.
// Included once per target, inside the toggle of the translation unit that includes it.

#include "cpu/free_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {

/// A pack of cells lies in a few neighbouring windows: one load brings their outputs, and one permutation hands them
/// out. Packs are those of memory, whatever rows begin and end in them, so that they leave at once; what is left at the
/// end of a row waits in the stage for the next. A cell may be a few channels, no more than lanes of a pack: then the
/// cells of a window are a period of lanes, and outputs lie as far apart.
template <bool Offsets, class T>
class StridedLine {
 public:
  using A = Lane<T>;

  explicit StridedLine(const Collect& call)
      : len_(call.len),
        stride_(call.stride),
        inner_(call.inner),
        period_(call.stride * call.inner),
        out_(call.out),
        reach_((call.size - 1) / call.stride + 1),
        step_(lanes<A>() / period_),
        rest_(lanes<A>() % period_),
        span_((period_ + lanes<A>() - 2) / period_ + 1),
        end_(static_cast<const T*>(call.gy_end)),
        divisor_(call.stage->divisor, true) {
    const std::int64_t L = lanes<A>();
    for (std::int64_t phase = 0; phase < period_; ++phase) {
      HWY_ALIGN Number outputs[64 / sizeof(A)];
      HWY_ALIGN Number taps[64 / sizeof(A)];
      HWY_ALIGN Number first[64 / sizeof(A)];
      // Behind the last cell of a window, the next one's first channels are those that come; else all may.
      const std::int64_t begin = phase + inner_ > period_ - 1 ? phase % inner_ : 0;
      for (std::int64_t i = 0, window = 0, tap = phase / inner_, channel = phase % inner_; i < L; ++i) {
        outputs[i] = static_cast<Number>(window * inner_ + channel - begin);
        taps[i] = static_cast<Number>(tap);
        const std::int64_t highest = tap + (reach_ - 1) * stride_;
        first[i] = static_cast<Number>(highest < call.size ? highest : -1);
        if (++channel < inner_) continue;
        channel = 0;
        if (++tap == stride_) ++window, tap = 0;
      }
      cells_[phase] = {hn::SetTableIndices(Tag<A>(), outputs), hn::Load(Numbers(), taps), hn::Load(Numbers(), first),
                       begin};
    }
    starts_[0] = {call.phases[0].window, call.phases[0].tap * inner_};
    for (std::int64_t i = 1; i < L; ++i) {
      starts_[i] = starts_[i - 1];
      if (--starts_[i].phase < 0) --starts_[i].window, starts_[i].phase += period_;
    }
  }

  /// The next row, which goes on where the stage ends.
  HWY_INLINE void operator()(const Asks<A>& asks, Stage& stage) const {
    if (reach_ == 1 && asks.count == 1) return make<1, 1>(asks, stage);
    if (reach_ == 2 && asks.count == 1) return make<1, 2>(asks, stage);
    if (reach_ == 2 && asks.count == 2) return make<2, 2>(asks, stage);
    make<0, 0>(asks, stage);
  }

 private:
  using Number = IndexLane<A>;
  using Numbers = Tag<Number>;
  using Outputs = decltype(hn::SetTableIndices(Tag<A>(), static_cast<const Number*>(nullptr)));
  /// Of the first lane of a pack: the last window that begins at or before it, and how many lanes of that lie before
  /// it.
  struct Start {
    std::int64_t window, phase;
  };

  /// Cells get something of `Reach` windows at most, in each of `Count` rows of outputs; or of any number.
  template <int Count, int Reach>
  HWY_NOINLINE void make(const Asks<A>& asks, Stage& stage) const {
    // Copies: stores might change what they are copies of.
    const std::int64_t L = lanes<A>(), stride = stride_, step = step_, rest = rest_, inner = inner_, period = period_;
    const std::int64_t out = out_ * inner;
    const std::int64_t count = asks.count, reach = Reach > 0 ? Reach : reach_, held = stage.end;
    const std::int64_t back = (reach - 1) * inner;
    const bool streams = stage.stream;
    const Divisor<A> divisor = divisor_;
    const Cells* const cells = cells_;
    const T* gy[Count > 0 ? Count : most_windows];
    const std::uint8_t* offsets[Count > 0 ? Count : most_windows];
    Bytes<A> wanted[Count > 0 ? Count : most_windows];
    each<Count>(count, [&](std::int64_t g) CENOTE_INLINED {
      gy[g] = reinterpret_cast<const T*>(asks.of[g].gy) - back;
      offsets[g] = asks.of[g].offsets - back;
      wanted[g] = asks.of[g].wanted;
    });
    const auto none = hn::Set(Numbers(), -1);
    std::int64_t left = held + len_;
    Start at = starts_[held];
    A* waiting = static_cast<A*>(stage.memory);
    const std::byte* begin = stage.to;
    T* dst = reinterpret_cast<T*>(stage.to);
    const auto sum = [&](const auto& ranges) CENOTE_INLINED {
      const Outputs outputs = cells[at.phase].outputs;
      const std::int64_t from = at.window * inner + cells[at.phase].begin;
      Pack<A> result = number<Pack<A>>(0);
      each<Reach>(reach, [&](std::int64_t e) CENOTE_INLINED {
        const std::int64_t first = from + e * inner;
        const auto range = ranges(first - back);
        const auto more = hn::Set(Numbers(), static_cast<Number>((reach - 1 - e) * stride));
        const auto tap = e == 0 ? cells[at.phase].first : hn::Add(cells[at.phase].taps, more);
        Pack<A> all = number<Pack<A>>(0);
        each<Count>(count, [&](std::int64_t g) CENOTE_INLINED {
          const Pack<A> given = read(gy[g] + first, range);
          if constexpr (Offsets) {
            // Taps of other rows wrap around, or lie beyond the last.
            const auto named = numbers(hn::Sub(read_bytes<A>(offsets[g] + first, range), wanted[g]));
            const auto theirs = hn::TableLookupLanes(hn::BitCast(Tag<A>(), named), outputs);
            const auto here = hn::RebindMask(Tag<A>(), hn::Eq(hn::BitCast(Numbers(), theirs), tap));
            const auto handed = hn::IfThenElseZero(here, hn::TableLookupLanes(given.v, outputs));
            result.v = Count * Reach == 1 ? handed : hn::Add(result.v, handed);
          } else {
            all = Count == 1 ? given : all + given;
          }
        });
        if constexpr (!Offsets) {
          auto handed = hn::TableLookupLanes(all.v, outputs);
          if (e == 0) handed = hn::IfThenElseZero(hn::RebindMask(Tag<A>(), hn::Gt(tap, none)), handed);
          result.v = Reach == 1 ? handed : hn::Add(result.v, handed);
        }
      });
      return Offsets ? result : result / divisor;
    };
    const auto next = [&]() CENOTE_INLINED {
      at.phase += rest;
      at.window += step;
      if (at.phase >= period) at.phase -= period, ++at.window;
      dst += L;
      left -= L;
    };
    const auto write = [&](Pack<A> x) CENOTE_INLINED { streams ? stream(x, dst) : store(x, dst); };
    const auto border = [&](std::int64_t first) CENOTE_INLINED {
      return LaneRange<T>(HWY_MIN(HWY_MAX(-first, 0), L), HWY_MIN(HWY_MAX(out - first, 0), L));
    };
    const auto inside = [&](std::int64_t) CENOTE_INLINED { return AllLanes(); };
    const Flags<A> old{hn::FirstN(Tag<A>(), static_cast<std::size_t>(held))};
    // Packs are read to their ends where gy goes on behind the row, and looked at as far as cells reach.
    bool goes_on = true;
    each<Count>(count, [&](std::int64_t g) CENOTE_INLINED { goes_on = goes_on && gy[g] + (back + out + L) <= end_; });
    const std::int64_t until = out_ - (goes_on ? span_ : (L + 2 * inner - 2) / inner);
    bool joins = held > 0;
    for (; left > 0; next()) {
      if (HWY_LIKELY(at.window >= reach - 1 && at.window <= until && !joins && left >= L)) {
        for (; left >= L && at.window <= until; next()) {
          if constexpr (Count > 0) __builtin_prefetch(gy[Count - 1] + at.window * inner + ahead);
          write(sum(inside));
        }
        if (left == 0) break;
      }
      Pack<A> made = sum(border);
      if (joins) made = select(old, load(waiting), made);
      joins = false;
      if (left < L) {
        store(made, waiting);
        break;
      }
      if (HWY_UNLIKELY(stage.begin > 0)) {
        store(made, waiting);
        stage.end = L;
        flush<T>(stage, true);
      } else {
        write(made);
      }
    }
    stage.to = reinterpret_cast<std::byte*>(dst);
    if (stage.to != begin) stage.begin = 0;
    stage.end = left;
  }
  /// Bytes as numbers that are as wide as lanes.
  HWY_INLINE static hn::Vec<Numbers> numbers(Bytes<A> bytes) {
    const auto words = hn::PromoteTo(hn::Rebind<std::int32_t, Tag<A>>(), bytes);
    if constexpr (sizeof(A) == 8)
      return hn::PromoteTo(Numbers(), words);
    else
      return words;
  }

  /// The lanes of a pack that begins at some place of a window: their outputs, counted from `begin` on behind those of
  /// the first lane's window, the taps there, and those of the first window that may hold them, or -1 where that ends
  /// before.
  struct Cells {
    Outputs outputs;
    hn::Vec<Numbers> taps, first;
    std::int64_t begin;
  };

  std::int64_t len_, stride_, inner_, period_, out_, reach_;
  std::int64_t step_, rest_;  // windows and lanes from pack to pack
  std::int64_t span_;         // windows that begin in a pack and the one before them, at most
  const T* end_;              // of gy
  Divisor<A> divisor_;
  Start starts_[64 / sizeof(A)];  // of packs that begin so many cells before a row
  Cells cells_[most_period];      // by the place of the first lane
};

template <bool Offsets, class T>
void collect_strided(const Collect& call) {
  using A = Lane<T>;
  constexpr std::int64_t kept = 4;
  const std::int64_t L = lanes<A>(), apart = call.axis.stride, most = (call.axis.size - 1) / apart + 1;
  const StridedLine<Offsets, T> line(call);
  Stage& stage = *call.stage;
  Asks<A> phases[kept], other;
  Axis::Place place = call.axis.place(call.begin);
  T* cells = static_cast<T*>(call.cells) + call.begin * call.cell_step;
  for (std::int64_t r = call.begin; r < call.end; ++r, cells += call.cell_step) {
    if (reinterpret_cast<T*>(stage.to) + stage.end != cells) {
      flush<T>(stage, true);
      const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(cells) / sizeof(T)) % L;
      stage.to = reinterpret_cast<std::byte*>(cells - past);
      stage.begin = stage.end = past;
    }
    // The outputs of the next row of a phase lie a window further.
    const std::int64_t first = place.window - (place.count - 1) * call.axis.dilation;
    const bool inside = apart <= kept && first >= 0 && place.window < call.axis.out;
    Asks<A>& asks = inside ? phases[place.tap] : other;
    if (!inside || asks.count < 0) asks.template find<T>(call, place);
    line(asks, stage);
    if (inside) asks.advance(call.gy_step * static_cast<std::int64_t>(sizeof(T)), call.offset_step);
    // The window that ends here leaves, or a new one begins.
    if (++place.tap == apart)
      place = {place.window + 1, 0, most};
    else if (place.tap + (place.count - 1) * apart >= call.axis.size)
      --place.count;
  }
}

/// Windows so far apart that most packs lie in the same ones: between a window's beginning and its end, and on to the
/// next one's beginning, all cells of a line get the same.
template <class T>
class WideLine {
 public:
  using A = Lane<T>;
  static constexpr std::int64_t turn = 0;
  static constexpr bool in_place = true;  // rows may be written where they belong

  HWY_INLINE explicit WideLine(const Collect& call)
      : call_(call),
        before_(call.phases[0].window * call.stride + call.phases[0].tap),
        first_window_(before_ / call.stride),
        first_tap_(before_ % call.stride) {}
  /// Packs reach behind what is the same, but not behind the row.
  HWY_INLINE void operator()(const Rows<A>& rows) const {
    const std::int64_t L = lanes<A>();
    for (std::int64_t row = 0; row < rows.count; ++row) {
      A* const dst = rows.dst + row * rows.dst_step - rows.from;
      each_part(rows.asks, row * rows.gy_step, rows.from, rows.to,
                [&](std::int64_t from, std::int64_t to, Pack<A> value) HWY_ATTR {
                  const std::int64_t first = from;
                  for (; from < to && from + L <= rows.to; from += L) store(value, dst + from);
                  if (from >= to) return;
                  to - first >= L ? store(value, dst + to - L) : store_first(value, dst + from, to - from);
                });
    }
  }
  /// Rows so long that they are written as they are made, past the caches in whole lines of those.
  void long_rows() const {
    constexpr std::int64_t L = static_cast<std::int64_t>(hn::MaxLanes(Tag<A>()));
    const bool streams = call_.stage->stream;
    Asks<A> asks;
    for (std::int64_t r = call_.begin; r < call_.end; ++r) {
      asks.template find<T>(call_, call_.axis.place(r));
      A* const dst = static_cast<A*>(call_.cells) + r * call_.cell_step;
      const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(dst) / sizeof(A)) % L;
      each_part(asks, 0, 0, call_.len, [&](std::int64_t from, std::int64_t to, Pack<A> value) HWY_ATTR {
        const std::int64_t aligned = HWY_MIN(from + (2 * L - past - from % L) % L, to);
        store_first(value, dst + from, aligned - from);
        for (from = aligned; from + L <= to; from += L) streams ? stream(value, dst + from) : store(value, dst + from);
        store_first(value, dst + from, to - from);
      });
    }
  }

 private:
  /// Calls fill(from, to, value) for all cells [from, to) of a line, as many at a time as get the same.
  template <class Fill>
  HWY_INLINE void each_part(const Asks<A>& asks, std::int64_t shift, std::int64_t from, std::int64_t to,
                            const Fill& fill) const {
    const std::int64_t stride = call_.stride, most = (call_.size - 1) / stride;
    const std::int64_t shared = (call_.size - 1) % stride + 1;  // taps of a stride with one window more
    const Divisor<A> divisor(call_.stage->divisor, true);
    std::int64_t window = first_window_, tap = first_tap_;
    if (from > 0) window = (from + before_) / stride, tap = (from + before_) % stride;
    while (from < to) {
      const bool begins = tap < shared;
      const std::int64_t stop = HWY_MIN(from + (begins ? shared : stride) - tap, to);
      const A all = sum(asks, shift, window - most + !begins, window + 1);
      fill(from, stop, broadcast<A>(divisor.quotient(all)));
      from = stop;
      tap = begins ? shared : stride;
      if (tap == stride) ++window, tap = 0;
    }
  }
  /// Of windows [from, to) along the line, those that exist.
  HWY_INLINE A sum(const Asks<A>& asks, std::int64_t shift, std::int64_t from, std::int64_t to) const {
    A result = 0;
    for (std::int64_t g = 0; g < asks.count; ++g)
      for (std::int64_t o = HWY_MAX(from, 0); o < HWY_MIN(to, call_.out); ++o)
        result += static_cast<A>(reinterpret_cast<const T*>(asks.of[g].gy)[shift + o]);
    return result;
  }

  const Collect& call_;
  const std::int64_t before_;  // cells before the first, from the beginning of window 0 on,
  const std::int64_t first_window_, first_tap_;
};

template <class T>
void collect_wide(const Collect& call) {
  const WideLine<T> line(call);
  if constexpr (std::is_same_v<T, Lane<T>>)
    if (call.len >= Stage::room) return line.long_rows();
  walk<T>(call, 1, call.len, line);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();
