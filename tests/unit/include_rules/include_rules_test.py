"""The include rules of ARCHITECTURE.md, checked: the table there is the only list, this script
reads it.

A row's first column names folders (`*`: of any name), its last column what files below them may
include beside their own folder: folders of ours, and MLIR (which stands for LLVM too). The longest
folder that contains a file decides. `all` allows everything that has a row. A quoted include is
spelled from the root of the repository: one that starts in no folder of the table is a violation
everywhere, so that no spelling escapes the rules. Device headers are included as weft/NAME.cuh from
wherever they lie: those of a kernel family by that family alone. Other headers of one family are
included by its folder, by tests and by the bench, and by the files that ONE_FAMILY lists."""
import fnmatch
import pathlib
import re
import tempfile
import unittest
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).resolve().parents[3]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
MLIR = ('mlir/', 'llvm/', 'mlir-c/', 'llvm-c/')
# Device headers are "weft/NAME.cuh" in kernels; the emulator's own of the same names come first on
# its include path, and begin with what the host compiler needs of CUDA.
DEVICE = 'weft/'
FAMILY = re.compile(r'codegen/families/\w+/')
# Files that include headers of one family, and why: no more are to come.
A_GEMM_OF_THE_LIBRARY = 'a GEMM of cuBLASLt has no text: its form and its algorithm are data'
ONE_FAMILY = {
    path: ('library', f'{A_GEMM_OF_THE_LIBRARY} {of}')
    for of, paths in {
        'of a plan': ('plan/Plan.h', 'plan/PlanCheck.cpp', 'plan/PlanJson.cpp',
                      'tools/driver/Emission.cpp'),
        'that the runtime hands to cuBLASLt': ('runtime/cuda/CublasLt.h',
                                               'runtime/cuda/CublasLt.cpp'),
        'that a profile times': ('runtime/measure/MeasureJobs.h', 'runtime/measure/MeasureJobs.cpp',
                                 'runtime/measure/MeasureWorker.cpp',
                                 'passes/decide/ProfileSpace.h'),
        'whose version weft env prints': ('tools/driver/commands/Env.cpp', ),
    }.items() for path in paths
}
# The same of the mechanisms of tests, whose cases lie in the folders of families.
MECHANISMS = ('tests/emulate', 'tests/golden', 'tests/gpu', 'tests/nvrtc', 'tests/support')
TESTS_OF_ONE_FAMILY = {
    ('tests/emulate/large_tensors.cpp', 'gemm_fma'): 'tensors of one size, of several families',
    ('tests/emulate/large_tensors.cpp', 'loop'): 'tensors of one size, of several families',
    ('tests/emulate/large_tensors.cpp', 'transpose'): 'tensors of one size, of several families',
    ('tests/golden/golden_kernels.cpp', 'loop'): 'texts of loop kernels alone are pruned by names',
    ('tests/support/ExampleArtifact.h', 'loop'): 'a kernel of an artifact needs some knobs',
}
# What a folder of families includes of the others: bases, which define no family. What a family
# needs of another, it asks by the registry (kernel/Family.h).
BASES = {
    'attention': {'contraction'},
    'attention_backward': {'attention'},
    'attention_backward_sm80': {'attention', 'attention_backward', 'contraction'},
    'attention_backward_sm90': {'attention', 'attention_backward', 'contraction'},
    'attention_sm80': {'attention', 'contraction'},
    'attention_sm90': {'attention', 'contraction'},
    'gemm_fma': {'contraction'},
    'gemm_sm80': {'contraction'},
    'gemm_sm90': {'contraction'},
    'library': {'contraction'},
}
EMULATED = 'tests/emulate/host/weft/'
KEYWORDS = 'emulate_keywords.h'
# What names an architecture: families and codegen/targets do, and comments as examples.
ARCHITECTURE = re.compile(r'sm_?\d\d|hopper|ampere', re.IGNORECASE)
# And in kernel/, what names one instruction, library or device.
ARCHITECTURE_OF_KERNEL = re.compile(ARCHITECTURE.pattern + r'|wgmma|mma\.?sync|cublas|h[12]00',
                                    re.IGNORECASE)
