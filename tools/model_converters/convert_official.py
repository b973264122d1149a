"""Convert a checkpoint of a model's official code to one of mmlinattn's models.

FAMILY  checkpoints of                                   for
soft    fudan-zvg/SOFT                                   SOFT, SOFTPlusPlus
deit    ViT-Anti-Oversmoothing, DeiT, timm, mmpretrain   VisionTransformer
cait    ViT-Anti-Oversmoothing, CaiT, timm               CaiT
swin    ViT-Anti-Oversmoothing, Swin, timm, mmpretrain   SwinTransformer

SRC is a state dict, bare or under `model` or `state_dict`. DST gets a checkpoint as
OpenMMLab writes it: weights under `backbone.`, those of a classifier under `head.`
as mmpretrain's LinearClsHead names them. Every key is accounted for: one left over
or missing, as in a checkpoint of another family, is an error.

AttnScale's and FeatScale's vectors, of VITA-Group/ViT-Anti-Oversmoothing, are found
by their keys. A checkpoint without them is a start for fine-tuning: a backbone with
attn_scale or feat_scale loads it and starts these vectors at zero, where they change
nothing.

Sizes are read from the keys. What the keys don't tell stays with the config: whether
SOFT's kernel is normalized (attn_norm), the heads of its last stage and of DeiT.

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
from pathlib import Path
from typing import Iterable, List, Sequence, Tuple

import torch
from official_families import FAMILIES, LINEAR, Row, StateDict, nested
from torch import Tensor

# timm's and the official ones', mmpretrain's for plain heads and for DeiT
HEADS = ('head', 'head.fc', 'head.layers.head')
SCALES = dict(attn_scale='omega', feat_scale='dc_scale')


def some(names: Iterable) -> str:
    """The number of names and the first few of them."""
    names = [str(name) for name in names]
    shown = names[:3] + ['...'] * (len(names) > 3)
    return f'{len(names)} ({", ".join(shown)})' if names else '0'


def inside(state_dict: StateDict, prefix: str) -> StateDict:
    """What is under a prefix, without it."""
    return {
        key[len(prefix):]: value
        for key, value in state_dict.items() if key.startswith(prefix)
    }


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along their first axis; one alone may have none."""
    return torch.cat(tensors) if len(tensors) > 1 else tensors[0]


def recomputed(state_dict: StateDict, family: str) -> List[str]:
    """Official keys that have no counterpart: our model computes these buffers."""
    buffers = FAMILIES[family].buffers
    return [key for key in state_dict if key.rpartition('.')[2] in buffers]


