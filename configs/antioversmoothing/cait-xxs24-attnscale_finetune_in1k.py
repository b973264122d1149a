"""CaiT-XXS24 + AttnScale on ImageNet-1k, 60 epochs from a pretrained CaiT-XXS24.

Paper: top-1 77.8 (77.5 without AttnScale), 11.956M + 96 parameters.

WEIGHTS: a classifier's checkpoint, with or without AttnScale. Its class layers
and its head are needed, so it is `load_from` that names it.

    python tools/train.py \
        configs/antioversmoothing/cait-xxs24-attnscale_finetune_in1k.py \
        --cfg-options load_from=WEIGHTS
"""

_base_ = './cait-s24-attnscale_finetune_in1k.py'

model = dict(
    backbone=dict(arch='xxs24', drop_path_rate=0.05), head=dict(in_channels=192)
)