OF_NO_ARCHITECTURE = ('kernel', 'ir', 'models', 'passes', 'plan', 'runtime', 'tools')
NAMES_ARCHITECTURE = {
    'plan/ParameterType.cpp': 'the C type of tensor maps in emitted texts',
    'runtime/measure/ReferenceCopy.cpp': 'PTX of the copy that every measurement is compared with',
    'tools/driver/Flags.cpp': 'help of --early-start',
    'tools/driver/commands/Profile.cpp': 'help of --family, by an example',
}
# What plan/ includes of passes/, also by way of others: data, and movement that packing makes of.
# The phase that decides prices, enumerates and selects; it hands plan/ what it chose.
PLAN_INCLUDES = {
    'passes/configure/CopyReason.h', 'passes/configure/Cost.h', 'passes/configure/Packing.h',
    'passes/configure/PriceSource.h', 'passes/select/Problem.h', 'passes/select/Proposal.h',
    'passes/select/Rewrite.h', 'passes/select/StepText.h'
}
# What prices, selects or builds plans: functions, a cost model's answer, and selection's tables.
DECIDING_FUNCTIONS = (
    'draftPlan', 'finishPlan', 'describeConfigured', 'planOfPath', 'selectVariants',
    r'select::select\w*', 'select::joinVariants', 'bestCombinations', 'planOf', 'runInChunks',
    'chunkChain', 'cutAlong', 'inChunks', 'takeMeasurementsOfStridedViews', 'chooseChunks',
    'chooseWithinMemory', 'chooseByMeasuring', 'costWithStridedViews', 'chooseEarlyStarts',
    r'forEachConfiguration\w*', 'predictGraph', 'boundOf', 'memoryUsageEfficiency', 'peakFlops',
    # Prices and configurations of the kernels of a plan.
    'priceKernelAgain', 'nearestConfiguration', 'legality', 'sumOfKernels', 'noteCopies',
    'noteDeterminism',
    # Several layers: where they are cut, what is computed again, whether the plan fits.
    'joinedDecision', 'beyondMemory', r'(?<!decision::)choose[A-Z]\w*', 'recomputeInParts',
    'fit',
    # Kinds of attention: their prices, and the traffic of their kernels by tiles.
    'priceKind', 'priceSite', 'tilesOf', r'l2Bytes\w*', 'pricedInItsLayouts', 'attentionFigures',
    'attentionProblem', 'gemmProblem', 'visibleBlocks', 'visibleScores',
    # What a selection would have chosen instead.
    'kBest', 'planIfFused', r'whatIf\w+', 'layoutPrices', 'waitsForMeasurements')
# What the command line may ask of the phase that decides, by what it wants.
INTERFACE = {
    'a decision': ('decide', 'decidePlan', 'decideCombinations', 'recomputedSets', 'decideLayers',
                   'layersToCompare', 'chooseCut'),
    'its plan at other extents, or edited': ('configureAgain', 'priceAgain'),
    'a plan that was decided': ('plannedSteps', 'plansInChunks', 'memoryLine', 'tradeLine',
                                'graphOf', 'graphSecondsBy', 'secondsBy'),
    'what another decision would be': ('attentionPrices', 'memoryPoints', 'layeredPoints',
                                       'undominated', 'nearestLayouts', 'predictLayout',
                                       'predictLayouts', 'isPlan', 'fusedOtherwise',
                                       'layoutLosses', 'bestPaths'),
    'what a profile measures': ('profileSpace', 'chunkSpace'),
    'what no plan can be faster than': ('rooflineSeconds', 'copySeconds'),
}
ASKED = re.compile(r'\bdecision::([a-z]\w*)\(')
DECIDING = re.compile(rf'\b(?:{"|".join(DECIDING_FUNCTIONS)})\(|(?:\.|->)cost\('
                      r'|\bselect::(?:Prices|LoopTable)\b|/ \S*[a-z]Bandwidth\b')


