"""Lines over a logarithmic axis as SVG. No packages: tested without a GPU."""
import html
import math
from dataclasses import dataclass, field

COLOURS = ('#2f6fb7', '#c26a12', '#3f8a35', '#8a3f86', '#777777', '#b03030')
WIDTH, HEIGHT = 460, 320  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 44, 46
LEGEND_ROW = 16


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


def text(x, y, said, anchor='middle', size=11, extra=''):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{extra}>'
            f'{html.escape(said)}</text>')


def short(value):
    """1, 512, 65536, 0.01: ticks."""
    return f'{value:g}' if 1e-4 <= value < 1e6 else f'{value:.0e}'


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


def svg(title, panels):
    """Panels side by side; the same input gives the same bytes."""
    rows = max(len(panel.lines) for panel in panels)
    width, height = WIDTH * len(panels), HEIGHT + LEGEND_ROW * rows + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="Helvetica, Arial, DejaVu Sans, sans-serif" '
        'fill="#222222">', f'<title>{html.escape(title)}</title>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    ]
    for index, panel in enumerate(panels):
        parts += panel_parts(panel, WIDTH * index)
    return '\n'.join(parts) + '\n</svg>\n'
