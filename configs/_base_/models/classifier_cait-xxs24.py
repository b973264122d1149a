_base_ = './image_classifier.py'
model = dict(
    backbone=dict(type='mmlinattn.CaiT', arch='xxs24', drop_path_rate=0.05, out_type='cls_token'),
    head=dict(in_channels=192),
)
