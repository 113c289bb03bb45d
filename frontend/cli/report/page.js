'use strict';
// Draws the data of ngrad report. All text from the data goes through shown(), into text nodes and attributes, and is
// never parsed as HTML. A "graph" is an element of data.graphs; its texts are lists of indices into graph.lines.

const data = JSON.parse(document.getElementById('data').textContent);
const state = {graph: null, kernel: -1, node: -1, part: 0, by_time: false, all_bars: false, pass: -1, hits: [], hit: -1};

// Text and elements

// Invisible characters become question marks: control characters, marks of direction, and so on.
function shown(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Default_Ignorable_Code_Point}]/gu, '?');
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, shown(value));
  }
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined)
      element.append(child instanceof Node ? child : document.createTextNode(shown(child)));
  return element;
}

const html = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) =>
    fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
const by_id = id => document.getElementById(id);

function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  for (; n >= 1024 && i + 1 < units.length; i++) n /= 1024;
  return (i && n < 100 ? n.toPrecision(3) : Math.round(n)) + ' ' + units[i];
}

function time(ms) {
  if (!(ms > 0)) return '-';
  return ms < 1 ? (ms * 1e3).toPrecision(3) + ' µs' : ms < 1e3 ? ms.toPrecision(3) + ' ms' : (ms / 1e3).toPrecision(3) + ' s';
}

function amount(n) {
  const units = ['', 'K', 'M', 'G', 'T', 'P'];
  let i = 0;
  for (; n >= 1000 && i + 1 < units.length; i++) n /= 1000;
  return (i ? n.toPrecision(3) : String(Math.round(n))) + units[i];
}

const percent = x => (100 * x).toFixed(1) + ' %';
const cut = (text, letters) => [...text].length > letters ? [...text].slice(0, letters - 1).join('') + '…' : text;
// Cuts a text that is too wide. Only the page knows the widths of letters.
function fit(text) {
  let letters = [...text.textContent.replace(/…$/, '')];
  for (let width; letters.length > 1 && (width = text.getComputedTextLength()) > text.dataset.room;) {
    letters = letters.slice(0, Math.max(1, Math.min(letters.length - 1, Math.floor(letters.length * text.dataset.room / width))));
    text.textContent = letters.join('') + '…';
  }
}

const lines_of = (graph, text) => (text || []).map(i => graph.lines[i]);
const type_of = value => value.type + ' ' + (value.shape ? '[' + value.shape.map(e => e ?? '_').join(', ') + ']' : '?');

// A hint at the pointer, or at a point of the window.
function hint(text) {
  const move = event => {
    const tip = by_id('tip');
    tip.textContent = shown(text()).replace(/\u2424/g, '\n');
    tip.hidden = false;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + 'px';
  };
  return {onpointermove: move, onpointerleave: hide_hint};
}

const hide_hint = () => { by_id('tip').hidden = true; };

// Makes a picture one stop of the Tab key: arrow keys go through its elements and show their hints, Enter clicks.
// visit(element) brings an element into view.
function walk(surface, selector, visit) {
  const current = all => {
    const selected = all.findLastIndex(e => e.classList.contains('on'));
    return selected >= 0 ? selected : all.findIndex(e => e.classList.contains('at'));
  };
  const leave = () => {
    hide_hint();
    for (const e of surface.querySelectorAll('.at')) e.classList.remove('at');
  };
  const go = next => {
    const all = [...surface.querySelectorAll(selector)];
    if (!all.length) return;
    const item = all[(next(current(all)) + all.length) % all.length];
    leave();
    item.classList.add('at');
    visit?.(item);
    const box = item.getBoundingClientRect();
    item.dispatchEvent(new PointerEvent('pointermove', {clientX: box.right - 14, clientY: Math.min(box.bottom - 14, innerHeight / 2)}));
  };
  const forth = () => go(i => i + 1), back = () => go(i => Math.max(i, 0) - 1);
  const keys = {
    ArrowRight: forth, ArrowDown: forth, ArrowLeft: back, ArrowUp: back, Home: () => go(() => 0), End: () => go(() => -1),
    Escape: leave, Enter: () => surface.querySelector('.at')?.dispatchEvent(new MouseEvent('click', {bubbles: true})),
  };
  return fill(surface, {tabindex: 0, onblur: leave, onkeydown: event => { if (!event.shiftKey) on_key(event, keys); }}, []);
}

function on_key(event, keys) {
  if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key](event);
}
const BREAK = '\u2424'; // separates lines of a hint, because shown() removes line breaks

function chooser(label, items, chosen, choose) {
  const group = html('div', {class: 'buttons', role: 'group', 'aria-label': label}, items.map((item, i) =>
      html('button', {onclick: () => { group.press(i); choose(i); }}, item)));
  group.press = chosen => [...group.children].forEach((button, i) => button.setAttribute('aria-pressed', String(i === chosen)));
  group.press(chosen);
  return group;
}

// Numbers of kernels

// The kernel that holds this kernel's times: kernels that process slices together are timed together.
const timed = (graph, k) => graph.program.kernels[k].with;

function ceilings(graph) {
  const t = graph.timing;
  if (!t || !(t.ceiling_ms > 0)) return null;
  return {rate: (t.bytes_read + t.bytes_written) / t.ceiling_ms, peak: t.peak_gflops * 1e6}; // per millisecond
}

// The measured numbers of a kernel; null: not measured.
function measured(graph, k) {
  const row = graph.timing?.profile?.kernels[timed(graph, k)];
  const roofs = ceilings(graph);
  if (!row || !roofs) return null;
  const nbytes = row.bytes_read + row.bytes_written;
  return {ms: row.ms, nbytes, operations: row.operations, near: row.bound || 'unknown', share: row.ms / graph.timing.profile.ms,
          bound_ms: Math.max(nbytes / roofs.rate, row.operations / roofs.peak), loops: row.loops};
}

// What it means to be near a bound: to reach half of the streaming loop's rate, or half of the peak.
const NEAR = {memory: 'at half of the memory’s rate or more', arithmetic: 'at half of the arithmetic’s peak or more',
              neither: 'at less than half of both: caches, short loops or the order of sums', unknown: 'not measured'};

// How warm a kernel is drawn: an opacity.
const heat_of = (graph, k) => Math.min(0.6, 2 * (measured(graph, k)?.share ?? 0));

function kernel_hint(graph, k) {
  const kernel = graph.program.kernels[k], m = measured(graph, k);
  const parts = [`kernel ${k}: ${cut(kernel.name, 400)}`,
                 `reads ${bytes(kernel.bytes_read)}, writes ${bytes(kernel.bytes_written)}, ${amount(kernel.operations)} operations`];
  if (m) parts.push(`${time(m.ms)}, ${percent(m.share)} of the call; bound ${time(m.bound_ms)}` +
                    with_text(graph, k));
  return parts.join(BREAK);
}

// Names the other kernels whose time a kernel's has in it.
function with_text(graph, k) {
  const own = timed(graph, k), all = graph.program.kernels.map((_, i) => i).filter(i => timed(graph, i) === own);
  return all.length > 1 ? `, kernels ${all[0]} to ${all[all.length - 1]} together` : '';
}

