// Prints what a pair says that it is; NAME is its prefix, in quotes HEADER.
#include HEADER

#include <stdio.h>

#define JOIN(a, b) a##b
#define OF(name, what) JOIN(name, what)
typedef OF(NAME, _tensor) Tensor;
typedef OF(NAME, _info) Info;

static void print_extent(const Tensor *t, int axis) {
  const long extent = (long)t->extent[axis];
  if (!t->dim[axis]) printf(" %ld", extent);
  else if (extent == -1) printf(" %s", t->dim[axis]);
  else printf(" %ld*%s", -extent, t->dim[axis]);
}

int main(void) {
  const Info *info = OF(NAME, _get_info)();
  printf("%s, abi %d\n", info->graph, info->abi);
  for (size_t d = 0; d < info->ndims; d++) printf("%s scheduled for %ld\n", info->dims[d], (long)info->hints[d]);
  for (size_t i = 0; i < info->ninputs + info->noutputs; i++) {
    const Tensor *t = &info->tensors[i];
    printf("%s %s %s, shape", i < info->ninputs ? "input" : "output", t->name, t->type);
    for (int axis = 0; axis < t->rank; axis++) print_extent(t, axis);
    printf(", order");
    for (int k = 0; k < t->rank; k++) printf(" %d", t->order[k]);
    printf("\n");
  }
  return 0;
}
