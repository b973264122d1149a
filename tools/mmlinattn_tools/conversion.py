"""The work of the command convert_official, without its command line."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional

import torch
from mmengine.logging import MMLogger

from mmlinattn.weights.addresses import read_checkpoint
from mmlinattn.weights.conversion import (
    AVERAGES,
    OURS,
    PREFIX,
    Conversion,
    apply,
    convert_back,
    describe_heads,
    find_options,
    find_state_dict,
    known_models,
    plan_conversion,
    recognize,
    recomputed,
    shortlist,
)
from mmlinattn.weights.families import FAMILIES
from mmlinattn.weights.files import write_file
from mmlinattn.weights.rows import StateDict, inside
from mmlinattn.weights.start import Start, is_early_norm, plan_start

AUTO = 'auto'
# families that have a model with ELFATT, and its class
ELFATT = dict(swin='SwinTransformer', cswin='CSWinTransformer')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of :func:`run` to a parser."""
    families = [*sorted(FAMILIES), OURS, AUTO]
    parser.add_argument('family', metavar='FAMILY', choices=families)
    parser.add_argument('src', metavar='SRC', help='checkpoint: a path or an address')
    parser.add_argument('dst', metavar='DST', type=Path, help='file to write')
    options = {
        '--dry-run': 'say of every key where it goes, and write nothing',
        '--reverse': 'from mmlinattn to the official names',
        '--publish': 'put 8 digits of the hash in the name of DST, as OpenMMLab does; '
        'of SRC only weights and metadata are kept, without optimizer and moving '
        'averages',
        '--ema': 'take the moving average of the weights, under state_dict_ema or '
        'model_ema, as the official evaluation of SOFT does',
        '--trust': 'unpickle all that SRC holds, whatever its classes; this can run '
        'any code that is in it',
        '--overwrite': 'replace DST if it exists',
    }
    for option, text in options.items():
        parser.add_argument(option, action='store_true', help=text)
    parser.add_argument(
        '--attention',
        choices=('local', 'elfatt'),
        default='local',
        help="of the model that a Swin or CSWin is for: local, the family's own, or "
        'elfatt, which starts with what fits; every key is reported (default: local)',
    )
    parser.add_argument(
        '--arch',
        metavar='NAME',
        help='of the model that starts with --attention elfatt, such as t24181 '
        '(default: the sizes of SRC)',
    )


def check_arguments(args: argparse.Namespace) -> None:
    """Raise an error for options that don't go together, before reading anything.

    Raises:
        ValueError: If there are such options.
        OSError: If DST is a folder, or exists and is not to be replaced.
    """
    if args.attention == 'elfatt' and args.family not in (*ELFATT, AUTO):
        raise ValueError(
            f'--attention elfatt needs FAMILY={" or ".join(ELFATT)}, got {args.family}'
        )
    if args.arch and args.attention != 'elfatt':
        raise ValueError(
            f'--arch {args.arch} needs --attention elfatt: a conversion keeps the '
            'sizes of SRC'
        )
    if args.reverse and (args.attention == 'elfatt' or args.ema):
        raise ValueError('--reverse goes with neither --attention elfatt nor --ema')
    if args.family == OURS and not (args.publish or args.dry_run):
        raise ValueError(f'FAMILY={OURS} converts nothing: it needs --publish')
    if args.dst.is_dir():
        raise IsADirectoryError(f'DST={args.dst} is a folder: name a file')
    if args.dst.exists() and not (args.overwrite or args.dry_run or args.publish):
        raise FileExistsError(f'DST={args.dst} exists: give --overwrite to replace it')


