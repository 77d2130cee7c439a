"""A limit of time for what another library does on the CPU before it is measured: compilation by
a rival may take longer than all else (FlexAttention took more than 90 s for one padded draw).

Main thread only; limits do not nest. No packages: tested without a GPU."""
import contextlib
import pathlib
import signal


class TimeLimitExceeded(BaseException):
    """Not an Exception: a library that tries its candidates one by one would take one for the
    failure of a candidate, and go on."""


@contextlib.contextmanager
def time_limit(seconds, name):
    """Raises TimeLimitExceeded, which says `name` and the line that ran, in a body that takes
    longer."""
    def stop(_, frame):
        line = f'{pathlib.Path(frame.f_code.co_filename).name}:{frame.f_lineno}'
        raise TimeLimitExceeded(f'{name}: not done after {seconds:g} s, in {line}')

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
