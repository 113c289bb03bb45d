"""Whether a file is what Chrome's trace format asks for, and says what ngrad promises. Usage: check_trace.py FILE THREADS GRAPH...

The format: "Trace Event Format", JSON object form; complete events (ph X) and metadata (ph M).
"""
import json
import sys


def check(document, nthreads, graphs):
    assert set(document) == {'traceEvents', 'displayTimeUnit'} and document['displayTimeUnit'] in ('ms', 'ns')
    names, spans = {}, {}
    for event in document['traceEvents']:
        assert event['ph'] in ('M', 'X') and isinstance(event['name'], str), event
        assert type(event['pid']) is int and type(event['tid']) is int and isinstance(event['args'], dict), event
        assert 0 <= event['tid'] < nthreads, event
        if event['ph'] == 'M':
            assert event['name'] in ('process_name', 'thread_name') and isinstance(event['args']['name'], str), event
            names[event['name'], event['pid'], event['tid']] = event['args']['name']
            continue
        assert isinstance(event['cat'], str) and event['ts'] >= 0 and event['dur'] >= 0, event
        assert event['args']['blocks'] > 0 and event['name'].startswith(f'kernel {event["args"]["kernel"]}: '), event
        spans.setdefault(event['pid'], []).append(event)
    found = [names['process_name', pid, 0] for pid in sorted(spans)]
    assert found == graphs, found
    for pid, events in spans.items():
        assert all(('thread_name', pid, tid) in names for tid in range(nthreads))
        loops = [(e['args']['kernel'], e['args']['loop']) for e in events]
        assert loops == sorted(loops) and loops[0] == (0, 0), loops
        for tid in range(nthreads):  # one thing after the other; times are rounded to nanoseconds
            own = sorted((e['ts'], e['ts'] + e['dur']) for e in events if e['tid'] == tid)
            assert all(a[1] <= b[0] + 0.01 for a, b in zip(own, own[1:])), own


with open(sys.argv[1], encoding='ascii') as file:
    check(json.load(file), int(sys.argv[2]), sys.argv[3:])
