_base_ = './upernet_softpp-m.py'
# drop path as its authors set it for Cityscapes
model = dict(
    backbone=dict(drop_path_rate=0.3),
    data_preprocessor=dict(size=(768, 768)),
    decode_head=dict(num_classes=19),
    auxiliary_head=dict(num_classes=19),
    test_cfg=dict(mode='slide', crop_size=(768, 768), stride=(512, 512)),
)
