_base_ = './mask-rcnn_fpn.py'
pretrained = 'https://dl.fbaipublicfiles.com/deit/deit_small_patch16_224-cd65a155.pth'
model = dict(
    backbone=dict(type='mmlinattn.VisionTransformer', arch='deit-small', num_layers=12, drop_path_rate=0.1),
    neck=dict(_delete_=True, type='mmlinattn.SimpleFeaturePyramid', in_channels=384, num_outs=5),
)
