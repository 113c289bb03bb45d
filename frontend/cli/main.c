// The program: the table of verbs, and the steps around running one.
#include "frontend/cli/fit_ranks.h"
#include "frontend/cli/help.h"
#include "frontend/cli/progress.h"
#include "frontend/cli/session.h"
#include "frontend/cli/signals.h"
#include "frontend/cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char format_page[]; // docs/format.md

#define STATUS(n) (1U << (n))
#define ANY_NUMBER ((size_t)-1)
#define GRAPH_IS                                                                                                       \
  "GRAPH is a file in format ngrad/1, an ONNX model, JSON of oneDNN Graph or nGraph, or - for standard input.\n"

static const Verb verbs[] = {
    {"check", "GRAPH...", 1, ANY_NUMBER, "read, infer and verify graphs; print them with all types and shapes",
     "A wrong graph does not keep the others from being checked. With --values, the printed text is a graph file "
     "again.\n" GRAPH_IS "--json prints an array with one object for each graph.\n",
     "  ngrad check models/gpt2_layer_norm_backward.yaml\n",
     OPTION_VALUES | OPTION_DIM | OPTION_ARENA | OPTION_OPTIMIZE | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2), verb_check},
    {"run", "GRAPH", 1, 1, "execute a graph, and summarise, write or compare its outputs",
     "Inputs are NAME.npy files in DIR or beside the graph, or random numbers with --random. Unknown and named "
     "extents are taken from the files, whatever values the graph's dims give. Samples along a named first "
     "extent are converted as by fit: bytes to floats, [28, 28] to [784].\n"
     "Compiled kernels are cached in $XDG_CACHE_HOME/ngrad or ~/.cache/ngrad. When the cache exceeds 512 MiB, "
     "the least recently used kernels are deleted.\n"
     "The compiler is $CC, a command with its arguments, or cc. CFLAGS is ignored.\n"
     "The time printed is of one cold call, or with --compare the shortest of 3; bench times many. The largest "
     "error is that of an element, divided by the larger of the element and its tensor's root mean square. For "
     "8-bit types, and with --max-ulp, it is in units in the last place (ulp).\n" GRAPH_IS,
     "  ngrad run models/gpt2_layer_norm_backward.yaml --random --dim N=64 --compare\n"
     "  ngrad run graph.yaml --in data --out results --threads 2\n"
     "  ngrad run graph.yaml --in data --expect results --tolerance 1e-6\n",
     OPTION_BACKEND | OPTION_IN | OPTION_RANDOM | OPTION_DIM | OPTION_OUT | OPTION_EXPECTED | OPTION_NAN_CHECK |
         OPTION_THREADS | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_WATCH | OPTION_STATE | OPTION_JSON |
         OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(3) | STATUS(4), verb_run},
    {"emit", "GRAPH -o DIR", 1, 1, "write a graph as C source, in NAME.c and NAME.h, where NAME is the graph's name",
     "The source is C11 and C++17 and needs only libc and libm. It chooses the best of its instruction sets when "
     "it runs. The same source is written on every machine.\n"
     "With --state FILE, a checkpoint of ngrad fit, states that no call updates, such as the weights of "
     "NAME_infer.yaml, are constants in NAME.c, which need no memory and no file where it runs.\n"
     "With --package, DIR becomes an Arduino library, a Zephyr module, or a CMake package, with NAME.c in DIR/src.\n",
     "  ngrad emit models/gpt2_layer_norm_backward.yaml --isa avx2,avx512 -o kernels\n"
     "  ngrad emit kws_infer.yaml --state kws.npz --dim N=1 --package arduino -o kws\n",
     OPTION_SOURCE_OUT | OPTION_PASSES | OPTION_JSON | OPTION_MEMORY, STATUS(0) | STATUS(1) | STATUS(2), verb_emit},
    {"show", "GRAPH", 1, 1, "print a graph at any stage on its way to kernels",
     "yaml and dot show the graph as read or, with --after, as a pass leaves it. yaml is a graph file again; dot "
     "is for Graphviz. kernels, loops and c show the result of all passes: the operators of each kernel, its "
     "loops, and its C; kernels also shows them as a pass over kernels leaves them. memory shows which value is "
     "where in the memory between kernels, and when; memory-svg draws the same.\n",
     "  ngrad show models/gpt2_layer_norm_backward.yaml --format kernels\n"
     "  ngrad show graph.yaml --format dot | dot -Tsvg > graph.svg\n"
     "  ngrad show graph.yaml --format memory-svg > memory.svg\n",
     OPTION_AFTER | OPTION_FORMAT | OPTION_DIM | OPTION_ISA | OPTION_PASSES | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2), verb_show},
    {"report", "GRAPH...", 1, ANY_NUMBER,
     "write a page of HTML that shows the kernels of graphs, and where the time goes",
     "The page is one file and needs no network. It draws the graph as kernels, with the operators, texts, loops "
     "and C of each; the kernels' times beside bounds, and on a roofline; the plan of the memory; and the graph "
     "before and after each pass. If Graphviz's dot is installed, it lays out the drawing. Times are measured as "
     "bench --profile does.\n"
     "Several graphs are put on one page and compared. A file whose name ends in .html is a page that report "
     "wrote before; its graphs are taken over, so that two builds can be compared. --json prints the page's "
     "data.\n" GRAPH_IS,
     "  ngrad report models/gpt2_layer_norm_backward.yaml -o report.html\n"
     "  ngrad report before.html graph.yaml -o compared.html\n",
     OPTION_FILE_OUT | OPTION_DIM | OPTION_THREADS | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_SECONDS |
         OPTION_REPORT | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(4), verb_report},
    {"bench", "GRAPH...", 1, ANY_NUMBER, "time compiled graphs on random data",
     "Runs alternate with the ceiling, a plain streaming loop that reads and writes as many bytes as the graph's "
     "inputs and outputs have. ratio is the ceiling's median divided by the kernel's: 1 is as fast as memory. If "
     "the arithmetic takes longer than the bytes, GF/s is the rate of operations (two for each product of a "
     "contraction; one for an addition, a maximum or a function), and of peak is that rate divided by the rate "
     "of a loop of multiply-adds on registers, with the same instruction set and threads, also in alternation. "
     "Threads are pinned while timing. --json prints an array with one object for each graph.\n"
     "± is the median absolute deviation of the samples. An outlier is farther from the median than 7.4 times "
     "this, which is 5 standard deviations of a normal distribution.\n"
     "Two graphs are timed in alternation with each other. --with does the same for this program and another "
     "build, and --against for a graph with and without an option. Then bench prints how many times as long the "
     "second takes: the median of the turns, with its 95 % interval. With --profile, graphs are timed one after "
     "the other. --sweep does all of this for several values of an extent; --export FILE.svg plots the times. "
     "--profile also prints a table for each graph: its kernels, and the loops of kernels that have several; the "
     "bytes of the tensors that each reads and writes, counted once; the bound that a kernel is near, because it "
     "reaches half of the ceiling's rate (memory) or half of the peak (arithmetic); the kernel's operators, and "
     "their lines in GRAPH. Times in the table are means over the middle fifth of the runs, so that they add up; "
     "other is the time outside of kernels.\n",
     "  ngrad bench models/*.yaml --threads 2 --json\n"
     "  ngrad bench models/transformer_mlp_forward.yaml --profile\n"
     "  ngrad bench before.yaml after.yaml --export times.csv\n"
     "  ngrad bench models/transformer_mlp_forward.yaml --with ~/other/build/ngrad\n"
     "  ngrad bench models/transformer_mlp_forward.yaml --against --no-fuse\n"
     "  ngrad bench models/gpt2_layer_norm_backward.yaml --sweep N=16..4096\n",
     OPTION_IN | OPTION_DIM | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_COLD | OPTION_SECONDS |
         OPTION_PROFILE | OPTION_TURNS | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(4), verb_bench},
    {"convert", "GRAPH", 1, 1,
     "write a graph as a file in format ngrad/1, with all types and shapes, or as an ONNX model",
     GRAPH_IS
     "In ngrad/1, files of constants keep their names and are not copied, so the result must be beside them. An "
     "ONNX model has opset 17. What ONNX cannot express becomes nodes of the domain \"ngrad\", which ngrad reads "
     "and Netron draws; states become inputs, and their updates outputs; layouts are dropped.\n"
     "With --state or --weights, values of states become files beside the result.\n",
     "  ngrad convert onednn_dump.json -o graph.yaml\n"
     "  ngrad convert step.yaml -o step.onnx\n",
     OPTION_TO | OPTION_FILE_OUT | OPTION_DIM | OPTION_JSON | OPTION_MEMORY, STATUS(0) | STATUS(1) | STATUS(2),
     verb_convert},
    {"grad", "GRAPH", 1, 1, "write the graph that computes a graph's gradients",
     "Its outputs are diff_NAME for each input in --wrt. Its inputs are GRAPH's inputs, values that GRAPH "
     "computes (under their own names), and diff_NAME for each output in --of, as far as they are used. With -o, "
     "grad prints which these are.\n"
     "--forward writes GRAPH with the used values as outputs. The gradient graph then recomputes cheap values "
     "from other inputs: activations, masks, one-hot labels, casts and other views of a value. The gradient of a "
     "graph with leaves takes inputs only, and recomputes all values.\n"
     "With --forward-mode, --hvp, --jacobian or --hessian the graph computes other derivatives, and all of GRAPH's "
     "values that these need. Any graph that grad writes has derivatives, to any order.\n",
     "  ngrad grad models/transformer_mlp_forward.yaml --wrt x -o backward.yaml\n"
     "  ngrad grad graph.yaml --forward forward.yaml -o backward.yaml\n"
     "  ngrad grad loss.yaml --hvp --wrt w -o hvp.yaml\n",
     OPTION_FILE_OUT | OPTION_GRADIENT | OPTION_FORWARD | OPTION_DIM | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2), verb_grad},
    {"gradcheck", "GRAPH", 1, 1, "compare a graph's gradients with finite differences, in f64, on random data",
     "The differentiated function is the sum of all outputs with random weights; its derivative is taken by "
     "central differences with shrinking steps. Elements at kinks are skipped. In large graphs, only some "
     "elements of each input are checked.\n",
     "  ngrad gradcheck models/resnet50_residual_forward.yaml --dim N=1\n",
     OPTION_GRADIENT | OPTION_GRADCHECK | OPTION_DIM | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(3), verb_gradcheck},
    {"train", "GRAPH -o DIR", 1, 1, "write the graph of a training step: forward, gradients, optimizer",
     "GRAPH computes a loss, or --loss adds one. Its parameters are its floating-point states (state:) that it "
     "does not update itself. In a graph without states, the parameters are floating-point constants from files, "
     "or the initializers of an ONNX model.\n"
     "DIR/NAME_step.yaml has GRAPH's inputs and states, and its outputs that are single numbers; one call "
     "updates the parameters. It adds the optimizer's states (PARAMETER.momentum, .m and .v, or .sum; f32 for "
     "16-bit floats), and step, which counts calls. The optimizers compute the same as PyTorch's, including "
     "weight decay.\n"
     "The step t counts from 0. With --warmup N, the rate is multiplied by (t + 1) / N while t < N, and t counts "
     "from 0 again afterwards. The schedule step multiplies the rate by gamma^floor(t / step-size), cosine by "
     "(1 + cos(pi t / (steps - warmup))) / 2.\n"
     "With --accumulate N, the step's data inputs have an axis of N leaves before their others, [N, L, ...], "
     "which is the same memory as [N * L, ...]. Only one leaf's activations are in memory at a time. Gradients "
     "are added in a binary tree of the leaves, and running statistics become the mean over the leaves. Several "
     "ranks can take such a step together: see ngrad help fit. With --sync-batch-norm, batch norms use the "
     "statistics of the whole batch; then the activations of all leaves are in memory at the same time. "
     "DIR/NAME_test.yaml computes the outputs that are single numbers, without training. DIR/NAME_infer.yaml "
     "computes the outputs that need no labels. In both, batch norms use their running statistics and dropout "
     "does nothing. NAME is GRAPH's name as a C identifier. Files of GRAPH's constants and first values are "
     "copied to DIR.\n"
     "With any of --isa, --threads, --prefix, --optimize, --package, --memory, --state, --weights and --self-test, "
     "which mean the same as for emit, train also writes DIR/NAME.c and DIR/NAME.h with the functions "
     "NAME_train_step, NAME_infer, NAME_init, NAME_save and NAME_load; without NAME_infer.yaml, the step is "
     "NAME. To limit the memory of the graphs, give --memory to run and fit.\n",
     "  ngrad train models/train/mlp.yaml --optimizer adam -o mlp\n"
     "  ngrad train models/train/cnn.yaml --optimizer momentum --freeze 'conv*' -o cnn\n",
     OPTION_TRAIN | OPTION_DIM | OPTION_ARENA | OPTION_JSON | OPTION_MEMORY, STATUS(0) | STATUS(1) | STATUS(2),
     verb_train},
    {"fit", "STEP", 1, 1, "train: call a training step on batches of samples",
     "STEP is a graph with updates, such as train writes. An input whose first extent has a name has samples "
     "along this extent, the batch (behind an axis of leaves: along both). The input's file has all samples "
     "along its first axis. Other inputs are whole files. If no first extent has a name, the batch is the number "
     "that the first input's is; inputs whose first extent is this number have samples, and a shorter batch at "
     "an epoch's end is left out.\n"
     "Files are .npy or MNIST's idx, possibly compressed by gzip. Their type or shape may differ from the "
     "input's if it can be converted: bytes to floats, [28, 28] to [784]. With --text, samples are consecutive "
     "bytes of any file, and their labels begin one byte later.\n"
     "Each epoch takes the samples in another order, which depends on the seed; its last batch may be shorter. A "
     "batch has a multiple of the graph's leaves, so each epoch leaves out up to leaves - 1 samples, in each "
     "epoch others. The same seed, data and batch give the same bits on every machine, however often training is "
     "stopped (Ctrl-C) and resumed.\n"
     "One training at a time saves to DIR/NAME.npz: a second one that would is refused.\n"
     "fit prints the means of the outputs that are single numbers, and the SHA-256 of all states. If a number is "
     "not finite, training ends with exit status 1, and a message names the node that made it.\n"
     "With --ranks, processes that mpirun started (of Open MPI or MPICH; mpicc is needed) divide the leaves of "
     "each batch, which ngrad train --accumulate N makes. Any number of ranks gives the same bits as one "
     "process.\n",
     "  ngrad train models/train/mlp.yaml --optimizer adam -o mlp\n"
     "  ngrad fit mlp/mlp_step.yaml --in train --test test --epochs 3 -o mlp\n"
     "  ngrad fit mlp/mlp_step.yaml --in train --epochs 5 -o mlp --resume\n"
     "  ngrad fit gpt/gpt_bytes_step.yaml --text book.txt --steps 2000 -o gpt\n"
     "  mpirun -np 4 ngrad fit mlp/mlp_step.yaml --in train --ranks -o mlp\n"
     "  ngrad run mlp/mlp_infer.yaml --in images --state mlp/mlp.npz\n",
     OPTION_FIT | OPTION_DIM | OPTION_THREADS | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(4), verb_fit},
    {"scale", "STEP", 1, 1, "estimate the cost of a training step on many ranks, by a model",
     "STEP is a graph with leaves, which train --accumulate N writes and fit --ranks trains. The functions of a "
     "leaf, and the functions that run once for all leaves, are compiled and timed here, on --threads; or "
     "--leaf-time gives a time, and nothing is compiled.\n"
     "Messages are those that the ranks of fit exchange, bucket by bucket, counted on the busiest rank. They "
     "cost the latency of each, and their bytes divided by the bandwidth.\n"
     "Each row is for one number of ranks: the leaves of the busiest rank, the time of a step, the efficiency, "
     "the largest part of the time, the bytes and messages that a rank sends, and for comparison the bytes and "
     "the time with a ring all-reduce. If ranks have unequal numbers of leaves, or send more than 1.1 times the "
     "bytes of a ring, scale says so, and suggests a better number of leaves or ranks if it knows one.\n",
     "  ngrad scale mlp/mlp_step.yaml --ranks 1..64 --bandwidth 100Gbit/s\n"
     "  ngrad scale step.yaml --leaves 8192 --leaf-time 300ms --ranks 64,1024\n",
     OPTION_SCALE | OPTION_DIM | OPTION_THREADS | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_SECONDS |
         OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(4), verb_scale},
    {"ops", "[NAME]", 0, 1, "list the operators, or describe one in full", NULL,
     "  ngrad ops LayerNormBackward\n"
     "  ngrad ops --schema > ngrad.schema.json\n",
     OPTION_JSON | OPTION_SCHEMA, STATUS(0) | STATUS(2), verb_ops},
    {"passes", "", 0, 0, "list the passes in their order, and the rules that they apply", NULL,
     "  ngrad passes\n"
     "  ngrad passes --costs\n",
     OPTION_JSON | OPTION_COSTS, STATUS(0) | STATUS(2), verb_passes},
};
enum { NVERBS = sizeof verbs / sizeof *verbs };

