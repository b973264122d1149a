_base_ = './upernet_swin-t.py'
model = dict(backbone=dict(attention='elfatt'))
