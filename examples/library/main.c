// Writes a graph of a softmax at run time, derives its gradient, compiles both and runs them: nothing is known before
// the program runs. The gradient of sum(w * softmax(x)) is p * (w - sum(w * p)).
#include <ngrad.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64 };

static ng_status run(ng_graph *g, float **in, float **out) {
  ng_kernel *k = ng_compile(g, NULL);
  if (!k) return NG_WRONG;
  ng_tensor inputs[4], outputs[4];
  for (size_t i = 0; i < ng_graph_input_count(g); i++) inputs[i] = ng_tensor_view(ng_graph_input(g, i), in[i]);
  for (size_t i = 0; i < ng_graph_output_count(g); i++) outputs[i] = ng_tensor_view(ng_graph_output(g, i), out[i]);
  const ng_status status = ng_kernel_run(k, inputs, outputs, 0);
  ng_kernel_free(k);
  return status;
}

int main(int argc, char **argv) {
  const int n = argc > 1 && argv[1][0] ? (int)strlen(argv[1]) : 10;
  float x[MOST], p[MOST], w[MOST], dx[MOST], dot = 0, worst = 0;
  char text[400];
  if (n > MOST) return 2;
  for (int i = 0; i < n; i++) x[i] = (float)(i % 5) / 2, w[i] = (float)(i % 3);
  snprintf(text, sizeof text,
           "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [%d]}]\n"
           "nodes: [{op: SoftMax, inputs: [x], outputs: [p], attributes: {axis: 0}}]\noutputs: [p]\n",
           n);

  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ctx ? ng_graph_read(ctx, "softmax", text, strlen(text), NULL) : NULL;
  ng_graph *backward = g ? ng_graph_gradient(g, NULL) : NULL;
  ng_status status = backward ? run(g, (float *[]){x}, (float *[]){p}) : NG_WRONG;
  if (status == NG_OK) { // its inputs are among x, p, and the gradient of p
    float *in[4];
    for (size_t i = 0; i < ng_graph_input_count(backward); i++) {
      const char *name = ng_graph_input(backward, i).name;
      in[i] = strcmp(name, "x") == 0 ? x : strcmp(name, "p") == 0 ? p : w;
    }
    status = run(backward, in, (float *[]){dx});
  }
  if (ctx) fputs(ng_messages_text(ctx, 0), stderr);
  ng_graph_free(backward);
  ng_graph_free(g);
  ng_context_free(ctx);
  if (status != NG_OK) return 2;
  for (int i = 0; i < n; i++) dot += w[i] * p[i];
  for (int i = 0; i < n; i++) worst = fmaxf(worst, fabsf(dx[i] - p[i] * (w[i] - dot)));
  printf("largest difference from the formula: %.1e\n", (double)worst);
  return worst > 1e-5F;
}
