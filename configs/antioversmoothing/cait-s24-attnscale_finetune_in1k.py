"""CaiT-S24 + AttnScale on ImageNet-1k, 60 epochs from a pretrained CaiT-S24.
Paper: top-1 82.8 (82.6 without AttnScale), 46.916M + 192 parameters.
WEIGHTS: a classifier's checkpoint, with or without AttnScale. Its class layers and its head are needed, so it is
`load_from` that names it.
    python tools/train.py configs/antioversmoothing/cait-s24-attnscale_finetune_in1k.py --cfg-options load_from=WEIGHTS
"""

_base_ = ['../_base_/models/classifier_cait-s24-attnscale.py', '../_base_/settings/in1k-224_deit-finetune-60e.py']