function select(kernel, node) {
  state.kernel = kernel;
  state.node = node ?? -1;
  mark(document);
  draw_details();
}

// Marks the selection and the hits of the search in a part of the page.
function mark(root) {
  const hits = new Set(state.hits.flatMap(hit => [`${hit.k} -1`, `${hit.k} ${hit.n}`]));
  for (const e of root.querySelectorAll('[data-kernel]')) {
    const node = e.dataset.node === undefined ? -1 : Number(e.dataset.node);
    e.classList.toggle('on', Number(e.dataset.kernel) === state.kernel && (node < 0 || node === state.node));
    e.classList.toggle('hit', hits.has(`${e.dataset.kernel} ${node}`));
  }
  for (const e of root.querySelectorAll('.arrow'))
    e.classList.toggle('on', e.dataset.from === 'k' + state.kernel || e.dataset.to === 'k' + state.kernel);
}

// The selected operator in a canvas, else the selected kernel.
const selected_element = canvas => canvas.querySelector('.node.on') ?? canvas.querySelector('.kernel.on');

// The drawing

function path(points) {
  let d = `M${points[0]} ${points[1]}`;
  for (let i = 2; i + 5 < points.length; i += 6) d += `C${points.slice(i, i + 6).join(' ')}`;
  return d;
}

function draw_arrow(arrow, text) {
  const d = path(arrow.slice(2));
  return [svg('path', {class: 'reach', d, ...hint(text)}),
          svg('path', {class: 'arrow', d, 'marker-end': 'url(#arrow)', 'data-from': arrow[0], 'data-to': arrow[1]})];
}

const values_hint = (graph, values) => values.map(v => graph.program.values[v])
    .map(v => `${v.name}: ${type_of(v)}, ${bytes(v.bytes)}`).join(BREAK);

function node_hint(graph, n) {
  const node = graph.program.nodes[n];
  const source = node.lines.map(line => `${line}: ${(graph.lines[graph.source?.[line - 1]] ?? '').trim()}`);
  return [node.op + (node.label ? ` (${node.label})` : ''), ...source,
          values_hint(graph, node.outputs.filter(v => v !== null))].join(BREAK);
}

function draw_node(graph, k, n, x, y) {
  const node = graph.program.nodes[n], [w, h] = graph.drawing.nodes[n];
  const out = node.outputs.filter(v => v !== null).map(v => graph.program.values[v]);
  const letters = Math.floor((w - 12) / 6.4);
  const lines = node.lines.length ? ` · ${node.lines[0]}` : '';
  return svg('g', {class: 'node', transform: `translate(${x - w / 2} ${y - h / 2})`, 'data-kernel': k, 'data-node': k === null ? null : n,
                   onclick: event => { event.stopPropagation(); if (k !== null) select(k, n); }, ...hint(() => node_hint(graph, n))},
             svg('rect', {width: w, height: h, rx: 5}),
             svg('text', {class: 'title', x: 8, y: 16, 'data-room': w - 12}, cut(node.op + lines, Math.max(letters, 12))),
             svg('text', {class: 'soft', x: 8, y: 32, 'data-room': w - 12}, cut(out.map(v => v.name).join(', '), letters)),
             svg('text', {class: 'soft', x: 8, y: 47, 'data-room': w - 12}, out.length ? cut(type_of(out[0]), letters) : ''));
}

function draw_kernel(graph, k, box) {
  const [x, y, w, h] = box, kernel = graph.program.kernels[k], m = measured(graph, k), inside = graph.drawing.inside[k];
  const left = x - w / 2, top = y - h / 2, heading = 40;
  const g = svg('g', {class: 'kernel', 'data-kernel': k, onclick: () => select(k), ...hint(() => kernel_hint(graph, k))},
                svg('rect', {x: left, y: top, width: w, height: h, rx: 8}),
                svg('rect', {class: 'heat', x: left, y: top, width: w, height: heading - 4, rx: 8, style: `--full: ${h}px`,
                             'fill-opacity': heat_of(graph, k).toFixed(3)}),
                svg('text', {class: 'title', x: left + 8, y: top + 16}, `kernel ${k}`),
                svg('text', {class: 'small', x: left + 8, y: top + 31, 'data-room': w - 12},
                    cut((m ? (timed(graph, k) === k ? `${time(m.ms)} · ` : `with ${timed(graph, k)} · `) : '') +
                        bytes(kernel.bytes_read + kernel.bytes_written), Math.floor((w - 12) / 6))));
  g.append(svg('text', {class: 'number', x, y: y + 20, 'text-anchor': 'middle'}, k)); // shown when zoomed out
  if (inside) {
    const at = svg('g', {transform: `translate(${Math.round(x - inside.size[0] / 2)} ${top + heading})`});
    for (const arrow of inside.arrows) {
      const [from, to] = arrow.map(name => Number(String(name).slice(1)));
      at.append(...draw_arrow(arrow, () => values_hint(graph, graph.program.nodes[from].outputs.filter(
          v => v !== null && graph.program.nodes[to].inputs.includes(v)))));
    }
    for (const [name, [nx, ny]] of Object.entries(inside.boxes)) at.append(draw_node(graph, k, Number(name.slice(1)), nx, ny));
    g.append(at);
  } else if (kernel.nodes.length > 1) {
    g.append(svg('text', {class: 'title', x: left + 8, y: top + heading + 16, 'data-room': w - 12}, `${kernel.nodes.length} operators`),
             svg('text', {class: 'soft', x: left + 8, y: top + heading + 32, 'data-room': w - 12}, 'folded'));
  } else if (kernel.nodes.length) {
    g.append(draw_node(graph, k, kernel.nodes[0], x, top + heading + graph.drawing.nodes[kernel.nodes[0]][1] / 2));
  }
  return g;
}

function draw_value(graph, name, box) {
  const v = graph.program.values[Number(name.slice(1))], [x, y, w, h] = box, letters = Math.floor((w - 10) / 6.4);
  const kind = name[0] === 'o' ? 'output' : v.kind;
  return svg('g', {class: `value ${kind === 'output' ? 'output' : ''}`,
                   ...hint(() => `${kind} ${values_hint(graph, [Number(name.slice(1))])}`)},
             svg('rect', {x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 18, 'pointer-events': 'all'}),
             svg('text', {x, y: y - 3, 'text-anchor': 'middle', 'data-room': w - 12}, cut(v.name, letters)),
             svg('text', {class: 'soft', x, y: y + 12, 'text-anchor': 'middle', 'data-room': w - 12}, cut(type_of(v), letters)));
}

function arrow_values(graph, from, to) {
  const kernels = graph.program.kernels, a = Number(from.slice(1)), b = Number(to.slice(1));
  if (from[0] !== 'k') return [a];
  if (to[0] !== 'k') return [b];
  return kernels[a].writes.filter(v => kernels[b].reads.includes(v));
}

