_base_ = './mask-rcnn_fpn.py'
pretrained = 'https://huggingface.co/YuhengSSS/VSSD/resolve/main/vssd_tiny_best_ema.pth#/vssd_tiny_best_ema.pth'
model = dict(
    backbone=dict(type='mmlinattn.VSSD', arch='tiny', drop_path_rate=0.2), neck=dict(in_channels=[64, 128, 256, 512])
)
