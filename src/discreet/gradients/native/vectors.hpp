// Vectors as wide as the processor's, in the compiler's own notation, and the functions of them that are needed.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace discreet {

#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 8;  // 24 sums, 3 inputs and a factor fit the 32 registers.
#elif defined(__AVX__)
constexpr int kBytes = 32, kRows = 4;  // 12 sums, 3 inputs and a factor fit the 16 registers.
#else
constexpr int kBytes = 16, kRows = 4;
#endif
constexpr int kColumns = 3;  // Vectors side by side in a tile.

template <class T>
struct Of;

template <>
struct Of<float> {
  typedef float Vector __attribute__((vector_size(kBytes)));
  typedef int32_t Bits __attribute__((vector_size(kBytes)));
  static constexpr float log2e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  static constexpr float rounder = 12582912.0f;  // 1.5 * 2^23: what is added to it loses its fraction.
  static constexpr float least = -87.0f;
  static constexpr int fraction = 23, bias = 127, degree = 7;
};

template <>
struct Of<double> {
  typedef double Vector __attribute__((vector_size(kBytes)));
  typedef int64_t Bits __attribute__((vector_size(kBytes)));
  static constexpr double log2e = 1.4426950408889634, ln2_high = 0.693145751953125;
  static constexpr double ln2_low = 1.42860682030941723212e-6;
  static constexpr double rounder = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double least = -708.0;
  static constexpr int fraction = 52, bias = 1023, degree = 13;
};

template <class T>
using Vector = typename Of<T>::Vector;
template <class T>
using Bits = typename Of<T>::Bits;
template <class T>
constexpr int kLanes = kBytes / int(sizeof(T));

template <class T>
inline Vector<T> load(const T* from) {
  Vector<T> value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
inline void store(T* to, Vector<T> value) {
  __builtin_memcpy(to, &value, sizeof value);
}

// Memory that begins where a vector may, to be given back with std::free; null if there is none.
template <class T>
inline T* aligned(int64_t count) {
  const size_t bytes = (size_t(count) * sizeof(T) + kBytes) / kBytes * kBytes;
  return static_cast<T*>(std::aligned_alloc(kBytes, bytes));
}

template <class T>
inline Vector<T> select(Bits<T> which, Vector<T> yes, Vector<T> no) {
  return (Vector<T>)(((Bits<T>)yes & which) | ((Bits<T>)no & ~which));
}

template <class T>
inline Vector<T> negative_magnitude(Vector<T> x) {
  return select<T>(x > 0, -x, x);  // NaN stays.
}

// exp(x) = scale + scale * rest for x <= 0, from Taylor's series on |x| <= ln(2) / 2; NaN stays.
template <class T>
struct Exponential {
  Vector<T> scale, rest;

  explicit Exponential(Vector<T> x) {
    typedef Of<T> c;
    x = select<T>(x < c::least, Vector<T>{} + c::least, x);
    const Vector<T> rounded = x * c::log2e + c::rounder, whole = rounded - c::rounder;
    const Vector<T> r = (x - whole * c::ln2_high) - whole * c::ln2_low;
    T factorial = 1;
    for (int n = 2; n <= c::degree; ++n) factorial *= n;
    Vector<T> sum = Vector<T>{} + 1 / factorial;
    for (int n = c::degree; n > 1; --n) {
      factorial /= n;
      sum = sum * r + 1 / factorial;
    }
    rest = sum * r;
    // Without its fraction, the sum holds the exponent in its lowest bits.
    const Vector<T> none = Vector<T>{} + c::rounder;
    scale = (Vector<T>)((((Bits<T>)rounded - (Bits<T>)none) + c::bias) << c::fraction);
  }
};

template <class T>
inline Vector<T> sigmoid(Vector<T> x) {
  const Exponential<T> e(negative_magnitude<T>(x));
  const Vector<T> small = e.scale + e.scale * e.rest, half = 1 / (1 + small);
  return select<T>(x > 0, half, small * half);
}

template <class T>
inline Vector<T> tanh(Vector<T> x) {
  const Exponential<T> e(2 * negative_magnitude<T>(x));
  const Vector<T> less_one = e.scale * e.rest + (e.scale - 1);  // exp(-2|x|) - 1, without cancellation near 0
  const Vector<T> magnitude = -less_one / (2 + less_one);
  return select<T>(x > 0, magnitude, -magnitude);
}

// A tile of sums over k of left[i, k] * right[k, j]: kRows times kColumns vectors at most, all in registers.
template <class T, int M, int N>
struct Tile {
  Vector<T> sums[M][N];

  inline __attribute__((always_inline)) void clear() {
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) sums[i][j] = Vector<T>{};
  }

  // `left` moves by `across` from row to row and by `along` from step to step, `right` by `step`.
  inline __attribute__((always_inline)) void add(const T* left, int64_t across, int64_t along, const T* right,
                                                 int64_t step, int64_t steps) {
    for (int64_t k = 0; k < steps; ++k, left += along, right += step) {
      Vector<T> seen[N];
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) seen[j] = load(right + j * kLanes<T>);
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        const Vector<T> factor = left[i * across] - Vector<T>{};
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) sums[i][j] += factor * seen[j];
      }
    }
  }
};

}  // namespace discreet