def rules(architecture: str) -> dict[str, set[str]]:
    """Folder -> folders it may include; 'MLIR' and 'all' stand as themselves."""
    table = {}
    for line in architecture.splitlines():
        cells = [cell.strip() for cell in line.strip().strip('|').split('|')]
        folders = re.findall(r'`([a-z0-9_/*]+)/`', cells[0])
        if not line.startswith('|') or len(cells) != 3 or not folders:
            continue
        allowed = {name.rstrip('/') for name in re.findall(r'`([a-z0-9_/]+/)`', cells[2])}
        allowed |= {word for word in ('MLIR', 'all') if re.search(rf'\b(?<!no ){word}\b', cells[2])}
        for folder in folders:
            table[folder] = allowed | {folder}
    return table


def owner(path: str, folders) -> str | None:
    """The longest of the folders that contains the path."""
    parts = path.split('/')[:-1]
    containing = [
        folder for folder in folders if len(folder.split('/')) <= len(parts) and all(
            fnmatch.fnmatchcase(part, name) for part, name in zip(parts, folder.split('/')))
    ]
    return max(containing, key=lambda folder: folder.count('/'), default=None)


def device_headers(root: pathlib.Path) -> dict[str, list[str]]:
    """Name -> paths: of the shared device headers, and of those of families."""
    headers: dict[str, list[str]] = {}
    for folder in ('codegen/device', 'codegen/families/*/device'):
        for file in sorted(root.glob(f'{folder}/*.cuh')):
            headers.setdefault(file.name, []).append(file.relative_to(root).as_posix())
    return headers


def target_of(include: str, folders) -> str | None:
    """The folder, or MLIR, that an include comes from; None for the standard library and
    packages."""
    return 'MLIR' if include.startswith(MLIR) else owner(include, folders)


def is_of_another_family(path: str, include: str) -> bool:
    """Device headers of a family are its own."""
    of, by = FAMILY.match(include), FAMILY.match(path)
    return bool(of and by and include.endswith('.cuh') and of[0] != by[0])


