// Sums down to a shape, and of everything: blocked and pairwise, the same bit for bit for any number of threads.
#include "autodiff/checks.h"
#include "autodiff/language.h"
#include "autodiff/loops.h"

namespace cenote::autodiff {
namespace {

/// Numbers that are summed side by side.
constexpr std::int64_t lanes = 64;
/// Parts that a long sum is cut into when there are few sums; never by the threads, so that no result depends on them.
constexpr std::int64_t most_parts = 64;
constexpr std::int64_t part_size = 32768;

/// Adds rows lane by lane: eight one after the other, then pairwise like a binary counter, so that the error grows with
/// the logarithm of their number.
template <class C>
class RowSum {
 public:
  /// Rows have at most `width` lanes.
  explicit RowSum(std::int64_t width) : width_(width) { std::fill_n(now_.data(), width_, C{0}); }

  void add(const C* __restrict row, std::int64_t n) noexcept {
    for (std::int64_t i = 0; i < n; ++i) now_[static_cast<std::size_t>(i)] += row[i];
    if (++rows_ % 8 == 0) carry();
  }

  /// The sums, after the last row.
  C* finish() noexcept {
    std::size_t level = 0;
    for (std::uint64_t groups = rows_ / 8; groups > 0; groups >>= 1, ++level)
      if (groups & 1) join(levels_[level]);
    return now_.data();
  }

 private:
  using Row = std::array<C, lanes>;

  // The earlier rows are the left operand.
  void join(const Row& earlier) noexcept {
    for (std::int64_t i = 0; i < width_; ++i)
      now_[static_cast<std::size_t>(i)] = earlier[static_cast<std::size_t>(i)] + now_[static_cast<std::size_t>(i)];
  }
  void carry() noexcept {
    std::size_t level = 0;
    for (const std::uint64_t before = rows_ / 8 - 1; before >> level & 1; ++level) join(levels_[level]);
    levels_[level] = now_;
    std::fill_n(now_.data(), width_, C{0});
  }

  std::int64_t width_;
  std::uint64_t rows_ = 0;
  alignas(64) Row now_;
  alignas(64) std::array<Row, 60> levels_;
};

/// Half of a sum's loops: those over its outputs, or those over what each output sums. If cut, the last loop is over
/// pieces of up to `lanes` elements.
class Loops {
 public:
  void add(std::int64_t n, std::int64_t x_stride, std::int64_t y_stride) {
    if (rank_ > 0) {
      std::int64_t x = 0, y = 0;
      Axis& outer = axes_[rank_ - 1];
      if (adjacent_ && !__builtin_mul_overflow(n, x_stride, &x) && !__builtin_mul_overflow(n, y_stride, &y) &&
          outer.x == x && outer.y == y) {
        outer = {outer.n * n, x_stride, y_stride};
        return;
      }
    }
    axes_[rank_++] = {n, x_stride, y_stride};
    adjacent_ = true;
  }
  /// What is added next is not the neighbour of what was added before.
  void part() { adjacent_ = false; }

  void start(bool cut) {
    cut_ = cut;
    for (std::size_t i = 0; i < rank_; ++i)
      at_.add(cut && i + 1 == rank_ ? (axes_[i].n + lanes - 1) / lanes : axes_[i].n);
    at_.add(1);
  }
  std::int64_t total() const { return at_.total(); }
  void seek(std::int64_t position) { at_.seek(position); }
  void next() { at_.next(); }

  std::int64_t x() const {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < rank_; ++i) offset += position(i) * axes_[i].x;
    return offset;
  }
  std::int64_t y() const {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < rank_; ++i) offset += position(i) * axes_[i].y;
    return offset;
  }
  /// The size of the current piece, and its strides.
  std::int64_t width() const { return std::min(lanes, axes_[rank_ - 1].n - position(rank_ - 1)); }
  std::int64_t widest() const { return std::clamp<std::int64_t>(axes_[rank_ - 1].n, 1, lanes); }
  std::int64_t x_stride() const { return axes_[rank_ - 1].x; }
  std::int64_t y_stride() const { return axes_[rank_ - 1].y; }

