"""Convert a checkpoint of a model's official code to one of mmlinattn's models.

FAMILY  official code     for
soft    fudan-zvg/SOFT    mmlinattn.SOFT, mmlinattn.SOFTPlusPlus

SRC is a state dict, bare or under `model` or `state_dict`. DST gets a checkpoint as
OpenMMLab writes it: weights under `backbone.`, those of a classifier under `head.`
as mmpretrain's LinearClsHead names them. Every key is accounted for: one left over
or missing, as in a checkpoint of another family, is an error.

Sizes are read from the keys. What the keys don't tell stays with the config: whether
SOFT's kernel is normalized (attn_norm), and the heads of its last stage.

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
import re
import warnings
from pathlib import Path
from typing import Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

import torch
from torch import Tensor

StateDict = Dict[str, Tensor]

WHOLE = ('', )
WEIGHT = ('weight', )
LINEAR = NORM = ('weight', 'bias')
BATCH_NORM = NORM + ('running_mean', 'running_var', 'num_batches_tracked')


class Row(NamedTuple):
    """What one of our modules is made of.

    Attributes:
        ours: Its name in our model.
        official: Its name in the official one; the tensors of several, joined by
            ' + ', are stacked.
        tensors: Names of its tensors; ('', ) for a parameter without a module.
    """
    ours: str
    official: str
    tensors: Tuple[str, ...] = WHOLE

    def sources(self) -> Dict[str, List[str]]:
        """The official keys of each of our keys."""
        modules = self.official.split(' + ')
        return {
            f'{self.ours}.{tensor}'.strip('.'):
            [f'{module}.{tensor}'.strip('.') for module in modules]
            for tensor in self.tensors
        }


class Family(NamedTuple):
    """One official code base.

    Attributes:
        rows: From official keys to the backbone's rows. They are complete, so that
            they tell what the keys lack.
        arch: From an official state dict to the sizes that it shows.
    """
    rows: Callable[[Iterable[str]], List[Row]]
    arch: Callable[[StateDict], dict]


def nested(ours: str, official: str, rows: Iterable[Row]) -> List[Row]:
    """Rows of a module as rows of the one that holds it under these prefixes."""
    return [
        Row(ours + row.ours,
            ' + '.join(official + name for name in row.official.split(' + ')),
            row.tensors) for row in rows
    ]


def count_blocks(keys: Iterable[str], prefix: str) -> int:
    """Number of blocks below a prefix, at least 1: no stage is without."""
    found = (re.match(rf'{re.escape(prefix)}(\d+)\.', key) for key in keys)
    return max((int(match[1]) for match in found if match), default=0) + 1


# ----------------------------------------------------------------------- soft
SOFT_STEM = (
    Row('0.0', '0', LINEAR),
    Row('0.1', '1', BATCH_NORM),
    Row('1.0', '3', LINEAR),
    Row('1.1', '4', BATCH_NORM),
    Row('2.0', '6', LINEAR),
    Row('2.1', '7', BATCH_NORM),
)
SOFT_MERGING = (
    Row('layer.0', '0', LINEAR),
    Row('layer.1', '1', BATCH_NORM),
)
SOFT_BLOCK = (
    Row('attn.q', 'att.mha.W_q', LINEAR),
    Row('attn.v', 'att.mha.W_v', LINEAR),
    Row('attn.sampler.conv', 'att.mha.attn.Qlandmark_op', WEIGHT),
    Row('attn.sampler.norm', 'att.mha.attn.Qnorm_act.0', NORM),
    Row('attn.local_conv', 'att.mha.attn.conv', WEIGHT),
    Row('attn.proj', 'att.mha.ff', LINEAR),
    Row('norm1', 'att.norm1', NORM),
    Row('ffn.layers.0.0', 'att.ff1', LINEAR),
    Row('ffn.layers.1', 'att.ff2', LINEAR),
    Row('norm2', 'att.norm2', NORM),
)
SOFT_LAST_BLOCK = (
    Row('norm1', 'norm1', NORM),
    Row('attn.qkv', 'attn.q + attn.kv', LINEAR),
    Row('attn.proj', 'attn.proj', LINEAR),
    Row('norm2', 'norm2', NORM),
    Row('ffn.layers.0.0', 'mlp.fc1', LINEAR),
    Row('ffn.layers.1', 'mlp.fc2', LINEAR),
)


def soft_rows(keys: Iterable[str]) -> List[Row]:
    """Rows of SOFT, whose official stages count from 1."""
    rows = [Row('stages.3.cls_token', 'cls_token'), Row('norm3', 'norm', NORM)]
    for i, number in enumerate('1234'):
        rows.append(Row(f'stages.{i}.pos_embed.table', f'pos_embed{number}'))
        rows += nested(f'stages.{i}.embedding.', f'patch_embed{number}.proj.',
                       SOFT_MERGING if i else SOFT_STEM)
        for j in range(count_blocks(keys, f'block{number}.')):
            rows += nested(f'stages.{i}.blocks.{j}.', f'block{number}.{j}.',
                           SOFT_LAST_BLOCK if i == 3 else SOFT_BLOCK)
    return rows


def soft_arch(state_dict: StateDict) -> dict:
    """Widths and depths; the heads of the last stage leave no trace."""
    return dict(
        embed_dims=[state_dict[f'pos_embed{i}'].size(-1) for i in '1234'],
        depths=[count_blocks(state_dict, f'block{i}.') for i in '1234'])


FAMILIES = dict(soft=Family(soft_rows, soft_arch))


# --------------------------------------------------------------------- shared
def some(names: Iterable) -> str:
    """The number of names and the first few of them."""
    names = [str(name) for name in names]
    shown = names[:3] + ['...'] * (len(names) > 3)
    return f'{len(names)} ({", ".join(shown)})' if names else '0'


def convert(state_dict: StateDict, family: str) -> StateDict:
    """Rename and merge the weights of an official model.

    Args:
        state_dict: Official names and tensors, all of one model.
        family: A key of FAMILIES.

    Returns:
        Ours, with the prefixes `backbone.` and, if there is a head, `head.`.

    Raises:
        ValueError: If a key is missing or left over.
    """
    rows = nested('backbone.', '', FAMILIES[family].rows(state_dict))
    if any(key.startswith('head.') for key in state_dict):
        rows.append(Row('head.fc', 'head', LINEAR))
    sources = {ours: keys for row in rows for ours, keys in row.sources().items()}
    expected = [key for keys in sources.values() for key in keys]
    missing = [key for key in expected if key not in state_dict]
    leftover = sorted(state_dict.keys() - set(expected))
    if missing or leftover:
        raise ValueError(
            f'these are not the keys of a whole official {family!r} model: missing '
            f'{some(missing)}, left over {some(leftover)}')
    return {
        ours: torch.cat([state_dict[key] for key in keys])
        if len(keys) > 1 else state_dict[keys[0]]
        for ours, keys in sources.items()
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
        arch = FAMILIES[args.family].arch(official)
        meta = dict(family=args.family, source=args.src.name, ema=args.ema, arch=arch)
        save(dict(meta=meta, state_dict=state_dict), args.dst)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    head = state_dict.get('head.fc.weight')
    print(f'{args.family}: {", ".join(f"{key}={arch[key]}" for key in arch)}')
    print(f'converted all {len(official)} official keys to {len(state_dict)} of ours, '
          + ('no head' if head is None else f'with a head of {len(head)} classes'))
    if not args.ema and {'state_dict_ema', 'model_ema'} & checkpoint.keys():
        print('SRC holds a moving average of the weights too: --ema takes that')
    print(f'wrote {args.dst}')


if __name__ == '__main__':
    main()
