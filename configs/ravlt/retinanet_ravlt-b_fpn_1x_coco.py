"""RetinaNet with RAVLT-B on COCO, 1x (12 epochs, mixed precision).
Authors' README: box AP 49.8, 57M parameters, 353 GFLOPs.
    python tools/train.py configs/ravlt/retinanet_ravlt-b_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/retinanet_ravlt-t.py', '../_base_/settings/coco-detection_ravlt-1x.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_B.pth#/RAVLT_B.pth'
model = dict(backbone=dict(arch='base', drop_path_rate=0.4), neck=dict(in_channels=[192, 384, 512]))