 private:
  struct Axis {
    std::int64_t n = 1, x = 0, y = 0;
  };
  std::int64_t position(std::size_t i) const { return cut_ && i + 1 == rank_ ? at_[i] * lanes : at_[i]; }

  std::array<Axis, max_rank> axes_{};
  std::size_t rank_ = 0;
  bool cut_ = false, adjacent_ = false;
  detail::Counter at_;
};

/// The loops of one sum. Rows lie along the last axis, whether that is kept or summed.
struct Sum {
  Loops kept, summed;
  bool along_kept = false;

  Sum(const Extents& x, const Extents& x_strides, const Extents& y, const Extents& y_strides) {
    const int extra = x.size() - y.size();
    bool any = false;
    for (int i = 0; i < x.size(); ++i) {
      if (x[i] == 1) continue;
      along_kept = i >= extra && y[i - extra] == x[i];
      any = true;
      (along_kept ? kept : summed).add(x[i], x_strides[i], along_kept ? y_strides[i - extra] : 0);
      (along_kept ? summed : kept).part();
    }
    if (!any) summed.add(1, 1, 0);
    kept.start(along_kept);
    summed.start(!along_kept);
  }

  /// Sums rows [first, last) for the outputs at which the kept loops stand, and stores them.
  template <class C>
  void run(const View& x, std::int64_t first, std::int64_t last, Type type, std::byte* to) {
    const std::int64_t width = along_kept ? kept.width() : summed.widest();
    const std::int64_t stride = along_kept ? kept.x_stride() : summed.x_stride();
    RowSum<C> sum(width);
    alignas(64) std::array<C, lanes> buffer;
    const std::byte* from = byte_at(bytes_of(x), x.type, kept.x());
    if (first < last) summed.seek(first);
    for (; first < last; ++first, summed.next()) {
      const std::int64_t n = along_kept ? width : summed.width();
      sum.add(read_row(x.type, byte_at(from, x.type, summed.x()), stride, n, buffer.data()), n);
    }
    C* totals = sum.finish();
    std::byte* at = byte_at(to, type, kept.y());
    if (along_kept) return write_row(type, at, kept.y_stride(), totals, width);
    std::int64_t n = width;
    for (; n > 1; n = (n + 1) / 2)
      for (std::int64_t i = 0; i < n / 2; ++i) totals[i] += totals[(n + 1) / 2 + i];
    write_row(type, at, 1, totals, 1);
  }
};

/// How many parts each sum is cut into, seen from the shapes alone.
std::int64_t parts_of(const Extents& x, const Extents& y) {
  if (element_count(x) == 0) return 1;
  const Sum sum(x, row_major_strides(x), y, row_major_strides(y));
  if (sum.kept.total() >= most_parts) return 1;
  return std::clamp<std::int64_t>(std::min(element_count(x) / part_size, sum.summed.total()), 1, most_parts);
}

/// y = x summed, straight into y.
template <class C>
void sum_whole(const View& x, const MutableView& y) {
  const Sum sum(x.shape, x.strides, y.shape, y.strides);
  const std::int64_t units = sum.kept.total(), rows = sum.summed.total();
  const std::int64_t grain = std::max<std::int64_t>(1, parallel_grain / std::max<std::int64_t>(1, rows * lanes));
  detail::parallel_parts(units, grain, [&](std::int64_t unit, std::int64_t end) {
    Sum own = sum;
    own.kept.seek(unit);
    for (; unit < end; ++unit, own.kept.next()) own.run<C>(x, 0, rows, y.type, bytes_of(y));
  });
}