// A small copy of a part, whose frame is what the canvas shows.
function draw_map(graph, {boxes, size: [width, height]}) {
  const scale = Math.min(140 / width, 190 / height);
  return svg('svg', {class: 'map', 'aria-hidden': 'true', viewBox: `0 0 ${width} ${height}`, style: `width: ${width * scale}px; height: ${height * scale}px`},
             Object.entries(boxes).filter(([name]) => name[0] === 'k').map(([name, [x, y, w, h]]) => {
               const k = Number(name.slice(1)), is_warm = heat_of(graph, k) > 0.05;
               return svg('rect', {class: is_warm ? 'warm' : null, 'data-kernel': k, x: x - w / 2, y: y - h / 2, width: w, height: h});
             }), svg('rect', {class: 'view'}));
}

// Dragging pans; the buttons, a pinch, and the wheel with Ctrl zoom. map: of draw_map, or null. A drawing begins whole, at its
// top; one that would be illegible, with as much of its upper part as is legible, or with the element that first() finds.
function make_movable(canvas, picture, [width, height], map, first) {
  const view = {x: 0, y: 0, scale: 1}, pointers = new Map();
  let moved = 0;
  const show = () => {
    const [w, h] = [canvas.clientWidth / view.scale, canvas.clientHeight / view.scale];
    picture.setAttribute('transform', `translate(${view.x} ${view.y}) scale(${view.scale})`);
    canvas.classList.toggle('far', view.scale < 0.4);
    map?.classList.toggle('useless', w >= width && h >= height);
    if (map) fill(map.lastChild, {x: -view.x / view.scale, y: -view.y / view.scale, width: w, height: h}, []);
  };
  const to_map_point = event => {
    const box = map.getBoundingClientRect();
    if (!event.buttons) return;
    view.x = canvas.clientWidth / 2 - (event.clientX - box.x) / box.width * width * view.scale;
    view.y = canvas.clientHeight / 2 - (event.clientY - box.y) / box.height * height * view.scale;
    show();
  };
  for (const type of ['pointerdown', 'pointermove']) map?.addEventListener(type, to_map_point);
  const zoom = (factor, x, y) => {
    const scale = Math.max(0.02, Math.min(4, view.scale * factor));
    view.x = x - (x - view.x) * scale / view.scale;
    view.y = y - (y - view.y) * scale / view.scale;
    view.scale = scale;
    show();
  };
  const middle = factor => zoom(factor, canvas.clientWidth / 2, canvas.clientHeight / 2);
  const from_top = least_scale => {
    const w = canvas.clientWidth - 24, h = canvas.clientHeight - 60;
    view.scale = Math.max(least_scale, Math.min(w / width, h / height, 1));
    view.x = 12 + (w - width * view.scale) / 2;
    view.y = 44;
    show();
  };
  const whole = () => from_top(0);
  const least_readable = 0.7, surface = canvas.querySelector('svg');
  // The place of a drawing of this length in a canvas: no empty space at its ends, unless all of it fits.
  const inside = (place, length, room, margin) =>
      length < room ? Math.max(margin, (room - length) / 2) : Math.min(margin, Math.max(place, room - length - 12));
  // Brings an element to the middle, or its beginning into the canvas if it is larger.
  canvas.centre = element => {
    view.scale = Math.max(view.scale, least_readable);
    show();
    const box = element.getBoundingClientRect(), room = surface.getBoundingClientRect();
    const x = view.x + room.x + Math.max((room.width - box.width) / 2, 12) - box.x;
    const y = view.y + room.y + Math.max((room.height - box.height) / 2, 44) - box.y;
    view.x = inside(x, width * view.scale, room.width, 12);
    view.y = inside(y, height * view.scale, room.height, 44);
    show();
  };
  const pan = (x, y) => {
    view.x += x;
    view.y += y;
    show();
  };
  const keys = {'+': () => middle(1.4), '=': () => middle(1.4), '-': () => middle(1 / 1.4), 0: whole};
  const shifted = {ArrowLeft: () => pan(80, 0), ArrowRight: () => pan(-80, 0), ArrowUp: () => pan(0, 80), ArrowDown: () => pan(0, -80)};
  surface.addEventListener('keydown', event => on_key(event, event.shiftKey ? {...keys, ...shifted} : keys));
  surface.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = surface.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  }, {passive: false});
  surface.addEventListener('pointerdown', event => { pointers.set(event.pointerId, [event.clientX, event.clientY]); moved = 0; });
  surface.addEventListener('pointermove', event => {
    const before = pointers.get(event.pointerId), now = [event.clientX, event.clientY];
    if (!before) return;
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const distance = p => Math.hypot(p[0] - other[0], p[1] - other[1]), box = surface.getBoundingClientRect();
      zoom(distance(now) / Math.max(1, distance(before)), (now[0] + other[0]) / 2 - box.left, (now[1] + other[1]) / 2 - box.top);
    } else {
      pan(now[0] - before[0], now[1] - before[1]);
    }
    moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
    pointers.set(event.pointerId, now);
  });
  for (const end of ['pointerup', 'pointercancel', 'pointerleave'])
    surface.addEventListener(end, event => pointers.delete(event.pointerId));
  surface.addEventListener('click', event => { if (moved > 6) event.stopPropagation(); }, true); // the click ended a drag
  canvas.append(html('div', {class: 'buttons'}, html('button', {onclick: () => middle(1.4), 'aria-label': 'zoom in'}, '+'),
                     html('button', {onclick: () => middle(1 / 1.4), 'aria-label': 'zoom out'}, '−'),
                     html('button', {onclick: whole}, 'whole')));
  picture.querySelectorAll('[data-room]').forEach(fit);
  from_top(0.5);
  if (width * view.scale > surface.clientWidth) { // the highest box in the middle
    const tops = [...picture.querySelectorAll('.kernel, .node')].map(e => e.getBoundingClientRect()), room = surface.getBoundingClientRect();
    const highest = tops.reduce((a, b) => b.y < a.y ? b : a, tops[0]);
    view.x = inside(view.x + room.x + (room.width - highest.width) / 2 - highest.x, width * view.scale, room.width, 12);
    show();
  }
  const element = first?.();
  if (element && view.scale < least_readable) canvas.centre(element);
}

function surface_for(picture, has_many) {
  return svg('svg', {role: 'group', 'aria-label': 'the graph; arrow keys go through it', class: has_many ? 'many' : null},
             svg('defs', {}, svg('marker', {id: 'arrow', viewBox: '0 0 10 8', markerWidth: 9, markerHeight: 8, refX: 0, refY: 4,
                                            orient: 'auto', markerUnits: 'userSpaceOnUse'}, svg('path', {class: 'head', d: 'M0 0L10 4L0 8z'}))),
             picture);
}

// What an operator is in drawings before and after a pass: its name, and those of its tensors.
const operator_key = (g, node) => [node.op, ...[...node.inputs, ...node.outputs].map(v => v === null ? '' : g.values[v].name)].join('\n');

