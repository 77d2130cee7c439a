"""The groups that draw figures of a paper, one command each. Their tables go to standard output,
their drawings into --figures DIR, their points into --json FILE, and into --folder DIR to go on
from."""
import json
import os

from . import attention_figures, bytetransformer, figure_run, recomposition_figures

MODULES = {one.GROUP: one for one in (bytetransformer, recomposition_figures)}
GROUPS = attention_figures.GROUPS + tuple(MODULES)


def lines_of(groups, settings, command):
    alone = [group for group in groups if group in attention_figures.GROUPS]
    if alone:
        yield from attention_figures.run(alone, settings, command)
    for group in groups:
        if group in MODULES:
            yield from MODULES[group].run(settings, command)


def run(groups, settings, json_file, command):
    """The exit code. `command`: what a reader types to measure the same."""
    try:
        lines = open(json_file or os.devnull, 'w', encoding='utf-8')
    except OSError as error:
        raise figure_run.BadRun(f'--json {json_file}: {error.strerror}') from error
    with lines:
        for line in lines_of(groups, settings, command):
            lines.write(json.dumps(line, sort_keys=True) + '\n')
            lines.flush()
    return 0
