"""Applies map.tsv to a copy of a tree: rename.py TREE [OUT]. Reports olds that match nothing,
clashes of new names, lost injectivity in kernels."""
import re, sys, os, subprocess, fnmatch, collections, shutil

# Left as they are: this folder, inputs of fuzzing, which may be of any age, and text to train on.
KEPT = ('tools/words/', 'tests/fuzz/corpus/', 'runtime/text/')
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


ids, idin, text, regexes, files = {}, [], [], [], {}
for n, r in enumerate(lines, 1):
    kind, old, new, note = (r + [''] * 4)[:4]
    if kind == 'id':
        if old in ids: print('DUPLICATE id', old)
        ids[old] = new
    elif kind == 'idin':
        idin.append((old, new, note))
    elif kind == 'text':
        text.append((old, new, note))
    elif kind == 'regex':
        regexes.append((old, new, note))
    elif kind == 'file':
        files[old] = new
        if old not in tracked: print('NO FILE', old)
        if new in tracked and new not in files: print('FILE EXISTS', new)
for a, b in collections.Counter(files.values()).items():
    if b > 1: print('TWO FILES TO', a)
text.sort(key=lambda t: -len(t[0]))
bound = {}


def bounded(old):
    """An end that is an identifier's character ends an identifier; a space may be a line's end,
    also within a comment."""
    if old not in bound:
        body = SPACE.join(re.escape(word) for word in old.split(' '))
        bound[old] = re.compile((r'(?<!\w)' if re.match(r'\w', old) else '') + body +
                                (r'(?!\w)' if re.search(r'\w$', old) else ''))
    return bound[old]


SPACE = r'(?: |[ ]*\n[ \t]*(?:(?://[/!]?<?|#|\*) )?[ \t]*)'


def replaceText(old, new, s):
    """A line's end that was matched is kept, where `new` has its last space, or before it."""
    isSplit = False

    def sub(m):
        nonlocal isSplit
        breaks = re.search(r'[ ]*\n[ \t]*(?:(?://[/!]?<?|#|\*) )?[ \t]*', m.group(0))
        if not breaks or '\n' in old: return new
        isSplit = True
        head, _, tail = new.rpartition(' ')
        return head + breaks.group(0) + tail

    s, n = bounded(old).subn(sub, s)
    return re.sub(r'(?<=\S) +\n', '\n', s) if isSplit else s, n


def replacePhrase(old, new, s):
    """A regular expression on words; a space may be a line's end, as in a text."""
    flat = re.compile(old)

    def sub(m):
        breaks = re.search(r'[ ]*\n[ \t]*(?:(?://[/!]?<?|#|\*) )?[ \t]*', m.group(0))
        result = flat.fullmatch(re.sub(SPACE, ' ', m.group(0))).expand(new)
        if not breaks: return result
        head, space, tail = result.rpartition(' ')
        return head + breaks.group(0) + tail if space else breaks.group(0) + result

    s, n = re.subn(old.replace(' ', SPACE), sub, s)
    return re.sub(r'(?<=\S) +\n', '\n', s) if n else s, n


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
notProse = r'[\w(.`:-]|, [a-z]| biased| (?:\{\}|[a-z]+\d\S*) (?:\{\}|\d+) x'
proseRx = re.compile(r'(?<![\w.`:>-])(' + '|'.join(prose) + rf')(?!{notProse})')


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


stemsOf = collections.defaultdict(set)  # `Cover.*` of a page
for o, n in files.items():
    if o.endswith(('.h', '.cpp')):
        a, b = os.path.splitext(o)[0].split('/'), os.path.splitext(n)[0].split('/')
        for k in range(1, len(a) + 1):
            stemsOf['/'.join(a[-k:])].add('/'.join(b[-k:]))


def renameStems(s):
    def sub(m):
        news = stemsOf.get(m.group(1), set())
        return news.copy().pop() + '.*' if len(news) == 1 else m.group(0)

    return re.sub(r'(?<![\w./*-])([\w./-]*\w)\.\*', sub, s)


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
    if p.startswith(KEPT):
        if out:
            os.makedirs(os.path.dirname(os.path.join(out, p)), exist_ok=True)
            shutil.copyfile(os.path.join(tree, p), os.path.join(out, p))
        continue
    original = s
    for old, new, note in text:
        if (not note or p in inScope(note)) and old.split(' ')[0] in s:
            s, n = replaceText(old, new, s)
            hits['text', old, note] += n
    for old, new, note in regexes:
        if not note or p in inScope(note):
            s, n = replacePhrase(old, new, s)
            hits['regex', old, note] += n
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
        if p.endswith('.md'): after = renameStems(after)
        open(q, 'w', encoding='utf-8', errors='surrogateescape').write(after)
for old in ids:
    if not hits['id', old] and not any(o == old for o, _, _ in idin): print('NO HIT id', old)
for old, new, note in idin:
    if not hits['idin', old]: print('NO HIT idin', old, note)
for old, new, note in regexes:
    if not hits['regex', old, note]: print('NO HIT regex', old)
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
