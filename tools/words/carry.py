#!/usr/bin/env python3
"""Carries verification records over the renaming: `carry.py OLD_WEFT NEW_WEFT`, with the commands
of before and after it.

Both write the default plans of all verified workloads (tests/gpu/verify-plans), and of every pair
of kernels the texts are compared as prove.py does. Where they agree and the launch is the same, the
record of the old text is one of the new text. Records of texts that changed otherwise, or that no
plan has, say `stale`. Rewrites profiles/verified.txt and prints how many there are of each kind."""
import collections
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import prove

ROOT = pathlib.Path(__file__).resolve().parents[2]
NVRTC = prove.Nvrtc()
STORE = ROOT / 'profiles/verified.txt'


def workloads():
    sys.path.insert(0, str(ROOT / 'tests/gpu'))  # what verify-plans imports
    loader = importlib.machinery.SourceFileLoader('verify_plans',
                                                  str(ROOT / 'tests/gpu/verify-plans'))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(
        'verify_plans', loader))
    loader.exec_module(module)
    return module.WORKLOADS


def record_hash(kernel):
    """As recordHashOf() of runtime/VerificationRecords.cpp."""
    grid, block = (' '.join(map(str, kernel[key])) for key in ('grid', 'block'))
    text = f"{kernel['textHash']} grid {grid} block {block} shared {kernel['sharedBytes']}"
    if kernel.get('workspaceBytes'):
        text += f" workspace {kernel['workspaceBytes']}"
    return hashlib.sha256(text.encode()).hexdigest()


def is_equal(old_folder, old, new_folder, new):
    if any(old.get(key) != new.get(key) for key in ('grid', 'block', 'sharedBytes',
                                                           'workspaceBytes')):
        return False
    if old.get('library') or new.get('library'):
        return bool(old.get('library')) == bool(new.get('library'))
    before, after = old_folder / old['source'], new_folder / new['source']
    old_headers, new_headers = (prove.headers_of(folder / 'kernels/weft')
                                for folder in (old_folder, new_folder))
    texts = [
        prove.tokens_of(before, old_headers, 'sm_90a'),
        prove.tokens_of(after, new_headers, 'sm_90a', before)
    ]
    # A local name that made room for a tensor's (`sums_2`) is no other name's: the code decides.
    return not prove.compare_texts(*texts)[0] or not prove.compare_code(
        NVRTC, before, old_headers, after, new_headers, 'sm_90a')


def carried(old_weft, new_weft):
    """Old hash -> new hash, of records that are proven; and what both sides' plans have."""
    result, seen = {}, set()
    with tempfile.TemporaryDirectory(prefix='weft-words-') as folder:
        for name, model in workloads().items():
            plans = []
            for side, weft in (('old', old_weft), ('new', new_weft)):
                out = pathlib.Path(folder) / side / name
                subprocess.run([
                    weft, 'compile', *model, '--device', 'h200', '--stop-after', 'emit', '-o', out
                ], check=True, capture_output=True,
                               env={**os.environ, 'WEFT_CACHE_DIR': f'{folder}/{side}-cache'})
                kernels = json.loads((out / 'plan.json').read_text())['kernels']
                plans.append((out, [one for one in kernels if one.get('textHash')]))
            (old_out, old_kernels), (new_out, new_kernels) = plans
            if len(old_kernels) != len(new_kernels):
                print(f'{name}: {len(old_kernels)} kernels before, {len(new_kernels)} after')
                continue
            for old, new in zip(old_kernels, new_kernels):
                for before, after in ((record_hash(old), record_hash(new)),
                                      (old['textHash'], new['textHash'])):
                    seen.add(before)
                    if before == after or is_equal(old_out, old, new_out, new):
                        result[before] = after
                    else:
                        print(f"{name}: {new['name']} differs")
    return result, seen


def main():
    hashes, seen = carried(*map(os.path.abspath, sys.argv[1:3]))
    head, lines, counts = [], [], collections.Counter()
    for line in STORE.read_text().split('\n'):
        words = line.split(' ', 2)
        if line.startswith('#') or not line:
            head += [line] if line else []
            continue
        new = hashes.get(words[0])
        if new:
            counts['unchanged' if new == words[0] else 'carried over'] += 1
            lines.append(' '.join([new, *words[1:]]))
        else:
            counts['stale: differs' if words[0] in seen else 'stale: in no default plan'] += 1
            lines.append(' '.join([words[0], 'stale', words[2]]))
    head[0] = '# weft verified 3'
    STORE.write_text('\n'.join([*head, *sorted(set(lines))]) + '\n')
    print(f'{sum(counts.values())} records:', ', '.join(f'{n} {k}' for k, n in counts.items()))


if __name__ == '__main__':
    main()
