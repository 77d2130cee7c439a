"""Applies map.tsv to a copy of a tree: check.py TREE [OUT]. Reports olds that match nothing,
clashes of new names, lost injectivity in kernels."""
import re, sys, os, subprocess, fnmatch, collections, shutil

tree, out = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
lines = [
    l.rstrip('\n').split('\t')
    for l in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'map.tsv'))
    if l.strip() and not l.startswith('#')
]
scopes = {r[1]: r[3] for r in lines if r[0] == 'scope'}
tracked = subprocess.run(['git', '-C', tree, 'ls-files'], capture_output=True,
                         text=True).stdout.split('\n')[:-1]


def globs(note):
    result = []
    for g in note.split(','):
        g = g.strip()
        if g.startswith('@'): result += globs(scopes[g])
        elif g: result.append(g)
    return result


cache = {}


def inScope(note):
    if note not in cache:
        all = globs(note)
        yes = re.compile('|'.join(fnmatch.translate(g) for g in all if g[0] != '!'))
        no = [fnmatch.translate(g[1:]) for g in all if g[0] == '!']
        drop = re.compile('|'.join(no)) if no else None
        cache[note] = {p for p in tracked if yes.match(p) and not (drop and drop.match(p))}
    return cache[note]


ids, idin, text, files = {}, [], [], {}
for n, r in enumerate(lines, 1):
    kind, old, new, note = (r + [''] * 4)[:4]
    if kind == 'id':
        if old in ids: print('DUPLICATE id', old)
        ids[old] = new
    elif kind == 'idin':
        idin.append((old, new, note))
    elif kind == 'text':
        text.append((old, new, note))
    elif kind == 'file':
        files[old] = new
        if old not in tracked: print('NO FILE', old)
        if new in tracked and new not in files: print('FILE EXISTS', new)
for a, b in collections.Counter(files.values()).items():
    if b > 1: print('TWO FILES TO', a)
text.sort(key=lambda t: -len(t[0]))
bound = {}


def bounded(old):  # an end that is an identifier's character ends an identifier
    if old not in bound:
        bound[old] = re.compile((r'(?<!\w)' if re.match(r'\w', old) else '') + re.escape(old) +
                                (r'(?!\w)' if re.search(r'\w$', old) else ''))
    return bound[old]


perFile = {}
hits = collections.Counter()
for old, new, note in idin:
    for p in inScope(note):
        d = perFile.setdefault(p, {})
        if old in d and d[old] != new: print('IDIN CONFLICT', p, old, d[old], new)
        d[old] = new


def code(p, s):
    if p.endswith('.py'): return re.sub(r'#.*', '', s)
    s = re.sub(r'//[^\n]*', '', s)
    return re.sub(r'/\*.*?\*/', '', s, flags=re.S)


word = re.compile(r'[A-Za-z_]\w*')
isCode = lambda p: p.endswith(('.cpp', '.h', '.cuh', '.cu', '.py', '.td'))
device = inScope('@device,@emulate,@gemm_cu') if '@device' in scopes else set()
inverse = collections.defaultdict(lambda: collections.defaultdict(set))
byNew = collections.defaultdict(lambda: collections.defaultdict(set))
fileText = sorted(files.items(), key=lambda t: -len(t[0]))
prose = {r[1]: r[2] for r in lines if r[0] == 'prose'}
proseRx = re.compile(r'(?<![\w.`:>-])(' + '|'.join(prose) + r')(?![\w(.`:]|, [a-z])')


def inProse(p, s):  # `//` comments, and string literals of messages
    if not p.endswith(('.cpp', '.h', '.cuh')): return s
    strings = p.startswith(('kernel/', 'passes/', 'tests/unit/'))

    def sub(m):
        t = m.group(0)
        if t.startswith('"') and not (strings and t.count(' ') > 2): return t
        return proseRx.sub(lambda k: prose[k.group(1)], t)

    return re.sub(r'//[^\n]*|R"\w*\([\s\S]*?\)\w*"|"(?:\\.|[^"\\\n])*"', lambda m: m.group(0)
                  if m.group(0).startswith('R') else sub(m), s)


