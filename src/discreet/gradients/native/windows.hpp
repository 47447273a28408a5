// Each record's own gradient of a kernel that moves over it, and its squared norm.
//
// The gradient at output o, offset k and channel c is the sum over positions p of gradients[o, p] times
// inputs[c, p * stride + k * dilation - padding]. One record at a time is laid out in cache, channels last and with
// its padding, so that what the kernel sees is read from where it is. Sequences are kernels of one offset.
#pragma once
#include <algorithm>
#include <cstring>

#include "vectors.hpp"

namespace discreet {

// All in elements; the three dimensions of space are depth, height, width.
struct Windows {
  int64_t records, groups, channels, outputs;  // channels and outputs of one group
  int64_t size[3], positions[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t input_record, input_channel, input_step[3];
  int64_t gradient_record, gradient_output, gradient_position;
};

constexpr int64_t kBytesUnfolded = 1 << 19;

template <class T>
class Walk {
 public:
  explicit Walk(const Windows& of) : of_(of) {
    count_ = of.positions[0] * of.positions[1] * of.positions[2];
    offsets_ = of.kernel[0] * of.kernel[1] * of.kernel[2];
    each_ = offsets_ * of.channels;
    bool padded = false;
    for (int d = 0; d < 3; ++d) {
      needed_[d] = (of.positions[d] - 1) * of.stride[d] + (of.kernel[d] - 1) * of.dilation[d] + 1;
      padded = padded || of.padding[d] > 0;
    }
    step_[2] = of.channels;
    step_[1] = needed_[2] * step_[2];
    step_[0] = needed_[1] * step_[1];
    area_ = needed_[0] * step_[0];
    joined_ = of.dilation[2] == 1;
    run_ = joined_ ? of.kernel[2] * of.channels : of.channels;
    // Short runs would leave much of each vector idle.
    unfolded_ = run_ < each_ && 8 * whole(run_) * each_ > 9 * whole(each_) * run_ &&
                count_ * each_ * int64_t(sizeof(T)) <= kBytesUnfolded;
    // A vector that reaches beyond the last row would read what is not ours.
    in_place_ = !padded && !unfolded_ && of.groups == 1 && of.input_channel == 1 && run_ % kLanes<T> == 0 &&
                (offsets_ == 1 || of.input_step[2] == of.channels);
  }

  int64_t scratch() const {
    return in_place_ ? 0 : whole(area_ * of_.groups) + kSlack + (unfolded_ ? whole(count_ * each_) + kSlack : 0);
  }

  // The record's squared norm; the gradient [groups * outputs, offsets, channels] goes to `out` unless it is null.
  double record(const T* inputs, const T* gradients, T* out, T* scratch) const {
    const T* image = inputs;
    int64_t step[3] = {of_.input_step[0], of_.input_step[1], of_.input_step[2]};
    if (!in_place_) {
      lay_out(inputs, scratch);
      image = scratch;
      std::copy(step_, step_ + 3, step);
    }
    double squared = 0;
    for (int64_t group = 0; group < of_.groups; ++group) {
      const T* from = image + group * area_;
      const T* left = gradients + group * of_.outputs * of_.gradient_output;
      T* to = out ? out + group * of_.outputs * each_ : nullptr;
      if (unfolded_) {
        T* rows = scratch + whole(of_.groups * area_) + kSlack;
        unfold(from, rows);
        const int64_t along[3] = {of_.positions[1] * of_.positions[2] * each_, of_.positions[2] * each_, each_};
        squared += block(rows, along, left, to, each_);
        continue;
      }
      int64_t offset = 0;
      for (int64_t a = 0; a < of_.kernel[0]; ++a)
        for (int64_t b = 0; b < of_.kernel[1]; ++b)
          for (int64_t c = 0; c < (joined_ ? 1 : of_.kernel[2]); ++c, offset += run_) {
            const int64_t along[3] = {step[0] * of_.stride[0], step[1] * of_.stride[1], step[2] * of_.stride[2]};
            const T* seen = from + a * of_.dilation[0] * step[0] + b * of_.dilation[1] * step[1] +
                            c * of_.dilation[2] * step[2];
            squared += block(seen, along, left, to ? to + offset : nullptr, run_);
          }
    }
    return squared;
  }

