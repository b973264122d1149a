"""Cascade Mask R-CNN with MMDetection's heads for ConvNeXt, which are RAVLT's: four convolutions and GIoU."""

pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_S.pth#/RAVLT_S.pth'
__theirs = __import__('mmlinattn.configs').configs.library_config(
    'mmdet::convnext/cascade-mask-rcnn_convnext-t-p4-w7_fpn_4conv1fc-giou_amp-ms-crop-3x_coco.py'
)
model = __theirs.model
model.backbone = dict(
    type='mmlinattn.RAVLT', arch='small', drop_path_rate=0.15, norm_cfg=dict(type='SyncBN', requires_grad=True)
)
model.neck.in_channels = [64, 128, 320, 512]