/// y = x summed in parts, which meet in `scratch`, over `divisor`.
template <class C>
void sum_in_parts(const View& x, const MutableView& y, std::int64_t parts, double divisor, std::byte* scratch) {
  const Sum sum(x.shape, x.strides, y.shape, row_major_strides(y.shape));
  const std::int64_t units = sum.kept.total(), rows = sum.summed.total(), size = element_count(y.shape);
  C* sums = reinterpret_cast<C*>(scratch);
  detail::parallel_parts(units * parts, 1, [&](std::int64_t item, std::int64_t end) {
    for (Sum own = sum; item < end; ++item) {
      const std::int64_t part = item / units, share = rows / parts, rest = rows % parts;
      const std::int64_t first = part * share + std::min(part, rest);
      const std::int64_t last = first + share + (part < rest ? 1 : 0);
      own.kept.seek(item % units);
      own.run<C>(x, first, last, type_of<C>, reinterpret_cast<std::byte*>(sums + part * size));
    }
  });
  for (std::int64_t step = 1; step < parts; step *= 2)
    for (std::int64_t part = 0; part + step < parts; part += 2 * step)
      for (std::int64_t i = 0; i < size; ++i) sums[part * size + i] += sums[(part + step) * size + i];
  const auto divide = [divisor](C value) { return static_cast<C>(static_cast<double>(value) / divisor); };
  compute<C>(divide, std::array{View(sums, y.shape)}, y, std::index_sequence<0>());
}

Prepared prepare_sum(const Signature& x, const Extents& shape, bool mean) {
  const std::int64_t parts = parts_of(x.shape, shape);
  const double divisor = mean ? static_cast<double>(element_count(x.shape)) : 1;
  const bool staged = parts > 1 || mean;
  const auto bytes = static_cast<std::int64_t>(size_of(compute_type(x.type)));
  return {{{x.type, shape}},
          staged ? parts * element_count(shape) * bytes : 0,
          [=](std::span<const View> in, std::span<const MutableView> out, std::byte* scratch) {
            visit_compute(in[0].type, [&]<class C>(C) {
              if (staged)
                sum_in_parts<C>(in[0], out[0], parts, divisor, scratch);
              else
                sum_whole<C>(in[0], out[0]);
            });
          }};
}

Maybe apply(Tracer& t, const OpPtr& op, Maybe x) { return x ? Maybe(t.apply_one(op, {*x})) : Maybe(); }

class SumTo final : public Op {
 public:
  explicit SumTo(const Extents& shape) : shape_(shape) {}
  std::string name() const override { return "sum_to"; }
  Prepared prepare(std::span<const Signature> inputs) const override {
    check_float("sum_to", "x", inputs[0]);
    if (!broadcasts(shape_, inputs[0].shape))
      reject("sum_to", "shape ", shape_, ": must broadcast to that of x, ", inputs[0].shape,
             ": counted from the last, axes must be equal or 1");
    return prepare_sum(inputs[0], shape_, false);
  }
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value>, std::span<const Value>,
                         std::span<const Maybe> tangents) const override {
    return {apply(t, sum_to_op(shape_), tangents[0])};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> inputs, std::span<const Value>,
                         std::span<const Maybe> cotangents) const override {
    return {apply(t, broadcast_op(t.signature(inputs[0]).shape), cotangents[0])};
  }

 private:
  Extents shape_;
};

/// The sum or the mean of all elements. Of none: 0 or NaN, as in NumPy.
class Total final : public Op {
 public:
  explicit Total(bool mean) : mean_(mean) {}
  std::string name() const override { return mean_ ? "mean" : "sum"; }
  Prepared prepare(std::span<const Signature> inputs) const override {
    check_float(name(), "x", inputs[0]);
    return prepare_sum(inputs[0], {}, mean_);
  }
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value>, std::span<const Value>,
                         std::span<const Maybe> tangents) const override {
    return {apply(t, mean_ ? mean_op() : sum_op(), tangents[0])};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> inputs, std::span<const Value>,
                         std::span<const Maybe> cotangents) const override {
    if (!cotangents[0]) return {std::nullopt};
    const Extents& shape = t.signature(inputs[0]).shape;
    const Value each =
        mean_ ? scale(t, *cotangents[0], 1.0 / static_cast<double>(element_count(shape))) : *cotangents[0];
    return {t.apply_one(broadcast_op(shape), {each})};
  }

 private:
  bool mean_;
};

}  // namespace

OpPtr sum_to_op(const Extents& shape) { return std::make_shared<SumTo>(shape); }
OpPtr sum_op() {
  static const OpPtr op = std::make_shared<Total>(false);
  return op;
}
OpPtr mean_op() {
  static const OpPtr op = std::make_shared<Total>(true);
  return op;
}

}  // namespace cenote::autodiff
