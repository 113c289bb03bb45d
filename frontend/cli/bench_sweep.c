// Reads the extents of a sweep, and draws its times: a line for each graph, program, set of options or number of
// threads, on logarithmic axes.
#include "frontend/cli/bench_sweep.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t most_extent = INT64_C(1) << 47;

static bool add_extent(Sweep *sweep, int64_t extent) {
  const int64_t least = sweep->count ? sweep->extents[sweep->count - 1] + 1 : 1;
  if (sweep->count == MOST_EXTENTS || extent < least || extent > most_extent) return false;
  sweep->extents[sweep->count++] = extent;
  return true;
}

static bool read_extent(const char **at, int64_t *extent) {
  char *end;
  errno = 0;
  if (**at < '0' || **at > '9') return false;
  *extent = strtoll(*at, &end, 10);
  *at = end;
  return !errno;
}

static bool add_extents(Sweep *sweep, const char *at) {
  int64_t extent, last;
  if (!read_extent(&at, &extent) || !add_extent(sweep, extent)) return false;
  if (strncmp(at, "..", 2) == 0) {
    at += 2;
    if (!read_extent(&at, &last) || *at || last < extent || last > most_extent) return false;
    for (extent *= 2; extent <= last; extent *= 2)
      if (!add_extent(sweep, extent)) return false;
  }
  for (; *at == ',';) {
    at++;
    if (!read_extent(&at, &extent) || !add_extent(sweep, extent)) return false;
  }
  return !*at;
}

bool sweep_init(Sweep *sweep, const char *text) {
  const char *equals = strrchr(text, '=');
  *sweep = (Sweep){0};
  if (equals && equals > text && add_extents(sweep, equals + 1)) {
    sweep->name = memory_or_exit(strndup(text, (size_t)(equals - text)));
    return true;
  }
  usage_error("--sweep: expected NAME=N,N,... or NAME=FIRST..LAST, with at most %d ascending numbers from 1, found %s",
              MOST_EXTENTS, text);
  return false;
}

void sweep_deinit(Sweep *sweep) {
  free(sweep->name);
}

// The plot

char *times_label(const json_t *times) {
  const char *options = json_text_at(times, "options"), *program = json_text_at(times, "program");
  const char *differs = *options ? options : program;
  return text_of_format(*differs ? "%s (%s)" : "%s%s", json_text_at(times, "graph"), differs);
}

enum { WIDTH = 720, HEIGHT = 420, LEFT = 76, RIGHT = 20, TOP = 24, BOTTOM = 48, LINE = 18, NCOLORS = 6 };

typedef struct Axis {
  double least, most;   // of the values
  double begin, length; // of the picture, in pixels; a negative length goes upwards
} Axis;

typedef struct Plot {
  json_t *document;
  json_t *labels; // by line, in the order of the legend
  Axis x, y;
  double top; // of the axes, below the legend
  FILE *out;
} Plot;

static const char style[] =
    ":root { --ground: #fff; --text: #1d2126; --grid: #d5d9df; --c0: #3b6fb6; --c1: #a3572f; --c2: #2f8065;\n"
    "  --c3: #8a5aa8; --c4: #9b3d5f; --c5: #66707d; }\n"
    "@media (prefers-color-scheme: dark) { :root { --ground: #14171b; --text: #e4e7eb; --grid: #363d47; --c0: "
    "#78aaf5;\n"
    "  --c1: #ec9263; --c2: #5cc596; --c3: #bf97e6; --c4: #e57fa3; --c5: #9aa4b1; } }\n"
    "text { fill: var(--text); font: 12px system-ui, sans-serif; }\n"
    ".grid { stroke: var(--grid); }\n"
    ".line, .ceiling, .spread { fill: none; stroke-width: 2; }\n"
    ".ceiling { stroke-width: 1.2; stroke-dasharray: 4 4; opacity: .8; }\n"
    ".spread { stroke-width: 1.2; opacity: .6; }\n";

