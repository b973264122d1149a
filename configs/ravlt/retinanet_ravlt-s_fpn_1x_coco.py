"""RetinaNet with RAVLT-S on COCO, 1x (12 epochs, mixed precision).
Authors' README: box AP 48.3, 34M parameters, 244 GFLOPs.
    python tools/train.py configs/ravlt/retinanet_ravlt-s_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/retinanet_ravlt-t.py', '../_base_/settings/coco-detection_ravlt-1x.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_S.pth#/RAVLT_S.pth'
model = dict(backbone=dict(arch='small', drop_path_rate=0.15), neck=dict(in_channels=[128, 320, 512]))
