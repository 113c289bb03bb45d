// What the files that verify loops' trees share: what is known at a node of the walk.
#ifndef NGRAD_IR_LOOPS_VERIFYING_H
#define NGRAD_IR_LOOPS_VERIFYING_H

#include "ir/loops/linear.h"

// Where loops go: along each inner axis, and over the iterations of all outer ones, flattened.
enum { OUTER = MAX_AXES, NDIRECTIONS, UNKNOWN_DIRECTION = -1 };
typedef uint32_t Directions; // bit i: direction i

enum { MOST_FRAMES = MOST_NESTED + 1 };

typedef struct VarState {
  bool is_set;
  const Index *value; // what a node has set it to; NULL: it counts
} VarState;

typedef enum Progress {
  RANGE_UNTOUCHED,
  RANGE_COUNTED, // a counter goes on from piece to piece
  RANGE_PIECE    // the node stands inside a piece
} Progress;

enum { WIDTH_ROWS = -1, WIDTH_LANES = -2, WIDTH_UNKNOWN = -3 }; // VAR_ROWS; VAR_LANES, once that is set

typedef struct Pieces { // of a loop, or branches: each does the same
  size_t first, end;    // what the first has done, in the log
  int count;
} Pieces;

typedef struct Range { // of a direction
  Progress progress;
  const Index *from, *to; // all indices
  int64_t divisor;        // of from and to
  Var start;              // first index of the piece, or the counter; VAR_NONE: of a vector in a group, not set
  Var group;              // first index of the group around a vector; VAR_NONE: it is in none
  int64_t width;          // of the piece, in indices
  bool is_aligned;        // pieces begin at multiples of LANES
  // Of a counter:
  const Index *end;
  int64_t most_left, end_divisor; // fewer indices are left; INT64_MAX: any number
  int depth, nguards;             // of loops and conditions around it
  AccessId line_access;           // + 1: whose rows are peeled to cache lines; 0: none's
  bool must_advance;              // indices before a cache line have been done
  Pieces pieces;
  const LoopNode *counter;
} Range;

typedef struct Frame { // a loop, or a condition that takes a piece, around the node
  const LoopNode *node;
  int direction;
  uint32_t serial;
} Frame;

typedef struct Guard { // a condition around the node; FLAG_NONE: on variables
  Flag flag;
  AccessId access;
} Guard;

typedef enum Chain { CHAIN_UNKNOWN, CHAIN_LONG, CHAIN_SHORT } Chain; // VAR_CHAIN: more than LONGEST_RUN, or at most

typedef struct Made { // by expression
  bool is_made, is_declared;
} Made;

typedef struct Memory { // by access
  bool has_pointer, is_pointer_row, has_pointer_array, has_copy, is_copied, is_in_register, has_partials;
  bool is_wanted_found, is_streamed_found;
  bool is_peeled;   // streams begin at cache lines as rows are peeled
  bool is_own;      // the room of the step's own
  bool may_be_null; // partial sums that nobody wants
  bool is_inside;   // all that the access reaches, as has been seen
  const LoopNode *hold;
  Linear *pointer;

  uint32_t copy_serial; // of the loop that filled the copy
  int64_t local_nelems;
} Memory;

typedef struct SumState { // by root
  bool has_accumulator, has_total, is_accumulated, is_totalled, is_ever_done;
  const LoopNode *accumulator, *total;
  int depth, total_depth; // loops around them
} SumState;

typedef struct SpillState { // by reused vector
  bool is_declared;
  int64_t nelems;
  Linear *address;
  uint32_t serial; // of the loop that leaves it
} SpillState;

// What must be done once, by root; then by reused vector, and the step itself.
typedef enum Effect { EFFECT_DONE, EFFECT_PREPARED, EFFECT_REDUCED, NEFFECTS } Effect;

typedef struct Verifying Verifying;
typedef struct Scoped { // ends with the list of nodes that it stands in
  bool *is_there;
  bool (*close)(Verifying *v, uint32_t id); // NULL: nothing is left to do
  uint32_t id;
} Scoped;