// The operators of a graph between passes, without kernels. Operators that the other graph lacks are marked.
function draw_operators(graph, own, other, mark) {
  const layout = own.layout, picture = svg('g', {});
  const canvas = html('div', {class: 'canvas', style: `--wanted: ${layout.size[1] + 80}px`});
  const others = new Set(other.nodes.map(node => operator_key(other, node)));
  const sizes = own.nodes.map((_, i) => layout.boxes['n' + i]?.slice(2) ?? [0, 0]);
  const drawn = {...graph, program: own, drawing: {nodes: sizes}};
  canvas.append(surface_for(picture, layout.arrows.length > 60));
  for (const arrow of layout.arrows) {
    const [from, to] = arrow.map(name => Number(String(name).slice(1)));
    const values = arrow[0][0] === 'v' ? [from] : arrow[1][0] === 'o' ? [to] : own.nodes[from].outputs.filter(v => v !== null && own.nodes[to].inputs.includes(v));
    picture.append(...draw_arrow(arrow, () => values_hint(drawn, values)));
  }
  for (const [name, box] of Object.entries(layout.boxes)) {
    const i = Number(name.slice(1)), g = name[0] === 'n' ? draw_node(drawn, null, i, box[0], box[1]) : draw_value(drawn, name, box);
    if (name[0] === 'n' && !others.has(operator_key(own, own.nodes[i]))) g.classList.add(mark);
    picture.append(g);
  }
  walk(canvas.firstChild, '.node, .value', e => canvas.centre(e));
  requestAnimationFrame(() => make_movable(canvas, picture, layout.size, null));
  return canvas;
}

function draw_pictures(graph, pass) {
  const before = graph.passes.slice(0, pass).reduce((p, q) => q.picture ?? p, graph.first?.picture), after = graph.passes[pass].picture;
  if (!before || !after) return '';
  const keys = g => g.nodes.map(node => operator_key(g, node)).sort().join('\n\n');
  if (keys(before) === keys(after)) return html('p', {}, 'The operators are the same; what changed is in the lines below.');
  return html('div', {class: 'pictures'}, html('div', {}, html('p', {}, 'before: what goes is red'), draw_operators(graph, before, after, 'gone')),
              html('div', {}, html('p', {}, 'after: what came is green'), draw_operators(graph, after, before, 'came')));
}

function draw_graph(graph) {
  const section = html('section', {id: 'graph'}, html('h2', {}, 'Graph after all passes'));
  const details = html('div', {id: 'details', tabindex: 0, 'aria-label': 'details'});
  const parts = graph.drawing.parts;
  if (typeof graph.drawing === 'string') {
    section.append(html('p', {class: 'note'}, `${graph.drawing}. Choose kernels in the table below.`), draw_search(), details);
    return section;
  }
  if (!parts[0]?.layout) {
    section.append(html('p', {}, 'There are no kernels: outputs are copies of inputs and constants.'), details);
    return section;
  }
  section.append(html('p', {}, 'A frame is a kernel, and the boxes in it are its operators with the lines of the graph file. The warmer a ' +
                               'kernel’s heading, the more of the time it takes. Drag to move, zoom with the buttons or Ctrl and the wheel. ' +
                               'Keys: / searches; in the drawing, arrows select, Shift and arrows move, + − 0 zoom.'));
  if (!graph.drawing.has_values)
    section.append(html('p', {class: 'note'}, 'Inputs and outputs are many, and not drawn' +
                                              (parts.length > 1 ? ', nor arrows between parts' : '') + '; a kernel’s details list what it reads and writes.'));
  const choose_part = html('select', {'aria-label': 'part of the drawing', onchange: event => section.show_part(Number(event.target.value))},
                           parts.map((p, i) => html('option', {value: i, selected: i === state.part}, `kernels ${p.first} to ${p.end - 1}`)));
  const grid = html('div', {class: 'graph'}, draw_part(graph), details);
  section.show_part = (i, is_for_selection) => {
    state.part = i;
    choose_part.value = i;
    grid.firstChild.replaceWith(draw_part(graph, is_for_selection));
  };
  const row = draw_search();
  if (parts.length > 1) row.append(choose_part);
  section.append(row, grid);
  return section;
}

function draw_part(graph, is_for_selection) {
  const picture = svg('g', {}), layout = graph.drawing.parts[state.part].layout;
  const canvas = html('div', {class: 'canvas', style: `--wanted: ${layout.size[1] + 80}px`});
  canvas.append(surface_for(picture, layout.arrows.length > 60));
  for (const arrow of layout.arrows)
    picture.append(...draw_arrow(arrow, () => values_hint(graph, arrow_values(graph, arrow[0], arrow[1]))));
  for (const [name, box] of Object.entries(layout.boxes))
    picture.append(name[0] === 'k' ? draw_kernel(graph, Number(name.slice(1)), box) : draw_value(graph, name, box));
  walk(canvas.firstChild, '.kernel, .node', e => {
    select(Number(e.dataset.kernel), e.dataset.node === undefined ? -1 : Number(e.dataset.node));
    canvas.centre(e);
  });
  const map = draw_map(graph, layout);
  canvas.append(map);
  mark(canvas);
  requestAnimationFrame(() => make_movable(canvas, picture, layout.size, map, () => is_for_selection && selected_element(canvas)));
  return canvas;
}

// Search

// The operators with a name that has this text in it, and the kernels that have it in theirs alone. Equal names come first.
function find_hits(graph, text) {
  const wanted = text.trim().toLowerCase(), name = v => graph.program.values[v]?.name;
  const rank = names => names.reduce((best, n) => {
    const own = String(n ?? '').toLowerCase();
    return own === wanted ? 2 : Math.max(best, own.includes(wanted) ? 1 : 0);
  }, 0);
  if (!wanted) return [];
  const found = graph.program.kernels.flatMap((kernel, k) => {
    const own = kernel.nodes.map(n => ({k, n, node: graph.program.nodes[n]}))
        .map(hit => ({...hit, rank: rank([hit.node.op, hit.node.label, ...hit.node.inputs.map(name), ...hit.node.outputs.map(name)])}));
    const hits = own.filter(hit => hit.rank), itself = hits.length ? 0 : rank([`kernel ${k}`, kernel.name]);
    return itself ? [{k, n: -1, rank: itself}] : hits;
  });
  return found.sort((a, b) => b.rank - a.rank);
}

function show_hit(i) {
  const count = state.hits.length, said = by_id('hits');
  state.hit = count ? (i + count) % count : -1;
  if (count) go_to(state.hits[state.hit].k, state.hits[state.hit].n);
  else mark(document);
  said.textContent = count ? `${state.hit + 1} of ${count}` : by_id('search').value.trim() ? 'no hit' : '';
}

function draw_search() {
  const search = event => {
    state.hits = find_hits(state.graph, event.target.value);
    show_hit(0);
  };
  const keys = {
    Enter: event => show_hit(state.hit + (event.shiftKey ? -1 : 1)),
    Escape: event => {
      event.target.value = '';
      search(event);
    },
  };
  return html('div', {class: 'buttons', role: 'search'},
              html('input', {id: 'search', type: 'search', placeholder: 'operator, tensor, kernel', autocomplete: 'off', spellcheck: 'false',
                             'aria-label': 'search by operator, label, tensor or kernel', 'aria-keyshortcuts': '/', oninput: search,
                             onkeydown: event => on_key(event, keys)}),
              html('button', {onclick: () => show_hit(state.hit - 1), 'aria-label': 'previous hit'}, '↑'),
              html('button', {onclick: () => show_hit(state.hit + 1), 'aria-label': 'next hit'}, '↓'),
              html('span', {id: 'hits', role: 'status'}));
}

