// The recurrence of an LSTM over whole sequences, and the gradients of its gates.
//
// A block of kRows records goes through all steps before the next does, so that what it works on stays in cache.
// Within, hidden units are padded with zeros to whole vectors.
#pragma once
#include <algorithm>
#include <cstring>

#include "vectors.hpp"

namespace discreet {

// Gates in the order input, forget, cell, output. In the order of steps, direction 1 runs against time.
// Kept between the passes, both of the kernels' own shape:
//   gates    [directions, blocks, steps, kRows, 4, units padded]
//   memories [directions, blocks, steps + 1, kRows, units padded]
struct Recurrence {
  int64_t steps, records, directions, units;
  int64_t input_step, input_record;    // of [steps, records, directions * 4 * units], the gates' input part
  int64_t output_step, output_record;  // of [steps, records, directions * units]
};

template <class T>
struct Sizes {
  int64_t padded, gates, blocks;
  explicit Sizes(const Recurrence& of)
      : padded((of.units + kLanes<T> - 1) / kLanes<T> * kLanes<T>),
        gates(4 * padded),
        blocks((of.records + kRows - 1) / kRows) {}
};

// out[kRows, columns] (+)= left[kRows, steps] right[steps, columns], all rows contiguous and padded.
template <class T, int N>
inline void tile_product(const T* left, const T* right, T* out, int64_t steps, int64_t columns, bool add) {
  Tile<T, kRows, N> tile;
  tile.clear();
  if (add)
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) tile.sums[i][j] = load(out + i * columns + j * kLanes<T>);
  tile.add(left, steps, 1, right, columns, steps);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) store(out + i * columns + j * kLanes<T>, tile.sums[i][j]);
}

template <class T>
inline void product(const T* left, const T* right, T* out, int64_t steps, int64_t columns, bool add) {
  const int64_t vectors = columns / kLanes<T>, tiles = (vectors + kColumns - 1) / kColumns;
  for (int64_t tile = 0, start = 0; tile < tiles; ++tile) {
    const int64_t width = vectors / tiles + (tile < vectors % tiles);
    switch (width) {
      case 1: tile_product<T, 1>(left, right + start, out + start, steps, columns, add); break;
      case 2: tile_product<T, 2>(left, right + start, out + start, steps, columns, add); break;
      default: tile_product<T, kColumns>(left, right + start, out + start, steps, columns, add);
    }
    start += width * kLanes<T>;
  }
}

template <class T>
inline void copy(T* to, const T* from, int64_t count) {
  std::memcpy(to, from, size_t(count) * sizeof(T));
}

// inputs and output as in Recurrence; weight [directions, 4 * units, units]; bias [directions, 4 * units];
// first_state, first_memory, last_state, last_memory [directions, records, units];
// before [directions, records, steps, units], in the order of time: the state with which each step began.
template <class T>
int lstm_forward(const Recurrence& of, const T* inputs, const T* weight, const T* bias, const T* first_state,
                 const T* first_memory, T* gates, T* memories, T* before, T* output, T* last_state, T* last_memory,
                 int threads) {
  const Sizes<T> sizes(of);
  const int64_t H = of.units, P = sizes.padded, G = sizes.gates, weights = P * G;
  T* memory = aligned<T>(of.directions * weights);
  if (!memory) return 1;
  std::fill(memory, memory + of.directions * weights, T(0));
  for (int64_t d = 0; d < of.directions; ++d)
    for (int64_t gate = 0; gate < 4; ++gate)
      for (int64_t row = 0; row < H; ++row)
        for (int64_t u = 0; u < H; ++u)
          memory[d * weights + u * G + gate * P + row] = weight[((d * 4 + gate) * H + row) * H + u];
  T* states = aligned<T>(threads * kRows * P);
  if (!states) {
    std::free(memory);
    return 1;
  }
  const int64_t units = of.directions * sizes.blocks;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int thread = 0; thread < threads; ++thread) {
    T* state = states + thread * kRows * P;
    for (int64_t unit = units * thread / threads; unit < units * (thread + 1) / threads; ++unit) {
      const int64_t d = unit / sizes.blocks, b0 = unit % sizes.blocks * kRows;
      const int64_t rows = of.records - b0 < kRows ? of.records - b0 : kRows;
      T* kept = memories + unit * (of.steps + 1) * kRows * P;
      std::fill(state, state + kRows * P, T(0));
      std::fill(kept, kept + kRows * P, T(0));
      for (int64_t i = 0; i < rows; ++i) {
        copy(state + i * P, first_state + (d * of.records + b0 + i) * H, H);
        copy(kept + i * P, first_memory + (d * of.records + b0 + i) * H, H);
      }
      for (int64_t s = 0; s < of.steps; ++s) {
        const int64_t t = d ? of.steps - 1 - s : s;
        T* z = gates + (unit * of.steps + s) * kRows * G;
        for (int64_t i = 0; i < rows; ++i) {
          const T* from = inputs + t * of.input_step + (b0 + i) * of.input_record + d * 4 * H;
          for (int64_t gate = 0; gate < 4; ++gate) {
            T* to = z + i * G + gate * P;
            const T* shift = bias + (d * 4 + gate) * H;
            for (int64_t u = 0; u < H; ++u) to[u] = from[gate * H + u] + shift[u];
            for (int64_t u = H; u < P; ++u) to[u] = 0;
          }
          copy(before + ((d * of.records + b0 + i) * of.steps + t) * H, state + i * P, H);
        }
        std::fill(z + rows * G, z + kRows * G, T(0));
        // Only H of the P columns of `state` are not zero, and so are as many rows of the matrix.
        product(state, memory + d * weights, z, P, G, true);
        T* next = kept + kRows * P;
        for (int64_t i = 0; i < kRows; ++i)
          for (int64_t u = 0; u < P; u += kLanes<T>) {
            T* at = z + i * G + u;
            const Vector<T> enter = sigmoid<T>(load(at)), forget = sigmoid<T>(load(at + P));
            const Vector<T> cell = tanh<T>(load(at + 2 * P)), leave = sigmoid<T>(load(at + 3 * P));
            const Vector<T> now = forget * load(kept + i * P + u) + enter * cell;
            store(at, enter), store(at + P, forget), store(at + 2 * P, cell), store(at + 3 * P, leave);
            store(next + i * P + u, now);
            store(state + i * P + u, leave * tanh<T>(now));
          }
        for (int64_t i = 0; i < rows; ++i)
          copy(output + t * of.output_step + (b0 + i) * of.output_record + d * H, state + i * P, H);
        kept = next;
      }
      for (int64_t i = 0; i < rows; ++i) {
        copy(last_state + (d * of.records + b0 + i) * H, state + i * P, H);
        copy(last_memory + (d * of.records + b0 + i) * H, kept + i * P, H);
      }
    }
  }
  std::free(states);
  std::free(memory);
  return 0;
}

