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
ravlt      qhfan/RALA                                            RAVLT
mmlinattn  mmlinattn itself, for --publish
auto       any of these: told from the keys

A config needs no conversion: pretrained=SRC takes the same files. This command writes
the result for other tools, and shows what goes where.

SRC is a path, file://PATH, http(s)://ADDRESS or timm://MODEL of a state dict, bare or
under `model`, `state_dict` or, where there is nothing else, `state_dict_ema`. DST gets
a checkpoint as OpenMMLab writes it: `backbone.`, the `head.` of a classifier, other
parts as they were. Every key is accounted for: one left over or missing is an error.

The vectors of AttnScale and FeatScale are found by their keys. Without them, a backbone
with attn_scale or feat_scale starts them at zero, where they change nothing.

Swin and CSWin are converted for attention='local', their own. `--attention elfatt`
writes what they can start attention='elfatt' with, and where each key is from;
`--arch t24181` does so for the paper's depths. `--reverse` gives weights of mmlinattn
the official names again.

What the keys don't tell stays with the config: whether SOFT's kernel is normalized
(attn_norm), the heads of its last stage, of DeiT and of CSWin, CSWin's stripe_width (7
in stage 3 of a model for 224 pixels, 12 for 384).

example:
  mim run mmlinattn convert_official soft SOFT_Tiny.pth soft-t.pth
"""

import sys
from argparse import Namespace
from pathlib import Path

import torch
from mmengine.logging import MMLogger

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn.registry import build_model
from mmlinattn.weights import (
    convert_back,
    find_state_dict,
    read_checkpoint,
    recognize,
    write_file,
)
from mmlinattn.weights.conversion import (
    AVERAGES,
    OURS,
    PREFIX,
    known_models,
    plan_conversion,
    recomputed,
    shortlist,
)
from mmlinattn.weights.families import FAMILIES, find_scales
from mmlinattn.weights.rows import inside
from mmlinattn.weights.start import is_early_norm, plan_start
from mmlinattn_tools.cli import Parser, add_overwrite, errors_in_one_line

AUTO = 'auto'
# families that have a model with ELFATT, and its class
ELFATT = dict(swin='SwinTransformer', cswin='CSWinTransformer')
FLAGS = {
    '--dry-run': 'say of every key where it goes, and write nothing',
    '--reverse': 'from mmlinattn to the official names',
    '--publish': 'put 8 digits of the hash in the name of DST, as OpenMMLab does',
    '--ema': 'take the moving average of the weights, where SRC has one',
    '--trust': 'unpickle all that SRC holds, which can run any code that is in it',
}


def parse_args(argv=None):
    parser = Parser(prog=Path(__file__).name, description=__doc__)
    families = [*sorted(FAMILIES), OURS, AUTO]
    parser.add_argument('family', metavar='FAMILY', choices=families)
    parser.add_argument('src', metavar='SRC', help='checkpoint: a path or an address')
    parser.add_argument('dst', metavar='DST', type=Path, help='file to write')
    for option, text in FLAGS.items():
        parser.add_argument(option, action='store_true', help=text)
    add_overwrite(parser)
    parser.add_argument(
        '--attention',
        choices=('local', 'elfatt'),
        default='local',
        help="of the model: local, the family's own, or elfatt, which a Swin or CSWin "
        'starts with what fits (default: local)',
    )
    parser.add_argument(
        '--arch',
        metavar='NAME',
        help='for --attention elfatt, such as t24181 (default: the sizes of SRC)',
    )
    return parser.parse_args(argv)


def check(args: Namespace) -> None:
    """Raises an error for options that don't go together, before reading anything."""
    if args.attention == 'elfatt' and args.family not in (*ELFATT, AUTO):
        raise ValueError(
            f'--attention elfatt needs FAMILY={" or ".join(ELFATT)}, got {args.family}'
        )
    if args.arch and args.attention != 'elfatt':
        raise ValueError(f'--arch {args.arch} needs --attention elfatt')
    if args.reverse and (args.attention == 'elfatt' or args.ema):
        raise ValueError('--reverse goes with neither --attention elfatt nor --ema')
    if args.family == OURS and (args.reverse or not (args.publish or args.dry_run)):
        raise ValueError(f'FAMILY={OURS} converts nothing: it needs --publish')
    if args.dst.is_dir():
        raise IsADirectoryError(f'DST={args.dst} is a folder: name a file')
    if args.dst.exists() and not (args.overwrite or args.dry_run or args.publish):
        raise FileExistsError(f'DST={args.dst} exists: give --overwrite to replace it')


def convert(checkpoint: dict, args: Namespace) -> tuple[dict, list[str]]:
    """The checkpoint to write, and lines that say what was done."""
    found, ema = find_state_dict(checkpoint, args.ema)
    meta = checkpoint.get('meta')
    meta = meta if isinstance(meta, dict) else {}
    family = args.family
    if family == AUTO:
        family = meta.get('family') if args.reverse else recognize(found)
    if family not in (*FAMILIES, OURS):
        raise ValueError(
            f'metadata say no family to go back to: name it, one of {sorted(FAMILIES)}'
            if args.reverse
            else f'{shortlist(found)} keys are not recognized: FAMILY={AUTO} takes '
            f'checkpoints of {known_models()}'
        )
    if args.reverse:
        written, lines = reverse(found, family, meta.get('layout'))
    elif family == OURS:
        written, lines = publish(found, meta, checkpoint)
    else:
        written, lines = forward(found, family, args)
        written['meta'].update(source=Path(args.src).name, ema=ema)
    if ema and not args.ema:
        lines.append('these are a moving average of the weights, all that SRC holds')
    elif not ema and set(AVERAGES) & checkpoint.keys():
        lines.append('SRC holds a moving average of the weights too: --ema takes that')
    return written, lines


