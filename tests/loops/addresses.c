// Computes addresses, and loads and stores vectors and numbers through checked memory (memory.h).
#include "tests/loops/walk.h"

#include <string.h>

Memory *walk_member(Walk *w, AccessId id) {
  const Access *a = &w->k->accesses[id];
  if (a->value) return w->values[a->value->index];
  return a->type == TYPE_NONE ? NULL : w->temporaries[a->temporary];
}

static Pointer base_of(Walk *w, const Address *at) {
  switch (at->base) {
  case BASE_TENSOR: return (Pointer){walk_member(w, at->access), 0};
  case BASE_POINTER: {
    const int row = at->is_row ? (int)walk_var(w, VAR_ROW) : PLAIN;
    return walk_read(w, OF_POINTER, at->access, row, CELL_POINTER)->pointer;
  }
  case BASE_ROWS: return walk_read(w, OF_ROWS, at->access, PLAIN, CELL_POINTER)->pointer;
  case BASE_SPILLED: return walk_read(w, OF_SPILLED, at->expr, PLAIN, CELL_POINTER)->pointer;
  case BASE_PARTIAL: return walk_read(w, OF_PARTIALS, at->access, PLAIN, CELL_POINTER)->pointer;
  }
  return (Pointer){NULL, 0};
}

Pointer walk_address(Walk *w, const Address *at) {
  Pointer p = base_of(w, at);
  p.at += walk_index(w, at->index);
  return p;
}

uintptr_t walk_machine_address(const Pointer *p) {
  return (uintptr_t)p->memory->data + p->at * type_nbytes(p->memory->type);
}

static bool is_accessible(Walk *w, Type type, const Pointer *p) {
  if (!p->memory) walk_fail(w, "accesses memory through a null pointer");
  else if (p->memory->type != type)
    walk_fail(w, "accesses %s, which is of %s, as %s", p->memory->name, type_name(p->memory->type), type_name(type));
  return !w->has_failed;
}

static void report_fault(Walk *w, const Memory *m, const Fault *fault) {
  walk_fail(w, "%s: element %lld of %s, which has %lld", fault->what, (long long)fault->at, m->name,
            (long long)m->nelems);
}

static void read_elements(Walk *w, Type type, Pointer p, Elements e, void *to) {
  Fault fault;
  e.first = p.at;
  if (is_accessible(w, type, &p) && !memory_read(p.memory, &w->blocks, e, to, &fault))
    report_fault(w, p.memory, &fault);
}

static void write_elements(Walk *w, Type type, Pointer p, Elements e, const void *from) {
  Fault fault;
  e.first = p.at;
  if (is_accessible(w, type, &p) && !memory_write(p.memory, &w->blocks, e, from, &fault))
    report_fault(w, p.memory, &fault);
}

void walk_load(Walk *w, Type type, Arithmetic in, Lanes *y, Pointer p, Elements e) {
  _Alignas(MOST_ELEMENT_NBYTES) unsigned char elements[LANES * MOST_ELEMENT_NBYTES] = {0};
  read_elements(w, type, p, e, elements);
  if (!lanes_load(type, in, y, elements, e.count)) walk_fail(w, "loads %s as numbers", type_name(type));
}

void walk_store(Walk *w, Type type, Arithmetic in, Pointer p, const Lanes *x, Elements e) {
  _Alignas(MOST_ELEMENT_NBYTES) unsigned char elements[LANES * MOST_ELEMENT_NBYTES] = {0};
  if (w->has_failed) return; // x may be uninitialised then
  if (!lanes_store(type, in, elements, x, e.count)) walk_fail(w, "stores numbers as %s", type_name(type));
  write_elements(w, type, p, e, elements);
}

void walk_load_mask(Walk *w, bool is_f64, Lanes *y, Pointer p) {
  uint8_t bytes[MASK_NBYTES] = {0};
  read_elements(w, TYPE_BOOLEAN, p, (Elements){.step = 1, .count = MASK_NBYTES}, bytes);
  lanes_load_mask(is_f64, y, bytes);
}

void walk_store_mask(Walk *w, bool is_f64, Pointer p, const Lanes *x) {
  uint8_t bytes[MASK_NBYTES];
  lanes_store_mask(is_f64, bytes, x);
  write_elements(w, TYPE_BOOLEAN, p, (Elements){.step = 1, .count = MASK_NBYTES}, bytes);
}

int64_t walk_load_s64(Walk *w, Pointer p) {
  int64_t number = 0;
  read_elements(w, TYPE_S64, p, (Elements){.count = 1}, &number);
  return number;
}

double walk_load_number(Walk *w, Type type, Pointer p) {
  Lanes x;
  walk_load(w, type, IN_F64, &x, p, (Elements){.count = 1});
  return x.f64[0];
}

void walk_store_number(Walk *w, Type type, Pointer p, double x) {
  Lanes number;
  lanes_set(IN_F64, &number, x);
  walk_store(w, type, IN_F64, p, &number, (Elements){.count = 1});
}
