// What makers of lines are given: lines of one shape, where their outputs go, and what to do when there is NaN.

#if defined(CENOTE_CPU_LINE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_LINE_ROWS_INL_H_
#undef CENOTE_CPU_LINE_ROWS_INL_H_
#else
#define CENOTE_CPU_LINE_ROWS_INL_H_
#endif

#include <cassert>

#include "cpu/tame-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// Values that fill a part of a pack of memory wait here for those that lie behind them, so that whole packs go past
/// the caches. For a part of one that memory would be read first, and all stores behind it would wait.
template <class T>
class Seam {
 public:
  Seam() = default;
  Seam(const Seam&) = delete;
  Seam& operator=(const Seam&) = delete;
  HWY_INLINE ~Seam() { flush(); }
  /// `count` values for `to`, all in one pack of memory.
  HWY_INLINE void put(const T* values, std::int64_t count, T* to) {
    if (to != end_) {
      flush();
      begin_ = end_ = to;
    }
    assert(place(to) + count <= lanes<T>());
    std::copy_n(values, count, pack_ + place(to));
    end_ += count;
    if (place(end_) == 0) flush();
  }

 private:
  static HWY_INLINE std::int64_t place(const T* p) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) / sizeof(T)) & (lanes<T>() - 1);
  }
  HWY_NOINLINE void flush() {
    if (end_ - begin_ == lanes<T>())
      stream(load(pack_), begin_);
    else if (begin_ != end_)
      std::copy(pack_ + place(begin_), pack_ + place(begin_) + (end_ - begin_), begin_);
    begin_ = end_ = nullptr;
  }

  HWY_ALIGN T pack_[HWY_MAX_BYTES / sizeof(Lane<T>)] = {};
  T *begin_ = nullptr, *end_ = nullptr;  // what waits is for
};

/// Where a maker writes values itself: those of its first output, or for streams those of output 0 of a line.
template <class T>
struct Values {
  T* dst = nullptr;
  double divisor = 0;
  bool divides = false, past_caches = false;
  std::uint8_t* numbers = nullptr;  // those of winners
  Seam<T>* seam = nullptr;          // past the caches only: for the ends of lines
};

/// Lines of the same shape, and where the outputs of each go. Some makers fold several rows into each line of outputs,
/// and keep the states of the last one for the next line, whose first row it is.
template <class T, class A>
struct Rows {
  const T* src;
  A* dst;
  std::int64_t count = 1, src_row = 0, dst_row = 0;
  std::int64_t fold = 1, fold_row = 0;
  A* last = nullptr;                  // where the states of the last row are kept, from the first output of all on
  bool shared = false;                // the states kept there are those of one more row, before src
  bool doubt = false;                 // some of them may be NaN
  std::int64_t id = 0, id_scale = 0;  // what the first row adds to its winners' numbers, and each further one
  A* spare = nullptr;                 // memory for the states of two outputs of several packs
  Values<T> values{};                 // instead of dst, whose steps it shares
  std::int64_t beyond = 0;            // cells from the last line to what is made next, 0: as many as between lines
  std::int64_t apart = 0;             // rows from line to line, where lines share some that are read again

  /// Line i by itself, of all its rows.
  HWY_INLINE Rows alone(std::int64_t i) const {
    Rows one = *this;
    one.src += i * src_row - shared * fold_row;
    one.dst += i * dst_row;
    if (values.dst) one.values.dst += i * dst_row;
    if (values.numbers) one.values.numbers += i * dst_row;
    one.count = 1;
    one.fold += shared;
    one.id -= shared * id_scale;
    one.shared = false;
    return one;
  }
};

/// A maker of lines, whatever it is: what is done with them is compiled once.
template <class T, class A>
class Maker {
 public:
  template <class Line>
  explicit HWY_INLINE Maker(const Line& line) : line_(&line), make_(make_with<Line>) {
    if constexpr (requires { line.writes(); })
      if (line.writes()) write_ = write_with<Line>;
    if constexpr (requires { line.keeps(); }) {
      keeps = line.keeps();
      writes_values = Line::writes_values;
    }
    if constexpr (requires { line.joins(); })
      if (line.joins()) joins = true, writes_values = false;
  }
  /// Outputs [from, to) of all lines. True if it met NaN.
  HWY_INLINE bool operator()(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    return make_(line_, rows, from, to);
  }
  /// The same of one line, as values, where it can write those by itself.
  HWY_INLINE bool writes() const { return write_ != nullptr; }
  HWY_INLINE bool write(const T* src, std::int64_t from, std::int64_t to, const Values<T>& values) const {
    return write_(line_, src, from, to, values);
  }
  bool keeps = false;          // the states of a row that two windows share wait for the second
  bool joins = false;          // the rows of a window are joined in Rows::spare
  bool writes_values = false;  // Rows::values may be asked for

 private:
  template <class Line>
  static HWY_NOINLINE bool make_with(const void* line, const Rows<T, A>& rows, std::int64_t from, std::int64_t to) {
    return (*static_cast<const Line*>(line))(rows, from, to);
  }
  template <class Line>
  static HWY_NOINLINE bool write_with(const void* line, const T* src, std::int64_t from, std::int64_t to,
                                      const Values<T>& values) {
    return static_cast<const Line*>(line)->write(src, from, to, values);
  }

  const void* line_;
  bool (*make_)(const void*, const Rows<T, A>&, std::int64_t, std::int64_t);
  bool (*write_)(const void*, const T*, std::int64_t, std::int64_t, const Values<T>&) = nullptr;
};

/// All lines, by a maker that says at which line it met NaN: those without are simpler, and the others are made anew.
/// True if there are some.
template <class C, class Line, class T, class A>
HWY_INLINE bool make_rows(const Line& line, const C& carry, const Rows<T, A>& rows, std::int64_t from,
                          std::int64_t to) {
  bool any = false, doubt = rows.doubt;
  for (std::int64_t row = 0;; ++row) {
    if (HWY_LIKELY(!doubt)) row = line.make(Calm<C>::of(carry), rows, row, from, to);
    if (HWY_LIKELY(row >= rows.count)) return any;
    if constexpr (Calm<C>::differs) {
      const bool met = line.make(carry, rows.alone(row), 0, from, to) == 0;
      doubt = met && rows.last;
      any |= met;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
