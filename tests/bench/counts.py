"""Counts for data of benches."""
import math


def poisson(r, mean):
    """A draw by inversion, from one number of r; mean up to some hundreds."""
    n, p = 0, math.exp(-mean)
    total, at = p, r.random()
    while at > total:
        n += 1
        p *= mean / n
        total += p
    return n