// above has the output's shape and strides, gradients those of inputs; state and memory [directions, records, units]
// hold the gradients of the last ones, and in the end those of the first.
template <class T>
int lstm_backward(const Recurrence& of, const T* above, const T* weight, const T* gates, const T* memories,
                  T* gradients, T* state, T* memory, int threads) {
  const Sizes<T> sizes(of);
  const int64_t H = of.units, P = sizes.padded, G = sizes.gates, weights = P * G, each = kRows * (2 * P + G);
  T* matrix = aligned<T>(of.directions * weights);
  if (!matrix) return 1;
  std::fill(matrix, matrix + of.directions * weights, T(0));
  for (int64_t d = 0; d < of.directions; ++d)
    for (int64_t gate = 0; gate < 4; ++gate)
      for (int64_t row = 0; row < H; ++row)
        copy(matrix + d * weights + (gate * P + row) * P, weight + ((d * 4 + gate) * H + row) * H, H);
  T* scratch = aligned<T>(threads * each);
  if (!scratch) {
    std::free(matrix);
    return 1;
  }
  const int64_t units = of.directions * sizes.blocks;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int thread = 0; thread < threads; ++thread) {
    T *dh = scratch + thread * each, *dc = dh + kRows * P, *dz = dc + kRows * P;
    for (int64_t unit = units * thread / threads; unit < units * (thread + 1) / threads; ++unit) {
      const int64_t d = unit / sizes.blocks, b0 = unit % sizes.blocks * kRows;
      const int64_t rows = of.records - b0 < kRows ? of.records - b0 : kRows;
      std::fill(dh, dz, T(0));
      for (int64_t i = 0; i < rows; ++i) {
        copy(dh + i * P, state + (d * of.records + b0 + i) * H, H);
        copy(dc + i * P, memory + (d * of.records + b0 + i) * H, H);
      }
      for (int64_t s = of.steps - 1; s >= 0; --s) {
        const int64_t t = d ? of.steps - 1 - s : s;
        const T* z = gates + (unit * of.steps + s) * kRows * G;
        const T* was = memories + (unit * (of.steps + 1) + s) * kRows * P;
        for (int64_t i = 0; i < rows; ++i) {
          const T* from = above + t * of.output_step + (b0 + i) * of.output_record + d * H;
          for (int64_t u = 0; u < H; ++u) dh[i * P + u] += from[u];
        }
        for (int64_t i = 0; i < kRows; ++i)
          for (int64_t u = 0; u < P; u += kLanes<T>) {
            const T* at = z + i * G + u;
            T* to = dz + i * G + u;
            const Vector<T> enter = load(at), forget = load(at + P), cell = load(at + 2 * P), leave = load(at + 3 * P);
            const Vector<T> old = load(was + i * P + u), squashed = tanh<T>(load(was + kRows * P + i * P + u));
            const Vector<T> up = load(dh + i * P + u);
            const Vector<T> here = load(dc + i * P + u) + up * leave * (1 - squashed * squashed);
            store(to, here * cell * enter * (1 - enter));
            store(to + P, here * old * forget * (1 - forget));
            store(to + 2 * P, here * enter * (1 - cell * cell));
            store(to + 3 * P, up * squashed * leave * (1 - leave));
            store(dc + i * P + u, here * forget);
          }
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t gate = 0; gate < 4; ++gate)
            copy(gradients + t * of.input_step + (b0 + i) * of.input_record + (d * 4 + gate) * H,
                 dz + i * G + gate * P, H);
        product(dz, matrix + d * weights, dh, G, P, false);
      }
      for (int64_t i = 0; i < rows; ++i) {
        copy(state + (d * of.records + b0 + i) * H, dh + i * P, H);
        copy(memory + (d * of.records + b0 + i) * H, dc + i * P, H);
      }
    }
  }
  std::free(scratch);
  std::free(matrix);
  return 0;
}

}  // namespace discreet
