"""Write the tables of docs/claims/*.md from the JSON files beside them.

A table stands between two comments, of which the first names it. Its rows are those of
TABLES; a cell is a source as docs/site/quoted.py reads it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from quoted import evaluate

FOLDER = Path(__file__).resolve().parents[1] / 'claims'
TABLE = re.compile(r'(<!-- claims: (.+?) -->\n).*?(<!-- end of claims -->)', re.S)
RUNS, LINEAR, EXACT = (f'claims/{x}.json' for x in ('runs', 'linear', 'exact'))
BAG_SIZES = ('112', '256')
NONE = '-'


class Table(NamedTuple):
    """Titles of columns, and rows: a name, and sources of cells or '-' for none."""

    titles: list[str]
    rows: list[tuple[str, list[str]]]


def difference(file: str, data: str, model: str, other: str, key: str) -> str:
    """Return points between the scores of two models for the same seeds."""
    place = f'{data} {model!r} seeds * {key}'.strip()
    beside = f'{other!r} seeds * {key}'
    return f'interval % {file} {place} - {beside}'


def added_by_attention() -> Iterator[tuple[str, list[str]]]:
    """Yield rows of models beside the same without attention."""
    for title, data, model, other in (
        ('SOFT++ pyramid, Imagenette', 'imagenette', 'SOFT++', 'SOFT++ no attention'),
        (
            'bare pyramid, Imagenette',
            'imagenette',
            'SOFT++ bare',
            'SOFT++ bare no attention',
        ),
        ('Swin, Imagenette', 'imagenette', 'Swin softmax', 'Swin no attention'),
        ('flat SOFT++, CIFAR-10', 'cifar10', 'flat SOFT++', 'flat no attention'),
        ('flat softmax, CIFAR-10', 'cifar10', 'flat softmax', 'flat no attention'),
        (
            'flat mean of values, CIFAR-10',
            'cifar10',
            'flat rank one',
            'flat no attention',
        ),
        (
            'bare pyramid, BCCD (AP50)',
            'bccd',
            'SOFT++ bare',
            'SOFT++ bare no attention',
        ),
        (
            'bare pyramid, CamVid (mIoU)',
            'camvid',
            'SOFT++ bare',
            'SOFT++ bare no attention',
        ),
    ):
        yield title, [difference(RUNS, data, model, other, 'score')]


def sizes_of_pyramids() -> Iterator[tuple[str, list[str]]]:
    """Yield rows of pyramids at the size of the training and at a larger one."""
    for title, model in (
        ('SOFT++', 'SOFT++'),
        ('bare', 'SOFT++ bare'),
        ('Swin, softmax', 'Swin softmax'),
        ('Swin, ELFATT', 'Swin ELFATT'),
    ):
        place = f'{RUNS} imagenette {model!r} looks *'
        yield (
            title,
            [
                f"mean % {place} 'at 112' score",
                f"mean % {place} 'at 256' score",
                f"interval % {place} 'at 256' score - 'at 112' score",
            ],
        )


def changed_after_training() -> Iterator[tuple[str, list[str]]]:
    """Yield rows of what changes a trained bare pyramid."""
    place = f"{RUNS} imagenette 'SOFT++ bare' looks *"
    for title, look in (
        ('a ridge of 0.1 in place of 20 steps', 'tested with ridge 0.1'),
        ('the mean of all values', 'tested as rank one'),
        ('16 landmarks in place of 49', 'tested with 16 landmarks'),
        (
            '16 landmarks and the factor of finding 4',
            'tested with 16 landmarks, scaled',
        ),
    ):
        yield title, [f"interval % {place} {look!r} score - 'at 112' score"]


def bag() -> Iterator[tuple[str, list[str]]]:
    """Yield rows of the bag of patches, measured on a CPU (A) and on GPUs (B)."""
    for title, first, second in (
        ('softmax', 'softmax', 'softmax'),
        ('rows, convolved landmarks', 'rows, conv', 'rows, conv'),
        ('rows, averages', 'rows, pool', 'rows, pool'),
        ('rows, small convolutions', '', 'rows, small conv'),
        ('rows, convolved, 16 landmarks', '', 'rows, conv, 16 landmarks'),
        ('SOFT++ as printed', 'printed, conv', ''),
        ('SOFT++ as printed, averages', 'printed, pool', ''),
        ('mean of values', 'rank one', ''),
        ('exact Gaussian kernel, row sums', '', 'exact Gaussian kernel, rows'),
        ('exact diagonal, small convolutions', '', 'exact diagonal, small conv'),
        ('softmax, shuffled patches', '', 'softmax, shuffled patches'),
        ('rows, shuffled patches', '', 'rows, conv, shuffled patches'),
        ('no attention', 'no attention', 'no attention'),
    ):
        cells = [
            f'mean % {LINEAR} {first!r} seeds * {size}' if first else NONE
            for size in BAG_SIZES
        ]
        cells += [
            f'mean % {EXACT} bag {second!r} seeds * {size}' if second else NONE
            for size in BAG_SIZES
        ]
        if 'shuffled' in title:
            cells[-1] = NONE
        yield title, cells


def bag_differences() -> Iterator[tuple[str, list[str]]]:
    """Yield rows of differences between attentions on the bag of patches."""
    for title, file, data, model, other in (
        ('softmax - none (A)', LINEAR, '', 'softmax', 'no attention'),
        ('softmax - none (B)', EXACT, 'bag', 'softmax', 'no attention'),
        ('rows, convolved - softmax (A)', LINEAR, '', 'rows, conv', 'softmax'),
        ('rows, convolved - softmax (B)', EXACT, 'bag', 'rows, conv', 'softmax'),
        (
            'rows, convolved - exact kernel (B)',
            EXACT,
            'bag',
            'rows, conv',
            'exact Gaussian kernel, rows',
        ),
        (
            'exact kernel - none (B)',
            EXACT,
            'bag',
            'exact Gaussian kernel, rows',
            'no attention',
        ),
        ('rows, averages - mean of values (A)', LINEAR, '', 'rows, pool', 'rank one'),
        ('as printed - rows (A)', LINEAR, '', 'printed, conv', 'rows, conv'),
        (
            'small convolutions - usual ones (B)',
            EXACT,
            'bag',
            'rows, small conv',
            'rows, conv',
        ),
        (
            'exact diagonal - without, small convolutions (B)',
            EXACT,
            'bag',
            'exact diagonal, small conv',
            'rows, small conv',
        ),
    ):
        yield title, [difference(file, data, model, other, size) for size in BAG_SIZES]


def exact_parts() -> Iterator[tuple[str, list[str]]]:
    """Yield rows of pyramids with exact parts."""
    for title, model in (
        ('rows, convolved landmarks', 'rows, conv'),
        ('rows, small convolutions', 'rows, small conv'),
        ('exact diagonal, small convolutions', 'exact diagonal, small conv'),
        ('exact diagonal, weighted tokens', 'exact diagonal, weighted'),
        ('exact windows of 7, small convolutions', 'exact windows of 7, small conv'),
    ):
        place = f'{EXACT} pyramid {model!r} seeds *'
        keys = ('112', '168', '256', "'112 half padded'")
        has_padded = model != 'rows, small conv'
        yield (
            title,
            [
                f'mean % {place} {key}' if has_padded or key[0] != "'" else NONE
                for key in keys
            ],
        )


TABLES = {
    'added by attention': Table(
        ['model, data', 'points over no attention'], [*added_by_attention()]
    ),
    'sizes of pyramids': Table(
        ['pyramid', '112', '256', 'difference'], [*sizes_of_pyramids()]
    ),
    'changed after training': Table(
        ['what the trained bare pyramid gets', 'change of top-1'],
        [*changed_after_training()],
    ),
    'bag': Table(['attention', '112 (A)', '256 (A)', '112 (B)', '256 (B)'], [*bag()]),
    'bag differences': Table(['points of top-1', '112', '256'], [*bag_differences()]),
    'exact parts': Table(
        ['pyramid', '112', '168', '256', '112, half padded'], [*exact_parts()]
    ),
}


def cell_of(source: str) -> str:
    """Return a cell: a mean, or a difference and half the width of its interval."""
    if source == NONE:
        return NONE
    values = evaluate(source)
    if len(values) == 1:
        return f'{values[0]:.1f}'
    return f'{values[0]:+.1f} ± {values[1]:.1f}'


def render(page: str) -> str:
    """Return a page with its tables written anew."""

    def write(match: re.Match[str]) -> str:
        table = TABLES[match[2]]
        lines = [table.titles, ['---'] * len(table.titles)]
        lines += [[title, *map(cell_of, cells)] for title, cells in table.rows]
        body = ''.join(f'| {" | ".join(line)} |\n' for line in lines)
        return match[1] + body + match[3]

    return TABLE.sub(write, page)


def main() -> None:
    """Write all pages."""
    for path in sorted(FOLDER.glob('*.md')):
        path.write_text(render(path.read_text('utf-8')), 'utf-8')


if __name__ == '__main__':
    main()