static void print_help(FILE *out) {
  enum { behind_verb = 13 };
  fputs("usage: ngrad VERB [OPTION...] [GRAPH...]\n\n"
        "ngrad compiles computation graphs of training steps.\n\nverbs:\n",
        out);
  for (const Verb *v = verbs; v < verbs + NVERBS; v++)
    help_print_wrapped(out, v->summary, (size_t)fprintf(out, "  %-9s  ", v->name), behind_verb);
  fputs("\n  ngrad VERB --help   options of a verb\n  ngrad help format   format of graph files\n  ngrad --version     "
        "version, bits, instruction sets of this processor\n"
        "\nexample:\n  ngrad run models/gpt2_layer_norm_backward.yaml --random --compare\n"
        "\nThe examples' graphs are in models/ of the sources, which is installed as\n"
        "share/doc/ngrad/examples/.\n",
        out);
}

static void print_version(void) {
  printf("ngrad %s\nbits: %d\ninstruction sets:", ng_version(), ng_bits());
  for (size_t i = 0; i < ng_isa_count(); i++)
    if (ng_isa_at(i).is_available) printf(" %s", ng_isa_at(i).name);
  putchar('\n');
}

static const Verb *find_verb(const char *name) {
  static const char *const others[] = {"help", "--help", "--version"};
  enum { NOTHERS = sizeof others / sizeof *others };
  const char *known[NVERBS + NOTHERS];
  for (size_t i = 0; i < NVERBS; i++) {
    if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
    known[i] = verbs[i].name;
  }
  memcpy(known + NVERBS, others, sizeof others);
  const char *nearest = ng_nearest(name, known, NVERBS + NOTHERS);
  if (nearest) usage_error("unknown verb %s, did you mean %s", name, nearest);
  else usage_error("unknown verb %s, see ngrad --help", name);
  return NULL;
}

