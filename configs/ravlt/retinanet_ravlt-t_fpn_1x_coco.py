"""RetinaNet with RAVLT-T on COCO, 1x (12 epochs, mixed precision).
Authors' README: box AP 45.9, 24M parameters, 201 GFLOPs.
    python tools/train.py configs/ravlt/retinanet_ravlt-t_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/retinanet_ravlt-t.py', '../_base_/settings/coco-detection_ravlt-1x.py']