def run(args: argparse.Namespace) -> str:
    """Convert a checkpoint.

    Args:
        args: See :func:`add_arguments`.

    Returns:
        What was done, in lines.

    Raises:
        ValueError: If arguments don't go together, or SRC is no whole model.
        OSError: If SRC is missing, or DST is a folder or exists.
        ImportError: If timm or safetensors is needed and missing.
    """
    check_arguments(args)
    checkpoint = read_checkpoint(args.src, 'SRC', args.trust)
    try:
        found, ema = find_state_dict(checkpoint, args.ema)
        family = find_family(args.family, found, checkpoint, args.reverse)
        if args.reverse:
            written, lines = reverse(found, family, checkpoint)
        elif family == OURS:
            written, lines = copy(found, checkpoint)
        else:
            written, lines = forward(found, family, ema, args)
    except ValueError as error:
        raise ValueError(f'SRC={args.src}: {error}') from error
    if ema and not args.ema:
        lines.append('these are a moving average of the weights, all that SRC holds')
    elif not ema and set(AVERAGES) & checkpoint.keys():
        lines.append('SRC holds a moving average of the weights too: --ema takes that')
    if args.dry_run:
        lines.append(f'nothing written: {args.dst} was not touched')
    else:
        path = write_file(written, args.dst, add_hash=args.publish)
        lines.append(f'wrote {path}')
    return '\n'.join(lines)


def find_family(
    family: str, state_dict: StateDict, checkpoint: dict, backward: bool
) -> str:
    """The family that the user named, or that the keys show.

    Raises:
        ValueError: If the keys show none.
    """
    if family != AUTO:
        return family
    found = recognize(state_dict)
    if backward:
        meta = checkpoint.get('meta')
        found = meta.get('family') if isinstance(meta, dict) else None
        if found not in FAMILIES:
            raise ValueError(
                'metadata say no family to go back to: name it, one of '
                f'{", ".join(sorted(FAMILIES))}'
            )
    if found is None:
        raise ValueError(
            f'{shortlist(state_dict)} keys are not recognized: FAMILY={AUTO} takes '
            f'checkpoints of {known_models()}'
        )
    return found