  void clear(T* scratch) const { std::fill(scratch, scratch + this->scratch(), T(0)); }

 private:
  // What is read in whole vectors may reach beyond the end.
  static constexpr int64_t kSlack = (kColumns + 1) * kLanes<T>;

  // Rounded up to whole vectors.
  static int64_t whole(int64_t length) { return (length + kLanes<T> - 1) / kLanes<T> * kLanes<T>; }

  // Channels last, group by group; the padding was cleared once and stays.
  void lay_out(const T* inputs, T* image) const {
    int64_t first[3], last[3];
    for (int d = 0; d < 3; ++d) {
      first[d] = std::min(of_.padding[d], needed_[d]);
      last[d] = std::min(of_.padding[d] + of_.size[d], needed_[d]);
    }
    for (int64_t group = 0; group < of_.groups; ++group, image += area_) {
      const T* base = inputs + group * of_.channels * of_.input_channel;
      for (int64_t z = first[0]; z < last[0]; ++z)
        for (int64_t y = first[1]; y < last[1]; ++y) {
          const T* from = base + (z - of_.padding[0]) * of_.input_step[0] + (y - of_.padding[1]) * of_.input_step[1];
          T* to = image + z * step_[0] + y * step_[1] + first[2] * step_[2];
          const int64_t width = last[2] - first[2], channels = of_.channels;
          if (of_.input_channel == 1 && of_.input_step[2] == channels) {
            std::memcpy(to, from, size_t(width * channels) * sizeof(T));
          } else if (of_.input_channel == 1) {
            for (int64_t x = 0; x < width; ++x)
              std::memcpy(to + x * channels, from + x * of_.input_step[2], size_t(channels) * sizeof(T));
          } else {
            for (int64_t c = 0; c < channels; ++c)
              for (int64_t x = 0; x < width; ++x)
                to[x * channels + c] = from[c * of_.input_channel + x * of_.input_step[2]];
          }
        }
    }
  }

  void unfold(const T* image, T* rows) const {
    for (int64_t z = 0; z < of_.positions[0]; ++z)
      for (int64_t y = 0; y < of_.positions[1]; ++y)
        for (int64_t x = 0; x < of_.positions[2]; ++x) {
          const T* at = image + z * of_.stride[0] * step_[0] + y * of_.stride[1] * step_[1] +
                        x * of_.stride[2] * step_[2];
          for (int64_t a = 0; a < of_.kernel[0]; ++a)
            for (int64_t b = 0; b < of_.kernel[1]; ++b)
              for (int64_t c = 0; c < (joined_ ? 1 : of_.kernel[2]); ++c, rows += run_) {
                const T* from = at + a * of_.dilation[0] * step_[0] + b * of_.dilation[1] * step_[1] +
                                c * of_.dilation[2] * step_[2];
                // The next run is written over what is too much.
                if (run_ <= kLanes<T> / 2)
                  __builtin_memcpy(rows, from, kBytes / 2);
                else
                  for (int64_t n = 0; n < run_; n += kLanes<T>) store(rows + n, load(from + n));
              }
        }
  }

  // The entries of one run of columns, for all outputs.
  double block(const T* seen, const int64_t* along, const T* left, T* out, int64_t columns) const {
    double squared = 0;
    const int64_t vectors = (columns + kLanes<T> - 1) / kLanes<T>, tiles = (vectors + kColumns - 1) / kColumns;
    for (int64_t tile = 0, start = 0; tile < tiles; ++tile) {
      const int64_t width = vectors / tiles + (tile < vectors % tiles), left_over = columns - start;
      T* to = out ? out + start : nullptr;
      switch (width) {
        case 1: squared += outputs<1>(seen + start, along, left, to, left_over); break;
        case 2: squared += outputs<2>(seen + start, along, left, to, left_over); break;
        default: squared += outputs<kColumns>(seen + start, along, left, to, left_over);
      }
      start += width * kLanes<T>;
    }
    return squared;
  }