addEventListener('keydown', event => {
  const field = by_id('search');
  if (event.key !== '/' || !field || event.target === field || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  field.focus();
  field.select();
});

// Details of the selection

// Lines of the source, each with the deeper indented lines below it.
function numbered(graph, numbers) {
  const source = graph.source ?? [], line = n => graph.lines[source[n - 1]] ?? '', indent = n => line(n).search(/\S/);
  const out = [], most = 400;
  let end = 0;
  for (const first of numbers) {
    if (first < end) continue;
    for (end = first + 1; end <= source.length && indent(end) > indent(first);) end++;
    for (let n = first; n < end && out.length < most; n++)
      out.push(html('i', {}, String(n).padStart(5) + '  '), line(n), html('br'));
  }
  return out;
}

function block(title, content, open) {
  return html('details', {open: open ? '' : null}, html('summary', {}, title), html('pre', {tabindex: 0}, content));
}

const text_block = (graph, title, text, open) =>
    text?.length ? block(title, lines_of(graph, text).flatMap(line => [line, html('br')]), open) : null;

function value_rows(graph, how, values) {
  return values.filter(v => v !== null).map(i => graph.program.values[i]).map(v =>
      html('tr', {}, html('td', {}, how), html('td', {class: 'name'}, v.name), html('td', {}, type_of(v)), html('td', {class: 'number'}, bytes(v.bytes))));
}

function draw_details() {
  const graph = state.graph, panel = by_id('details'), k = state.kernel;
  if (k < 0) {
    panel.replaceChildren(html('h3', {}, 'Nothing selected'), html('p', {}, 'Click a kernel or an operator: in the drawing, the bars, the roofline or the memory plan.'));
    return;
  }
  const kernel = graph.program.kernels[k], node = graph.program.nodes[state.node], m = measured(graph, k);
  const lines = [...new Set((node ? [node] : kernel.nodes.map(n => graph.program.nodes[n])).flatMap(n => n.lines))].sort((a, b) => a - b);
  const cards = [[bytes(kernel.bytes_read), 'read'], [bytes(kernel.bytes_written), 'written'], [amount(kernel.operations), 'operations']];
  if (m) cards.unshift([time(m.ms), `${percent(m.share)} of the call${with_text(graph, k)}`],
                       [time(m.bound_ms), `bound; ${NEAR[m.near]}`]);
  panel.replaceChildren(
      html('h3', {}, `kernel ${k}` + (node ? `, ${node.op}` + (node.label ? ` (${node.label})` : '') : '')),
      html('p', {}, cut(kernel.name, 400)),
      html('div', {class: 'cards'}, cards.map(([value, what]) => html('div', {class: 'card'}, html('b', {}, value), html('span', {}, what)))),
      lines.length ? block('Lines of the graph file', numbered(graph, lines), true) : '',
      block_of_values(graph, node, kernel),
      text_block(graph, 'Kernel', graph.kernels?.[k], true) ?? '', text_block(graph, 'Loops', graph.loops?.[k]) ?? '',
      text_block(graph, 'C', source_of(graph, k)) ?? '');
  panel.scrollTop = 0;
}

// A kernel's C. Equal kernels share the functions of the first of them, which the heading names.
function source_of(graph, k) {
  const own = graph.c?.[k] ?? [], other = lines_of(graph, own).join(' ').replaceAll(' // ', ' ').match(/: the functions of kernel (\d+)\s*$/);
  return other ? [...own, ...(graph.c[Number(other[1])] ?? [])] : own;
}

function block_of_values(graph, node, kernel) {
  const rows = node ? [value_rows(graph, 'in', node.inputs), value_rows(graph, 'out', node.outputs)]
                    : [value_rows(graph, 'reads', kernel.reads), value_rows(graph, 'writes', kernel.writes)];
  return html('details', {open: node ? '' : null}, html('summary', {}, 'Tensors'), html('div', {class: 'scroll'}, html('table', {}, rows)));
}

// Bars

function draw_bars(graph) {
  const section = html('section', {id: 'bars'}, html('h2', {}, 'Kernels'));
  const rows = graph.program.kernels.map((kernel, k) => ({kernel, k, m: measured(graph, k)}))
      .filter(r => timed(graph, r.k) === r.k || !r.m);
  const has_times = rows.some(r => r.m), most_shown = 40;
  if (has_times) {
    section.append(html('p', {}, 'A bar is the measured time; the mark is the kernel’s bound: its bytes at the rate of a streaming loop, or its ' +
                                 'operations at the rate of a loop of multiply-adds, whichever is longer. Kernels whose data stays in caches may be faster.'),
                   html('p', {}, ['memory', 'arithmetic', 'neither'].map(c => [html('span', {class: `key ${c}`}), NEAR[c]])),
                   chooser('order', ['as they run', 'slowest first'], state.by_time ? 1 : 0, i => { state.by_time = i === 1; list(); }));
  } else {
    section.append(html('p', {}, graph.timing ? 'There are none: outputs are copies.' : 'No times were measured (--no-times).'));
  }
  const longest = Math.max(...rows.map(r => r.m ? Math.max(r.m.ms, r.m.bound_ms) : 0), 1e-9);
  const columns = html('colgroup', {}, html('col', {style: 'width:7.5em'}), html('col', {class: 'name'}), html('col', {style: 'width:6em'}),
                       has_times ? html('col', {style: 'width:42%'}) : null);
  const table = html('table', {class: 'bars'});
  const more = html('button', {onclick: () => { state.all_bars = true; list(); table.rows[most_shown].focus(); }}, `show all ${rows.length} kernels`);
  const list = () => {
    const ordered = has_times && state.by_time ? [...rows].sort((a, b) => b.m.ms - a.m.ms) : rows;
    table.replaceChildren(columns, ...(state.all_bars ? ordered : ordered.slice(0, most_shown)).map(row => draw_bar(graph, row, longest)));
    more.hidden = rows.length === table.rows.length;
    mark(table);
  };
  list();
  section.append(table, more);
  return section;
}

function draw_bar(graph, {kernel, k, m}, longest) {
  return html('tr', {tabindex: 0, 'data-kernel': k, onclick: () => reveal(k), onkeydown: event => on_key(event, {Enter: () => reveal(k)}),
                     ...hint(() => kernel_hint(graph, k))},
              html('td', {}, `kernel ${k}`), html('td', {class: 'name'}, cut(kernel.name, 110)),
              html('td', {class: 'number'}, m ? time(m.ms) : bytes(kernel.bytes_read + kernel.bytes_written)),
              m ? html('td', {}, html('div', {class: 'track'},
                                      html('div', {class: `bar ${m.near}`, style: `width:${(100 * m.ms / longest).toFixed(2)}%`}),
                                      html('div', {class: 'bound', style: `left:${(99.5 * m.bound_ms / longest).toFixed(2)}%`}))) : null);
}

const part_of = (graph, k) => graph.drawing.parts?.findIndex(p => k >= p.first && k < p.end) ?? -1;

// Selects a kernel or an operator of it, and brings it into the middle of the drawing.
function go_to(k, node) {
  const parts = state.graph.drawing.parts, part = part_of(state.graph, k);
  select(k, node);
  if (parts && part !== state.part) by_id('graph').show_part(part, true); // centres it in the next frame
  else if (parts) document.querySelector('.canvas').centre?.(selected_element(document.querySelector('.canvas')));
}

function reveal(k) {
  go_to(k);
  by_id('details').scrollIntoView({block: 'nearest'});
}

// Pictures as wide as the window

const LOG = Math.log10;
const MARGIN = {left: 64, right: 16, top: 14, bottom: 42};

function frame(label, width, height) {
  return svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': `${label}; arrow keys go through it`});
}

function draw_roofline(graph, width) {
  const roofs = ceilings(graph);
  if (!roofs) return html('p', {}, 'No times were measured.');
  const rows = graph.program.kernels.map((kernel, k) => ({kernel, k, m: measured(graph, k)}))
      .filter(r => r.m && timed(graph, r.k) === r.k && r.m.operations > 0 && r.m.ms > 0 && r.m.nbytes > 0)
      .map(r => ({...r, x: r.m.operations / r.m.nbytes, y: r.m.operations / r.m.ms * 1e-6}));
  const rate = roofs.rate * 1e-6, peak = roofs.peak * 1e-6, ridge = peak / rate; // GB/s, GF/s, operations per byte
  const height = Math.min(460, Math.max(280, width * 0.5));
  const [x0, x1] = [Math.min(ridge / 100, ...rows.map(r => r.x)) / 1.5, Math.max(ridge * 10, ...rows.map(r => r.x)) * 1.5];
  const [y0, y1] = [Math.min(x0 * rate, ...rows.map(r => r.y)) / 1.5, Math.max(peak, ...rows.map(r => r.y)) * 2];
  const x = v => MARGIN.left + (LOG(v) - LOG(x0)) / (LOG(x1) - LOG(x0)) * (width - MARGIN.left - MARGIN.right);
  const y = v => height - MARGIN.bottom - (LOG(v) - LOG(y0)) / (LOG(y1) - LOG(y0)) * (height - MARGIN.top - MARGIN.bottom);
  const picture = frame('the roofline', width, height), step = width < 600 ? 2 : 1;
  for (let e = Math.ceil(LOG(x0)); e <= LOG(x1); e += step)
    picture.append(svg('path', {class: 'grid', d: `M${x(10 ** e)} ${MARGIN.top}V${height - MARGIN.bottom}`}),
                   svg('text', {class: 'soft', x: x(10 ** e), y: height - MARGIN.bottom + 15, 'text-anchor': 'middle'}, Number((10 ** e).toPrecision(1))));
  for (let e = Math.ceil(LOG(y0)); e <= LOG(y1); e++)
    picture.append(svg('path', {class: 'grid', d: `M${MARGIN.left} ${y(10 ** e)}H${width - MARGIN.right}`}),
                   svg('text', {class: 'soft', x: MARGIN.left - 6, y: y(10 ** e) + 4, 'text-anchor': 'end'}, Number((10 ** e).toPrecision(1))));
  const foot = Math.max(x0, y0 / rate);
  picture.append(
      svg('path', {class: 'roof', d: `M${x(foot)} ${y(foot * rate)}L${x(ridge)} ${y(peak)}H${width - MARGIN.right}`}),
      svg('text', {x: width - MARGIN.right - 4, y: y(peak) - 6, 'text-anchor': 'end'}, `${peak.toPrecision(3)} GF/s`),
      svg('text', {x: MARGIN.left + 8, y: MARGIN.top + 12}, `slope: ${rate.toPrecision(3)} GB/s`),
      svg('text', {class: 'soft', x: (width + MARGIN.left) / 2, y: height - 8, 'text-anchor': 'middle'}, 'operations a byte of tensors'),
      svg('text', {class: 'soft', transform: `translate(14 ${height / 2}) rotate(-90)`, 'text-anchor': 'middle'}, 'GF/s'));
  const longest = Math.max(...rows.map(r => r.m.ms), 1e-9);
  rows.sort((a, b) => b.m.ms - a.m.ms);
  for (const r of rows)
    picture.append(svg('circle', {class: `point ${r.m.near}`, cx: x(r.x), cy: y(r.y), r: 4 + 7 * Math.sqrt(r.m.ms / longest),
                                  'fill-opacity': 0.75, 'data-kernel': r.k, onclick: () => reveal(r.k),
                                  ...hint(() => `${kernel_hint(graph, r.k)}${BREAK}${r.y.toPrecision(3)} GF/s, ${(r.m.nbytes / r.m.ms * 1e-6).toPrecision(3)} GB/s`)}));
  const places = [];
  for (const r of rows) { // labels where they fit, the slowest kernels first
    const place = [x(r.x) + 9, y(r.y) - 9];
    if (places.length === 12 || place[0] > width - 30 || places.some(p => Math.abs(p[0] - place[0]) < 30 && Math.abs(p[1] - place[1]) < 13)) continue;
    places.push(place);
    picture.append(svg('text', {class: 'soft label', x: place[0], y: place[1], 'pointer-events': 'none'}, r.k));
  }
  const without = graph.program.kernels.map((kernel, k) => k).filter(k => {
    const m = measured(graph, k);
    return m && timed(graph, k) === k && !(m.operations > 0);
  });
  walk(picture, '.point', e => select(Number(e.dataset.kernel)));
  return [picture, without.length ? html('p', {}, `Not on it, as they only move data: kernel${without.length > 1 ? 's' : ''} ` +
                                                  `${without.slice(0, 30).join(', ')}${without.length > 30 ? ' …' : ''}.`) : null];
}

function draw_memory(graph, width) {
  const memory = graph.program.memory, count = graph.program.kernels.length, total = memory.bytes;
  if (!total || !count) return html('p', {}, 'Nothing lives between kernels.');
  const height = 320, w = width - MARGIN.left - 12 - MARGIN.right;
  const left = MARGIN.left + 12, x = k => left + k / count * w, h = height - MARGIN.top - MARGIN.bottom;
  const y = n => MARGIN.top + h * (1 - n / total), picture = frame('the memory plan', width, height);
  memory.tenants.forEach((t, i) => {
    const value = graph.program.values[t.value];
    const name = value ? value.name + (t.kind === 'staged' ? ' (a copy)' : '') : t.kind;
    const color = value ? `var(--c${i % 6})` : 'var(--none)';
    picture.append(svg('rect', {class: 'tenant', x: x(t.first), y: y(t.offset + t.bytes), width: Math.max(1, x(t.last + 1) - x(t.first)),
                                height: Math.max(1, y(t.offset) - y(t.offset + t.bytes)), fill: color, onclick: () => reveal(t.first),
                                ...hint(() => `${name}: ${bytes(t.bytes)} at ${bytes(t.offset)}${BREAK}kernels ${t.first} to ${t.last}`)}));
  });
  let line = `M${left} ${y(0)}`;
  memory.live.forEach((n, k) => { line += `V${y(n)}H${x(k + 1)}`; });
  picture.append(svg('path', {class: 'live', d: line}), svg('path', {class: 'axis', d: `M${left} ${MARGIN.top}V${height - MARGIN.bottom}H${width - MARGIN.right}`}));
  for (let i = 0; i <= 4; i++)
    picture.append(svg('text', {class: 'soft', x: left - 6, y: y(total * i / 4) + 4, 'text-anchor': 'end'}, bytes(total * i / 4)));
  const marks = Math.max(1, Math.ceil(count / (w / 40)));
  for (let k = 0; k < count; k += marks)
    picture.append(svg('text', {class: 'soft', x: (x(k) + x(k + 1)) / 2, y: height - MARGIN.bottom + 15, 'text-anchor': 'middle'}, k));
  picture.append(svg('text', {class: 'soft', x: left + w / 2, y: height - 8, 'text-anchor': 'middle'}, 'kernel'));
  return walk(picture, '.tenant');
}

function redraw_pictures() {
  for (const place of document.querySelectorAll('.picture')) place.redraw();
}

// A section whose picture is drawn by redraw_pictures, because its width is known only in the page.
function picture_section(id, title, text, draw_picture) {
  const place = html('div', {class: 'picture'});
  place.redraw = () => { if (place.clientWidth) place.replaceChildren(...[draw_picture(place.clientWidth)].flat().filter(Boolean)); };
  return html('section', {id}, html('h2', {}, title), html('p', {}, text), place);
}

// Passes

// The shortest edit from one list to another (Myers), as [kind, line] with kind ' ', '-' or '+'. Beyond a limit, it
// replaces everything between the common beginning and end.
function difference(a, b) {
  let begin = 0, end = 0;
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin++;
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const x = a.slice(begin, a.length - end), y = b.slice(begin, b.length - end), n = x.length, m = y.length, most = 800;
  const trace = [], far = new Map([[1, 0]]);
  let found = -1;
  for (let d = 0; d <= Math.min(n + m, most) && found < 0; d++) {
    trace.push(new Map(far));
    for (let k = -d; k <= d; k += 2) {
      let i = k === -d || (k !== d && far.get(k - 1) < far.get(k + 1)) ? far.get(k + 1) : far.get(k - 1) + 1;
      while (i < n && i - k < m && x[i] === y[i - k]) i++;
      far.set(k, i);
      if (i >= n && i - k >= m) { found = d; break; }
    }
  }
  const middle = [];
  if (found < 0) {
    middle.push(...y.map(l => ['+', l]).reverse(), ...x.map(l => ['-', l]).reverse());
  } else {
    for (let d = found, i = n, j = m; d >= 0; d--) {
      const k = i - j, v = trace[d], from = k === -d || (k !== d && v.get(k - 1) < v.get(k + 1)) ? k + 1 : k - 1;
      const pi = d ? v.get(from) : 0, pj = d ? pi - from : 0;
      while (i > pi && j > pj && (d > 0 ? i > pi && j > pj : true)) { i--; j--; middle.push([' ', x[i]]); }
      if (d) middle.push(i > pi ? ['-', x[--i]] : ['+', y[--j]]);
    }
  }
  return [...a.slice(0, begin).map(l => [' ', l]), ...middle.reverse(), ...a.slice(a.length - end).map(l => [' ', l])];
}

const is_same = (a, b) => a.length === b.length && a.every((line, i) => line === b[i]);

// The graph before a pass.
function graph_before(graph, pass) {
  return graph.passes.slice(0, pass).reduce((before, p) => p.graph ?? before, graph.before);
}

const changes_lines = (graph, pass) => graph.passes[pass].graph && !is_same(graph_before(graph, pass), graph.passes[pass].graph);

function draw_difference(graph, before, after) {
  const rows = difference(before, after), context = 2, most = 3000;
  const near = rows.map(() => false);
  rows.forEach(([kind], i) => { if (kind !== ' ') for (let j = i - context; j <= i + context; j++) near[j] = true; });
  const out = [];
  let is_gap = false;
  for (let i = 0; i < rows.length && out.length < most; i++) {
    if (!near[i]) {
      if (!is_gap) out.push(html('span', {class: 'gap'}, '⋮'), html('br'));
      is_gap = true;
      continue;
    }
    is_gap = false;
    const [kind, line] = rows[i];
    out.push(html('span', {class: kind === '+' ? 'added' : kind === '-' ? 'removed' : null}, kind + ' ' + graph.lines[line]), html('br'));
  }
  if (out.length >= most) out.push(html('span', {class: 'gap'}, 'more is left out'));
  return html('pre', {}, out);
}

function draw_passes(graph) {
  const section = html('section', {id: 'passes'}, html('h2', {}, 'Passes'),
                       html('p', {}, 'Click a pass to see what it changed: in drawings of the graph before and after it, unless that is large, and in the lines of the graph file.'));
  const count = graph.passes.length;
  const place = html('div', {});
  const rows = graph.passes.map((pass, i) => html('tr', {
    class: state.pass === i ? 'on' : null, tabindex: 0, 'data-pass': i, onclick: () => choose(i),
    onkeydown: event => on_key(event, {Enter: () => choose(i)})
  }, html('td', {}, pass.name), html('td', {class: 'number'}, pass.nodes), html('td', {class: 'number'}, pass.ms?.toFixed(3)),
     html('td', {}, changes_lines(graph, i) ? 'changed operators' : pass.graph ? 'decided' : ''), html('td', {class: 'doc'}, pass.doc)));
  const choose = i => {
    state.pass = i;
    rows.forEach((row, k) => row.classList.toggle('on', k === i));
    const pass = graph.passes[i];
    place.replaceChildren(html('h3', {}, `${pass.name}: ${pass.doc ?? ''}`),
                          draw_pictures(graph, i), changes_lines(graph, i) ? draw_difference(graph, graph_before(graph, i), pass.graph) :
                          html('p', {}, pass.graph ? 'The operators are the same as before. What this pass decided is in the drawing and in the texts of kernels.' : 'It changed nothing.'));
  };
  section.append(html('div', {class: 'scroll'}, html('table', {}, html('tr', {}, html('th', {}, 'pass'), html('th', {class: 'number'}, 'operators after it'),
                      html('th', {class: 'number'}, graph.passes[0]?.ms === undefined ? '' : 'ms'), html('th', {}), html('th', {class: 'doc'})), rows)), place);
  if (state.pass >= 0 && state.pass < count) choose(state.pass);
  return section;
}

// Comparison

const letter = i => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[i] ?? String(i + 1);

function summary(graph) {
  const t = graph.timing, p = graph.program;
  return {
    file: graph.file, 'instruction set': t?.isa ?? null, threads: t?.threads ?? null,
    'median time': t ? t.median_ms : null, 'least time': t ? t.min_ms : null, kernels: p.kernels.length, operators: p.nodes.length,
    'bytes read and written by kernels': p.kernels.reduce((sum, k) => sum + k.bytes_read + k.bytes_written, 0),
    operations: p.kernels.reduce((sum, k) => sum + k.operations, 0), workspace: p.memory.bytes,
  };
}

const formats = {file: path => cut(path, 50), 'instruction set': String, threads: String, 'median time': time, 'least time': time, kernels: String, operators: String, 'bytes read and written by kernels': bytes, operations: amount, workspace: bytes};
const ratio = (a, b) => typeof a === 'number' && a > 0 && b > 0 ? (b / a).toFixed(2) : '';

// Kernels of the same operators, in order; their lines in the files may differ.
function match_kernels(a, b) {
  const of = graph => {
    const count = new Map();
    return graph.program.kernels.map((kernel, k) => {
      const plain = kernel.name.replace(/ \(lines? [^)]*\)/g, ''), n = count.get(plain) ?? 0;
      count.set(plain, n + 1);
      return {key: plain + '#' + n, plain, k, m: measured(graph, k), own: timed(graph, k) === k};
    });
  };
  const others = new Map(of(b).map(r => [r.key, r])), rows = [];
  for (const r of of(a)) {
    rows.push({name: r.plain, a: r, b: others.get(r.key)});
    others.delete(r.key);
  }
  for (const r of others.values()) rows.push({name: r.plain, b: r});
  return rows;
}

