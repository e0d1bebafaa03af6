"""How good the model is while people label, how much more labelling would help, and which answers to look at again.

`audit` is the sample that is asked about and not learned from, `interval` what it says about the model's accuracy,
`projection` what further questions promise, `doubt` which answers a model finds hard to believe.
"""
