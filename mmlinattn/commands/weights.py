"""List models with public weights, or download the weights of one.

    mmlinattn weights --task det --license any
    mmlinattn weights --fetch mask-rcnn_mlla-t_fpn_ms-crop-3x_coco

--start of new-config takes their names, and every command the addresses and the
downloaded files. The results are the authors', on the data that the model was trained
on, and parameters are those of the whole model. A file that is on this machine has a
star. Without a license, weights may be used only as their authors allow.
"""

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Optional

from mmlinattn.cli import parser as cli
from mmlinattn.hub import find_folder
from mmlinattn.public_weights import DATA, PublicModel, read_models
from mmlinattn.weights import fetch_web, place_of

TASKS = ('det', 'seg', 'cls')
ANY, NONE = 'any', 'none'


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    add('--task', choices=TASKS, help='objects, areas or whole images')
    data = [name for name, _ in DATA.values()]
    add('--data', choices=data, help='what they were trained on')
    text = f"their license, '{ANY}' for those that have one, '{NONE}' for the others"
    add('--license', metavar='NAME', help=text)
    text = 'order: the most accurate first, or the smallest (default: %(default)s)'
    add('--sort', choices=('score', 'size'), default='score', help=text)
    text = 'download the weights of a model, and print their path'
    add('--fetch', metavar='NAME', help=text)
    return parser.parse_args(argv)


def choose(models: list[PublicModel], args: argparse.Namespace) -> list[PublicModel]:
    """Return the models that options ask for, in their order; a ValueError for a
    license that no model has."""
    licenses = sorted({model.license for model in models if model.license})
    wish = args.license
    if wish and wish not in (ANY, NONE, *licenses):
        known = ', '.join([ANY, NONE, *licenses])
        raise ValueError(f'--license {wish}: there are {known}')
    models = [
        model
        for model in models
        if args.task in (None, model.task)
        and args.data in (None, model.data)
        and (wish in (None, model.license or NONE) or (wish == ANY and model.license))
    ]
    if args.sort == 'size':
        return sorted(models, key=lambda model: model.parameters)
    data = [name for name, _ in DATA.values()]
    return sorted(models, key=lambda model: (data.index(model.data), -model.score))


def table(models: Sequence[PublicModel]) -> list[str]:
    """Return lines of a table."""
    titles = ('model', 'data', 'parameters', 'results', 'license')
    rows = [titles, *map(cells, models)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        '  '.join(f'{cell:<{width}}' for cell, width in zip(row, widths)).rstrip()
        for row in rows
    ]


def cells(model: PublicModel) -> tuple[str, ...]:
    """Return the row of a model."""
    here = ' *' if place_of(model.address).is_file() else ''
    return (
        model.name + here,
        model.data,
        f'{model.parameters / 1e6:.1f} M',
        model.results,
        model.license or NONE,
    )


def fetch(models: Sequence[PublicModel], name: str) -> None:
    """Download the weights of a model.

    Raises:
        ValueError: If there is no model of this name.
        ConnectionError: If they can't be downloaded.
    """
    known = {model.name: model for model in models}
    if name not in known:
        near = get_close_matches(name, known, 3, 0.4)
        text = f': did you mean {" or ".join(near)}?' if near else ''
        raise ValueError(f'--fetch {name}: no model of this name has weights{text}')
    model = known[name]
    path = fetch_web(model.address, '--fetch')
    print(model.describe())
    print(path)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    args = parse_args(argv)
    with cli.errors_in_one_line(*cli.INPUT_ERRORS):
        models = read_models(find_folder())
        if args.fetch:
            fetch(models, args.fetch)
        else:
            print('\n'.join(table(choose(models, args))))
