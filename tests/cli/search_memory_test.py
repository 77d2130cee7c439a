"""--search-memory: a search that would take more ends with its best plan and says so, never by the
out-of-memory killer."""
import json
import os
import re
import resource
import subprocess
import time
import unittest

from weft_command import CommandTest, TINY, WEFT

AXES = 'abcdefghijkl'
ADDRESS_SPACE = 2_500_000_000  # of the process, program and libraries included
MOST_SECONDS = 20


def relu_of_rank(rank):
    tensor = f'tensor<{"x".join(["2"] * rank)}xf16, #weft.axes<{", ".join(AXES[:rank])}>>'
    return (f'!s = {tensor}\nmodule {{\n weft.graph @g(%x: !s) -> !s {{\n'
            ' %y = weft.relu %x : !s\n weft.return %y : !s\n }\n}\n')


def contraction_of_rank(rank):
    outer = AXES[:rank - 1]
    axes = {'s': outer + 'y', 'w': 'yz', 'o': outer + 'z'}
    types = ''.join(
        f'!{name} = tensor<{"x".join(["4"] * len(of))}xf16, #weft.axes<{", ".join(of)}>>\n'
        for name, of in axes.items())
    return (
        f'{types}module {{\n weft.graph @g(%x: !s, %w: !w) -> !o {{\n'
        f' %y = weft.contract "{axes["s"]},{axes["w"]}->{axes["o"]}" %x, %w : !s, !w -> !o\n '
        f'weft.return %y : !o\n }}\n}}\n'
    )


def independent(count):
    """So many ops that read one tensor: every subset of them may share a kernel."""
    results = ', '.join(f'%y{n}' for n in range(count))
    types = ', '.join(['!t'] * count)
    ops = ''.join(f'    %y{n} = weft.relu %x : !t\n' for n in range(count))
    return (
        f'!t = tensor<8x64xf16, #weft.axes<b, i>>\nmodule '
        f'{{\n  weft.graph @g(%x: !t) -> ({types}) {{\n{ops}'
        f'    weft.return {results} : {types}\n  }}\n}}\n')


def chain(source, count):
    """A layer so many times, the result of one the argument of the next."""
    head, rest = source.split('module {', 1)
    arguments, result_type, body, result = re.search(
        r'weft\.graph @\w+\((.*?)\) -> (\S+) \{\n(.*?)\n    weft\.return %(\w+) :', rest,
        re.DOTALL).groups()
    parameters = re.findall(r'(%\w+)(: !\w+(?: \{[^}]*\})?)', arguments)
    first = parameters[0][0]
    lines, names, current = [], [first + parameters[0][1]], first
    for layer in range(count):
        rename = lambda found, layer=layer, current=current: current if found[
            0] == first else f'{found[0]}_l{layer}'
        names += [f'{name}_l{layer}{kind}' for name, kind in parameters[1:]]
        lines.append(re.sub(r'%\w+', rename, body))
        current = f'%{result}_l{layer}'
    return (f'{head}module {{\n  weft.graph @g({", ".join(names)}) -> {result_type} {{\n' +
            '\n'.join(lines) + f'\n    weft.return {current} : {result_type}\n  }}\n}}\n')


