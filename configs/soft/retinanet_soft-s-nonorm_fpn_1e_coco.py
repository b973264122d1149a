"""RetinaNet with SOFT-Small (not normalized) on COCO, 1 epoch.
arXiv preprint of SOFT++, Table 10: box AP 2.3.
WEIGHTS are those of soft-s_in1k.
    python tools/train.py configs/soft/retinanet_soft-s-nonorm_fpn_1e_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_soft-t.py', '../_base_/settings/coco-detection_1e.py']
model = dict(backbone=dict(arch='small', attn_norm=False))
