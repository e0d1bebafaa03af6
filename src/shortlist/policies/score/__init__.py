"""How good the model is while people label, how much more labelling would help, and which answers to look at again.

`audit` keeps the sample that is asked about and not learned from, `interval` computes from it the model's accuracy,
`projection` what further questions promise, and `doubt` which answers a model finds hard to believe.
"""
