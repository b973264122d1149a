_base_ = './image_classifier.py'
model = dict(
    backbone=dict(type='mmlinattn.HViTTT', arch='tiny', drop_path_rate=0.2, out_norm=None),
    neck=dict(type='mmlinattn.ConvPoolingNeck', in_channels=512, out_channels=None),
    head=dict(in_channels=512),
)
