"""What graph.mlir of an artifact says of its results. No packages: tested without a GPU."""
import re

RESULT = re.compile(r'(?:^|, )[^,{]+(?:\{([^}]*)\})?')


class UnknownResult(ValueError):
    pass


def gradients_by_result(text):
    """Result's name -> the argument it is the gradient of ('': none). A result's name alone does
    not tell: where products were stacked, the gradient of x is named after them."""
    head = re.search(
        r'weft\.graph @\w+\(.*?\) -> (?:\((.*?)\)|(![\w]+))(?: attributes \{.*\})? \{\n', text)
    names = re.search(r'^    weft\.return (.*?) : ', text, re.MULTILINE)
    if not head or not names:
        raise UnknownResult('graph.mlir has no graph with results')
    attributes = [match[1] or '' for match in RESULT.finditer(head[1] or head[2])]
    found = re.findall(r'%(\w+)', names[1])
    if len(found) != len(attributes):
        raise UnknownResult(
            f'graph.mlir returns {len(found)} values and declares {len(attributes)}')
    gradient = [re.search(r'weft\.gradient_of = "([^"]*)"', one) for one in attributes]
    return {name: match[1] if match else '' for name, match in zip(found, gradient)}


def gradient_of(by_result, name):
    """Of a tensor of the plan: its own name, which the printed graph may have made unique by a
    number."""
    for printed, gradient in by_result.items():
        if name == printed or re.fullmatch(re.escape(name) + r'_\d+', printed):
            return gradient
    raise UnknownResult(f'graph.mlir has no result {name!r} (results: {", ".join(by_result)})')