static double place(const Axis *axis, double value) {
  const double part = (log(value) - log(axis->least)) / (log(axis->most) - log(axis->least));
  return axis->begin + axis->length * fmin(1, fmax(0, part));
}

static double number_at(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

static void include(Axis *axis, double value) {
  if (!(value > 0)) return;
  axis->least = axis->least > 0 ? fmin(axis->least, value) : value;
  axis->most = fmax(axis->most, value);
}

// Leaves room beyond the values, and for a single value on both sides of it.
static void widen(Axis *axis, double factor) {
  axis->least /= factor;
  axis->most *= factor;
}

// The label, with the number of threads if several are compared. The caller frees it.
static char *line_label(const json_t *times) {
  char *label = times_label(times);
  if (!json_object_get(times, "speedup")) return label;
  const double nthreads = number_at(times, "threads");
  char *line = text_of_format("%s, %.0f thread%s", label, nthreads, nthreads == 1 ? "" : "s");
  free(label);
  return line;
}

static bool is_of_line(const json_t *times, const char *label) {
  char *own = line_label(times);
  const bool is_so = strcmp(own, label) == 0;
  free(own);
  return is_so;
}

static void plot_init(Plot *p, json_t *document, FILE *out) {
  *p = (Plot){.document = document, .labels = memory_or_exit(json_array()), .out = out};
  for (size_t i = 0; i < json_array_size(document); i++) {
    const json_t *t = json_array_get(document, i);
    size_t known = 0;
    while (known < json_array_size(p->labels) && !is_of_line(t, json_string_value(json_array_get(p->labels, known))))
      known++;
    char *label = line_label(t);
    if (known == json_array_size(p->labels)) json_add(p->labels, json_text(label));
    free(label);
    include(&p->x, number_at(t, "extent"));
    for (size_t k = 0; k < 3; k++)
      include(&p->y, number_at(t, (const char *[]){"min_ms", "median_ms", "ceiling_ms"}[k]));
  }
  if (!(p->x.least > 0 && p->y.least > 0)) p->x = p->y = (Axis){.least = 1, .most = 1}; // nothing was timed
  widen(&p->x, 1.15);
  widen(&p->y, 1.5);
  p->top = TOP + LINE * (double)(json_array_size(p->labels) + 1);
  p->x.begin = LEFT;
  p->x.length = WIDTH - LEFT - RIGHT;
  p->y.begin = p->top + HEIGHT - TOP - BOTTOM;
  p->y.length = -(HEIGHT - TOP - BOTTOM);
}

static void print_time(FILE *out, double ms) {
  if (ms < 1) fprintf(out, "%.3g µs", ms * 1e3);
  else if (ms < 1e3) fprintf(out, "%.3g ms", ms);
  else fprintf(out, "%.3g s", ms / 1e3);
}

static void print_escaped(FILE *out, const char *text) {
  char *escaped = memory_or_exit(ng_escape(NG_HTML, text));
  fputs(escaped, out);
  free(escaped);
}

// Lines of the times 1, 2 and 5 times powers of ten, or of the powers alone if there are many.
static void print_times_axis(const Plot *p) {
  static const double steps[] = {1, 2, 5};
  const size_t nsteps = p->y.most / p->y.least > 1e3 ? 1 : 3;
  const int first = (int)floor(log10(p->y.least)), last = (int)floor(log10(p->y.most));
  for (int power = first; power <= last; power++)
    for (size_t i = 0; i < nsteps; i++) {
      const double ms = pow(10, power) * steps[i], y = place(&p->y, ms);
      if (ms < p->y.least || ms > p->y.most) continue;
      fprintf(p->out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT, y,
              WIDTH - RIGHT, LEFT - 8, y + 4);
      print_time(p->out, ms);
      fputs("</text>\n", p->out);
    }
}

static void print_extents_axis(const Plot *p) {
  const double least_distance = 56;
  double last = -least_distance;
  for (size_t i = 0; i < json_array_size(p->document); i++) {
    const json_t *t = json_array_get(p->document, i);
    const double x = place(&p->x, number_at(t, "extent"));
    if (x < last + least_distance) continue;
    last = x;
    fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.0f</text>\n", x, p->y.begin + LINE,
            number_at(t, "extent"));
  }
  fprintf(p->out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">", LEFT,
          p->y.begin, WIDTH - RIGHT, (LEFT + WIDTH - RIGHT) / 2, p->y.begin + 2 * LINE);
  print_escaped(p->out, json_text_at(json_array_get(p->document, 0), "dim"));
  fputs("</text>\n", p->out);
}