class SearchMemory(CommandTest):
    def bounded(self, *arguments):
        """Runs within an address space, which the default would take into account."""
        begin = time.monotonic()
        result = subprocess.run(
            [WEFT, *arguments], cwd=self.folder, env=self.environment(), capture_output=True,
            text=True, timeout=120, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                  (ADDRESS_SPACE, ADDRESS_SPACE)))
        self.assertEqual(result.returncode, 0, f'{arguments}\n{result.stdout}\n{result.stderr}')
        self.assertLess(time.monotonic() - begin, MOST_SECONDS, arguments)
        return json.loads(result.stdout)

    def test_graphs_whose_search_explodes(self):
        self.weft('import', 'bert-base', '--dim', 'b=2', '--dim', 'j=128', '-o', 'layer.mlir')
        layer = (self.folder / 'layer.mlir').read_text()
        graphs = {
            'rank': relu_of_rank(12), 'contraction': contraction_of_rank(7),
            'wide': independent(16), 'deep': chain(layer, 6)
        }
        reached = set()
        for name, text in graphs.items():
            self.write(f'{name}.mlir', text)
            for memory in ('1G', '256M'):
                with self.subTest(name, memory=memory):
                    answer = self.bounded('select', f'{name}.mlir', '--search-memory', memory,
                                          '--json')
                    self.assertGreater(answer['plan']['seconds'], 0)
                    self.assertGreaterEqual(answer['plan']['seconds'],
                                            answer['lowerBound'] * (1 - 1e-9))
                    self.assertEqual(answer['searchLimits']['reached'],
                                     bool(answer['searchLimits']['leftOut']))
                    if answer['searchLimits']['reached']:
                        reached.add(name)
        self.assertGreaterEqual(reached, {'wide', 'deep'})

    def test_what_is_left_out_is_said_and_strict_rejects(self):
        small = ['--search-memory', '8M', '--profile', 'none']
        whole = self.weft('select', *TINY, '--train', '--profile', 'none', '--json').json()
        self.assertEqual(whole['searchLimits'],
                         {'reached': False, 'leftOut': [], 'boundIsOfAll': True})
        cut = self.weft('select', *TINY, '--train', *small, '--json').json()
        self.assertTrue(cut['searchLimits']['reached'])
        self.assertGreaterEqual(cut['plan']['seconds'], whole['lowerBound'] * (1 - 1e-9))
        # Variants were left out, of which nothing is known: the bound is of the others.
        self.assertFalse(cut['searchLimits']['boundIsOfAll'])
        self.assertEqual(cut['lowerBound'],
                         min(variant['lowerBound'] for variant in cut['variants']))
        self.assertGreater(cut['lowerBound'], 0)
        listing = self.weft('select', *TINY, '--train', *small)
        self.assertEqual(listing.prose().count('reached its limits'), 1)
        self.assertIn('ended with the best plan found: ' + cut['searchLimits']['leftOut'][0],
                      listing.prose())
        self.assertNotIn('proven', listing.out)
        self.assertIn('in all variants that were searched, ratio', listing.prose())
        self.weft('compile', *TINY, '--train', *small, '--stop-after', 'emit', '-o', 'out')
        report = json.loads((self.folder / 'out/report.json').read_text())
        self.assertEqual(report['searchLimits'], cut['searchLimits'])
        self.fails(4, 'select', *TINY, '--train', *small, '--strict',
                   says=['--strict', 'search reached its limits', '--search-memory'])
        self.fails(2, 'select', *TINY, '--search-memory', 'much', says=['--search-memory much'])

    def test_a_plan_of_a_search_that_was_cut_says_so_first(self):
        """compile, explain and emit warn in their first lines, with the remedy; JSON does, too."""
        small = [*TINY, '--train', '--profile', 'none', '--stop-after', 'emit', '-o', 'out']
        warning = (r'! a faster plan may be left out \(--search-memory 8M\): \d+ \w.*, and 2 '
                   r'more cuts')
        first = self.weft('compile', *small, '--search-memory', '8M')
        self.assertLessEqual(len(first.out.splitlines()), 15)
        for result in (first, self.weft('explain', 'out'), self.weft('emit', 'out')):
            self.assertRegex(result.prose(), warning)
            self.assertRegex(result.prose(), r'best weft could choose \d.* of what was searched')
        for arguments in (['explain', 'out'], ['emit', 'out']):
            said = self.weft(*arguments, '--json').json()['warnings']
            self.assertEqual(sum('--search-memory 8M' in one for one in said), 1, said)
        for result in (self.weft('compile', *small), self.weft('explain', 'out')):
            self.assertNotIn('--search-memory', result.out)

    def test_a_search_that_was_cut_has_a_bound_of_what_was_searched(self):
        """In the table of variants: at most what its plan takes, and not 0 us."""
        said = self.weft('select', 'gpt2', '--part', 'model', '--layers', '2', '--dim', 'b=1',
                         '--dim', 'j=32', '--train', '--profile', 'none', '--search-memory',
                         '8M').out
        row = re.search(r'\* unchanged +([\d.]+) us .* ([\d.]+) us +[\d,]+\n', said)
        self.assertTrue(row, said)
        self.assertGreater(float(row[2]), 0.5 * float(row[1]))
        self.assertLessEqual(float(row[2]), float(row[1]))

    def test_the_same_memory_gives_the_same_plan(self):
        flags = ['select', *TINY, '--train', '--search-memory', '8M', '--profile', 'none', '--json']
        self.assertEqual(self.weft(*flags).json(), self.weft(*flags).json())


class WholeModels(CommandTest):
    """What the search of many layers takes: counts that no machine changes, and memory. The
    seconds are in docs/selection.md, "Complexity"."""

    def searched(self, *model):
        """Of compiling whole models: counts of the search, and the most memory in bytes."""
        process = subprocess.Popen(
            [WEFT, 'compile', *model, '--part', 'model', '--stop-after', 'emit', '-o', 'out'],
            cwd=self.folder, env=self.environment(), stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        path = self.folder / 'out/report.json'
        report = json.loads(path.read_text())
        statistics = [variant['statistics'] for part in report['parts']
                      for variant in part['variants'] if 'statistics' in variant]
        self.assertTrue(statistics)
        return {
            'parts': len(report['parts']), 'searches': len(statistics),
            'peak_states': max(one['peakStates'] for one in statistics),
            'states': sum(one['states'] for one in statistics),
            'combinations': sum(one['configurations'] for one in statistics),
            'bytes_of_report_json': path.stat().st_size, 'memory': usage.ru_maxrss * 1024
        }

    def holds(self, found, **bounds):
        for name, most in bounds.items():
            with self.subTest(name):
                self.assertLessEqual(found[name], most)

    def test_layers_that_repeat_are_searched_and_reported_once(self):
        for model in (('bert-large', '--layers', '24'), ('llama-3-8b', '--layers', '32')):
            with self.subTest(model):
                self.holds(self.searched(*model), parts=3, searches=40, peak_states=64,
                           states=40_000, combinations=1_000_000, bytes_of_report_json=1_200_000,
                           memory=500_000_000)

    def test_a_training_step_of_24_layers(self):
        found = self.searched('bert-large', '--layers', '24', '--train', '--optimizer', 'adamw')
        self.holds(found, parts=5, searches=20, peak_states=64, states=1_500_000,
                   combinations=600_000_000, bytes_of_report_json=16_000_000,
                   memory=2_000_000_000)


class Limits(CommandTest):
    def test_a_kernel_that_is_rejected_for_its_grid_is_named(self):
        self.write(
            'rows.mlir',
            '!t = tensor<80000000000x512xf16, #weft.axes<b, i>>\nmodule {\n  weft.graph @g(%x: '
            '!t) -> !t {\n'
            '    %y = weft.softmax %x over i : !t\n    weft.return %y : !t\n  }\n}\n')
        self.fails(3, 'compile', 'rows.mlir', '--stop-after', 'emit', '-o', 'out',
                   says=["kernel 'softmax__b_i'", 'blocks', 'the limit is 2147483647'])


if __name__ == '__main__':
    unittest.main()