def convert(state_dict: StateDict, family: str) -> StateDict:
    """Rename and merge the weights of an official model.

    Args:
        state_dict: Official names and tensors, all of one model.
        family: A key of FAMILIES.

    Returns:
        Ours, with the prefixes `backbone.` and, if there is a head, `head.`.

    Raises:
        ValueError: If a key is missing or left over, or the model is of a kind that
            has no counterpart.
    """
    prefix = 'backbone.' if inside(state_dict, 'backbone.') else ''
    rows = FAMILIES[family].rows(inside(state_dict, prefix))
    rows = nested('backbone.', prefix, rows)
    rows += [
        Row('head.fc', head, LINEAR) for head in HEADS
        if inside(state_dict, f'{head}.').keys() & set(LINEAR)
    ]
    expected = [key for row in rows for keys in row.sources().values() for key in keys]
    missing = [key for key in expected if key not in state_dict]
    leftover = sorted(
        state_dict.keys() - set(expected) - set(recomputed(state_dict, family)))
    if missing or leftover:
        raise ValueError(
            f'these are not the keys of a whole official {family!r} model: missing '
            f'{some(missing)}, left over {some(leftover)}')
    return {
        ours: row.change(stacked([state_dict[key] for key in keys]))
        for row in rows for ours, keys in row.sources().items()
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
        hint = '' if trust or not isinstance(error, pickle.UnpicklingError) else (
            '; training checkpoints hold more than tensors: give --trust if you '
            'trust who made it, since unpickling can run any code')
        raise ValueError(
            f'SRC={path} cannot be loaded: {reason or type(error).__name__}{hint}'
        ) from error
    if not isinstance(loaded, dict):
        raise ValueError(
            f'SRC={path} must hold a dict, but holds a {type(loaded).__name__}')
    return loaded


def find_state_dict(checkpoint: dict, ema: bool = False) -> StateDict:
    """The state dict in a checkpoint, without the prefix of a parallel wrapper.

    Args:
        checkpoint: A state dict, bare or under `state_dict` or `model`.
        ema: Take the moving average, under `state_dict_ema` or `model_ema`.

    Raises:
        ValueError: If there is none.
    """
    places = ('state_dict_ema', 'model_ema') if ema else ('state_dict', 'model')
    found = [checkpoint[place] for place in places if place in checkpoint]
    if not (found or ema):
        found = [checkpoint]
    if not (found and isinstance(found[0], dict) and found[0]
            and all(isinstance(key, str) and isinstance(value, Tensor)
                    for key, value in found[0].items())):
        raise ValueError(
            f'there is no state dict, {"" if ema else "bare or "}under '
            f'{" or ".join(places)}; number of keys: {some(checkpoint)}')
    if all(key.startswith('module.') for key in found[0]):
        return {key[len('module.'):]: value for key, value in found[0].items()}
    return found[0]


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


def parse_args(argv: Sequence[str] = None) -> Tuple[Parser, argparse.Namespace]:
    """Read the command line."""
    parser = Parser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('family', metavar='FAMILY', choices=FAMILIES)
    parser.add_argument(
        'src', metavar='SRC', type=Path, help='official checkpoint')
    parser.add_argument('dst', metavar='DST', type=Path, help='file to write')
    parser.add_argument(
        '--ema', action='store_true',
        help='take the moving average of the weights, under state_dict_ema or '
        'model_ema, as the official evaluation of SOFT does')
    parser.add_argument(
        '--trust', action='store_true',
        help='unpickle all that SRC holds, as training checkpoints need; this can '
        'run any code that is in it')
    parser.add_argument(
        '--overwrite', action='store_true', help='replace DST if it exists')
    return parser, parser.parse_args(argv)


def main(argv: Sequence[str] = None) -> None:
    """Run the command line tool."""
    parser, args = parse_args(argv)
    try:
        if args.dst.is_dir():
            raise IsADirectoryError(f'DST={args.dst} is a folder: name a file')
        if args.dst.exists() and not args.overwrite:
            raise FileExistsError(
                f'DST={args.dst} exists: give --overwrite to replace it')
        checkpoint = load(args.src, args.trust)
        try:
            official = find_state_dict(checkpoint, args.ema)
            state_dict = convert(official, args.family)
        except ValueError as error:
            raise ValueError(f'SRC={args.src}: {error}') from error
        arch = FAMILIES[args.family].arch(inside(state_dict, 'backbone.'))
        scales = [
            option for option, vector in SCALES.items()
            if any(key.endswith(vector) for key in state_dict)
        ]
        meta = dict(
            family=args.family,
            source=args.src.name,
            ema=args.ema,
            arch=arch,
            scales=scales)
        save(dict(meta=meta, state_dict=state_dict), args.dst)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    dropped = recomputed(official, args.family)
    head = state_dict.get('head.fc.weight')
    print(f'{args.family}: {", ".join(f"{key}={arch[key]}" for key in arch)}')
    print(f'converted all {len(official) - len(dropped)} official keys to '
          f'{len(state_dict)} of ours, '
          + ('no head' if head is None else f'with a head of {len(head)} classes'))
    if dropped:
        print(f'left out buffers that the model computes itself: {some(dropped)}')
    print('scaling vectors: '
          + (', '.join(f'{option}=True' for option in scales) or 'none, they would '
             'start at zero with attn_scale=True or feat_scale=True'))
    if not args.ema and {'state_dict_ema', 'model_ema'} & checkpoint.keys():
        print('SRC holds a moving average of the weights too: --ema takes that')
    print(f'wrote {args.dst}')


if __name__ == '__main__':
    main()
