"""Convert a checkpoint of a model's official code to one of mmlinattn's models.

FAMILY  checkpoints of                                   for
soft    fudan-zvg/SOFT                                   SOFT, SOFTPlusPlus
deit    ViT-Anti-Oversmoothing, DeiT, timm, mmpretrain   VisionTransformer
cait    ViT-Anti-Oversmoothing, CaiT, timm               CaiT
swin    ViT-Anti-Oversmoothing, Swin, timm, mmpretrain   SwinTransformer
cswin   microsoft/CSWin-Transformer                      CSWinTransformer

SRC is a state dict, bare or under `model`, `state_dict` or, where there is nothing
else, `state_dict_ema`. DST gets a checkpoint as OpenMMLab writes it: weights under
`backbone.`, those of a classifier under `head.` as mmpretrain's LinearClsHead names
them, those of a segmentor's heads as they were. Every key is accounted for: one left
over or missing, as in a checkpoint of another family, is an error.

AttnScale's and FeatScale's vectors, of VITA-Group/ViT-Anti-Oversmoothing, are found
by their keys. A checkpoint without them is a start for fine-tuning: a backbone with
attn_scale or feat_scale loads it and starts these vectors at zero, where they change
nothing.

CSWin is converted for attention='local', cross-shaped windows. `--attention elfatt`
writes what it can start attention='elfatt' with, the rest at its initial values, and
says of every key where it is from; `--arch t24181` does so for the paper's depths,
which are not the official checkpoints' own.

Sizes are read from the keys. What the keys don't tell stays with the config: whether
SOFT's kernel is normalized (attn_norm), the heads of its last stage, of DeiT and of
CSWin, CSWin's stripe_width (7 in stage 3 of a model for 224 pixels, 12 for 384).

example:
  python tools/model_converters/convert_official.py soft SOFT_Tiny.pth soft-t.pth
and then, in a config:
  backbone=dict(
      type='mmlinattn.SOFT', arch='tiny',
      init_cfg=dict(type='Pretrained', checkpoint='soft-t.pth', prefix='backbone.'))
"""

import argparse
import os
import pickle
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Optional

import torch
from official_families import FAMILIES
from official_families.rows import LINEAR, Row, StateDict, inside, nested, stacked
from torch import Tensor

# timm's and the official ones', mmpretrain's for plain heads and for DeiT
HEADS = ('head', 'head.fc', 'head.layers.head')
# OpenMMLab's, the same in all its versions
SEGMENTOR_HEADS = ('decode_head.', 'auxiliary_head.')
AVERAGES = ('state_dict_ema', 'model_ema')
SCALES = dict(attn_scale='omega', feat_scale='dc_scale')


def some(names: Iterable) -> str:
    """The number of names and the first few of them."""
    names = [str(name) for name in names]
    shown = names[:3] + ['...'] * (len(names) > 3)
    return f'{len(names)} ({", ".join(shown)})' if names else '0'


def recomputed(state_dict: StateDict, family: str) -> list[str]:
    """Official keys that have no counterpart: our model computes these buffers."""
    buffers = FAMILIES[family].buffers
    return [key for key in state_dict if key.rpartition('.')[2] in buffers]


def find_rows(state_dict: StateDict, family: str) -> list[Row]:
    """Rows that account for every key of an official model.

    Args:
        state_dict: Official names and tensors, all of one model.
        family: A key of FAMILIES.

    Raises:
        ValueError: If a key is missing or left over, or the model is of a kind that
            has no counterpart.
    """
    prefix = 'backbone.' if inside(state_dict, 'backbone.') else ''
    rows = FAMILIES[family].rows(inside(state_dict, prefix))
    rows = nested('backbone.', prefix, rows)
    rows += [
        Row('head.fc', head, LINEAR)
        for head in HEADS
        if inside(state_dict, f'{head}.').keys() & set(LINEAR)
    ]
    rows += [Row(key, key) for key in state_dict if key.startswith(SEGMENTOR_HEADS)]
    expected = [key for row in rows for keys in row.sources().values() for key in keys]
    missing = [key for key in expected if key not in state_dict]
    leftover = sorted(
        state_dict.keys() - set(expected) - set(recomputed(state_dict, family))
    )
    if missing or leftover:
        raise ValueError(
            f'these are not the keys of a whole official {family!r} model: missing '
            f'{some(missing)}, left over {some(leftover)}'
        )
    return rows


