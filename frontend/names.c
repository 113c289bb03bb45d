// Open addressing with linear probing, at most half full; SipHash-1-3 (Aumasson and Bernstein, 2012) for the hash.
#include "frontend/names.h"

#include <string.h>
#include <sys/random.h>

enum { FIRST_CAPACITY = 64 };

static uint64_t rotate(uint64_t x, int by) {
  return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4]) {
  v[0] += v[1];
  v[2] += v[3];
  v[1] = rotate(v[1], 13) ^ v[0];
  v[3] = rotate(v[3], 16) ^ v[2];
  v[0] = rotate(v[0], 32);
  v[2] += v[1];
  v[0] += v[3];
  v[1] = rotate(v[1], 17) ^ v[2];
  v[3] = rotate(v[3], 21) ^ v[0];
  v[2] = rotate(v[2], 32);
}

static uint64_t hash(const uint64_t key[2], const char *bytes, size_t nbytes) {
  uint64_t v[4] = {key[0] ^ 0x736F6D6570736575U, key[1] ^ 0x646F72616E646F6DU, key[0] ^ 0x6C7967656E657261U,
                   key[1] ^ 0x7465646279746573U};
  uint64_t last = (uint64_t)nbytes << 56;
  for (; nbytes >= 8; bytes += 8, nbytes -= 8) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
  }
  for (size_t i = 0; i < nbytes; i++) last |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
  v[3] ^= last;
  sip_round(v);
  v[0] ^= last;
  v[2] ^= 0xFF;
  for (int i = 0; i < 3; i++) sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void names_init(Names *names, Arena *arena) {
  *names = (Names){.arena = arena};
  // Without entropy (early in the boot), the table works with a guessable key.
  if (getrandom(names->key, sizeof names->key, GRND_NONBLOCK) < 0) names->key[0] = (uint64_t)(uintptr_t)names;
}

// The slot of the name, or the free slot for it.
static NameSlot *find_slot(const Names *names, const char *name) {
  size_t i = (size_t)hash(names->key, name, strlen(name)) & (names->capacity - 1);
  while (names->slots[i].name && strcmp(names->slots[i].name, name) != 0) i = (i + 1) & (names->capacity - 1);
  return &names->slots[i];
}

void *names_find(const Names *names, const char *name) {
  return names->capacity ? find_slot(names, name)->item : NULL;
}

static bool grow(Names *names) {
  Names larger = *names;
  larger.capacity = names->capacity ? names->capacity * 2 : FIRST_CAPACITY;
  larger.slots = ARENA_ARRAY(names->arena, NameSlot, larger.capacity);
  if (!larger.slots) return false;
  for (size_t i = 0; i < names->capacity; i++)
    if (names->slots[i].name) *find_slot(&larger, names->slots[i].name) = names->slots[i];
  *names = larger;
  return true;
}

bool names_set(Names *names, const char *name, void *item) {
  if (names->count * 2 >= names->capacity && !grow(names)) return false;
  NameSlot *slot = find_slot(names, name);
  if (!slot->name) names->count++;
  *slot = (NameSlot){name, item};
  return true;
}
