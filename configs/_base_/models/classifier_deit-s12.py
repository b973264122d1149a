_base_ = './image_classifier.py'
model = dict(
    backbone=dict(
        type='mmlinattn.VisionTransformer', arch='deit-small', num_layers=12, drop_path_rate=0.1, out_type='cls_token'
    ),
    head=dict(in_channels=384),
)
