"""Writes X.npy and y.npy to a folder: a probit regression of 20,000 rows and 150 columns."""
import os
import sys

import numpy as np

rng = np.random.default_rng(1)
X = rng.normal(size=(20000, 150))
np.save(os.path.join(sys.argv[1], "X.npy"), X)
np.save(os.path.join(sys.argv[1], "y.npy"), (X[:, :5].sum(axis=1) + rng.normal(size=len(X)) > 0).astype(np.int32))