def forward(
    official: StateDict, family: str, ema: bool, args: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """A checkpoint of ours, and what was done for it."""
    plan = plan_conversion(official, family)
    state_dict = apply(plan, official)
    arch = FAMILIES[family].arch(inside(state_dict, PREFIX))
    dropped = recomputed(official, family)
    start = None
    if args.attention == 'elfatt':
        if family not in ELFATT:
            raise ValueError(f'--attention elfatt needs a Swin or CSWin, got {family}')
        state_dict, start = start_elfatt(state_dict, family, args.arch)
        arch = FAMILIES[family].arch(inside(state_dict, PREFIX)) if args.arch else arch
    scales = find_options(state_dict)
    meta = dict(
        family=family,
        source=Path(args.src).name,
        ema=ema,
        arch=arch,
        scales=scales,
        layout=plan.describe(),
    )
    if family in ELFATT:
        meta['attention'] = args.attention
    lines = [f'{family}: {", ".join(f"{key}={arch[key]}" for key in arch)}']
    if start:
        lines.append(
            f"started attention='elfatt' from {len(official)} official keys, "
            f'{describe_heads(state_dict)}'
        )
        lines += describe_start(start, plan)
    else:
        if args.dry_run:
            lines += describe_keys(plan)
        lines.append(
            f'converted all {len(official) - len(dropped)} official keys to '
            f'{len(state_dict)} of ours, {describe_heads(state_dict)}'
        )
    if dropped:
        lines.append(
            f'left out buffers that the model computes itself: {shortlist(dropped)}'
        )
    lines.append(
        'scaling vectors: '
        + (
            ', '.join(f'{option}=True' for option in scales)
            or 'none, they would start at zero with attn_scale=True or feat_scale=True'
        )
    )
    return dict(meta=meta, state_dict=state_dict), lines


def reverse(
    ours: StateDict, family: str, checkpoint: dict
) -> tuple[dict[str, Any], list[str]]:
    """A checkpoint with official names, and what was done for it."""
    if family == OURS:
        raise ValueError(f'--reverse needs an official family, got {family}')
    meta = checkpoint.get('meta')
    layout = meta.get('layout') if isinstance(meta, dict) else None
    if not inside(ours, PREFIX):
        ours = {f'{PREFIX}{key}': value for key, value in ours.items()}
    official, plan = convert_back(ours, family, layout)
    lines = [
        *describe_keys(plan, '->'),
        f'converted all {len(ours)} keys of ours to {len(official)} official ones',
    ]
    return {FAMILIES[family].place: official}, lines


def copy(ours: StateDict, checkpoint: dict) -> tuple[dict[str, Any], list[str]]:
    """A checkpoint of ours without what only its training needs."""
    if recognize(ours) != OURS:
        raise ValueError(f'{shortlist(ours)} keys are not those of a model of {OURS}')
    kept = dict(state_dict=ours)
    if isinstance(checkpoint.get('meta'), dict):
        kept['meta'] = checkpoint['meta']
    bare = 'state_dict' not in checkpoint
    dropped = [] if bare else [key for key in checkpoint if key not in kept]
    return kept, [f'kept {len(ours)} entries; left out: {shortlist(dropped)}']


def start_elfatt(
    local: StateDict, family: str, arch: Optional[str]
) -> tuple[StateDict, Start]:
    """Turn a converted Swin or CSWin into the start of an ELFATT model.

    Args:
        local: Weights for attention='local' under `backbone.`, and of heads, which
            stay.
        family: 'swin' or 'cswin'.
        arch: Name of an architecture. Default: the sizes of ``local``.

    Returns:
        The start, and the account of all its keys. It lacks none but norms of maps
        before the last one, which a classifier hasn't and a backbone initializes
        itself. Initial values are always the same random ones.

    Raises:
        ValueError: If ``arch`` is unknown or of another width than ``local``.
    """
    from mmlinattn.registry import MODELS

    backbone = inside(local, PREFIX)
    sizes = FAMILIES[family].arch(backbone)
    # heads change no weights: any that divide the channels do
    sizes.setdefault('num_heads', [2] * len(sizes['depths']))
    # MMEngine's initialization prints every parameter
    MMLogger.get_current_instance().setLevel('WARNING')
    torch.manual_seed(0)
    model = MODELS.build(
        dict(
            type=ELFATT[family],
            arch=arch or sizes,
            attention='elfatt',
            _scope_='mmlinattn',
        )
    )
    model.init_weights()
    initial = model.state_dict()
    width = len(initial['stages.0.embedding.layer.0.bias'])
    if width != sizes['embed_dims']:
        raise ValueError(
            f'a model of embed_dims={sizes["embed_dims"]} cannot start '
            f'arch={arch!r}, which has {width}'
        )
    start = plan_start({key: x.shape for key, x in initial.items()}, backbone)
    taken = start.apply(backbone)
    for key in start.initial:
        if not is_early_norm(key, model.num_stages):
            taken[key] = initial[key]
    heads = {key: x for key, x in local.items() if not key.startswith(PREFIX)}
    return {**{f'{PREFIX}{key}': x for key, x in taken.items()}, **heads}, start


def describe_keys(plan: Conversion, arrow: str = '<-') -> list[str]:
    """What goes where, key by key."""
    return [
        f'  {ours} {arrow} {" + ".join(keys)}' for ours, keys in plan.sources().items()
    ]


def describe_start(start: Start, plan: Conversion) -> Iterable[str]:
    """Where each weight of a start is from, key by key."""
    official = {ours: ' + '.join(keys) for ours, keys in plan.sources().items()}
    taken = [
        f'{key} <- {keys}'
        for key, keys in official.items()
        if not key.startswith(PREFIX)
    ]
    recut = []
    for key, names in start.taken.items():
        sources = ' + '.join(official[PREFIX + name] for name in names)
        lines = taken if names == [key] else recut
        lines.append(f'{PREFIX}{key} <- {sources}')
    parts = {
        'taken as they are': taken,
        'taken and cut otherwise': recut,
        'not in SRC, keep their initial values': [PREFIX + x for x in start.initial],
        'official keys that are not used': [official[PREFIX + x] for x in start.unused],
    }
    for title, lines in parts.items():
        yield f'{title}: {len(lines)}'
        yield from (f'  {line}' for line in lines)