struct Verifying {
  const LoopTree *t;
  const Kernel *k;
  const Loop *plan;
  Text *why;
  Arena *arena;
  TreeBuilder b; // of indices that are expected
  const char *function;
  int vector, lanes; // axis of vectors' groups; direction along which lanes lie; -1: none
  AxisSet outer, inner;
  uint32_t *root_of_access, *root_of_sum; // index + 1
  VarState *vars;
  Made *made;
  Memory *memory;
  SumState *sums;
  SpillState *kept;
  uint8_t *count; // by effect
  uint32_t *log;  // effects, in the walk's order
  size_t nlog, log_capacity;
  Scoped *scoped;
  size_t nscoped, scoped_capacity;
  Range range[NDIRECTIONS];
  Frame frames[MOST_FRAMES];
  int nframes;
  uint32_t nserials;
  Guard guards[MOST_FRAMES];
  int nguards;
  Chain chain;
  bool is_block, has_streams;
};

// verify.c: messages, scopes, effects.

bool verify_fail(Verifying *v, const LoopNode *n, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool verify_fail_expr(Verifying *v, const LoopNode *n, ExprId id, const char *what);
bool verify_out_of_memory(Verifying *v); // false
bool scope_add(Verifying *v, bool *is_there, bool (*close)(Verifying *v, uint32_t id), uint32_t id);
bool scope_close(Verifying *v, size_t nscoped);                 // ends what has been added since
bool effect_do(Verifying *v, const LoopNode *n, size_t effect); // false: it was done before
size_t effect_of(uint32_t root, Effect effect);
size_t effect_of_spill(const Verifying *v, int reused);
size_t effect_of_step(const Verifying *v);
void effects_begin(Verifying *v, Pieces *p);
bool effects_begin_piece(Verifying *v, const LoopNode *n, const Pieces *p);
bool effects_end_piece(Verifying *v, const LoopNode *n, Pieces *p);
bool effects_are_of(Verifying *v, const LoopNode *n, const Pieces *p, AccessId access); // and of nothing else
bool verify_nodes(Verifying *v, const LoopNode *n);

// verify_indices.c: variables and indices.

size_t vars_count(const Kernel *k);
VarState *var_state(const Verifying *v, Var var);
bool var_set(Verifying *v, const LoopNode *n, Var var, const Index *value); // in the list at hand
bool verify_index(Verifying *v, const LoopNode *n, const Index *i);         // its variables are there; NULL: nothing
Linear linear_of(const Verifying *v, const Index *i);                       // in terms of the axes' indices
const Index *number_index(Verifying *v, int64_t number);
const Index *nelems_index(Verifying *v, AxisSet axes);
const Index *var_index(Verifying *v, VarKind kind);
int64_t greatest_divisor(int64_t a, int64_t b);
bool verify_axis_index(Verifying *v, const LoopNode *n); // of an outer axis, from the flattened index
bool verify_chain(Verifying *v, const LoopNode *n);
bool verify_run_length(Verifying *v, const LoopNode *n);
bool verify_block_range(Verifying *v, const LoopNode *n); // from VAR_BEGIN to VAR_END, for all blocks

// verify_loops.c: loops and conditions; variables that tell more of them.

bool verify_for(Verifying *v, const LoopNode *n);
bool verify_if(Verifying *v, const LoopNode *n);
bool verify_set_index(Verifying *v, const LoopNode *n);

// verify_counters.c: counters and their pieces, calls of steps.

int counted_direction(const Verifying *v, Var var); // UNKNOWN_DIRECTION: it counts along none
bool verify_counter(Verifying *v, const LoopNode *n);
bool verify_advance(Verifying *v, const LoopNode *n);
bool verify_peel_count(Verifying *v, const LoopNode *n);
bool verify_for_vectors(Verifying *v, const LoopNode *n);
bool verify_for_whole(Verifying *v, const LoopNode *n);
bool verify_tail(Verifying *v, const LoopNode *n);
bool verify_peel(Verifying *v, const LoopNode *n);
bool verify_step_call(Verifying *v, const LoopNode *n);

// verify_ranges.c: what is around a node.

bool begin_step(Verifying *v, bool is_tail); // its parameters
bool begin_block(Verifying *v);
const char *direction_name(const Verifying *v, int direction);
Frame *frame_top(Verifying *v);
bool guard_push(Verifying *v, const LoopNode *n, Flag flag, AccessId access);
bool verify_body(Verifying *v, const LoopNode *n, int direction); // of a loop, or of a condition that takes a piece
bool verify_piece(Verifying *v, const LoopNode *n, int direction, const Range *piece); // whose body has such at a time
Frame *runs_find(Verifying *v, const Index *begin); // a loop over runs that begin there; NULL: there is none
bool verify_runs(Verifying *v, const LoopNode *n, const Frame *runs, const Range *r);
const Frame *frame_find(const Verifying *v, VarKind kind); // NULL: there is no such loop around the node
bool is_in_frame(const Verifying *v, uint32_t serial);
bool has_fewer_lanes(const Verifying *v); // only VAR_LANES lanes are there
bool is_guarded(const Verifying *v, Flag flag, AccessId access);
bool verify_flag(Verifying *v, const LoopNode *n, Flag flag, AccessId access);
// Whether the loops around the node, but for the first `since`, go over these directions and no others.
bool verify_goes_over(Verifying *v, const LoopNode *n, int since, Directions directions, bool is_vector);
// Whether the node knows the index on each of the axes.
bool verify_has_axes(Verifying *v, const LoopNode *n, AxisSet axes, bool is_vector);

// verify_values.c: values and places.

bool verify_operand(Verifying *v, const LoopNode *n, ExprId id, bool is_vector);
bool verify_define(Verifying *v, const LoopNode *n, ExprId id, Form form);
bool verify_base(Verifying *v, const LoopNode *n, const Address *at, Linear *base);
bool verify_access(Verifying *v, const LoopNode *n, AccessId id, const Address *at);
Linear access_index(const Verifying *v, AccessId id, AxisSet axes);
bool verify_let(Verifying *v, const LoopNode *n);
bool verify_combine(Verifying *v, const LoopNode *n);
bool verify_memory(Verifying *v, const LoopNode *n, AccessId id);    // the access stays inside
bool verify_lane_step(Verifying *v, const LoopNode *n, AccessId id); // from lane to lane
// Whether the node is of as many lanes as there are; what is kept is of whole vectors.
bool verify_lanes(Verifying *v, const LoopNode *n);
bool verify_copied(Verifying *v, const LoopNode *n, AccessId id, const Address *at);
int find_spill(const Verifying *v, ExprId id); // -1: the vector is not kept
bool verify_spilled(Verifying *v, const LoopNode *n, Linear *address);

// verify_memory.c: stores, copies; pointers, rooms, flags.

bool verify_store(Verifying *v, const LoopNode *n);
bool verify_spill(Verifying *v, const LoopNode *n);
bool verify_load_rows(Verifying *v, const LoopNode *n);
bool verify_store_rows(Verifying *v, const LoopNode *n);
bool verify_load_column(Verifying *v, const LoopNode *n);
bool verify_prefetch(Verifying *v, const LoopNode *n);
bool verify_pointer(Verifying *v, const LoopNode *n);
bool verify_local(Verifying *v, const LoopNode *n);
bool verify_set_flag(Verifying *v, const LoopNode *n);

// verify_sums.c: sums of steps and of blocks.

bool verify_begin_sum(Verifying *v, const LoopNode *n);
bool verify_update(Verifying *v, const LoopNode *n);
bool verify_end_run(Verifying *v, const LoopNode *n);
bool verify_end_sum(Verifying *v, const LoopNode *n);
bool verify_load_partial(Verifying *v, const LoopNode *n);
bool verify_store_partial(Verifying *v, const LoopNode *n);
bool verify_partials(Verifying *v, const LoopNode *n);
bool verify_init_partial(Verifying *v, const LoopNode *n);
bool verify_reduce_partial(Verifying *v, const LoopNode *n);

#endif
