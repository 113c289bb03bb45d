// A framework of one page: tensors with gradients, and a tape of what to do backwards. Its layer norm calls two kernels
// that ngrad emitted. The gradient is compared with differences.
#include "layer_norm.h"
#include "layer_norm_backward.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <vector>

struct Tensor {
  explicit Tensor(size_t n) : data(n), grad(n) {
  }
  std::vector<float> data, grad;
};
using Tape = std::vector<std::function<void()>>;

// Kernels need a workspace that is aligned to 64 bytes.
struct Workspace {
  explicit Workspace(size_t nbytes) : nbytes(nbytes), data(::operator new(nbytes + 64, std::align_val_t(64))) {
  }
  ~Workspace() {
    ::operator delete(data, std::align_val_t(64));
  }
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;
  size_t nbytes;
  void *data;
};

static void check(int status) {
  if (status == 0) return;
  std::fprintf(stderr, "status %d\n", status);
  std::exit(2);
}

static std::shared_ptr<Tensor> layer_norm(Tape &tape, int n, int c, Tensor &x, Tensor &gamma, Tensor &beta) {
  auto y = std::make_shared<Tensor>(x.data.size());
  auto mean = std::make_shared<std::vector<float>>(n), variance = std::make_shared<std::vector<float>>(n);
  Workspace w(layer_norm_workspace_nbytes());
  check(layer_norm(n, c, x.data.data(), gamma.data.data(), beta.data.data(), y->data.data(), mean->data(),
                   variance->data(), w.data, w.nbytes, layer_norm_ISA_BEST));
  tape.push_back([=, &x, &gamma, &beta] {
    Workspace w(layer_norm_backward_workspace_nbytes(n, c));
    check(layer_norm_backward(n, c, x.data.data(), y->grad.data(), mean->data(), variance->data(), gamma.data.data(),
                              x.grad.data(), gamma.grad.data(), beta.grad.data(), w.data, w.nbytes,
                              layer_norm_backward_ISA_BEST));
  });
  return y;
}

// The sum of the results, each times a weight.
static double loss(const Tensor &y, const std::vector<float> &weights) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); i++) sum += double(y.data[i]) * weights[i];
  return sum;
}

int main() {
  enum { N = 3, C = 20 };
  Tensor x(N * C), gamma(C), beta(C);
  std::vector<float> weights(N * C);
  for (int i = 0; i < N * C; i++) x.data[i] = float(i * 37 % 61) / 61, weights[i] = float(i * 29 % 53 - 26) / 53;
  for (int i = 0; i < C; i++) gamma.data[i] = 1 + float(i) / C, beta.data[i] = 0.5F;

  Tape tape;
  auto y = layer_norm(tape, N, C, x, gamma, beta);
  y->grad = weights;
  for (auto step = tape.rbegin(); step != tape.rend(); ++step) (*step)();

  double worst = 0;
  for (Tensor *t : {&x, &gamma, &beta}) {
    for (size_t i = 0; i < t->data.size(); i++) {
      const float h = 1e-2F, before = t->data[i];
      Tape none;
      t->data[i] = before + h;
      const double above = loss(*layer_norm(none, N, C, x, gamma, beta), weights);
      t->data[i] = before - h;
      const double below = loss(*layer_norm(none, N, C, x, gamma, beta), weights);
      t->data[i] = before;
      worst = std::fmax(worst, std::fabs((above - below) / (2 * h) - t->grad[i]));
    }
  }
  std::printf("largest difference between gradients and slopes: %.1e\n", worst);
  return worst < 1e-2 ? 0 : 1;
}