clash = collections.defaultdict(set)
bases = collections.defaultdict(set)
for p in tracked:
    bases[os.path.basename(p)].add(p)
suffixes = collections.defaultdict(set)  # every path suffix of a renamed file -> new suffixes
for o, n in files.items():
    a, b = o.split('/'), n.split('/')
    for k in range(1, len(a) + 1):
        suffixes['/'.join(a[-k:])].add(('/'.join(b[-k:]), o))
pathRx = re.compile(r'(?<![\w.-])[\w./-]*[\w-]+\.(?:cpp|h|cuh|cu|txt|mlir\.in|mlir|py|td)(?!\w)')


def renamePaths(p, s):
    def sub(m):
        t = m.group(0)
        parts = t.split('/')
        for k in range(len(parts), 0, -1):
            suffix = '/'.join(parts[-k:])
            if suffix not in suffixes: continue
            options = suffixes[suffix]
            news = {n for n, _ in options}
            here = {n for n, o in options if os.path.dirname(o) == os.path.dirname(p)}
            new = None
            if k == 1 and len(parts) == 1:
                if here: new = here.pop()
                elif len(news) == 1 and all(q in files for q in bases[suffix]): new = news.pop()
            elif len(news) == 1: new = news.pop()
            if k == 1 and len(parts) > 1 and not all(q in files for q in bases[suffix]): new = None
            if new: return '/'.join(parts[:-k] + [new])
        return t

    return pathRx.sub(sub, s)


for p in tracked:
    try:
        s = open(os.path.join(tree, p), encoding='utf-8', errors='surrogateescape').read()
    except (IsADirectoryError, FileNotFoundError):
        continue
    if p.startswith('tests/fuzz/corpus'): continue
    original = s
    for old, new, note in text:
        if (not note or p in inScope(note)) and old in s:
            s, n = bounded(old).subn(lambda m: new, s)
            hits['text', old, note] += n
    table = dict(ids)
    table.update(perFile.get(p, {}))
    local = perFile.get(p, {})
    found = set()

    def sub(m):
        t = m.group(0)
        if t in table:
            hits['idin' if t in local else 'id', t] += 1
            found.add(t)
            return table[t]
        return t

    after = word.sub(sub, s)
    after = inProse(p, after)
    if isCode(p) or p.endswith('.cu'):
        before = set(word.findall(code(p, s)))
        news = collections.defaultdict(set)
        for t in before:
            news[table.get(t, t)].add(t)
        was = set(word.findall(code(p, original)))
        for n, olds in news.items():
            olds = {o for o in olds if o in was}
            if len(olds) > 1: clash[(n, tuple(sorted(olds)))].add(p)
        if p in device:
            for t in before:
                if t in was: inverse[table.get(t, t)][t].add(p)
    if out:
        q = os.path.join(out, files.get(p, p))
        os.makedirs(os.path.dirname(q), exist_ok=True)
        after = renamePaths(p, after)
        open(q, 'w', encoding='utf-8', errors='surrogateescape').write(after)
for old in ids:
    if not hits['id', old] and not any(o == old for o, _, _ in idin): print('NO HIT id', old)
for old, new, note in idin:
    if not hits['idin', old]: print('NO HIT idin', old, note)
for old, new, note in text:
    if not hits['text', old, note]: print('NO HIT text', old, '|', note)
stems = {
    os.path.basename(p).split('.')[0]: p
    for p in tracked if p not in files and not p.startswith('profiles/plans')
}
for old, new in ids.items():
    if old in stems: print('ID IS A FILE STEM', old, new, stems[old])
print('--- clashes in one file: new <- olds')
for (n, olds), ps in sorted(clash.items()):
    print(' ', n, '<-', ' '.join(olds), '|', len(ps), ' '.join(sorted(ps)[:4]))
print('--- kernels: new <- several olds')
for n, olds in sorted(inverse.items()):
    if len(olds) > 1: print(' ', n, '<-', {o: sorted(ps)[:2] for o, ps in olds.items()})
total = collections.Counter()
for k, v in hits.items():
    total[k[0]] += v
print(len(lines), 'rows;', dict(total))
