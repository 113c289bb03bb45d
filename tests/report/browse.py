"""Clicks through a page of ngrad report, in light and dark, wide and narrow. Usage: browse.py CHROMIUM PAGE

Fails with a message if a script fails, if anything is loaded, or if something is not where it should be.
"""
import json
import os
import sys

from browser import Browser

CHECK_DIFFERENCE = """(() => {
  let seed = 1;
  const random = n => (seed = seed * 48271 % 2147483647) % n;
  for (let round = 0; round < 300; round++) {
    const a = Array.from({length: random(12)}, () => random(4)), b = Array.from({length: random(12)}, () => random(4));
    const rows = difference(a, b), side = kind => rows.filter(r => r[0] !== kind).map(r => r[1]);
    if (String(side('+')) !== String(a) || String(side('-')) !== String(b)) return JSON.stringify([a, b, rows]);
    if (String(a) === String(b) && rows.some(r => r[0] !== ' ')) return 'equal lists differ';
  }
  return '';
})()"""


class Check:
    def __init__(self, program, page):
        self.page, self.failed = page, []
        self.browser = Browser(program)
        self.run = self.browser.run

    def wants(self, is_so, what):
        if not is_so:
            self.failed.append(what)

    def count(self, selector):
        return self.run(f'document.querySelectorAll({json.dumps(selector)}).length')

    def point(self, selector, i=0):
        """Moves the mouse to an element; returns where that is once the page, which moves drawings in a frame, has settled."""
        self.run(f"document.querySelectorAll({json.dumps(selector)})[{i}]?.scrollIntoView({{block: 'center'}})")
        self.browser.settle()
        place = self.run(f"""(() => {{
          const e = document.querySelectorAll({json.dumps(selector)})[{i}];
          if (!e) return null;
          const box = e.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + Math.min(box.height / 2, 14)];
        }})()""")
        self.wants(place, f'{selector} {i} is missing')
        if place:
            self.browser.mouse('mouseMoved', *place)
        return place

    def press(self, selector, i=0):
        place = self.point(selector, i)
        if place:
            self.browser.click(*place)

    def check_page(self, width, dark):
        self.browser.open(self.page, width, dark=dark)
        name = f'{width} pixels, {"dark" if dark else "light"}'
        self.wants(self.run('document.documentElement.scrollWidth <= innerWidth'), f'{name}: it is wider than the window')
        colors = self.run('[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].join()')
        light = [sum(int(c) for c in color.strip('rgb( )').split(',')) for color in colors.replace('),', ')|').split('|')]
        self.wants((light[0] < light[1]) == dark, f'{name}: colors are {colors}')
        self.wants(self.count('script') == 2, f'{name}: {self.count("script")} scripts')
        self.wants(self.count('img, iframe, object, embed, link, form, base') == 0, f'{name}: a name is read as HTML')
        self.run("document.querySelectorAll('.pictures .canvas').forEach(canvas => canvas.classList.add('far'))")
        unseen = self.run("[...document.querySelectorAll('.pictures .node')].filter(n => getComputedStyle(n).visibility !== 'visible').length")
        self.wants(unseen == 0, f'{name}: {unseen} operators are not seen in the drawings of a pass')
        self.wants(self.count('#graph, #bars, #roofline, #memory, #passes') >= 5, f'{name}: sections are missing')

    def check_details(self, graph):
        if not graph['program']['kernels']:
            return
        kernel = graph['program']['kernels'][0]
        self.press('.bars tr[data-kernel]')
        shown = self.run("document.getElementById('details').textContent")
        self.wants('kernel 0' in shown, 'a click on a bar does not select')
        self.wants(graph['lines'][graph['kernels'][0][0]] in shown or '\\u' in json.dumps(shown), 'details lack the kernel')
        for title in 'Kernel', 'Loops', 'C':
            opened = self.run(f"""(() => {{
              const d = [...document.querySelectorAll('#details details')].find(d => d.firstChild.textContent === '{title}');
              if (d) d.open = true;
              return d ? d.lastChild.innerText.length : 0;
            }})()""")
            self.wants(opened > 20, f'details have no {title}')
        alike = [i for i, text in enumerate(graph['c']) if text and 'the functions of kernel' in graph['lines'][text[0]]]
        for i in alike[:1]:
            self.wants(self.run(f'source_of(state.graph, {i}).length') > len(graph['c'][i]), f'kernel {i} has no C')
        lines = sorted({n for i in kernel['nodes'] for n in graph['program']['nodes'][i]['lines']})
        for line in lines[:1]:
            self.wants(graph['lines'][graph['source'][line - 1]].strip() in shown or 'alert' in shown, 'details lack the line of the file')

    def check_drawing(self, graph):
        if isinstance(graph['drawing'], str):
            self.wants(graph['drawing'] in self.run("document.getElementById('graph').textContent"), 'why there is no drawing')
            return
        if not graph['program']['kernels']:
            return
        self.wants(self.count('#graph .kernel') == graph['drawing']['parts'][0]['end'], 'kernels are missing in the drawing')
        wide = self.run("[...document.querySelectorAll('.canvas [data-room]')].filter(t => t.getComputedTextLength() > t.dataset.room).length")
        self.wants(wide == 0, f'{wide} texts are wider than their boxes')
        if self.count('.canvas .node'):
            self.run("document.querySelector('.canvas').centre(document.querySelector('.canvas .node'))")
            self.press('.canvas .node')
            self.wants(self.count('.node.on') == 1 and self.count('.kernel.on') == 1, 'a click on an operator does not select it')
        before = self.run("document.querySelector('.canvas svg > g').getAttribute('transform')")
        for i in range(3):
            self.press('.canvas button', i)
            after = self.run("document.querySelector('.canvas svg > g').getAttribute('transform')")
            self.wants(i == 2 or after != before, f'button {i} of the drawing does nothing')
            before = after
        box = self.run("""(() => { const b = document.querySelector('.canvas svg').getBoundingClientRect();
                                   return [b.x + b.width / 2, b.y + 80]; })()""")
        self.browser.mouse('mouseMoved', *box)
        self.browser.mouse('mousePressed', *box, button='left', clickCount=1)
        self.browser.mouse('mouseMoved', box[0] - 50, box[1] + 40, button='left')
        self.browser.mouse('mouseReleased', box[0] - 50, box[1] + 40, button='left', clickCount=1)
        self.wants(self.run("document.querySelector('.canvas svg > g').getAttribute('transform')") != before, 'it cannot be dragged')
        self.browser.mouse('mouseWheel', *box, deltaX=0, deltaY=-100, modifiers=2)
        for i in range(len(graph['drawing']['parts'])):
            if len(graph['drawing']['parts']) > 1:
                self.run(f"(() => {{ const s = document.querySelector('#graph select'); s.value = {i}; s.dispatchEvent(new Event('change')); }})()")
            part = graph['drawing']['parts'][i]
            self.wants(self.count('#graph .kernel') == part['end'] - part['first'], f'part {i} is not drawn')

    def is_seen(self, selector, within):
        return self.run(f"""(() => {{
          const a = document.querySelector({json.dumps(selector)})?.getBoundingClientRect();
          const b = document.querySelector({json.dumps(within)}).getBoundingClientRect();
          return Boolean(a) && a.x < b.right && a.right > b.x && a.y < b.bottom && a.bottom > b.y;
        }})()""")

    def check_first_view(self, graph):
        """The slowest kernel is selected, and the drawing begins at its top."""
        kernels = graph['program']['kernels']
        if not kernels:
            return
        if 'timing' in graph:
            times = [k['ms'] for k in graph['timing']['profile']['kernels']]
            first = max(range(len(kernels)), key=lambda k: (times[kernels[k]['with']], -k))
        else:
            first = max(range(len(kernels)), key=lambda k: (kernels[k]['bytes_read'] + kernels[k]['bytes_written'], -k))
        self.wants(self.run('state.kernel') == first, f'the page begins with kernel {self.run("state.kernel")}, not {first}')
        if isinstance(graph['drawing'], str):
            return
        y = 'getBoundingClientRect().y'
        self.run(f"[...document.querySelectorAll('.canvas .kernel')].reduce((a, b) => b.{y} < a.{y} ? b : a).id = 'highest'")
        self.wants(self.is_seen('#highest', '.canvas'), 'the highest kernel is not seen')
        self.wants(self.run(f"document.querySelector('.canvas svg > g').{y} >= document.querySelector('.canvas').{y}"), 'the top of the drawing is not seen')

    def look_for(self, text):
        """Types a text into the search field, which the key / focuses; returns what the page says of hits."""
        self.run('document.activeElement.blur()')
        self.browser.key('/')
        self.wants(self.run('document.activeElement.id') == 'search', '/ does not focus the search')
        self.browser.ask('Input.insertText', text=text)
        self.browser.settle()
        return self.run("document.getElementById('hits').textContent")

    def check_search(self, graph):
        program = graph['program']
        kernels, values = program['kernels'], [v['name'] for v in program['values']]
        if not kernels:
            return

        def hits(text):  # a node that several kernels have is a hit in each
            count = 0
            for k, kernel in enumerate(kernels):
                nodes = [program['nodes'][n] for n in kernel['nodes']]
                names = [[n['op'], n.get('label') or ''] + [values[v] for v in n['inputs'] + n['outputs'] if v is not None] for n in nodes]
                found = sum(any(text.lower() in name.lower() for name in own) for own in names)
                count += found or text.lower() in f'kernel {k}' or text.lower() in kernel['name'].lower()
            return count

        last = program['nodes'][kernels[-1]['nodes'][-1]]
        labels = [node['label'] for node in program['nodes'] if node.get('label')][:1]
        for text in [last['op'].upper(), values[last['outputs'][0]], f'kernel {len(kernels) - 1}'] + labels:
            wanted = hits(text)
            said = self.look_for(text)
            self.wants(said == (f'1 of {wanted}' if wanted else 'no hit'), f'a search for {text} says {said}, not {wanted}')
            self.wants(not wanted or isinstance(graph['drawing'], str) or self.is_seen('.canvas .kernel.on', '.canvas'), f'the hit {text} is not seen')
            if wanted > 1:
                steps = [self.run("document.getElementById('hits').textContent") for shift in (False, True, True)
                         if not self.browser.key('Enter', shift)]
                self.wants(steps == [f'2 of {wanted}', f'1 of {wanted}', f'{wanted} of {wanted}'], f'Enter goes through {steps}')
                hit = self.run("[state.kernel, state.node]")
                self.wants(hit[1] == -1 or hit[1] in kernels[hit[0]]['nodes'], f'hit {hit}')
            self.browser.key('Escape')
            self.wants(self.run("document.getElementById('search').value") == '' and self.count('.hit') == 0, 'Escape does not end the search')
        self.wants(self.look_for('no such operator') == 'no hit', 'a search without hits')
        self.browser.key('Escape')

    def check_keys(self, graph):
        """Arrow keys go through drawings; Tab reaches each drawing once."""
        kernels = graph['program']['kernels']
        stops = self.run("document.querySelectorAll('.canvas [tabindex], .picture [tabindex] [tabindex]').length")
        self.wants(stops == self.count('.canvas > [tabindex]'), f'{stops} stops of Tab in drawings')
        if kernels and not isinstance(graph['drawing'], str):
            self.run("document.querySelector('.canvas svg').focus()")
            seen = set()
            for key in 'Home', 'ArrowRight', 'ArrowRight', 'ArrowLeft', 'End':
                self.browser.key(key)
                seen.add(str(self.run('[state.kernel, state.node]')))
                self.wants(self.is_seen('.canvas .kernel.on', '.canvas'), f'{key} goes out of sight')
            items = self.count('.canvas .kernel') + self.count('.canvas .node')
            self.wants(len(seen) > 1 or items == 1, 'arrow keys do not go through the drawing')
            before = self.run("document.querySelector('.canvas svg > g').getAttribute('transform')")
            for key, shift in ('+', False), ('ArrowUp', True), ('-', False):
                self.browser.key(key, shift)
                after = self.run("document.querySelector('.canvas svg > g').getAttribute('transform')")
                self.wants(after != before, f'{key} does not move the drawing')
                before = after
        for picture, item in ('#roofline', '.point'), ('#memory', '.tenant'):
            if not self.count(f'{picture} {item}'):
                continue
            self.browser.mouse('mouseMoved', 1, 1)  # what scrolls away below the pointer would hide the hint
            self.run(f"document.querySelector('{picture} svg').focus()")
            self.browser.settle()
            self.browser.key('ArrowRight')
            self.wants(not self.run("document.getElementById('tip').hidden"), f'{picture}: an arrow key shows no hint')
            self.browser.key('Enter')
            self.run('document.activeElement.blur()')
            self.wants(self.run("document.getElementById('tip').hidden"), f'{picture}: the hint stays')

    def check_pictures(self, graph):
        if 'timing' in graph:
            own = [k for i, k in enumerate(graph['timing']['profile']['kernels']) if k['with'] == i]
            self.wants(self.count('.bar') == min(40, len(own)) == self.count('.bound'), 'bars or bounds are missing')
            self.wants(self.count('.point') == sum(1 for k in own if k['operations'] > 0 and k['ms'] > 0), 'points of the roofline are missing')
            self.wants(self.count('.roof') == 1, 'there is no roof')
            told = self.run("[...document.querySelectorAll('.bars tr[data-kernel]')].map(r => [Number(r.dataset.kernel), r.cells[2].textContent])")
            units = {'µs': 1e-3, 'ms': 1, 's': 1e3}
            for k, text in told:
                ms = graph['timing']['profile']['kernels'][k]['ms']
                number, _, unit = text.partition(' ')
                self.wants(text == '-' and ms == 0 or abs(float(number) * units[unit] / ms - 1) < 0.005, f'kernel {k}: {text} for {ms} ms')
            if own:
                self.press('#bars .buttons button', 1)
            if self.count('.point'):
                self.press('.point')
        tenants = graph['program']['memory']['tenants']
        self.wants(self.count('.tenant') == len(tenants), 'the memory plan lacks something')
        if tenants:
            self.point('.tenant')
            self.wants(not self.run("document.getElementById('tip').hidden"), 'there is no hint at the pointer')
            self.press('.tenant')

    def check_passes(self, graph):
        def operators(picture):
            name = lambda v: '' if v is None else picture['values'][v]['name']
            return sorted([n['op'], *map(name, n['inputs'] + n['outputs'])] for n in picture['nodes'])

        before, drawn = graph['before'], graph['first'].get('picture')
        for i, done in enumerate(graph['passes']):
            self.press('tr[data-pass]', i)
            found = self.count('#passes .added') + self.count('#passes .removed')
            self.wants(done.get('graph', before) == before or found > 0, f'{done["name"]} has no changes')
            before = done.get('graph', before)
            pictures = self.count('.pictures .canvas')
            earlier, drawn = drawn, done.get('picture', drawn)
            changes = 'picture' in done and earlier is not None and operators(earlier) != operators(drawn)
            self.wants(pictures == (2 if changes else 0), f'{done["name"]} has {pictures} drawings')
            if pictures:
                self.wants(self.count('.pictures .node') >= len(done['picture']['nodes']) and
                           self.count('.gone') + self.count('.came') > 0, f'{done["name"]}: nothing is marked')
                self.point('.pictures .node')

    def all(self):
        for width in 1400, 400:
            for dark in False, True:
                self.check_page(width, dark)
            self.wants(self.run('!state.graph.program.kernels.length') or self.is_seen('#search', '#graph'), f'{width} pixels: no search')
        self.browser.open(self.page)
        graphs = json.loads(self.run("document.getElementById('data').textContent"))['graphs']
        for i, graph in enumerate(graphs):
            if len(graphs) > 1:
                self.press('#top .buttons button', i)
            self.check_first_view(graph)
            self.check_drawing(graph)
            self.check_details(graph)
            self.check_search(graph)
            self.check_keys(graph)
            self.check_pictures(graph)
            self.check_passes(graph)
        self.wants((self.count('#comparison') == 1) == (len(graphs) > 1), 'the comparison')
        wrong = self.run(CHECK_DIFFERENCE)
        self.wants(not wrong, f'difference: {wrong}')
        self.failed += self.browser.wrong
        own = 'file://' + os.path.abspath(self.page)
        self.wants(all(r.split('#')[0].startswith('file://') and r.endswith('.html') for r in self.browser.requests),
                   f'it loads {self.browser.requests}')
        self.wants(len(set(self.browser.requests)) == 1, f'{own} loads {set(self.browser.requests)}')


def main():
    check = Check(sys.argv[1], sys.argv[2])
    try:
        check.all()
    finally:
        check.browser.close()
    print('\n'.join(check.failed))
    sys.exit(1 if check.failed else 0)


main()
