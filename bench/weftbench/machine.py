"""What the figures were measured on: GPU, driver, versions, clocks, power. Reads only; no setting
is ever changed."""
import torch


def load_nvml():
    try:
        import pynvml
        pynvml.nvmlInit()
        return pynvml
    except Exception:  # absent, or a driver that rejects: figures stand without clocks, and say so
        return None


class ClockMonitor:
    """Readings while rounds run."""
    nvml = load_nvml()

    def __init__(self):
        self.readings = []
        self.handle = None
        if self.nvml:
            uuid = str(torch.cuda.get_device_properties(0).uuid)
            try:
                self.handle = self.nvml.nvmlDeviceGetHandleByUUID(
                    uuid if uuid.startswith('GPU-') else 'GPU-' + uuid)
            except Exception:
                self.handle = self.nvml.nvmlDeviceGetHandleByIndex(0)

    def read(self):
        if not self.handle:
            return
        nvml = self.nvml
        try:
            self.readings.append((nvml.nvmlDeviceGetClockInfo(self.handle, nvml.NVML_CLOCK_SM),
                                  nvml.nvmlDeviceGetPowerUsage(self.handle) / 1e3,
                                  nvml.nvmlDeviceGetTemperature(self.handle,
                                                                nvml.NVML_TEMPERATURE_GPU),
                                  nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle)))
        except nvml.NVMLError:
            self.handle = None

    def describe(self):
        if not self.readings:
            return 'clocks: not readable'
        clocks, watts, celsius, reasons = zip(*self.readings)
        capped = any(reason & 0x4 for reason in reasons)
        hot = any(reason & 0x60 for reason in reasons)
        middle = lambda values: sorted(values)[len(values) // 2]
        return (
            f'SM {middle(clocks)} ({min(clocks)}-{max(clocks)}) MHz, {middle(watts):.0f} W, '
            f'{max(celsius)} C'
            + (', power capped' if capped else '') + (', thermally throttled' if hot else ''))


def describe():
    """One line of the protocol."""
    driver = '?'
    if ClockMonitor.nvml:
        driver = ClockMonitor.nvml.nvmlSystemGetDriverVersion()
        driver = driver.decode() if isinstance(driver, bytes) else driver
    return (
        f'{torch.cuda.get_device_name(0)}, driver {driver}, torch {torch.__version__}, CUDA '
        f'{torch.version.cuda}, '
        f'cuDNN {torch.backends.cudnn.version()}')


def median_seconds(call, repeats=7):
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(1e-3 * start.elapsed_time(end))
    return sorted(times)[repeats // 2]


def ceilings():
    """(bytes/s of a large device-to-device copy, read plus written; flop/s of a large fp16
    product), of this run."""
    source = torch.randn(2**30, dtype=torch.float32, device='cuda')
    target = torch.empty_like(source)
    bandwidth = 2 * 4 * source.numel() / median_seconds(lambda: target.copy_(source))
    del source, target
    a, b = (torch.randn(8192, 8192, dtype=torch.float16, device='cuda') for _ in range(2))
    flops = 2 * 8192**3 / median_seconds(lambda: a @ b)
    return bandwidth, flops
