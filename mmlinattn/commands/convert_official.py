"""Convert a checkpoint of a model's official code to one of mmlinattn's models.

A config needs no conversion: pretrained=SRC takes the same files. This command writes
the result for other tools.

SRC is a path, file://PATH, http(s)://ADDRESS or timm://MODEL of a state dict, bare or
under `model`, `state_dict` or, without these, `state_dict_ema`. DST is a checkpoint in
OpenMMLab's form: `backbone.`, the `head.` of a classifier, other parts unchanged. Every
key is accounted for: one left over or missing is an error. `--reverse` restores the
official names of mmlinattn's weights.

Keys don't show some options, which the config must set: attn_norm of SOFT, the heads of
its last stage, of DeiT and of CSWin, CSWin's stripe_width (7 in stage 3 of a model for
224 pixels, 12 for 384).

example:
  mmlinattn convert soft SOFT_Tiny.pth soft-t.pth
"""

import argparse
from collections.abc import Sequence
from typing import Any, Optional

from mmlinattn.cli import parser as cli
from mmlinattn.utils.names import inside, shortlist
from mmlinattn.weights import (
    convert_back,
    find_state_dict,
    read_checkpoint,
    recognize,
    write_file,
)
from mmlinattn.weights.conversion import AVERAGES, PREFIX, plan_conversion
from mmlinattn.weights.families import FAMILIES

AUTO = 'auto'


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    families = '; '.join(f'{key}: {family.title}' for key, family in FAMILIES.items())
    text = f'the official code, {AUTO} for the one that keys tell: {families}'
    add('family', metavar='FAMILY', choices=[*sorted(FAMILIES), AUTO], help=text)
    add('src', metavar='SRC', help='checkpoint: a path or an address')
    add('dst', metavar='DST', type=cli.output_file, help='file to write')
    text = 'from mmlinattn to the official names'
    add('--reverse', action='store_true', help=text)
    text = 'take the moving average of the weights, if SRC has one'
    add('--ema', action='store_true', help=text)
    text = 'unpickle everything in SRC, which can run any code in it'
    add('--trust', action='store_true', help=text)
    cli.add_overwrite(parser)
    return parser.parse_args(argv)


def convert(
    weights: dict[str, Any], meta: dict[str, Any], args: argparse.Namespace
) -> dict[str, Any]:
    """Return a checkpoint of our weights, made of official ones, or the reverse."""
    family = args.family
    if family == AUTO:
        family = meta.get('family') if args.reverse else recognize(weights)
    if family not in FAMILIES:
        titles = ', '.join(known.title for known in FAMILIES.values())
        raise ValueError(
            f'{shortlist(weights)} keys are not recognized: FAMILY={AUTO} takes '
            f'checkpoints of {titles}, and with --reverse those that this command has '
            'written'
        )
    if args.reverse:
        if not inside(weights, PREFIX):
            weights = {f'{PREFIX}{key}': value for key, value in weights.items()}
        official, _ = convert_back(weights, family, meta.get('layout'))
        print(f'converted {len(weights)} keys of ours to {len(official)} official ones')
        return {FAMILIES[family].place: official}
    plan = plan_conversion(weights, family)
    ours = plan.apply(weights)
    print(f'converted {len(weights)} official keys to {len(ours)} of ours: {family}')
    return dict(meta=dict(family=family, layout=plan.describe()), state_dict=ours)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    args = parse_args(argv)
    with cli.errors_in_one_line(ValueError, OSError, ImportError):
        cli.protect(args, args.dst)
        checkpoint = read_checkpoint(args.src, 'SRC', args.trust)
        with cli.error_of(f'SRC={args.src}: '):
            state_dict, average = find_state_dict(checkpoint, args.ema)
            written = convert(state_dict, checkpoint.get('meta') or {}, args)
        if not average and {*AVERAGES} & checkpoint.keys():
            print('SRC also holds a moving average of the weights: --ema takes it')
        print(f'wrote {write_file(written, args.dst)}')


if __name__ == '__main__':
    main()
