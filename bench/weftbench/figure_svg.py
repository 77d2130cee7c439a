"""Lines over a logarithmic axis, and stacked bars, as SVG. No packages: tested without a GPU."""
import html
import math
from dataclasses import dataclass, field

COLOURS = ('#2f6fb7', '#c26a12', '#3f8a35', '#8a3f86', '#777777', '#b03030')
WIDTH, HEIGHT = 460, 320  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 44, 46
LEGEND_ROW = 16
MOST_LEVEL_NAMES = 6  # of bars; those of more are turned, so that they do not overlap


@dataclass
class Line:
    name: str
    points: list  # (x, y), both above 0
    is_predicted: bool = False  # drawn dashed


@dataclass
class Panel:
    title: str
    x_label: str
    y_label: str
    lines: list = field(default_factory=list)

    def legend(self):
        return [line.name for line in self.lines]

    def parts(self, left):
        return panel_parts(self, left)


@dataclass
class Bar:
    name: str
    pieces: list  # (name, height), from the bottom
    is_predicted: bool = False  # drawn with dashed edges


@dataclass
class BarPanel:
    """Bars over a linear axis that begins at 0. Equal names of pieces have one colour."""
    title: str
    y_label: str
    bars: list = field(default_factory=list)

    def legend(self):
        return list(dict.fromkeys(name for bar in self.bars for name, _ in bar.pieces))

    def parts(self, left):
        return bar_parts(self, left)


def text(x, y, said, anchor='middle', size=11, extra=''):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{extra}>'
            f'{html.escape(said)}</text>')


def short(value):
    """0, 1, 512, 65536, 0.01: ticks."""
    return f'{value:g}' if value == 0 or 1e-4 <= value < 1e6 else f'{value:.0e}'


class Scale:
    """Logarithmic, from the least value to the greatest, with `steps` as ticks."""
    def __init__(self, values, first, last, base):
        self.first, self.last = first, last
        low = math.floor(math.log(min(values), base) + 1e-9)
        high = math.ceil(math.log(max(values), base) - 1e-9)
        self.low, self.high, self.base = low, max(high, low + 1), base

    def at(self, value):
        share = (math.log(value, self.base) - self.low) / (self.high - self.low)
        return self.first + (self.last - self.first) * share

    def ticks(self):
        step = max(1, (self.high - self.low) // 8)
        return [self.base**exponent for exponent in range(self.low, self.high + 1, step)]


def panel_parts(panel, left):
    points = [point for line in panel.lines for point in line.points]
    parts = [text(left + WIDTH / 2, 20, panel.title, size=13, extra=' font-weight="bold"')]
    if not points:
        return parts + [text(left + WIDTH / 2, HEIGHT / 2, 'nothing to draw')]
    x_scale = Scale([x for x, _ in points], left + LEFT, left + WIDTH - RIGHT, 2)
    y_scale = Scale([y for _, y in points], HEIGHT - BOTTOM, TOP, 10)
    for tick in x_scale.ticks():
        x = x_scale.at(tick)
        parts.append(f'<path d="M{x:.1f} {TOP} V{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>')
        parts.append(text(x, HEIGHT - BOTTOM + 14, short(tick), size=10))
    for tick in y_scale.ticks():
        y = y_scale.at(tick)
        parts.append(f'<path d="M{left + LEFT} {y:.1f} H{left + WIDTH - RIGHT}" '
                     'stroke="#e4e4e4"/>')
        parts.append(text(left + LEFT - 5, y + 3.5, short(tick), 'end', 10))
    parts.append(text(left + WIDTH / 2, HEIGHT - BOTTOM + 32, panel.x_label))
    parts.append(text(left + LEFT, TOP - 8, panel.y_label, 'start'))
    for index, line in enumerate(panel.lines):
        colour = COLOURS[index % len(COLOURS)]
        path = ' L'.join(f'{x_scale.at(x):.1f} {y_scale.at(y):.1f}' for x, y in line.points)
        dashes = ' stroke-dasharray="5 3"' if line.is_predicted else ''
        if line.points:
            parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6"'
                         f'{dashes}/>')
        parts += [
            f'<circle cx="{x_scale.at(x):.1f}" cy="{y_scale.at(y):.1f}" r="2.4" fill="{colour}"/>'
            for x, y in line.points
        ]
        y = HEIGHT + LEGEND_ROW * index
        parts.append(f'<path d="M{left + LEFT} {y} h24" stroke="{colour}" stroke-width="2"'
                     f'{dashes}/>')
        said = line.name + (' (predicted)' if line.is_predicted else '')
        parts.append(text(left + LEFT + 30, y + 4, said, 'start'))
    return parts


