"""UperNet with SOFT-Small (not normalized) on ADE20K, 1 epoch.
arXiv preprint of SOFT++, Table 10: mIoU 10.7.
WEIGHTS are those of soft-s_in1k.
    python tools/train.py configs/soft/upernet_soft-s-nonorm_1e_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_soft-s.py', '../_base_/settings/ade20k-512x512_soft-1e.py']
model = dict(backbone=dict(attn_norm=False))
