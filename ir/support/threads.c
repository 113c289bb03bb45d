// A call has a team: the state of its open loops. A loop's blocks are handed out as tickets, ranges of consecutive
// blocks. A thread takes tickets from its own range of a loop first, the same in each call, whose data its core's
// caches may still hold, then from other ranges. Only who holds a ticket may read the caller's memory; so a call
// returns when all tickets are done, wherever its threads are. Teams are never freed.
//
// Threads that find no tickets spin for a while, then sleep. Who opens loops of enough work wakes two threads, and each
// of them two more.
#include "ir/support/threads.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
  LINE = 64,
  MOST_OPEN = 8,     // loops whose blocks are handed out at the same time
  MOST_RANGES = 8,   // of a loop's tickets
  TICKETS_EACH = 16, // a loop has at most so many tickets for each thread
  TICKET_NS = 1000,  // a ticket has at least so much work, several times what handing it out costs
  WAKE_NS = 20000,   // no thread is woken for less work
  SPIN_NS = 50000    // of a thread without work, before it sleeps: another may need its processor
};

typedef struct Range {
  _Alignas(LINE) _Atomic uint64_t tickets; // the number of the opening << 32 | next << 16 | end
} Range;

typedef struct Slot { // an open loop
  Range ranges[MOST_RANGES];
  _Alignas(LINE) atomic_uint left; // tickets that are not done
  uint32_t loop, ntickets;
} Slot;

typedef struct Team {
  Slot slots[MOST_OPEN];
  _Alignas(LINE) atomic_uint open;    // bit by slot
  _Atomic uint64_t staff;             // the workers that may help: first << 32 | number
  _Alignas(LINE) atomic_uint changes; // counts ends of loops; where the caller sleeps
  atomic_bool is_caller_asleep;
  _Atomic size_t nended; // loops that have ended, and all before them
  // The call. Guarded by the mutex, except that who holds a ticket may read `loops` and `watch`.
  _Alignas(LINE) pthread_mutex_t mutex;
  const ThreadsLoop *loops;
  size_t nloops;
  const ThreadsWatch *watch;
  uint64_t ended, opened; // bit i: of loop nended + i
  uint64_t ns_left;       // of loops that are not open
  uint32_t nopenings;
  int threads;
  bool is_used;      // guarded by the mutex of `all`
  struct Team *next; // of the list of all teams
} Team;

typedef struct Worker {
  _Alignas(LINE) atomic_uint is_asleep;
  pthread_t thread;
} Worker;

