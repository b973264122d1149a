"""Convert a checkpoint of a model's official code to one of mmlinattn's models.

FAMILY     checkpoints of                                        for
soft       fudan-zvg/SOFT                                        SOFT, SOFTPlusPlus
deit       ViT-Anti-Oversmoothing, DeiT, timm, mmpretrain        VisionTransformer
cait       ViT-Anti-Oversmoothing, CaiT, timm                    CaiT
swin       ViT-Anti-Oversmoothing, Swin, timm, mmpretrain,       SwinTransformer
           mmdet, mmseg
cswin      microsoft/CSWin-Transformer                           CSWinTransformer
mmlinattn  mmlinattn itself, for --publish
auto       any of these: told from the keys

A config needs no conversion: pretrained=SRC, or init_cfg=dict(type='Pretrained',
checkpoint=SRC), takes the same files and converts them when it loads. This command
writes the result for other tools, and shows what goes where.

SRC is a path of a .pth, .pth.tar or .safetensors file, file://PATH, http(s)://ADDRESS
or timm://MODEL: a state dict, bare or under `model`, `state_dict` or, where there is
nothing else, `state_dict_ema`. DST gets a checkpoint as OpenMMLab writes it: weights
under `backbone.`, those of a classifier under `head.` as mmpretrain's LinearClsHead
names them, those of a detector's or segmentor's other parts as they were. Every key is
accounted for: one left over or missing, as in a checkpoint of another family, is an
error.

AttnScale's and FeatScale's vectors, of VITA-Group/ViT-Anti-Oversmoothing, are found
by their keys. A checkpoint without them is a start for fine-tuning: a backbone with
attn_scale or feat_scale loads it and starts these vectors at zero, where they change
nothing.

Swin and CSWin are converted for attention='local', their own. `--attention elfatt`
writes what they can start attention='elfatt' with, the rest at its initial values, and
says of every key where it is from; `--arch t24181` does so for the paper's depths,
which are not the official checkpoints' own.

`--reverse` gives weights of mmlinattn the official names again; those of a converted
checkpoint become exactly what they were.

Sizes are read from the keys. What the keys don't tell stays with the config: whether
SOFT's kernel is normalized (attn_norm), the heads of its last stage, of DeiT and of
CSWin, CSWin's stripe_width (7 in stage 3 of a model for 224 pixels, 12 for 384).

example:
  mim run mmlinattn convert_official soft SOFT_Tiny.pth soft-t.pth
or, in the source tree:
  python tools/model_converters/convert_official.py soft SOFT_Tiny.pth soft-t.pth
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser, errors_in_one_line
from mmlinattn_tools.conversion import add_arguments, run


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command line tool."""
    parser = Parser(prog=Path(__file__).name, description=__doc__)
    add_arguments(parser)
    args = parser.parse_args(argv)
    with errors_in_one_line(ValueError, OSError, ImportError):
        print(run(args))


if __name__ == '__main__':
    main()
