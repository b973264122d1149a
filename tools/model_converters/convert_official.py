"""Convert a checkpoint of a model's official code to one of mmlinattn's models.

FAMILY     checkpoints of                                        for
soft       fudan-zvg/SOFT                                        SOFT, SOFTPlusPlus
deit       ViT-Anti-Oversmoothing, DeiT, timm, mmpretrain        VisionTransformer
cait       ViT-Anti-Oversmoothing, CaiT, timm                    CaiT
swin       ViT-Anti-Oversmoothing, Swin, timm, mmpretrain,       SwinTransformer
           mmdet, mmseg
cswin      microsoft/CSWin-Transformer                           CSWinTransformer
flatten    LeapLabTHU/FLatten-Transformer                        either, with
agent      LeapLabTHU/Agent-Attention                            attention=FAMILY
inline     LeapLabTHU/InLine                                     the same
polaformer ZacharyMeng/PolaFormer                                SwinTransformer
mlla       LeapLabTHU/MLLA                                       MLLA
ravlt      qhfan/RALA, qhfan/MALA                                RAVLT, MAViT
hvittt     LeapLabTHU/ViTTT, H-ViT^3                             HViTTT
vittt      LeapLabTHU/ViTTT, ViT^3                               ViTTT
auto       any of these, recognized by the keys

A config needs no conversion: pretrained=SRC takes the same files. This command writes
the result for other tools, and shows the source of each key.

SRC is a path, file://PATH, http(s)://ADDRESS or timm://MODEL of a state dict, bare or
under `model`, `state_dict` or, without these, `state_dict_ema`. DST is a checkpoint in
OpenMMLab's form: `backbone.`, the `head.` of a classifier, other parts unchanged. Every
key is accounted for: one left over or missing is an error. `--reverse` restores the
official names of mmlinattn's weights.

Keys don't show some options, which the config must set: attn_norm of SOFT, the heads of
its last stage, of DeiT and of CSWin, CSWin's stripe_width (7 in stage 3 of a model for
224 pixels, 12 for 384).

example:
  mim run mmlinattn convert_official soft SOFT_Tiny.pth soft-t.pth
"""

import sys
from argparse import Namespace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import (
    Parser,
    add_overwrite,
    errors_in_one_line,
    output_file,
    protect,
)

# isort: split
from mmlinattn.weights import (
    convert_back,
    find_state_dict,
    read_checkpoint,
    recognize,
    write_file,
)
from mmlinattn.weights.conversion import (
    AVERAGES,
    PREFIX,
    plan_conversion,
    recomputed,
    shortlist,
)
from mmlinattn.weights.families import FAMILIES, find_scales
from mmlinattn.weights.rows import inside

AUTO = 'auto'
FLAGS = {
    '--dry-run': 'show the source of every key, and write nothing',
    '--reverse': 'from mmlinattn to the official names',
    '--ema': 'take the moving average of the weights, if SRC has one',
    '--trust': 'unpickle everything in SRC, which can run any code in it',
}


def parse_args(argv=None):
    parser = Parser(prog=Path(__file__).name, description=__doc__)
    families = [*sorted(FAMILIES), AUTO]
    parser.add_argument('family', metavar='FAMILY', choices=families)
    parser.add_argument('src', metavar='SRC', help='checkpoint: a path or an address')
    parser.add_argument('dst', metavar='DST', type=output_file, help='file to write')
    for option, text in FLAGS.items():
        parser.add_argument(option, action='store_true', help=text)
    add_overwrite(parser)
    args = parser.parse_args(argv)
    if args.reverse and args.ema:
        parser.error('--reverse can not be used with --ema')
    return args


def convert(checkpoint: dict, args: Namespace) -> tuple[dict, list[str]]:
    """The checkpoint to write, and lines about the conversion."""
    found, ema = find_state_dict(checkpoint, args.ema)
    meta = checkpoint.get('meta')
    meta = meta if isinstance(meta, dict) else {}
    family = args.family
    if family == AUTO:
        family = meta.get('family') if args.reverse else recognize(found)
    if family not in FAMILIES:
        raise ValueError(
            f'the metadata name no family: name it, one of {sorted(FAMILIES)}'
            if args.reverse
            else f'{shortlist(found)} keys are not recognized: FAMILY={AUTO} takes '
            f'checkpoints of {", ".join(x.title for x in FAMILIES.values())}'
        )
    if args.reverse:
        written, lines = reverse(found, family, meta.get('layout'))
    else:
        written, lines = forward(found, family, args.dry_run)
        written['meta'].update(source=Path(args.src).name, ema=ema)
    if ema and not args.ema:
        lines.append('SRC holds only a moving average of the weights')
    elif not ema and set(AVERAGES) & checkpoint.keys():
        lines.append('SRC also holds a moving average of the weights: --ema takes it')
    return written, lines


def forward(official: dict, family: str, dry_run: bool) -> tuple[dict, list[str]]:
    """Converts an official checkpoint to ours."""
    plan = plan_conversion(official, family)
    ours = plan.apply(official)
    dropped = recomputed(official, family)
    lines = [f'{family}: depths={list(plan.layout.depths)}']
    if dry_run:
        lines += [f'  {key} <- {" + ".join(x)}' for key, x in plan.sources().items()]
    lines.append(
        f'converted all {len(official) - len(dropped)} official keys to {len(ours)} of '
        'ours'
    )
    if dropped:
        lines.append(
            f'left out buffers that the model computes itself: {shortlist(dropped)}'
        )
    found = list(find_scales(ours, official=False))
    scales = ', '.join(f'{option}=True' for option in found)
    none = 'none, they would start at zero with attn_scale=True or feat_scale=True'
    lines.append(f'scaling vectors: {scales or none}')
    meta = dict(family=family, layout=plan.describe(), scales=found)
    return dict(meta=meta, state_dict=ours), lines


def reverse(ours: dict, family: str, layout: dict) -> tuple[dict, list[str]]:
    """Converts one of our checkpoints to official names."""
    if not inside(ours, PREFIX):
        ours = {f'{PREFIX}{key}': value for key, value in ours.items()}
    official, plan = convert_back(ours, family, layout)
    lines = [f'  {key} -> {" + ".join(keys)}' for key, keys in plan.sources().items()]
    lines.append(
        f'converted all {len(ours)} keys of ours to {len(official)} official ones'
    )
    return {FAMILIES[family].place: official}, lines


def main(argv=None):
    args = parse_args(argv)
    with errors_in_one_line(ValueError, OSError, ImportError):
        if not args.dry_run:
            protect(args, args.dst)
        checkpoint = read_checkpoint(args.src, 'SRC', args.trust)
        try:
            written, lines = convert(checkpoint, args)
        except ValueError as error:
            raise ValueError(f'SRC={args.src}: {error}') from error
        print('\n'.join(lines))
        if args.dry_run:
            print(f'nothing written: {args.dst} was not touched')
        else:
            print(f'wrote {write_file(written, args.dst)}')


if __name__ == '__main__':
    main()