static struct {
  pthread_mutex_t mutex; // of what follows
  Worker workers[THREADS_MOST - 1];
  uint32_t nworkers;
  uint32_t nprocessors; // 0: not known yet
  // Not guarded:
  _Alignas(LINE) _Atomic(Team *) teams;
  atomic_uint nasleep;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// Waiting

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void futex(atomic_uint *word, int operation, uint32_t value) {
  syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

// A pause, unless the thread has waited for `most` nanoseconds. *since: when it began; 0: it begins.
static bool spin(uint64_t *since, uint64_t most) {
  const uint64_t now = now_ns();
  if (!*since) *since = now;
  if (now - *since > most) return false;
  for (int i = 0; i < 8; i++) {
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
  }
  return true;
}

static uint32_t staff_first(uint64_t staff) {
  return (uint32_t)(staff >> 32);
}

static uint32_t staff_count(uint64_t staff) {
  return (uint32_t)staff;
}

// Wakes at most two of the team's sleeping workers.
static void wake_two(const Team *t) {
  const uint64_t staff = atomic_load(&t->staff);
  int nwoken = 0;
  if (!atomic_load(&all.nasleep)) return;
  for (uint32_t i = 0; i < staff_count(staff) && nwoken < 2; i++) {
    Worker *w = &all.workers[staff_first(staff) + i];
    uint32_t asleep = 1;
    if (!atomic_load_explicit(&w->is_asleep, memory_order_relaxed) ||
        !atomic_compare_exchange_strong(&w->is_asleep, &asleep, 0))
      continue;
    futex(&w->is_asleep, FUTEX_WAKE_PRIVATE, 1);
    nwoken++;
  }
}

// Opening and ending loops, with the team's mutex

static bool has_ended(const Team *t, size_t loop) {
  return loop < t->nended || t->ended >> (loop - t->nended) & 1;
}

static bool is_ready(const Team *t, size_t loop) {
  const uint32_t needs = t->watch && t->watch->is_in_turn ? 1 : t->loops[loop].needs;
  for (uint32_t left = needs; left; left &= left - 1) {
    const size_t before = (size_t)__builtin_ctz(left) + 1;
    if (before <= loop && !has_ended(t, loop - before)) return false;
  }
  return loop <= t->nended + MOST_NEEDS;
}

static uint32_t count_tickets(const ThreadsLoop *loop, int threads) {
  uint64_t n = (uint64_t)threads * TICKETS_EACH;
  if (n > loop->nblocks) n = loop->nblocks;
  if (n > loop->ns / TICKET_NS) n = loop->ns / TICKET_NS;
  return n ? (uint32_t)n : 1;
}

static uint32_t count_ranges(uint32_t threads) {
  return threads < MOST_RANGES ? threads : MOST_RANGES;
}

// *own: a loop of one ticket that the thread runs itself, without handing it out; NULL: the loop becomes it.
static uint32_t open_slot(Team *t, size_t loop, Slot **own) {
  uint32_t slot = 0;
  const uint32_t open = atomic_load_explicit(&t->open, memory_order_relaxed);
  while (open >> slot & 1) slot++;
  Slot *s = &t->slots[slot];
  s->loop = (uint32_t)loop;
  s->ntickets = count_tickets(&t->loops[loop], t->threads);
  atomic_store_explicit(&s->left, s->ntickets, memory_order_relaxed);
  const uint64_t number = (uint64_t)++t->nopenings << 32, n = s->ntickets, nranges = count_ranges((uint32_t)t->threads);
  const bool is_told = t->watch && t->watch->ended; // at once: the caller may not be busy with a loop after it
  const bool is_own = n == 1 && !*own && !is_told;
  if (is_own) *own = s;
  for (uint64_t r = 0; r < nranges && !is_own; r++)
    atomic_store_explicit(&s->ranges[r].tickets, number | (n * r / nranges) << 16 | n * (r + 1) / nranges,
                          memory_order_release);
  atomic_fetch_or(&t->open, 1U << slot);
  return s->ntickets;
}

static void end_first(Team *t) {
  size_t n = 0;
  while (t->ended >> n & 1) n++;
  if (!n) return;
  t->ended >>= n;
  t->opened >>= n;
  atomic_store(&t->nended, t->nended + n);
}

// Opens what can be. Returns whether other threads are to be woken.
static bool open_loops(Team *t, Slot **own) {
  const bool is_much = t->ns_left > WAKE_NS;
  bool is_shared = false;
  for (size_t loop = t->nended; loop < t->nloops && loop <= t->nended + MOST_NEEDS; loop++) {
    const uint64_t bit = (uint64_t)1 << (loop - t->nended);
    if (t->opened & bit || !is_ready(t, loop)) continue;
    if (t->loops[loop].nblocks) {
      if (__builtin_popcount(atomic_load_explicit(&t->open, memory_order_relaxed)) == MOST_OPEN) break;
      is_shared |= open_slot(t, loop, own) > 1;
      t->ns_left -= t->loops[loop].ns;
    } else {
      t->ended |= bit;
    }
    t->opened |= bit;
    if (t->ended & 1) {
      end_first(t);
      loop = t->nended - 1;
    }
  }
  return is_shared && is_much;
}

// Returns a loop that the thread must run; NULL: none.
static Slot *end_loop(Team *t, Slot *s) {
  Slot *own = NULL;
  pthread_mutex_lock(&t->mutex);
  t->ended |= (uint64_t)1 << (s->loop - t->nended);
  atomic_fetch_and(&t->open, ~(1U << (s - t->slots)));
  end_first(t);
  const bool wakes = open_loops(t, &own);
  atomic_fetch_add(&t->changes, 1);
  const bool is_caller_asleep = atomic_exchange(&t->is_caller_asleep, false);
  pthread_mutex_unlock(&t->mutex);
  if (is_caller_asleep) futex(&t->changes, FUTEX_WAKE_PRIVATE, 1);
  if (wakes) wake_two(t);
  return own;
}

// Working

static bool take_ticket(const Team *t, Slot *s, uint64_t staff, uint32_t rank, uint32_t *ticket) {
  const uint32_t nranges = count_ranges(staff_count(staff) + 1);
  for (uint32_t i = 0; i < nranges; i++) {
    _Atomic uint64_t *tickets = &s->ranges[(rank + i) % nranges].tickets;
    uint64_t seen = atomic_load_explicit(tickets, memory_order_acquire);
    while ((seen >> 16 & 0xffff) < (seen & 0xffff)) {
      if (atomic_load_explicit(&t->staff, memory_order_relaxed) != staff) return false; // a new call, of other workers
      *ticket = (uint32_t)(seen >> 16 & 0xffff);
      if (atomic_compare_exchange_weak_explicit(tickets, &seen, seen + (1 << 16), memory_order_acquire,
                                                memory_order_acquire))
        return true;
    }
  }
  return false;
}

static size_t run_ticket(const ThreadsLoop *loop, const Slot *s, uint32_t ticket) {
  const size_t begin = loop->nblocks * ticket / s->ntickets, end = loop->nblocks * (ticket + 1) / s->ntickets;
  for (size_t b = begin; b < end; b++) loop->task(loop->args, b);
  return end - begin;
}

// Runs a ticket of a slot and further ones that the thread can take; then the loops that it must run itself.
static void run_slot(Team *t, Slot *s, uint64_t staff, uint32_t rank, uint32_t ticket) {
  const ThreadsWatch *watch = t->watch && t->watch->ran ? t->watch : NULL;
  while (s) {
    const ThreadsLoop *loop = &t->loops[s->loop];
    const double begin_ms = watch ? (double)now_ns() * 1e-6 : 0;
    uint32_t ntaken = 1;
    size_t nblocks = run_ticket(loop, s, ticket);
    for (; take_ticket(t, s, staff, rank, &ticket); ntaken++) nblocks += run_ticket(loop, s, ticket);
    if (watch) watch->ran(watch->context, s->loop, (int)rank, nblocks, begin_ms, (double)now_ns() * 1e-6);
    if (atomic_fetch_sub_explicit(&s->left, ntaken, memory_order_acq_rel) != ntaken) return;
    s = end_loop(t, s);
    ticket = 0;
  }
}

// False: the thread could take no ticket.
static bool work_in_slot(Team *t, Slot *s, uint64_t staff, uint32_t rank) {
  uint32_t ticket;
  if (!take_ticket(t, s, staff, rank, &ticket)) return false;
  run_slot(t, s, staff, rank, ticket);
  return true;
}

static bool work(Team *t, uint64_t staff, uint32_t rank) {
  for (uint32_t open = atomic_load(&t->open); open; open &= open - 1)
    if (work_in_slot(t, &t->slots[__builtin_ctz(open)], staff, rank)) return true;
  return false;
}

static bool help(const Worker *w) {
  const uint32_t number = (uint32_t)(w - all.workers);
  for (Team *t = atomic_load(&all.teams); t; t = t->next) {
    const uint64_t staff = atomic_load(&t->staff);
    const uint32_t at = number - staff_first(staff);
    if (number >= staff_first(staff) && at < staff_count(staff) && work(t, staff, at + 1)) return true;
  }
  return false;
}

// Wakes others, as many as there may be work for.
static void wake_more(const Worker *w) {
  const uint32_t number = (uint32_t)(w - all.workers);
  for (Team *t = atomic_load(&all.teams); t; t = t->next) {
    const uint64_t staff = atomic_load(&t->staff);
    if (atomic_load(&t->open) && number - staff_first(staff) < staff_count(staff)) wake_two(t);
  }
}

_Noreturn static void *worker_main(void *argument) {
  Worker *w = argument;
  uint64_t since = 0;
  for (;;) {
    if (help(w)) since = 0;
    if (spin(&since, SPIN_NS)) continue;
    atomic_store(&w->is_asleep, 1);
    atomic_fetch_add(&all.nasleep, 1);
    if (!help(w)) { // who opened a loop before this line may not have seen that it sleeps
      while (atomic_load(&w->is_asleep)) futex(&w->is_asleep, FUTEX_WAIT_PRIVATE, 1);
      wake_more(w);
    }
    atomic_store(&w->is_asleep, 0);
    atomic_fetch_sub(&all.nasleep, 1);
    since = 0;
  }
}

// Teams, with the mutex of `all`

// In the child of a fork there are no workers, and calls that ran in other threads are no more.
static void forget_workers(void) {
  pthread_mutex_init(&all.mutex, NULL);
  all.nworkers = 0;
  atomic_store(&all.nasleep, 0);
  atomic_store(&all.teams, NULL);
}

static void begin_threads(void) {
  const long n = sysconf(_SC_NPROCESSORS_ONLN);
  all.nprocessors = n < 1 ? 1 : n < THREADS_MOST ? (uint32_t)n : THREADS_MOST - 1;
  pthread_atfork(NULL, NULL, forget_workers);
}

// With fewer workers than wanted, if the system gives no more threads, the rest do the work.
static void add_workers(uint32_t count) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
  sigset_t every, before;
  sigfillset(&every);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&every, faults[i]);
  pthread_sigmask(SIG_SETMASK, &every, &before); // signals are for the program's threads
  for (; all.nworkers < count; all.nworkers++) {
    Worker *w = &all.workers[all.nworkers];
    atomic_store(&w->is_asleep, 0);
    if (pthread_create(&w->thread, NULL, worker_main, w) != 0) break;
    pthread_detach(w->thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static Team *find_team(void) {
  Team *t = atomic_load(&all.teams);
  while (t && t->is_used) t = t->next;
  if (t) return t;
  t = aligned_alloc(LINE, sizeof *t);
  if (!t) return NULL;
  memset(t, 0, sizeof *t);
  pthread_mutex_init(&t->mutex, NULL);
  t->next = atomic_load(&all.teams);
  atomic_store(&all.teams, t);
  return t;
}

// The first worker of `count` that no other call has; 0 if they would be more than there are processors.
static uint32_t free_workers(uint32_t count, uint32_t most) {
  uint32_t first = 0;
  for (const Team *t = atomic_load(&all.teams); t; t = t->next) {
    const uint64_t staff = atomic_load(&t->staff);
    const uint32_t end = staff_first(staff) + staff_count(staff);
    if (t->is_used && end > first) first = end;
  }
  return first + count <= most ? first : 0;
}

static Team *take_team(int threads) {
  const uint32_t count = (uint32_t)threads - 1;
  pthread_mutex_lock(&all.mutex);
  if (!all.nprocessors) begin_threads();
  Team *t = find_team();
  if (t) {
    const uint32_t first = free_workers(count, all.nprocessors);
    t->is_used = true;
    if (first + count > all.nworkers) add_workers(first + count);
    atomic_store(&t->staff, (uint64_t)first << 32 | count);
  }
  pthread_mutex_unlock(&all.mutex);
  return t;
}

static void leave_team(Team *t) {
  pthread_mutex_lock(&all.mutex);
  t->is_used = false;
  pthread_mutex_unlock(&all.mutex);
}

// Calls

static void run_alone(const ThreadsLoop *loops, size_t nloops, const ThreadsWatch *watch) {
  for (size_t i = 0; i < nloops; i++) {
    const double begin_ms = watch && watch->ran ? (double)now_ns() * 1e-6 : 0;
    for (size_t b = 0; b < loops[i].nblocks; b++) loops[i].task(loops[i].args, b);
    if (watch && watch->ran && loops[i].nblocks)
      watch->ran(watch->context, i, 0, loops[i].nblocks, begin_ms, (double)now_ns() * 1e-6);
    if (watch && watch->ended) watch->ended(watch->context, i);
  }
}

static Slot *begin_call(Team *t, const ThreadsLoop *loops, size_t nloops, int threads, uint64_t ns,
                        const ThreadsWatch *watch) {
  Slot *own = NULL;
  pthread_mutex_lock(&t->mutex);
  t->loops = loops;
  t->nloops = nloops;
  t->watch = watch;
  t->threads = threads;
  t->ns_left = ns;
  t->ended = t->opened = 0;
  atomic_store(&t->nended, 0);
  const bool wakes = open_loops(t, &own);
  pthread_mutex_unlock(&t->mutex);
  if (wakes) wake_two(t);
  return own;
}

static void sleep_in_call(Team *t, uint64_t staff) {
  const uint32_t changes = atomic_load(&t->changes);
  atomic_store(&t->is_caller_asleep, true);
  if (atomic_load(&t->nended) < t->nloops && !work(t, staff, 0)) futex(&t->changes, FUTEX_WAIT_PRIVATE, changes);
  atomic_store(&t->is_caller_asleep, false);
}

void threads_run(const ThreadsLoop *loops, size_t nloops, int threads, const ThreadsWatch *watch) {
  uint64_t ns = 0, since = 0;
  size_t ntold = 0;
  for (size_t i = 0; i < nloops && threads > 1; i++) ns += loops[i].nblocks ? loops[i].ns : 0;
  Team *t = ns > TICKET_NS ? take_team(threads) : NULL;
  if (!t) {
    run_alone(loops, nloops, watch);
    return;
  }
  const uint64_t staff = atomic_load(&t->staff);
  Slot *own = begin_call(t, loops, nloops, threads, ns, watch);
  if (own) run_slot(t, own, staff, 0, 0);
  for (;;) {
    const size_t nended = atomic_load(&t->nended);
    for (; ntold < nended && watch && watch->ended; ntold++) watch->ended(watch->context, ntold);
    if (nended == nloops) break;
    if (work(t, staff, 0)) {
      since = 0;
    } else if (!spin(&since, SPIN_NS)) {
      sleep_in_call(t, staff);
      since = 0;
    }
  }
  leave_team(t);
}

void threads_for(int threads, size_t nblocks, ThreadsTask *task, const void *args) {
  threads_run(&(ThreadsLoop){task, args, nblocks, UINT64_MAX, 0}, 1, threads, NULL);
}

// Processors

int threads_processors(void) {
  cpu_set_t own;
  const int count = sched_getaffinity(0, sizeof own, &own) == 0 ? CPU_COUNT(&own) : 1;
  return count > 0 ? count : 1;
}

static void pin(uint32_t thread, const cpu_set_t *processors) {
  pthread_setaffinity_np(thread ? all.workers[thread - 1].thread : pthread_self(), sizeof *processors, processors);
}

static void pin_all(int threads, const cpu_set_t *processors, bool is_own) {
  size_t cpu = 0;
  pthread_mutex_lock(&all.mutex);
  add_workers((uint32_t)threads - 1);
  for (uint32_t i = 0; i < (uint32_t)threads && i <= all.nworkers; i++) {
    cpu_set_t one;
    while (is_own && !CPU_ISSET(cpu, processors)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu++, &one);
    pin(i, is_own ? &one : processors);
  }
  pthread_mutex_unlock(&all.mutex);
}

void threads_pin(int threads, const cpu_set_t *processors) {
  pin_all(threads, processors, true);
}

void threads_unpin(int threads, const cpu_set_t *processors) {
  pin_all(threads, processors, false);
}
