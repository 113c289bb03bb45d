// Times steps of llm.c's GPT-2, for llmc.sh: llmc STEPS [loops] prints the seconds of each step but the first, which
// allocates. LLMC is llm.c's train_gpt2.c, in which the functions of matrix products are renamed *_loops. Products are
// OpenBLAS's, or with `loops` llm.c's own.
#define TESTING // leaves out its main
#include LLMC

#include <cblas.h>

static int has_loops;

// out[b * t, oc] = inp[b * t, c] * weight[oc, c]^T + bias[oc], which may be NULL
void matmul_forward(float *out, const float *inp, const float *weight, const float *bias, int b, int t, int c, int oc) {
  if (has_loops) {
    matmul_forward_loops(out, inp, weight, bias, b, t, c, oc);
    return;
  }
  for (int m = 0; bias && m < b * t; m++) memcpy(out + (size_t)m * (size_t)oc, bias, (size_t)oc * sizeof *out);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, b * t, oc, c, 1, inp, c, weight, c, bias ? 1 : 0, out, oc);
}

// Adds to the gradients of inp, weight and bias.
void matmul_backward(float *dinp, float *dweight, float *dbias, const float *dout, const float *inp,
                     const float *weight, int b, int t, int c, int oc) {
  if (has_loops) {
    matmul_backward_loops(dinp, dweight, dbias, dout, inp, weight, b, t, c, oc);
    return;
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, b * t, c, oc, 1, dout, oc, weight, c, 1, dinp, c);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, oc, c, b * t, 1, dout, oc, inp, c, 1, dweight, c);
  for (int m = 0; dbias && m < b * t; m++)
    for (int o = 0; o < oc; o++) dbias[o] += dout[(size_t)m * (size_t)oc + (size_t)o];
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float uniform(float most) {
  return most * (2 * (float)rand() / (float)RAND_MAX - 1);
}

int main(int argc, char **argv) {
  enum { B = 4, T = 64, VOCABULARY = 50257 };
  static int tokens[B * T], labels[B * T];
  const int steps = argc > 1 ? atoi(argv[1]) : 4;
  GPT2 model = {.config = {T, VOCABULARY, VOCABULARY, 12, 12, 768}, .mean_loss = -1};
  has_loops = argc > 2;
  fill_in_parameter_sizes(model.param_sizes, model.config);
  for (int i = 0; i < NUM_PARAMETER_TENSORS; i++) model.num_parameters += model.param_sizes[i];
  model.params_memory = malloc_and_point_parameters(&model.params, model.param_sizes);
  for (size_t i = 0; i < model.num_parameters; i++) model.params_memory[i] = uniform(0.02F);
  for (int i = 0; i < B * T; i++) tokens[i] = rand() % VOCABULARY, labels[i] = rand() % VOCABULARY;
  for (int step = 0; step <= steps; step++) {
    const double begin = now();
    gpt2_forward(&model, tokens, labels, B, T);
    gpt2_zero_grad(&model);
    gpt2_backward(&model);
    gpt2_update(&model, 1e-4F, 0.9F, 0.999F, 1e-8F, 0, step + 1);
    if (step) printf("seconds %.4f\n", now() - begin);
  }
  return 0;
}
