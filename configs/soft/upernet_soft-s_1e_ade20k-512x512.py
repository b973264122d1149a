"""UperNet with SOFT-Small (normalized) on ADE20K, 1 epoch.
arXiv preprint of SOFT++, Table 10: mIoU 39.5.
WEIGHTS are those of soft-s-norm_in1k.
    python tools/train.py configs/soft/upernet_soft-s_1e_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_soft-s.py', '../_base_/settings/ade20k-512x512_soft-1e.py']
