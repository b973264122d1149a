"""RetinaNet with RAVLT-L on COCO, 1x (12 epochs, mixed precision).
Authors' README: box AP 50.9, 104M parameters, 482 GFLOPs.
    python tools/train.py configs/ravlt/retinanet_ravlt-l_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/retinanet_ravlt-t.py', '../_base_/settings/coco-detection_ravlt-1x.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_L.pth#/RAVLT_L.pth'
model = dict(backbone=dict(arch='large', drop_path_rate=0.55), neck=dict(in_channels=[192, 448, 640]))
