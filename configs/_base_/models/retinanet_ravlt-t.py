_base_ = './retinanet_fpn.py'
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_T.pth#/RAVLT_T.pth'
model = dict(
    backbone=dict(
        type='mmlinattn.RAVLT', arch='tiny', drop_path_rate=0.1, norm_cfg=dict(type='SyncBN', requires_grad=True)
    ),
    neck=dict(in_channels=[128, 256, 512]),
)
