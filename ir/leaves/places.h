/* Where an operand of a function is. Offsets are in bytes. */
enum ngrad_place_kind {
  ngrad_PLACE_INPUT,   /* the caller's input `number` */
  ngrad_PLACE_LEAF,    /* the leaf's part, of nbytes, of the caller's input `number` */
  ngrad_PLACE_NUMBERS, /* the leaf's part, of nbytes, of the constant `number` */
  ngrad_PLACE_OUTPUT,  /* the caller's output `number` */
  ngrad_PLACE_COMMON,  /* in the memory of common values */
  ngrad_PLACE_OWN,     /* in the memory of the leaf */
  ngrad_PLACE_SHARE,   /* in the leaf's buffer of shared tensors of its stage */
  ngrad_PLACE_REDUCED  /* in the result of stage `number` */
};

struct ngrad_place {
  int kind;
  uint32_t number;
  size_t offset, nbytes;
};

struct ngrad_function {
  uint32_t number; /* the argument of the caller's `call` */
  const struct ngrad_place *inputs, *outputs;
  size_t ninputs, noutputs;
};

/* A tensor that leaves share. */
enum ngrad_element { ngrad_LEAF_F32, ngrad_LEAF_F64, ngrad_LEAF_S32, ngrad_LEAF_S64 };
enum ngrad_reduction { ngrad_LEAF_SUM, ngrad_LEAF_MEAN, ngrad_LEAF_MAX };
struct ngrad_shared {
  size_t offset, nelems; /* the offset is a multiple of 64 */
  int element, reduction;
};

/* Tensors that are exchanged together, as soon as the last leaf has computed all of them. */
struct ngrad_bucket {
  uint32_t first, end;   /* in the stage's list */
  size_t offset, nbytes; /* multiples of 64 */
  size_t part;           /* the part of the leaf's function that completes the tensors */
};

/* A stage: a function that runs once, a function that runs for each leaf, and the tensors that leaves share. */
struct ngrad_stage {
  const struct ngrad_function *common, *leaf; /* NULL: nothing */
  const struct ngrad_shared *shared;
  const struct ngrad_bucket *buckets;
  size_t nbuckets, shared_nbytes;
};

struct ngrad_step {
  int64_t nleaves;
  const struct ngrad_stage *stages;
  size_t nstages;
  size_t common_nbytes, own_nbytes; /* multiples of 64 */
  size_t scratch_nbytes;            /* the most that a function needs */
  size_t most_operands;             /* the most inputs and outputs of a function */
  const void *const *numbers;       /* constants */
};
