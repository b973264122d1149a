"""What an official CSWin checkpoint can start an ELFATT model with.

ELFATT's CSWin is made of CSWin's modules; only what its attentions do with queries,
keys and values, and the convolutions of LePE, are cut otherwise:

stage  CSWin                          ELFATT's CSWin
1, 2   upright stripes, flat stripes  global half, local half
3      the same                       whole map, halves, whole map, halves, ...
4      whole map                      whole map

CSWin has upright stripes in the first half of the channels of queries, keys and
values, flat ones in the last; ELFATT with equal halves (split_ratio=0.5) has the
global half first, the local half last, and each half as many heads as CSWin has. So
the projections are taken as they are, the global half starts with the LePE of upright
stripes, the local half with that of flat ones, and attention over the whole map of
stage 3 with both. Blocks go by their number: where depths differ, blocks past
CSWin's last one keep their initial values, and CSWin's past ours are not used.
"""

from collections.abc import Iterable
from typing import Optional

import torch
from mmengine.logging import MMLogger
from official_families.blocks import pyramid_arch
from official_families.rows import Keys, Row, StateDict, inside, stacked

from mmlinattn.models import CSWinTransformer

PREFIX = 'backbone.'


def find_sources(keys: Keys, local: Keys) -> dict[str, list[str]]:
    """Which parameters of a LOCAL model each one of an ELFATT model starts with.

    Args:
        keys: Names in the ELFATT model.
        local: Names in the LOCAL model.

    Returns:
        Names of the tensors to join along their first axis, by name in the ELFATT
        model; an empty list where there is nothing to start with.
    """
    found = {}
    for key in keys:
        name = key.replace('.global_lepe.', '.lepe.0.')
        name = name.replace('.local_lepe.', '.lepe.1.')
        halves = [name.replace('.lepe.', f'.lepe.{half}.') for half in (0, 1)]
        names = [name] if name in local else halves
        found[key] = [name for name in names if name in local]
    return found


def start_elfatt(
    local: StateDict, arch: Optional[str] = None
) -> tuple[StateDict, dict[str, list[str]]]:
    """Turn a converted CSWin into the start of an ELFATT model.

    Args:
        local: Weights of CSWinTransformer(attention='local') under `backbone.`, and
            of heads, which stay.
        arch: Name of CSWinTransformer's architecture. Default: the sizes of
            ``local``.

    Returns:
        The start, and :func:`find_sources` of all its keys. It lacks none but norms
        of maps before the last one, which a classifier hasn't and a backbone
        initializes itself. Initial values are always the same random ones.

    Raises:
        ValueError: If ``arch`` is unknown or of another width than ``local``.
    """
    sizes = pyramid_arch(inside(local, PREFIX))
    # MMEngine's initialization prints every parameter
    MMLogger.get_current_instance().setLevel('WARNING')
    torch.manual_seed(0)
    model = CSWinTransformer(
        # heads change no weights: any that divide the channels do
        arch or dict(sizes, num_heads=[2] * len(sizes['depths'])),
        attention='elfatt',
    )
    model.init_weights()
    initial = model.state_dict()
    width = pyramid_arch(initial)['embed_dims']
    if width != sizes['embed_dims']:
        raise ValueError(
            f'a model of embed_dims={sizes["embed_dims"]} cannot start '
            f'arch={arch!r}, which has {width}'
        )
    initial = {f'{PREFIX}{key}': value for key, value in initial.items()}
    heads = [key for key in local if not key.startswith(PREFIX)]
    sources = find_sources([*initial, *heads], local)
    start = {
        key: stacked([local[name] for name in names]) if names else initial[key]
        for key, names in sources.items()
        if names or not model.is_early_norm(key[len(PREFIX) :])
    }
    return start, sources


def describe_sources(sources: dict[str, list[str]], rows: Iterable[Row]) -> str:
    """Where each weight of a start is from, key by key.

    Args:
        sources: See :func:`find_sources`.
        rows: What the LOCAL model was made of.
    """
    official = {
        ours: ' + '.join(keys) for row in rows for ours, keys in row.sources().items()
    }
    taken, recut, initial = [], [], []
    for key, names in sources.items():
        line = f'{key} <- {" + ".join(official[name] for name in names)}'
        if not names:
            initial.append(key)
        elif names == [key]:
            taken.append(line)
        else:
            recut.append(line)
    used = {name for names in sources.values() for name in names}
    unused = [keys for ours, keys in official.items() if ours not in used]
    parts = {
        'taken as they are': taken,
        "taken from the LePE of CSWin's stripes": recut,
        'not in SRC, keep their initial values': initial,
        'official keys that are not used': unused,
    }
    return '\n'.join(
        '\n  '.join([f'{title}: {len(lines)}', *lines])
        for title, lines in parts.items()
    )
