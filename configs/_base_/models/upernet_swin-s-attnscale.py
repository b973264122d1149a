_base_ = './upernet_swin-t.py'
model = dict(backbone=dict(arch='small', drop_path_rate=0.3, attn_scale=True))
