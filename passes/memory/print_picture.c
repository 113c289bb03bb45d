// The memory plan as a picture in SVG: a rectangle for each tenant, from its first kernel to its last and from its
// offset to its end, and a line for the bytes in use. The picture has no script; a browser shows a rectangle's title
// beside the pointer. All of the user's text is escaped, by tenant_print or text_add_user_string.
#include "passes/memory/map.h"

// Sizes and positions in pixels.
enum {
  WIDTH = 1120,
  HEIGHT = 620,
  LEFT = 90,
  TOP = 60,
  RIGHT = 20,
  BOTTOM = 60,
  NTICKS = 4,
  LETTER = 7,
  LEAST_LABEL = 14
};
enum { PLOT_WIDTH = WIDTH - LEFT - RIGHT, PLOT_HEIGHT = HEIGHT - TOP - BOTTOM, MOST_MARKS = 20, NCOLOURS = 6 };

static const char style[] =
    "<style>\n"
    "svg { font: 12px sans-serif; color: #222; background: #fff; }\n"
    "text { fill: #222; } .ground { fill: #fff; } .frame, .grid { stroke: #888; fill: none; } .grid { opacity: .3; }\n"
    ".tenant { stroke: #fff; stroke-width: .5; } .label { fill: #fff; pointer-events: none; }\n"
    ".c0 { fill: #3b6fb6; } .c1 { fill: #8a5aa8; } .c2 { fill: #2f8065; } .c3 { fill: #a3572f; }\n"
    ".c4 { fill: #66707d; } .c5 { fill: #9b3d5f; } .temporary { fill: #8d8d8d; }\n"
    ".live { stroke: #c01010; fill: none; stroke-width: 1.5; } .peak { fill: #c01010; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  svg { background: #181818; } .ground { fill: #181818; } text { fill: #ddd; } .tenant { stroke: #181818; }\n"
    "  .label { fill: #fff; } .live { stroke: #ff7070; } .peak { fill: #ff7070; }\n"
    "}\n</style>\n";

static double x_of(const MemoryMap *m, double kernel) {
  return LEFT + PLOT_WIDTH * kernel / (double)m->program->nkernels;
}

static double y_of(const MemoryMap *m, double offset) {
  return TOP + PLOT_HEIGHT * (1 - offset / (double)m->program->workspace_nbytes);
}

static void print_axes(const MemoryMap *m, Text *out) {
  const size_t nkernels = m->program->nkernels, step = (nkernels + MOST_MARKS - 1) / MOST_MARKS;
  for (int i = 0; i <= NTICKS; i++) {
    const double offset = (double)m->program->workspace_nbytes * i / NTICKS, y = y_of(m, offset);
    text_format(out, "<path class=\"grid\" d=\"M%d %.1fh%d\"/>\n", LEFT, y, PLOT_WIDTH);
    text_format(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f</text>\n", LEFT - 6, y + 4, offset);
  }
  for (size_t i = 0; i < nkernels; i += step)
    text_format(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%zu</text>\n", x_of(m, (double)i + .5),
                TOP + PLOT_HEIGHT + 16, i);
  text_format(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">kernel</text>\n", LEFT + PLOT_WIDTH / 2,
              HEIGHT - 20);
  text_format(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">offset</text>\n", LEFT - 6, TOP - 14);
}

// Prints the tenant's name inside of its rectangle, if it fits.
static void print_label(const Tenant *t, double x, double y, double width, double height, Text *out) {
  if (!t->value || height < LEAST_LABEL) return;
  double length = 0;
  for (const char *c = t->value->name; *c; c++) length += ((unsigned char)*c & 0xC0U) != 0x80; // characters of UTF-8
  if (length * LETTER + LETTER > width) return;
  text_format(out, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\">", x + 4, y + height / 2 + 4);
  text_add_user_string(out, SINK_HTML, t->value->name);
  text_add_string(out, "</text>\n");
}

static void print_tenant(const MemoryMap *m, size_t i, Text *out) {
  const Tenant *t = &m->tenants[i];
  const double x = x_of(m, t->first), y = y_of(m, (double)(t->offset + t->nbytes));
  const double width = x_of(m, t->last + 1.) - x, height = y_of(m, (double)t->offset) - y;
  text_add_string(out, "<rect class=\"tenant ");
  if (t->value) text_format(out, "c%zu", i % NCOLOURS);
  else text_add_string(out, "temporary");
  text_format(out, "\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>", x, y, width, height);
  tenant_print(m, t, SINK_HTML, out);
  text_format(out, ": %zu bytes at %zu, kernels %u to %u</title></rect>\n", t->nbytes, t->offset, t->first, t->last);
  print_label(t, x, y, width, height, out);
}

static void print_live(const MemoryMap *m, Text *out) {
  text_format(out, "<path class=\"live\" d=\"M%d %d", LEFT, TOP + PLOT_HEIGHT);
  for (size_t i = 0; i < m->program->nkernels; i++)
    text_format(out, "V%.1fH%.1f", y_of(m, (double)m->live[i]), x_of(m, (double)i + 1));
  text_add_string(out, "\"/>\n");
}

static void print_heading(const MemoryMap *m, Text *out) {
  const Program *p = m->program;
  text_format(out, "<text x=\"%d\" y=\"22\" font-weight=\"bold\">", LEFT);
  text_add_user_string(out, SINK_HTML, p->graph->name);
  text_format(out, ": workspace of %zu bytes, %zu without reuse</text>\n", p->workspace_nbytes, p->unshared_nbytes);
  text_format(out, "<text class=\"peak\" x=\"%d\" y=\"40\">line: bytes in use, at most %zu, at kernel %u</text>\n",
              LEFT, m->live[m->peak], m->peak);
}

bool memory_print_picture(const Program *p, Text *out) {
  MemoryMap m;
  const bool ok = memory_map_init(&m, p, NULL);
  text_format(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n",
              WIDTH, HEIGHT, WIDTH, HEIGHT);
  text_add_string(out, style);
  text_format(out, "<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", WIDTH, HEIGHT);
  if (ok) print_heading(&m, out);
  if (ok && p->workspace_nbytes) {
    print_axes(&m, out);
    for (size_t i = 0; i < m.count; i++) print_tenant(&m, i, out);
    print_live(&m, out);
  }
  text_format(out, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n</svg>\n", LEFT, TOP,
              PLOT_WIDTH, PLOT_HEIGHT);
  memory_map_deinit(&m);
  return ok && !out->out_of_memory;
}
