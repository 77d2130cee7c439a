"""compile --measure on a GPU: the plan that is kept is one that runs and verifies, and `weft time`
finds the time it was kept for.

  measure_test.py FOLDER_OF_COMMANDS      Skipped (77) where there is no GPU or no NVRTC."""
import json
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
MODEL = ['paper-encoder', '--dim', 'b=4', '--dim', 'j=256', '--profile', 'none']
AGREES = 0.1  # two processes, other addresses, other clocks


def weft(folder, *arguments):
    done = subprocess.run([folder / 'weft', *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def check(folder, artifact):
    """A failure's text, or None."""
    plan = json.loads((artifact / 'plan.json').read_text())
    timed = json.loads((artifact / 'report.json').read_text())['measuredPlans']
    measured = [one['measured'] for one in timed if 'measured' in one]
    if len(measured) < 2:
        return f'only {len(measured)} plans were timed: {timed}'
    kept = plan['measurement']
    if kept['seconds'] > 1.02 * min(measured):
        return f'kept {kept["seconds"]} s, the fastest of {measured}'
    code, out, err = weft(folder, 'time', artifact, '--json')
    if code:
        return f'weft time: exit {code}: {err}'
    whole = json.loads(out)['plans'][0]['whole']['median']
    print(
        f'kept for {1e6 * kept["seconds"]:.1f} us, weft time: {1e6 * whole:.1f} us, predicted '
        f'{1e6 * plan["predictedSeconds"]:.1f} us'
    )
    if not abs(whole / kept['seconds'] - 1) < AGREES:
        return f'kept for {kept["seconds"]} s, weft time finds {whole} s'
    code, out, err = weft(folder, 'verify', artifact)
    print(out)
    return f'weft verify: exit {code}: {err}' if code else None


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        artifact = pathlib.Path(temporary) / 'plan'
        code, out, err = weft(folder, 'compile', *MODEL, '-o', artifact, '--measure')
        if code == 3:
            print(f'skipped: {err.strip()}')
            return SKIPPED
        if code:
            print(f'weft compile --measure: exit {code}: {err}')
            return 1
        print(out + weft(folder, 'explain', artifact)[1])
        failure = check(folder, artifact)
    print(failure or 'the kept plan runs, verifies and takes the time it was kept for')
    return 1 if failure else 0


sys.exit(main())
