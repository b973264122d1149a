_base_ = './upernet_softpp-l.py'
model = dict(backbone=dict(type='mmlinattn.LinearSOFTPlusPlus'))
