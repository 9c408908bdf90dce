// Kernels of the runtime's tests, with the signature of docs/bundle.md.

#include <math.h>
#include <stdint.h>

#define KERNEL(name)                                                                                                   \
  void name(void *const *args, const int64_t *symbols, int64_t begin, int64_t end, void *scratch, int64_t *error)

// out[i] = 2 * in[i] + 1
KERNEL(double_plus_one) {
  const float *in = args[0];
  float *out = args[1];
  for (int64_t i = begin; i < end; ++i)
    out[i] = 2.0f * in[i] + 1.0f;
}

// out[i] = a[i] + b[i]
KERNEL(add) {
  const float *a = args[0], *b = args[1];
  float *out = args[2];
  for (int64_t i = begin; i < end; ++i)
    out[i] = a[i] + b[i];
}

// Row sums: units are rows, symbols[0] is the length of a row.
KERNEL(row_sum) {
  const float *in = args[0];
  float *out = args[1];
  for (int64_t i = begin; i < end; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < symbols[0]; ++j)
      sum += in[i * symbols[0] + j];
    out[i] = sum;
  }
}

// out[i] = table[index[i]], with symbols[0] rows in the table.
KERNEL(gather) {
  const float *table = args[0];
  const int64_t *index = args[1];
  float *out = args[2];
  for (int64_t i = begin; i < end; ++i) {
    if (index[i] < 0 || index[i] >= symbols[0]) {
      *error = 1;
      return;
    }
    out[i] = table[index[i]];
  }
}

// inout[i] += 1
KERNEL(increment) {
  float *inout = args[0];
  for (int64_t i = begin; i < end; ++i)
    inout[i] += 1.0f;
}

// Sums through the scratch memory, symbols[0] floats of it: out[i] = in[i] * symbols[0].
KERNEL(through_scratch) {
  const float *in = args[0];
  float *out = args[1];
  float *buffer = scratch;
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < symbols[0]; ++j)
      buffer[j] = in[i];
    float sum = 0;
    for (int64_t j = 0; j < symbols[0]; ++j)
      sum += buffer[j];
    out[i] = sum;
  }
  if ((uintptr_t)scratch % 64 != 0)
    *error = 7;
}

// Writes the bounds of its range: out[2 * begin] = begin, out[2 * begin + 1] = end.
KERNEL(record_range) {
  int64_t *out = args[0];
  out[2 * begin] = begin;
  out[2 * begin + 1] = end;
}

KERNEL(exponential) {
  const float *in = args[0];
  float *out = args[1];
  for (int64_t i = begin; i < end; ++i)
    out[i] = expf(in[i]);
}

KERNEL(do_nothing) {}
