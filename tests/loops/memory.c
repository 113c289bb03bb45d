// Records, for each element, the last block that wrote it and the first block of the running loop that read it. Blocks
// run one after the other, in order, so that these two are enough to find every race between two blocks of a loop.
#include "tests/loops/memory.h"

#include <string.h>

enum { POISON = 0xFF }; // in every byte: NaN in each float type

bool memory_init_of(Memory *m, const char *name, Type type, int64_t nelems, void *data, Arena *arena) {
  *m = (Memory){.name = name, .type = type, .nelems = nelems, .data = data};
  m->writers = ARENA_ARRAY(arena, uint32_t, (size_t)nelems + 1);
  m->readers = ARENA_ARRAY(arena, uint32_t, (size_t)nelems + 1);
  return m->writers && m->readers;
}

// The data is aligned to a cache line, as in the workspace.
bool memory_init(Memory *m, const char *name, Type type, int64_t nelems, Arena *arena) {
  enum { LINE = 64 };
  const size_t nbytes = type_array_nbytes(type, (size_t)nelems);
  unsigned char *block = arena_alloc(arena, nbytes + LINE);
  if (!block || !memory_init_of(m, name, type, nelems, NULL, arena)) return false;
  m->data = block + (LINE - (uintptr_t)block % LINE) % LINE;
  memory_forget(m);
  return true;
}

void memory_forget(Memory *m) {
  memset(m->data, POISON, type_array_nbytes(m->type, (size_t)m->nelems));
  memset(m->writers, 0, (size_t)m->nelems * sizeof *m->writers);
  memset(m->readers, 0, (size_t)m->nelems * sizeof *m->readers);
}

static bool is_of_other_block(const Blocks *b, uint32_t block) {
  return block >= b->first && block != b->now;
}

// The reason why element i must not be read; NULL: it may be.
static const char *read_fault(const Memory *m, const Blocks *b, uint64_t i, bool is_padding) {
  if (i >= (uint64_t)m->nelems) return "reads out of bounds";
  if (!m->writers) return NULL;
  if (!m->writers[i]) return is_padding ? NULL : "reads uninitialised memory";
  if (is_of_other_block(b, m->writers[i])) return "reads an element that another block of the loop writes";
  if (m->readers[i] < b->first) m->readers[i] = b->now;
  return NULL;
}

static const char *write_fault(const Memory *m, const Blocks *b, uint64_t i, bool is_packed) {
  if (i >= (uint64_t)m->nelems) return "writes out of bounds";
  if (!m->writers) return "writes read-only memory";
  if (is_of_other_block(b, m->writers[i])) return "writes an element that another block of the loop writes";
  if (is_of_other_block(b, m->readers[i])) return "writes an element that another block of the loop reads";
  if (m->is_stored_once && m->writers[i] == b->now) return "writes an element that the loop has written already";
  const uint64_t other_half = i ^ 1;
  if (is_packed && b->are_parallel && other_half < (uint64_t)m->nelems && is_of_other_block(b, m->writers[other_half]))
    return "writes half of a byte whose other half another block writes";
  m->writers[i] = b->now;
  return NULL;
}

static void copy_half(unsigned char *to, uint64_t at, const unsigned char *from, uint64_t i) {
  const unsigned shift = at % 2 * 4, half = (unsigned)from[i / 2] >> i % 2 * 4 & 0xFU;
  to[at / 2] = (unsigned char)((to[at / 2] & 0xF0U >> shift) | half << shift);
}

static uint64_t element_at(Elements e, int n) {
  return e.first + (uint64_t)n * e.step + (e.offsets ? (uint64_t)e.offsets[n] : 0);
}

bool memory_read(const Memory *m, const Blocks *b, Elements e, void *to, Fault *fault) {
  const size_t nbytes = type_nbytes(m->type);
  const bool is_packed = type_is_packed(m->type);
  for (int n = 0; n < e.count; n++) {
    const uint64_t i = element_at(e, n);
    *fault = (Fault){read_fault(m, b, i, n >= e.count - e.npadding), (int64_t)i};
    if (fault->what) return false;
    if (is_packed) copy_half(to, (uint64_t)n, m->data, i);
    else memcpy((unsigned char *)to + (size_t)n * nbytes, m->data + i * nbytes, nbytes);
  }
  return true;
}

bool memory_write(const Memory *m, const Blocks *b, Elements e, const void *from, Fault *fault) {
  const size_t nbytes = type_nbytes(m->type);
  const bool is_packed = type_is_packed(m->type);
  for (int n = 0; n < e.count; n++) {
    const uint64_t i = element_at(e, n);
    *fault = (Fault){write_fault(m, b, i, is_packed), (int64_t)i};
    if (fault->what) return false;
    if (is_packed) copy_half(m->data, i, from, (uint64_t)n);
    else memcpy(m->data + i * nbytes, (const unsigned char *)from + (size_t)n * nbytes, nbytes);
  }
  return true;
}

int64_t memory_first_unwritten(const Memory *m) {
  for (int64_t i = 0; m->writers && i < m->nelems; i++)
    if (!m->writers[i]) return i;
  return -1;
}