function draw_comparison() {
  const graphs = data.graphs, most = 40;
  const sums = graphs.map(summary), section = html('section', {id: 'comparison'}, html('h2', {}, 'Comparison'));
  section.append(html('div', {class: 'scroll'}, html('table', {},
      html('tr', {}, html('th', {}), graphs.map((_, i) => html('th', {class: 'number'}, letter(i))), graphs.length === 2 ? html('th', {class: 'number'}, 'B by A') : null),
      Object.keys(formats).map(key => html('tr', {}, html('td', {}, key),
          sums.map(s => html('td', {class: key === 'file' ? 'name' : 'number'}, s[key] === null ? '-' : formats[key](s[key]))),
          graphs.length === 2 ? html('td', {class: 'number'}, ratio(sums[0][key], sums[1][key])) : null)))));
  if (graphs.length !== 2) return section;
  const moved = r => Math.abs((r.a?.own && r.a.m?.ms || 0) - (r.b?.own && r.b.m?.ms || 0));
  const rows = match_kernels(graphs[0], graphs[1]).filter(r => !r.a || !r.b || moved(r) > 0).sort((p, q) => moved(q) - moved(p));
  const cell = r => html('td', {class: 'number'}, r ? `${r.k}` : '-'), ms = r => html('td', {class: 'number'}, r?.m && r.own ? time(r.m.ms) : '-');
  section.append(html('p', {}, rows.length ? `Kernels that differ, by how much their times do${rows.length > most ? `; the first ${most} of ${rows.length}` : ''}. ` +
                                             'Kernels of the same operators are paired in their order.' : 'The kernels are the same.'));
  if (rows.length)
    section.append(html('div', {class: 'scroll'}, html('table', {},
        html('tr', {}, html('th', {}, 'operators'), ['A', 'time', 'B', 'time', 'B by A'].map(t => html('th', {class: 'number'}, t))),
        rows.slice(0, most).map(r => html('tr', {}, html('td', {class: 'name'}, cut(r.name, 90)), cell(r.a), ms(r.a), cell(r.b), ms(r.b),
                                          html('td', {class: 'number'}, r.a?.m && r.b?.m ? ratio(r.a.m.ms, r.b.m.ms) : ''))))));
  return section;
}

