"""What the study is: the paper's figures, the datasets, the method variants and the grid of runs."""
