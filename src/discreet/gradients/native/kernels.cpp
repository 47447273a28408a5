// What Python calls, for both floating-point types. All give 0, or 1 where memory has run out.
#include "lstm.hpp"
#include "windows.hpp"

#define DISCREET_EXPORT extern "C" __attribute__((visibility("default")))
#define DISCREET_FOR(T, name)                                                                                       \
  DISCREET_EXPORT int discreet_windows_##name(const discreet::Windows* of, const T* inputs, const T* gradients,     \
                                              T* out, double* squared, int threads) {                               \
    return discreet::windows<T>(*of, inputs, gradients, out, squared, threads);                                     \
  }                                                                                                                 \
  DISCREET_EXPORT int discreet_lstm_forward_##name(                                                                 \
      const discreet::Recurrence* of, const T* inputs, const T* weight, const T* bias, const T* first_state,        \
      const T* first_memory, T* gates, T* memories, T* before, T* output, T* last_state, T* last_memory,            \
      int threads) {                                                                                                \
    return discreet::lstm_forward<T>(*of, inputs, weight, bias, first_state, first_memory, gates, memories, before, \
                                     output, last_state, last_memory, threads);                                     \
  }                                                                                                                 \
  DISCREET_EXPORT int discreet_lstm_backward_##name(const discreet::Recurrence* of, const T* above, const T* weight, \
                                                    const T* gates, const T* memories, T* gradients, T* state,      \
                                                    T* memory, int threads) {                                       \
    return discreet::lstm_backward<T>(*of, above, weight, gates, memories, gradients, state, memory, threads);      \
  }

DISCREET_FOR(float, float32)
DISCREET_FOR(double, float64)

DISCREET_EXPORT int discreet_rows() { return discreet::kRows; }
DISCREET_EXPORT int discreet_bytes() { return discreet::kBytes; }