// The page

function draw_top(graph) {
  const t = graph.timing, p = graph.program, cards = [[p.kernels.length, 'kernels'], [p.nodes.length, 'operators after passes'], [bytes(p.memory.bytes), 'workspace']];
  if (p.memory.parameter_bytes + p.memory.optimizer_bytes) cards.push([bytes(p.memory.parameter_bytes + p.memory.optimizer_bytes), 'states']);
  if (t) {
    const roofs = ceilings(graph), computes = roofs && t.operations / roofs.peak > t.ceiling_ms;
    cards.unshift([time(t.median_ms), `a call, median of ${t.runs}`]);
    if (computes) cards.push([`${t.gflops.toPrecision(3)} GF/s`, `of ${t.peak_gflops.toPrecision(3)}`]);
    else if (roofs) cards.push([`${(t.ceiling_ms / t.median_ms * roofs.rate * 1e-6).toPrecision(3)} GB/s`, `of ${(roofs.rate * 1e-6).toPrecision(3)}`]);
    cards.push([t.isa, `${t.threads} thread${t.threads === 1 ? '' : 's'}`]);
  }
  const links = [['graph', 'Graph'], ['bars', 'Kernels'], ['roofline', 'Roofline'], ['memory', 'Memory'], ['passes', 'Passes']];
  if (data.graphs.length > 1) links.unshift(['comparison', 'Comparison']);
  by_id('top').replaceChildren(
      html('h1', {}, graph.name), html('p', {}, `${graph.file}, by ngrad ${graph.version}`),
      data.graphs.length > 1 ? chooser('graph', data.graphs.map((g, i) => `${letter(i)}: ${g.name}`), data.graphs.indexOf(graph), choose_graph) : '',
      html('div', {class: 'cards'}, cards.map(([value, what]) => html('div', {class: 'card'}, html('b', {}, value), html('span', {}, what)))),
      graph.is_cut ? html('p', {class: 'note'}, 'The graph is large: some texts are left out, and say so. ngrad show prints all of them.') : '',
      html('nav', {}, links.map(([id, name]) => html('a', {href: `#${id}`}, name))));
}