static int run_verb(const Verb *verb, int argc, char **argv) {
  Settings settings;
  int status = 0;
  if (!settings_parse(&settings, verb, argc, argv)) {
    status = NG_USAGE;
    if (verb->options & OPTION_FIT) ranks_end_unopened();
  } else if (settings.wants_help) {
    verb_print_help(verb);
  } else {
    progress_begin(verb->name, settings.noperands ? settings.operands[0] : "");
    status = verb->run(&settings);
    progress_end();
  }
  settings_free(&settings);
  return status;
}

static int run_program(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || (strcmp(name, "help") == 0 && argc == 2)) {
    print_help(stdout);
    return 0;
  }
  if (strcmp(name, "--version") == 0) {
    print_version();
    return 0;
  }
  if (!*name) {
    print_help(stderr);
    return NG_USAGE;
  }
  if (strcmp(name, "help") == 0 && strcmp(argv[2], "format") == 0) {
    fputs(format_page, stdout);
    return 0;
  }
  if (strcmp(name, "help") == 0) {
    const Verb *verb = find_verb(argv[2]);
    if (verb) verb_print_help(verb);
    return verb ? 0 : NG_USAGE;
  }
  const Verb *verb = find_verb(name);
  return verb ? run_verb(verb, argc - 2, argv + 2) : NG_USAGE;
}

// Opens closed standard descriptors. Otherwise the next opened file would get the number, and receive the output.
static void keep_standard_files(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 1 ? O_RDONLY : O_RDWR) != fd) _exit(NG_WRONG);
}

int main(int argc, char **argv) {
  keep_standard_files();
  signal(SIGPIPE, SIG_DFL); // end silently when the reader closes the pipe
  signals_watch();
  int status = run_program(argc, argv);
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  plain_error("cannot write to standard output%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
  return status ? status : NG_WRONG;
}