def violations(root: pathlib.Path, table: dict[str, set[str]]) -> list[str]:
    found = []
    headers = device_headers(root)
    tops = {folder.split('/')[0] for folder in table}
    for file in sorted(file for top in tops for file in (root / top).rglob('*')):
        path = file.relative_to(root).as_posix()
        folder = owner(path, table)
        if folder is None or file.suffix not in {'.h', '.cpp', '.cuh'}:
            continue
        for number, line in enumerate(file.read_text(encoding='utf-8').splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or (path.startswith(EMULATED) and match[2] == KEYWORDS):
                continue
            quoted, include = match[1] == '"', match[2]
            if include.startswith(DEVICE):
                name = include.removeprefix(DEVICE)
                include = headers.get(name, [f'codegen/device/{name}'])[0]
            target = target_of(include, table)
            if '.' in include.split('/')[:-1] or '..' in include.split('/') or (quoted
                                                                                and target is None):
                found.append(
                    f'{path}:{number}: {include} is not spelled from a folder of the table')
            elif 'all' in table[folder]:
                continue
            elif target is not None and (target not in table[folder]
                                         or is_of_another_family(path, include)):
                found.append(f'{path}:{number}: {folder}/ may not include {include} ({target})')
    return found


def family_folders(root: pathlib.Path) -> set[str]:
    """Folders that define a family; the others hold what families share."""
    defined = re.compile(r'^const Family \w+ = \{', re.MULTILINE)
    return {
        file.parent.name
        for file in (root / 'codegen' / 'families').glob('*/*.cpp')
        if defined.search(file.read_text(encoding='utf-8'))
    }


def includes_of_one_family(root: pathlib.Path, tops: Iterable[str]) -> set[tuple[str, str]]:
    """Files below these folders, but of families, and the family that they include."""
    families = family_folders(root)
    found = set()
    for file in sorted(file for top in tops for file in (root / top).rglob('*')):
        path = file.relative_to(root).as_posix()
        if file.suffix not in {'.h', '.cpp', '.cuh'} or path.startswith('codegen/families/'):
            continue
        for line in file.read_text(encoding='utf-8').splitlines():
            match = INCLUDE.match(line)
            family = match and FAMILY.match(match[2])
            if family and family[0].split('/')[2] in families:
                found.add((path, family[0].split('/')[2]))
    return found


def includes_among_families(root: pathlib.Path) -> dict[str, set[str]]:
    """By folder of codegen/families, the others that it includes; tests may include all."""
    found: dict[str, set[str]] = {}
    for file in sorted((root / 'codegen' / 'families').glob('*/*')):
        if file.suffix not in {'.h', '.cpp'}:
            continue
        for line in file.read_text(encoding='utf-8').splitlines():
            match = INCLUDE.match(line)
            family = match and FAMILY.match(match[2])
            if family and family[0].split('/')[2] != file.parent.name:
                found.setdefault(file.parent.name, set()).add(family[0].split('/')[2])
    return found


def folder_cycles(root: pathlib.Path, table: dict[str, set[str]]) -> list[list[str]]:
    """Folders whose files include each other, also by way of others; each such set sorted."""
    includes: dict[str, set[str]] = {}
    for top in sorted({folder.split('/')[0] for folder in table} - {'tests'}):
        for file in sorted((root / top).rglob('*')):
            if file.suffix not in {'.h', '.cpp', '.cuh'}:
                continue
            folder = file.parent.relative_to(root).as_posix()
            for line in file.read_text(encoding='utf-8').splitlines():
                match = INCLUDE.match(line)
                target = match and root / match[2]
                if target and target.is_file() and target.parent != file.parent:
                    includes.setdefault(folder, set()).add(
                        target.parent.relative_to(root).as_posix())
    reached = {folder: set(targets) for folder, targets in includes.items()}
    changed = True
    while changed:
        changed = False
        for folder, targets in reached.items():
            more = set().union(*(reached.get(target, set()) for target in targets)) - targets
            if more:
                targets |= more
                changed = True
    cycles = {
        tuple(
            sorted(other for other in reached[folder]
                   if folder in reached.get(other, ()) and folder in reached[folder]))
        for folder in reached
    }
    return [list(cycle) for cycle in sorted(cycles) if cycle]


def reached(root: pathlib.Path, folder: str) -> set[str]:
    """Headers outside a folder that its files include, and what these include."""
    found: set[str] = set()
    left = [file.relative_to(root).as_posix() for file in (root / folder).rglob('*')
            if file.suffix in {'.h', '.cpp'}]
    while left:
        for line in (root / left.pop()).read_text(encoding='utf-8').splitlines():
            match = INCLUDE.match(line)
            if match and match[2] not in found and (root / match[2]).is_file():
                found.add(match[2])
                left.append(match[2])
    return {path for path in found if not path.startswith(f'{folder}/')}


# A word of an attribute where one of a kernel's op is read or set (kernel/Attributes.h has names).
ATTRIBUTE_WORD = re.compile(r'\battributes(?:\.(?:at|find|contains|count|erase)\(|\[)"')
# It makes attributes of a kernel from those of a graph, of which one has no type but its value's.
ATTRIBUTE_BRIDGE = 'ir/Syntax.cpp'


def words_of_attributes(root: pathlib.Path, table: dict[str, set[str]]) -> list[str]:
    """Lines outside the tests that name an attribute of a kernel by its word."""
    found = []
    for top in sorted({folder.split('/')[0] for folder in table} - {'tests'}):
        for file in sorted((root / top).rglob('*')):
            path = file.relative_to(root).as_posix()
            if file.suffix in {'.h', '.cpp'} and '/tests/' not in path and path != ATTRIBUTE_BRIDGE:
                found += [
                    f'{path}:{number}'
                    for number, line in enumerate(file.read_text(encoding='utf-8').splitlines(), 1)
                    if ATTRIBUTE_WORD.search(line)
                ]
    return found


class IncludeRules(unittest.TestCase):
    table = rules((ROOT / 'ARCHITECTURE.md').read_text(encoding='utf-8'))

    def test_every_source_folder_has_a_row(self):
        for folder in ('kernel', 'ir', 'models', 'passes', 'passes/configure', 'passes/select',
                       'passes/decide', 'plan', 'codegen', 'runtime', 'tools'):
            self.assertIn(folder, self.table)
        self.assertNotIn('MLIR', self.table['codegen'])
        self.assertIn('MLIR', self.table['passes'])

    def test_the_sources_keep_the_rules(self):
        self.assertEqual(violations(ROOT, self.table), [])

    def test_only_what_is_listed_includes_one_family(self):
        tops = {folder.split('/')[0] for folder in self.table} - {'tests', 'bench'}
        self.assertEqual(includes_of_one_family(ROOT, tops),
                         {(path, family) for path, (family, _) in ONE_FAMILY.items()})

    def test_mechanisms_of_tests_know_no_family(self):
        self.assertEqual(includes_of_one_family(ROOT, MECHANISMS), set(TESTS_OF_ONE_FAMILY))

    def test_a_family_includes_bases_alone(self):
        self.assertEqual(includes_among_families(ROOT), BASES)
        self.assertEqual(set().union(*BASES.values()) & family_folders(ROOT), set())

    def test_a_family_that_includes_another_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in (('mine/Mine.cpp', '#include "codegen/families/other/Other.h"\n'
                                '#include "codegen/families/mine/Mine.h"\n'),
                               ('other/Other.h', '#include "codegen/families/base/Base.h"\n'),
                               ('other/tests/a_test.cpp',
                                '#include "codegen/families/mine/Mine.h"\n')):
                file = root / 'codegen' / 'families' / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            self.assertEqual(includes_among_families(root),
                             {'mine': {'other'}, 'other': {'base'}})

    def test_every_family_of_the_registry_is_known_by_its_folder(self):
        registry = (ROOT / 'codegen/families/Registry.cpp').read_text(encoding='utf-8')
        self.assertEqual(len(family_folders(ROOT)), len(re.findall(r'\bfamily\(\w+\)', registry)))

    def test_an_include_of_one_family_is_found_and_of_what_families_share_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in (('codegen/families/mine/Mine.cpp', 'const Family mineFamily = {\n'),
                               ('codegen/families/shared/Shared.cpp', 'int shared = 0;\n'),
                               ('plan/Bad.cpp', '#include "codegen/families/mine/Mine.h"\n'),
                               ('plan/Good.cpp', '#include "codegen/families/shared/Shared.h"\n'),
                               ('codegen/families/other/Good.cpp',
                                '#include "codegen/families/mine/Mine.h"\n')):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            self.assertEqual(includes_of_one_family(root, ['codegen', 'plan']),
                             {('plan/Bad.cpp', 'mine')})

    def test_attributes_are_named_by_constants_that_know_their_types(self):
        self.assertEqual(words_of_attributes(ROOT, self.table), [])

    def test_a_word_of_an_attribute_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / 'plan' / 'Bad.cpp'
            bad.parent.mkdir()
            bad.write_text('x = op.attributes.at("axis");\ny = hasAttribute(op, attribute::axis);\n'
                           'op.attributes["outer"] = 1;\nop.attributes.contains("key")\n')
            self.assertEqual(words_of_attributes(pathlib.Path(folder), self.table),
                             ['plan/Bad.cpp:1', 'plan/Bad.cpp:3', 'plan/Bad.cpp:4'])

    def test_units_link_each_other_in_one_direction(self):
        """CMake then rejects a circle of libraries, of which links would hide one of includes."""
        self.assertIn('set_property(GLOBAL PROPERTY GLOBAL_DEPENDS_NO_CYCLES ON)',
                      (ROOT / 'CMakeLists.txt').read_text(encoding='utf-8'))

    def test_kernel_links_no_other_unit(self):
        """It is plain data: what it needs of families, their registry hands over."""
        linking = re.compile(r'^(?:weft_library|target_link_libraries)\((weft_kernel)\b([^)]*)\)',
                             re.MULTILINE)
        files = [ROOT / 'CMakeLists.txt', *sorted(ROOT.glob('*/**/CMakeLists.txt'))]
        calls = [
            (file.relative_to(ROOT).as_posix(), match[2]) for file in files
            if 'build' not in file.relative_to(ROOT).parts
            for match in linking.finditer(file.read_text(encoding='utf-8'))
        ]
        self.assertEqual([file for file, _ in calls], ['kernel/CMakeLists.txt'])
        self.assertNotIn(' LINK ', calls[0][1])

    def test_folders_do_not_include_each_other_in_a_circle(self):
        self.assertEqual(folder_cycles(ROOT, self.table), [])

    def test_a_circle_of_folders_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, included in (('runtime/a/A.h', 'runtime/b/B.h'),
                                   ('runtime/b/B.h', 'runtime/c/C.h'),
                                   ('runtime/c/C.h', 'kernel/K.h'),
                                   ('runtime/c/C.cpp', 'runtime/a/A.h'), ('kernel/K.h', 'none')):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(f'#include "{included}"\n')
            self.assertEqual(folder_cycles(root, self.table),
                             [['runtime/a', 'runtime/b', 'runtime/c']])

    def test_only_tests_may_include_everything(self):
        self.assertEqual([folder for folder, allowed in self.table.items() if 'all' in allowed],
                         ['codegen/families/*/tests', 'tests'])

    @staticmethod
    def calls_of_commands(pattern: re.Pattern) -> list[tuple[str, str]]:
        """Files of tools, and what the pattern finds in them."""
        return [(file.relative_to(ROOT).as_posix(), call)
                for file in sorted((ROOT / 'tools').rglob('*'))
                if file.suffix in {'.h', '.cpp'} and 'words' not in file.parts
                for call in pattern.findall(file.read_text(encoding='utf-8'))]

    def test_commands_decide_nothing(self):
        """What prices, selects or builds plans is called by the phase that decides alone."""
        self.assertEqual(self.calls_of_commands(DECIDING), [])

    def test_commands_ask_the_phase_that_decides_by_its_interface(self):
        """A function of the phase that commands begin to call needs a place in INTERFACE."""
        names = [name for group in INTERFACE.values() for name in group]
        calls = self.calls_of_commands(ASKED)
        self.assertEqual([call for call in calls if call[1] not in names], [])
        self.assertEqual(set(names), {name for _, name in calls})

    def test_a_deciding_call_is_found(self):
        for text in ('x = draftPlan(path);', 'finishPlan(std::move(draft), problem, false)',
                     'cut = cutAlong(draft, chain, dimension);',
                     'select::select(problem, model);',
                     'const double s = model.cost(kernel, one).seconds;',
                     'analytic->cost(kernel, one)', 'costWithStridedViews(*full, k, c)',
                     'const select::Prices prices(problem, model);',
                     'select::LoopTable table(kernel);', 'predictGraph(plan, order)',
                     'entry.bound = boundOf(cost, kernel, device);',
                     'memoryUsageEfficiency(cost, device)', 'chooseEarlyStarts(plan, which);',
                     'forEachConfiguration(kernel, device, {}, visit);',
                     'forEachConfigurationOf(family, kernel, device, any, visit);',
                     'decision::priceKernelAgain(entry, chosen, prices);',
                     'decision::nearestConfiguration(kernel, own, device);',
                     'planned.plan.predictedSeconds = sumOfKernels(planned.plan);',
                     'noteDeterminism(planned, costModel);',
                     'const auto [isLegal, others] = legality(kernel, own, device);',
                     'select::selectAmongAlternatives(problem, spaces, options);',
                     'joined = select::joinVariants(joinable, mayCross);',
                     'best = decision::bestCombinations(*joined, planContext(), options);',
                     'decision::beyondMemory(options, smallest);',
                     'x = decision::joinedDecision(problem, options, placed);',
                     'cut = chooseCut(whole, graph, layers);', 'size_t chooseOne(size_t places)',
                     '    recomputeInParts();', '  void fit() {',
                     'priced = priceKind(request, site, kind, queries, keys);',
                     'SitePrices prices = priceSite(request, site);',
                     'figures.tiles = tilesOf(chosen, prices, problem);',
                     'figures.l2Bytes += l2BytesOf(filled);',
                     'for (const auto &one : decision::pricedInItsLayouts(chosen, prices))',
                     'attentionProblem(kernel, *region, configuration)',
                     'gemmProblem(kernel, configuration, true);',
                     'visibleBlocks(kernel, region, problem, rows, columns);',
                     'for (const auto &plan : selection.kBest(count)) {',
                     'other = selection.planIfFused(a, b, !fused);',
                     'loss = selection.whatIfLayout(tensor, layout);',
                     'for (const auto &[layout, loss] : selection.layoutPrices(int(index)))',
                     '!fused && selection.waitsForMeasurements(a, b)',
                     'double(record.savedBytes) / device.copyBandwidth'):
            self.assertTrue(DECIDING.search(text), text)
        for text in ('decision::graphOf(plan)', 'chosen.cost.flop', 'compilation.costModel()',
                     'decision::priceAgain(planned, prices, file);',
                     'decision::configureAgain(planned, index, device, extents)',
                     'decision::chooseCut(places, fewest)', 'decision::decideLayers(question())',
                     'decision::decideCombinations(question)',
                     'decision::bestPaths(decision, count)', '{"copyBandwidth", device.bandwidth}',
                     'const select::JoinedVariants &joined', 'select::printStep(problem, step)',
                     'decision::attentionPrices(questionOf(request, site))',
                     '"l2Bytes", figures.l2Bytes', 'tilesJson(figures.tiles)',
                     'compilation.model().choosesRecomputed()', 'recomputeAttention(softmax);'):
            self.assertFalse(DECIDING.search(text), text)

    def test_plans_are_built_of_data_alone(self):
        included = {path for path in reached(ROOT, 'plan') if path.startswith('passes/')}
        self.assertEqual(included, PLAN_INCLUDES)

    def test_what_prices_is_found_behind_another_header(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in (('plan/Bad.cpp', '#include "passes/select/Path.h"\n'),
                               ('plan/Bad.h', '#include "kernel/K.h"\n'), ('kernel/K.h', ''),
                               ('passes/select/Path.h', '#include "passes/configure/Model.h"\n'),
                               ('passes/configure/Model.h', '#include <memory>\n')):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            self.assertEqual(
                reached(root, 'plan'),
                {'kernel/K.h', 'passes/select/Path.h', 'passes/configure/Model.h'})

    def test_names_of_test_cases_can_be_wrapped(self):
        """Catch indents the rest of a name by the width before ': ', and prints without end where
        that is as wide as a line."""
        case = re.compile(r'TEST_CASE\("([^"]*)')
        files = [*(ROOT / 'tests').rglob('*.cpp'), *ROOT.glob('codegen/families/*/tests/*.cpp')]
        for file in sorted(files):
            for name in case.findall(file.read_text(encoding='utf-8')):
                self.assertLess(name.find(': '), 70, f'{file}: {name}')

    def lines_found(self, path: str, text: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / path
            bad.parent.mkdir(parents=True)
            bad.write_text(text)
            return [line.split(':')[1] for line in violations(pathlib.Path(folder), self.table)]

    def test_a_forbidden_include_is_found(self):
        text = ('#include "kernel/Error.h"\n#include "mlir/IR/Builders.h"\n'
                '#include "ir/Ops.h"\n#include <vector>\n')
        self.assertEqual(self.lines_found('runtime/Bad.cpp', text), ['2', '3'])

    def test_mlir_is_found_behind_its_c_interface_and_angle_brackets(self):
        text = '#include "mlir-c/IR.h"\n#include <llvm-c/Core.h>\n#include <llvm/ADT/Twine.h>\n'
        self.assertEqual(self.lines_found('codegen/Bad.h', text), ['1', '2', '3'])

    def test_other_spellings_are_found(self):
        text = ('#include "Error.h"\n#include "../ir/Ops.h"\n'
                '#include "kernel/../ir/Ops.h"\n#include "./ir/Ops.h"\n')
        self.assertEqual(self.lines_found('runtime/Bad.cpp', text), ['1', '2', '3', '4'])
        self.assertEqual(self.lines_found('tests/unit/Bad.h', text), ['1', '2', '3', '4'])

    def test_device_headers_belong_to_codegen(self):
        self.assertEqual(self.lines_found('runtime/Bad.cpp', '#include "weft/types.cuh"\n'), ['1'])

    def test_tests_of_a_family_may_include_everything_and_nothing_else_may_include_them(self):
        text = '#include "tests/unit/A.h"\n#include "mlir/IR/Builders.h"\n#include "ir/Ops.h"\n'
        self.assertEqual(self.lines_found('codegen/families/loop/tests/good_test.cpp', text), [])
        self.assertEqual(self.lines_found('codegen/families/loop/Bad.cpp', text), ['1', '2', '3'])
        text = '#include "codegen/families/loop/tests/A.h"\n'
        for path in ('codegen/families/loop/Bad.cpp', 'codegen/Bad.cpp', 'tools/driver/Bad.cpp'):
            self.assertEqual(self.lines_found(path, text), ['1'])

    def test_a_device_header_of_a_family_is_its_own(self):
        text = '#include "weft/mine.cuh"\n#include "weft/shared.cuh"\n'
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path in ('codegen/families/loop/device/mine.cuh', 'codegen/device/shared.cuh'):
                (root / path).parent.mkdir(parents=True)
                (root / path).write_text('')
            including = {
                'codegen/families/loop/device/good.cuh': [],
                'codegen/families/view/device/bad.cuh': ['1'],
                'codegen/device/bad.cuh': ['1'],
                'tests/emulate/host/good.h': []
            }
            for path in including:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            self.assertEqual([line.split(': ')[0] for line in violations(root, self.table)], [
                f'{path}:{line}' for path, lines in sorted(including.items()) for line in lines
            ])

    def test_only_families_and_targets_name_an_architecture(self):
        files = sorted(path for folder in OF_NO_ARCHITECTURE for path in (ROOT / folder).rglob('*')
                       if path.suffix in ('.cpp', '.h'))
        self.assertGreater(len(files), 400)
        named = lambda text, pattern=ARCHITECTURE: [
            line.strip() for line in text.splitlines() if pattern.search(line.split('//')[0])
        ]
        naming = {path.relative_to(ROOT).as_posix(): named(path.read_text()) for path in files}
        kernel = {path: named((ROOT / path).read_text(), ARCHITECTURE_OF_KERNEL)
                  for path in naming if path.startswith('kernel/')}
        self.assertGreater(len(kernel), 100)
        self.assertEqual({path: lines for path, lines in kernel.items() if lines}, {})
        self.assertEqual({path for path, lines in naming.items() if lines},
                         set(NAMES_ARCHITECTURE))
        self.assertEqual({path: len(naming[path]) for path in NAMES_ARCHITECTURE},
                         dict.fromkeys(NAMES_ARCHITECTURE, 1))
        self.assertEqual(named('int sm80 = 0;  // Hopper\n// sm_90\nx = "of sm_90a";\n'),
                         ['int sm80 = 0;  // Hopper', 'x = "of sm_90a";'])
        self.assertEqual(named('a("WGMMA");\nb("mma.sync");\n// cuBLAS\n"on an H200"\nc();\n',
                               ARCHITECTURE_OF_KERNEL),
                         ['a("WGMMA");', 'b("mma.sync");', '"on an H200"'])

    def test_names_of_device_headers_are_unique(self):
        headers = device_headers(ROOT)
        self.assertGreater(len(headers), 40)
        self.assertEqual([paths for paths in headers.values() if len(paths) > 1], [])


if __name__ == '__main__':
    unittest.main()