static void print_path(const Plot *p, const char *label, const char *kind, const char *key, size_t color) {
  const char *step = "M";
  fprintf(p->out, "<path class=\"%s\" stroke=\"var(--c%zu)\" d=\"", kind, color);
  for (size_t i = 0; i < json_array_size(p->document); i++) {
    const json_t *t = json_array_get(p->document, i);
    if (!is_of_line(t, label) || !(number_at(t, key) > 0)) continue;
    fprintf(p->out, "%s%.1f %.1f", step, place(&p->x, number_at(t, "extent")), place(&p->y, number_at(t, key)));
    step = "L";
  }
  fputs("\"/>\n", p->out);
}

static void print_points(const Plot *p, const char *label, size_t color) {
  for (size_t i = 0; i < json_array_size(p->document); i++) {
    const json_t *t = json_array_get(p->document, i);
    if (!is_of_line(t, label)) continue;
    const double x = place(&p->x, number_at(t, "extent"));
    fprintf(p->out, "<path class=\"spread\" stroke=\"var(--c%zu)\" d=\"M%.1f %.1fV%.1f\"/>", color, x,
            place(&p->y, number_at(t, "min_ms")), place(&p->y, number_at(t, "max_ms")));
    fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"var(--c%zu)\"><title>%.0f: ", x,
            place(&p->y, number_at(t, "median_ms")), color, number_at(t, "extent"));
    print_time(p->out, number_at(t, "median_ms"));
    fputs("</title></circle>\n", p->out);
  }
}

static void print_legend(const Plot *p) {
  for (size_t i = 0; i < json_array_size(p->labels); i++) {
    const double y = TOP + LINE * (double)i;
    fprintf(p->out, "<path class=\"line\" stroke=\"var(--c%zu)\" d=\"M%d %.1fh24\"/><text x=\"%d\" y=\"%.1f\">",
            i % NCOLORS, LEFT, y - 4, LEFT + 32, y);
    print_escaped(p->out, json_string_value(json_array_get(p->labels, i)));
    fputs("</text>\n", p->out);
  }
  fprintf(p->out,
          "<text x=\"%d\" y=\"%.1f\">median time of a call; upright: from least to greatest; dashed: streaming loop"
          "</text>\n",
          LEFT, TOP + LINE * (double)json_array_size(p->labels));
}

char *sweep_plot(json_t *document) {
  Plot p;
  TextStream text;
  plot_init(&p, document, text_open(&text));
  const double height = p.y.begin + BOTTOM;
  fprintf(p.out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" height=\"%.0f\">\n"
          "<style>\n%s</style>\n<rect width=\"%d\" height=\"%.0f\" fill=\"var(--ground)\"/>\n",
          WIDTH, height, WIDTH, height, style, WIDTH, height);
  print_times_axis(&p);
  print_extents_axis(&p);
  for (size_t i = 0; i < json_array_size(p.labels); i++) {
    const char *label = json_string_value(json_array_get(p.labels, i));
    print_path(&p, label, "ceiling", "ceiling_ms", i % NCOLORS);
    print_path(&p, label, "line", "median_ms", i % NCOLORS);
    print_points(&p, label, i % NCOLORS);
  }
  print_legend(&p);
  fputs("</svg>\n", p.out);
  json_decref(p.labels);
  return text_close(&text);
}
