_base_ = './upernet_softpp-s.py'
model = dict(backbone=dict(type='mmlinattn.LinearSOFTPlusPlus'))
