"""CaiT-XXS24 + FeatScale on ImageNet-1k, 300 epochs at 224 x 224.

Paper: 11.956M + 9,216 parameters; top-1 77.8 (77.5 without FeatScale)
by fine-tuning, see cait-xxs24-featscale_finetune_in1k.py.

    python tools/train.py configs/antioversmoothing/cait-xxs24-featscale_in1k.py
"""

_base_ = './cait-s24-featscale_in1k.py'

model = dict(
    backbone=dict(arch='xxs24', drop_path_rate=0.05), head=dict(in_channels=192)
)
