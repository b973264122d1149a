_base_ = './classifier_cait-xxs24.py'
model = dict(backbone=dict(arch='s24', drop_path_rate=0.1), head=dict(in_channels=384))