// The kernel that a page opens with: the slowest, or without times the one with the most bytes; -1: there is none.
function first_kernel(graph) {
  const weight = (kernel, k) => measured(graph, k)?.ms ?? kernel.bytes_read + kernel.bytes_written;
  const weights = graph.program.kernels.map(weight);
  return weights.indexOf(Math.max(...weights));
}

function choose_graph(i) {
  const graph = data.graphs[i];
  try {
    const kernel = first_kernel(graph);
    Object.assign(state, {graph, kernel, node: -1, part: Math.max(0, part_of(graph, kernel)), hits: [], hit: -1,
                          pass: graph.passes.findIndex((_, i) => changes_lines(graph, i)), all_bars: false});
    draw();
  } catch (error) {
    by_id('page').replaceChildren(html('p', {class: 'note'}, `The data of this page is damaged, or of another version of ngrad: ${error.message}`));
  }
}

function draw() {
  const graph = state.graph, scroll = scrollY, selected = [state.kernel, state.node];
  document.title = shown(`${graph.name} - ngrad report`);
  draw_top(graph);
  by_id('page').replaceChildren(
      ...(data.graphs.length > 1 ? [draw_comparison()] : []), draw_graph(graph), draw_bars(graph),
      picture_section('roofline', 'Roofline', 'Each kernel by its operations a byte and its rate, below what a streaming loop (the slope) and a loop of ' +
                      'multiply-adds (the level) reached in the same run. A disc’s area is the kernel’s time, its colour the nearest bound.', width => draw_roofline(graph, width)),
      picture_section('memory', 'Memory between kernels', `The workspace of ${bytes(graph.program.memory.bytes)} (${bytes(graph.program.memory.bytes_without_reuse)} without reuse): ` +
                      'kernels from left to right, addresses upwards; grey is temporary memory of kernels, and the line is what is in use.', width => draw_memory(graph, width)),
      draw_passes(graph));
  redraw_pictures();
  select(...selected);
  scrollTo(0, scroll);
}

addEventListener('resize', redraw_pictures);
if (data.graphs.length) choose_graph(0);
