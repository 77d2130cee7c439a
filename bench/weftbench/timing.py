"""The one way in which every contender is timed: CUDA graphs between CUDA events, contenders in
turn, round after round.

A contender's calls are captured in a row: one, or as many as make the graph long enough that
starting it is a small part, around all sets of buffers where there are several. A round replays the
graph several times between two events, behind an untimed replay that keeps the GPU busy while the
host enqueues. Every second round goes in reverse, so that drifting clocks meet all contenders
alike. What cannot be captured (JAX) is timed by the host around many calls, and says so."""
import time

import torch

from . import machine, statistics

SECONDS_PER_TURN = 6e-3
SECONDS_PER_GRAPH = 3e-4
MOST_CALLS = 20
HOST_CALLS = 30


class GraphContender:
    """`call(set)` enqueues one call on the current stream."""
    def __init__(self, name, call, sets=1):
        self.name, self.call, self.sets, self.calls, self.replays = name, call, sets, max(1,
                                                                                          sets), 1
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def prepare(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                for one in range(self.sets):
                    self.call(one)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.capture()
        rounds = min(MOST_CALLS, round(SECONDS_PER_GRAPH / self.trial()))
        if rounds > 1:
            self.calls = self.sets * -(-rounds // self.sets)
            self.capture()
        self.replays = min(20, max(3, round(SECONDS_PER_TURN / (self.trial() * self.calls))))

    def capture(self):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for one in range(self.calls):
                self.call(one % self.sets)

    def trial(self):
        """Seconds a call, roughly."""
        self.replays = 3
        self.enqueue()
        torch.cuda.synchronize()
        return self.seconds()

    def enqueue(self):
        self.graph.replay()
        self.start.record()
        for _ in range(self.replays):
            self.graph.replay()
        self.end.record()

    def seconds(self):
        return 1e-3 * self.start.elapsed_time(self.end) / (self.replays * self.calls)


class HostContender:
    """`call()` dispatches one call, `wait(result)` blocks until it is done; timed on the host
    around many calls."""
    def __init__(self, name, call, wait, calls=HOST_CALLS):
        self.name, self.call, self.wait, self.calls = name, call, wait, calls

    def prepare(self):
        for _ in range(3):
            self.wait(self.call())

    def enqueue(self):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(self.calls):
            result = self.call()
        self.wait(result)
        self.elapsed = time.perf_counter() - begin

    def seconds(self):
        return self.elapsed / self.calls


def run_rounds(contenders, rounds, warm_up):
    """Samples by name, and what the clocks did meanwhile."""
    samples = {contender.name: [] for contender in contenders}
    monitor = machine.ClockMonitor()
    for turn in range(warm_up + rounds):
        for contender in statistics.in_turn(contenders, turn):
            contender.enqueue()
        monitor.read()
        torch.cuda.synchronize()
        if turn >= warm_up:
            for contender in contenders:
                samples[contender.name].append(contender.seconds())
    return samples, monitor.describe()


def measure(result, contenders, rounds=15, warm_up=3):
    """Fills samples, failures, clocks and protocol of `result`."""
    ready = []
    for contender in contenders:
        try:
            contender.prepare()
            ready.append(contender)
        except Exception as error:  # one contender's failure is a row of the table
            torch.cuda.synchronize()
            result.failures[contender.name] = first_line(error)
    samples, result.clocks = run_rounds(ready, rounds, warm_up) if ready else ({}, '')
    result.samples.update(samples)
    graphs = [contender for contender in ready if isinstance(contender, GraphContender)]
    if graphs:
        calls = sorted({contender.calls for contender in graphs})
        sets = max(contender.sets for contender in graphs)
        cold = f'{sets} sets of buffers in turn (cold L2)'
        buffers = cold if sets > 1 else 'the same buffers each time'
        result.protocol = f'graphs of {calls[0]}{f"-{calls[-1]}" if len(calls) > 1 else ""} ' \
            f'call{"s" if calls[-1] > 1 else ""}, {buffers}, 3 to 20 replays between events, '
    result.protocol += f'{rounds} rounds interleaved after {warm_up}, median, middle 80%'
    host = [contender.name for contender in ready if isinstance(contender, HostContender)]
    if host:
        result.protocol += f'; {", ".join(host)}: no graph, host clock around {HOST_CALLS} calls'


def first_line(error):
    return f'{type(error).__name__}: {error}'.split('\n')[0][:240]