def forward(official: dict, family: str, args: Namespace) -> tuple[dict, list[str]]:
    """A checkpoint of ours, from an official one."""
    plan = plan_conversion(official, family)
    ours = plan.apply(official)
    origin = {key: ' + '.join(keys) for key, keys in plan.sources().items()}
    dropped = recomputed(official, family)
    lines = [f'{family}: depths={list(plan.layout.depths)}']
    meta = dict(family=family, attention=args.attention, layout=plan.describe())
    if args.attention == 'elfatt':
        if family not in ELFATT:
            raise ValueError(f'--attention elfatt needs a Swin or CSWin, got {family}')
        depths = plan.layout.depths
        ours, report = start_elfatt(ours, origin, family, depths, args.arch)
        lines += report
    else:
        if args.dry_run:
            lines += [f'  {key} <- {keys}' for key, keys in origin.items()]
        lines.append(
            f'converted all {len(official) - len(dropped)} official keys to '
            f'{len(ours)} of ours'
        )
    heads = sorted({key.partition('.')[0] for key in ours} - {'backbone'})
    lines.append(f'besides the backbone: {", ".join(heads) or "no head"}')
    if 'head.fc.weight' in ours:
        lines[-1] += f' of {len(ours["head.fc.weight"])} classes'
    if dropped:
        lines.append(
            f'left out buffers that the model computes itself: {shortlist(dropped)}'
        )
    meta['scales'] = list(find_scales(ours, official=False))
    scales = ', '.join(f'{option}=True' for option in meta['scales'])
    none = 'none, they would start at zero with attn_scale=True or feat_scale=True'
    lines.append(f'scaling vectors: {scales or none}')
    return dict(meta=meta, state_dict=ours), lines


def reverse(ours: dict, family: str, layout: dict) -> tuple[dict, list[str]]:
    """A checkpoint with official names, from one of ours."""
    if not inside(ours, PREFIX):
        ours = {f'{PREFIX}{key}': value for key, value in ours.items()}
    official, plan = convert_back(ours, family, layout)
    lines = [f'  {key} -> {" + ".join(keys)}' for key, keys in plan.sources().items()]
    lines.append(
        f'converted all {len(ours)} keys of ours to {len(official)} official ones'
    )
    return {FAMILIES[family].place: official}, lines


def publish(ours: dict, meta: dict, checkpoint: dict) -> tuple[dict, list[str]]:
    """A checkpoint of ours without what only its training needs."""
    if recognize(ours) != OURS:
        raise ValueError(f'{shortlist(ours)} keys are not those of a model of {OURS}')
    kept = dict(meta=meta, state_dict=ours)
    dropped = [key for key in checkpoint if key not in kept]
    dropped = dropped if 'state_dict' in checkpoint else []
    return kept, [f'kept {len(ours)} entries; left out: {shortlist(dropped)}']


def start_elfatt(local, origin, family, depths, arch):
    """Turns a converted Swin or CSWin into the start of an ELFATT model.

    The start lacks nothing but norms of maps before the last one, which a classifier
    hasn't and a backbone initializes itself. Initial values are always the same random
    ones.
    """
    backbone = inside(local, PREFIX)
    width = len(backbone['stages.0.embedding.layer.0.bias'])
    # heads change no weights: any that divide the channels do
    sizes = dict(embed_dims=width, depths=depths, num_heads=[2] * len(depths))
    # MMEngine's initialization prints every parameter
    MMLogger.get_current_instance().setLevel('WARNING')
    torch.manual_seed(0)
    model = build_model(
        dict(type=ELFATT[family], arch=arch or sizes, attention='elfatt')
    )
    model.init_weights()
    initial = model.state_dict()
    start = plan_start(model, backbone)
    written = {key: x for key, x in local.items() if not key.startswith(PREFIX)}
    lines = [f'{key} <- {origin[key]}' for key in written]
    lines += start.describe(inside(origin, PREFIX))
    lines.append(
        f"{len(start.taken)} of {len(initial)} entries of attention='elfatt' taken, "
        f'{len(start.recut)} of them cut otherwise'
    )
    initial = {k: x for k, x in initial.items() if not is_early_norm(k, len(depths))}
    for key, value in {**initial, **start.apply(backbone)}.items():
        written[PREFIX + key] = value
    return written, lines


def main(argv=None):
    args = parse_args(argv)
    with errors_in_one_line(ValueError, OSError, ImportError):
        check(args)
        checkpoint = read_checkpoint(args.src, 'SRC', args.trust)
        try:
            written, lines = convert(checkpoint, args)
        except ValueError as error:
            raise ValueError(f'SRC={args.src}: {error}') from error
        print('\n'.join(lines))
        if args.dry_run:
            print(f'nothing written: {args.dst} was not touched')
        else:
            print(f'wrote {write_file(written, args.dst, add_hash=args.publish)}')


if __name__ == '__main__':
    main()
