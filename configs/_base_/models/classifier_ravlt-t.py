_base_ = './image_classifier.py'
model = dict(
    backbone=dict(type='mmlinattn.RAVLT', arch='tiny', drop_path_rate=0.1, out_norm=None),
    neck=dict(type='mmlinattn.ConvPoolingNeck', in_channels=512),
    head=dict(in_channels=1024),
)
