"""The numbers of a report are those of ngrad bench --profile --json. Usage: same_numbers.py BENCH.json REPORT.json PAGE.html

BENCH and REPORT are outputs for one graph. Their times differ, as they were measured in two runs; all else must be equal.
The page was written in the run of REPORT, whose times it must have, to the page's 6 digits.
"""
import json
import math
import sys

TIMES = {'ms', 'other_ms', 'gflops', 'bound', 'runs', 'samples', 'min_ms', 'median_ms', 'max_ms', 'mad_ms', 'outliers', 'ceiling_ms',
         'ceiling_ratio', 'peak_gflops', 'peak_ratio'}  # bound: the one that the times are near


def differences(a, b, are_equal, path=''):
    """The places at which two documents differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            return [f'{path}: {list(a)} and {list(b)}']
        return [d for key in a for d in differences(a[key], b[key], are_equal, f'{path}.{key}')]
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return [f'{path}: {len(a)} and {len(b)} items']
        return [d for i, pair in enumerate(zip(a, b)) for d in differences(*pair, are_equal, f'{path}[{i}]')]
    return [] if are_equal(path, a, b) else [f'{path}: {a} and {b}']


def is_same_or_time(path, a, b):
    of_times = path.rpartition('.')[2] in TIMES or '.most_speedup.' in path
    return a == b or (of_times and type(a) is type(b))


def is_same_to_digits(_, a, b):
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-5))


def main():
    with open(sys.argv[1], encoding='utf-8') as bench, open(sys.argv[2], encoding='utf-8') as report, open(sys.argv[3], encoding='utf-8') as page:
        (timed,), (graph,) = json.load(bench), json.load(report)['graphs']
        data = page.read().partition('<script type="application/json" id="data">')[2].partition('</script>')[0]
    timed.pop('file')
    found = differences(timed, graph['timing'], is_same_or_time, 'bench and report')
    found += differences(graph['timing'], json.loads(data)['graphs'][0]['timing'], is_same_to_digits, 'report and page')
    print(*found, sep='\n')
    return bool(found)


sys.exit(main())
