"""RetinaNet with SOFT-Small (normalized) on COCO, 1 epoch.
arXiv preprint of SOFT++, Table 10: box AP 28.5.
WEIGHTS are those of soft-s-norm_in1k.
    python tools/train.py configs/soft/retinanet_soft-s_fpn_1e_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_soft-t.py', '../_base_/settings/coco-detection_1e.py']
model = dict(backbone=dict(arch='small'))