def linear_ticks(greatest):
    """Four to ten of them, at 1, 2 or 5 times a power of ten; the last is not below `greatest`."""
    power = 10.0**math.floor(math.log10(greatest / 5))
    step = next(times * power for times in (1, 2, 5, 10) if greatest / (times * power) <= 10)
    return [step * index for index in range(math.ceil(greatest / step - 1e-9) + 1)]


def bar_parts(panel, left):
    parts = [text(left + WIDTH / 2, 20, panel.title, size=13, extra=' font-weight="bold"')]
    greatest = max((sum(height for _, height in bar.pieces) for bar in panel.bars), default=0)
    if greatest <= 0:
        return parts + [text(left + WIDTH / 2, HEIGHT / 2, 'nothing to draw')]
    ticks, bottom = linear_ticks(greatest), HEIGHT - BOTTOM
    at = lambda value: bottom - (bottom - TOP) * value / ticks[-1]
    for tick in ticks:
        parts.append(f'<path d="M{left + LEFT} {at(tick):.1f} H{left + WIDTH - RIGHT}" '
                     'stroke="#e4e4e4"/>')
        parts.append(text(left + LEFT - 5, at(tick) + 3.5, short(round(tick, 10)), 'end', 10))
    parts.append(text(left + LEFT, TOP - 8, panel.y_label, 'start'))
    room = (WIDTH - LEFT - RIGHT) / len(panel.bars)
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(panel.legend())}
    for index, bar in enumerate(panel.bars):
        x, base = left + LEFT + room * (index + 0.15), 0
        edge = ' fill-opacity="0.55" stroke-dasharray="4 2"' if bar.is_predicted else ''
        for name, height in bar.pieces:
            parts.append(f'<rect x="{x:.1f}" y="{at(base + height):.1f}" width="{0.7 * room:.1f}" '
                         f'height="{at(base) - at(base + height):.1f}" fill="{colours[name]}" '
                         f'stroke="{colours[name]}"{edge}/>')
            base += height
        middle = x + 0.35 * room
        if len(panel.bars) <= MOST_LEVEL_NAMES:
            parts.append(text(middle, bottom + 14, bar.name, size=9))
        else:
            turned = f' transform="rotate(-35 {middle + 3:.1f} {bottom + 10})"'
            parts.append(text(middle + 3, bottom + 10, bar.name, 'end', 9, turned))
    are_predicted = any(bar.is_predicted for bar in panel.bars)
    for index, (name, colour) in enumerate(colours.items()):
        y = HEIGHT + LEGEND_ROW * index
        parts.append(f'<rect x="{left + LEFT}" y="{y - 4}" width="24" height="8" fill="{colour}"/>')
        parts.append(text(left + LEFT + 30, y + 4, name, 'start'))
    if are_predicted:
        parts.append(text(left + WIDTH - RIGHT, TOP - 8, 'dashed edges: predicted', 'end', 10))
    return parts


def moved(parts, down):
    return parts if not down else [f'<g transform="translate(0 {down})">', *parts, '</g>']


def svg(title, panels, columns=0):
    """Panels side by side, in rows of `columns` where that is not 0; the same input gives the same
    bytes."""
    columns = min(columns or len(panels), len(panels))
    legend = max(len(panel.legend()) for panel in panels)
    row_height = HEIGHT + LEGEND_ROW * legend + 12
    width, height = WIDTH * columns, row_height * -(-len(panels) // columns)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="Helvetica, Arial, DejaVu Sans, sans-serif" '
        'fill="#222222">', f'<title>{html.escape(title)}</title>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    ]
    for index, panel in enumerate(panels):
        parts += moved(panel.parts(WIDTH * (index % columns)), row_height * (index // columns))
    return '\n'.join(parts) + '\n</svg>\n'