def convert(state_dict: StateDict, family: str) -> StateDict:
    """Rename and merge the weights of an official model.

    Args:
        state_dict: See :func:`find_rows`.
        family: A key of FAMILIES.

    Returns:
        Ours, with the prefixes `backbone.` and, if there is a head, `head.`.

    Raises:
        ValueError: See :func:`find_rows`.
    """
    return {
        ours: row.change(stacked([state_dict[key] for key in keys]))
        for row in find_rows(state_dict, family)
        for ours, keys in row.sources().items()
    }


def load(path: Path, trust: bool = False) -> dict:
    """Load a file of torch.save.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is something else, or holds more than plain data and
            ``trust`` is not set.
    """
    if not path.is_file():
        raise FileNotFoundError(f'SRC={path} is not a file')
    try:
        with warnings.catch_warnings():
            # torch 2.1 warns of its own code
            warnings.filterwarnings('ignore', 'TypedStorage is deprecated')
            loaded = torch.load(path, map_location='cpu', weights_only=not trust)
    except Exception as error:  # unpickling can raise anything
        reason = str(error).rpartition('WeightsUnpickler error: ')[2].split('\n')[0]
        hint = (
            ''
            if trust or not isinstance(error, pickle.UnpicklingError)
            else (
                '; training checkpoints hold more than tensors: give --trust if you '
                'trust who made it, since unpickling can run any code'
            )
        )
        raise ValueError(
            f'SRC={path} cannot be loaded: {reason or type(error).__name__}{hint}'
        ) from error
    if not isinstance(loaded, dict):
        raise ValueError(
            f'SRC={path} must hold a dict, but holds a {type(loaded).__name__}'
        )
    return loaded


def find_state_dict(checkpoint: dict, ema: bool = False) -> tuple[StateDict, bool]:
    """The state dict in a checkpoint, without the prefix of a parallel wrapper.

    Args:
        checkpoint: A state dict, bare or under `state_dict` or `model`.
        ema: Take the moving average, under `state_dict_ema` or `model_ema`, and not
            only where there is nothing else.

    Returns:
        The state dict, and whether it is the moving average.

    Raises:
        ValueError: If there is none.
    """
    places = AVERAGES if ema else ('state_dict', 'model') + AVERAGES
    place = next((place for place in places if place in checkpoint), None)
    found = checkpoint.get(place, None if ema else checkpoint)
    if not (
        found
        and isinstance(found, dict)
        and all(
            isinstance(key, str) and isinstance(value, Tensor)
            for key, value in found.items()
        )
    ):
        raise ValueError(
            f'there is no state dict, {"" if ema else "bare or "}under '
            f'{" or ".join(places)}; number of keys: {some(checkpoint)}'
        )
    if all(key.startswith('module.') for key in found):
        found = inside(found, 'module.')
    return found, place in AVERAGES


def describe_heads(state_dict: StateDict) -> str:
    """What there is besides the backbone, in words."""
    if 'head.fc.weight' in state_dict:
        return f'with a head of {len(state_dict["head.fc.weight"])} classes'
    heads = sorted({key.partition('.')[0] for key in state_dict} - {'backbone'})
    return f'with {", ".join(heads)}' if heads else 'no head'