  template <int N>
  double outputs(const T* seen, const int64_t* along, const T* left, T* out, int64_t columns) const {
    double squared = 0;
    int64_t o = 0;
    const int64_t count = of_.outputs;
    for (; o + kRows <= count; o += kRows) squared += tile<kRows, N>(seen, along, left, out, columns, o);
    for (; o + 4 <= count; o += 4) squared += tile<4, N>(seen, along, left, out, columns, o);
    for (; o + 2 <= count; o += 2) squared += tile<2, N>(seen, along, left, out, columns, o);
    for (; o < count; ++o) squared += tile<1, N>(seen, along, left, out, columns, o);
    return squared;
  }

  template <int M, int N>
  __attribute__((noinline)) double tile(const T* seen, const int64_t* along, const T* left, T* out, int64_t columns,
                                        int64_t o) const {
    Tile<T, M, N> tile;
    tile.clear();
    const T* factors = left + o * of_.gradient_output;
    for (int64_t z = 0; z < of_.positions[0]; ++z)
      for (int64_t y = 0; y < of_.positions[1]; ++y) {
        tile.add(factors, of_.gradient_output, of_.gradient_position, seen + z * along[0] + y * along[1], along[2],
                 of_.positions[2]);
        factors += of_.positions[2] * of_.gradient_position;
      }
    const int64_t last = columns - (N - 1) * kLanes<T>;  // entries of the last vector that count
    Bits<T> counts;
    for (int lane = 0; lane < kLanes<T>; ++lane) counts[lane] = lane < last ? -1 : 0;
    // At most kRows * kColumns squares are added in T, and those sums in double.
    Vector<T> squares{};
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      tile.sums[i][N - 1] = (Vector<T>)((Bits<T>)tile.sums[i][N - 1] & counts);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) squares += tile.sums[i][j] * tile.sums[i][j];
    }
    double squared = 0;
    for (int lane = 0; lane < kLanes<T>; ++lane) squared += double(squares[lane]);
    if (out) {
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        T* to = out + (o + i) * each_;
#pragma GCC unroll 4
        for (int j = 0; j + 1 < N; ++j) store(to + j * kLanes<T>, tile.sums[i][j]);
        if (last >= kLanes<T>)
          store(to + (N - 1) * kLanes<T>, tile.sums[i][N - 1]);
        else
          for (int64_t lane = 0; lane < last; ++lane) to[(N - 1) * kLanes<T> + lane] = tile.sums[i][N - 1][lane];
      }
    }
    return squared;
  }

  const Windows of_;
  int64_t count_, offsets_, each_, needed_[3], step_[3], area_, run_;
  bool joined_, unfolded_, in_place_;
};

template <class T>
int windows(const Windows& of, const T* inputs, const T* gradients, T* out, double* squared, int threads) {
  const Walk<T> walk(of);
  const int64_t scratch = walk.scratch();
  const int64_t entries = of.groups * of.outputs * of.channels * of.kernel[0] * of.kernel[1] * of.kernel[2];
  T* memory = aligned<T>(threads * scratch);
  if (!memory) return 1;
  for (int thread = 0; thread < threads; ++thread) walk.clear(memory + thread * scratch);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (int thread = 0; thread < threads; ++thread) {
    // Each record is one thread's alone: the result does not depend on their number.
    const int64_t first = of.records * thread / threads, last = of.records * (thread + 1) / threads;
    for (int64_t b = first; b < last; ++b)
      squared[b] = walk.record(inputs + b * of.input_record, gradients + b * of.gradient_record,
                               out ? out + b * entries : nullptr, memory + thread * scratch);
  }
  std::free(memory);
  return 0;
}

}  // namespace discreet
