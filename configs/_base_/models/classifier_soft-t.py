_base_ = './image_classifier.py'
model = dict(
    backbone=dict(type='mmlinattn.SOFT', arch='tiny', drop_path_rate=0.1, out_type='cls_token'),
    head=dict(in_channels=512),
)