def save(checkpoint: dict, path: Path) -> None:
    """Save a checkpoint; a killed run leaves no half of one under its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f'{path.name}.part')
    torch.save(checkpoint, part)
    os.replace(part, path)


# --------------------------------------------------------------- command line
class Parser(argparse.ArgumentParser):
    """An argument parser that reports an error in one line."""

    def error(self, message):
        self.exit(2, f'{self.prog}: error: {" ".join(message.split())}\n')


def parse_args(
    argv: Optional[Sequence[str]] = None,
) -> tuple[Parser, argparse.Namespace]:
    """Read the command line."""
    parser = Parser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('family', metavar='FAMILY', choices=FAMILIES)
    parser.add_argument('src', metavar='SRC', type=Path, help='official checkpoint')
    parser.add_argument('dst', metavar='DST', type=Path, help='file to write')
    parser.add_argument(
        '--ema',
        action='store_true',
        help='take the moving average of the weights, under state_dict_ema or '
        'model_ema, as the official evaluation of SOFT does',
    )
    parser.add_argument(
        '--trust',
        action='store_true',
        help='unpickle all that SRC holds, as training checkpoints need; this can '
        'run any code that is in it',
    )
    parser.add_argument(
        '--overwrite', action='store_true', help='replace DST if it exists'
    )
    parser.add_argument(
        '--attention',
        choices=('local', 'elfatt'),
        default='local',
        help="of the model that a CSWin is for: local, CSWin's own, or elfatt, which "
        'starts with what fits; every key is reported (default: local)',
    )
    parser.add_argument(
        '--arch',
        metavar='NAME',
        help='of the model that starts with --attention elfatt, t24181 or b36292 '
        '(default: the sizes of SRC)',
    )
    args = parser.parse_args(argv)
    if args.attention == 'elfatt' and args.family != 'cswin':
        parser.error(f'--attention elfatt needs FAMILY=cswin, got {args.family}')
    if args.arch and args.attention != 'elfatt':
        parser.error(
            f'--arch {args.arch} needs --attention elfatt: a conversion '
            'keeps the sizes of SRC'
        )
    return parser, args


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command line tool."""
    parser, args = parse_args(argv)
    try:
        if args.dst.is_dir():
            raise IsADirectoryError(f'DST={args.dst} is a folder: name a file')
        if args.dst.exists() and not args.overwrite:
            raise FileExistsError(
                f'DST={args.dst} exists: give --overwrite to replace it'
            )
        checkpoint = load(args.src, args.trust)
        report = None
        try:
            official, ema = find_state_dict(checkpoint, args.ema)
            state_dict = convert(official, args.family)
            if args.attention == 'elfatt':
                # only this needs the package
                from elfatt_start import describe_sources, start_elfatt

                state_dict, sources = start_elfatt(state_dict, args.arch)
                report = describe_sources(sources, find_rows(official, args.family))
        except ValueError as error:
            raise ValueError(f'SRC={args.src}: {error}') from error
        arch = FAMILIES[args.family].arch(inside(state_dict, 'backbone.'))
        scales = [
            option
            for option, vector in SCALES.items()
            if any(key.endswith(vector) for key in state_dict)
        ]
        meta = dict(
            family=args.family, source=args.src.name, ema=ema, arch=arch, scales=scales
        )
        if args.family == 'cswin':
            meta['attention'] = args.attention
        save(dict(meta=meta, state_dict=state_dict), args.dst)
    except ImportError as error:
        parser.error(f'--attention={args.attention} builds the model: {error}')
    except (ValueError, OSError) as error:
        parser.error(str(error))
    dropped = recomputed(official, args.family)
    print(f'{args.family}: {", ".join(f"{key}={arch[key]}" for key in arch)}')
    if report:
        print(
            f"started attention='elfatt' from {len(official)} official keys, "
            f'{describe_heads(state_dict)}'
        )
        print(report)
    else:
        print(
            f'converted all {len(official) - len(dropped)} official keys to '
            f'{len(state_dict)} of ours, {describe_heads(state_dict)}'
        )
    if dropped:
        print(f'left out buffers that the model computes itself: {some(dropped)}')
    print(
        'scaling vectors: '
        + (
            ', '.join(f'{option}=True' for option in scales)
            or 'none, they would start at zero with attn_scale=True or feat_scale=True'
        )
    )
    if ema and not args.ema:
        print('these are a moving average of the weights, all that SRC holds')
    elif not ema and set(AVERAGES) & checkpoint.keys():
        print('SRC holds a moving average of the weights too: --ema takes that')
    print(f'wrote {args.dst}')


if __name__ == '__main__':
    main()
