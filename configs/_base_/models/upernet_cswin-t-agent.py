_base_ = './upernet_cswin-t.py'
model = dict(backbone=dict(attention='agent'))
