"""Products of a large matrix with few neurons, compiled: sums in registers, vectors at full width.

torch's product in float64 goes to MKL, which keeps to AVX2 on processors of other makers and is
made for matrices that are wide both ways: with ten neurons it runs at a quarter of this speed.
Both functions work on one thread and give the same bits each time.
"""

from __future__ import annotations

from unmix.train.engines.compiled import inlined, reordered

# A tile of `dots`: neurons by points.
NEURONS, POINTS = 5, 4
# Bytes of weights that stay in the second-level cache while the points pass by.
NEAR = 2**19
# Points that `mixtures` adds at a time.
ROWS = 8


@reordered
def dots(a, x, out):  # type: ignore[no-untyped-def]
    """out [S M n] = a x^T of a [S M d] and x [S n d]; M >= NEURONS, n >= POINTS.

    The last tile of an axis reaches back over the one before and computes the same again.
    """
    (sets, m, d), n = a.shape, x.shape[1]
    strip = max(NEURONS, NEAR // (d * a.itemsize) // NEURONS * NEURONS)
    for s in range(sets):
        for first in range(0, m, strip):
            for low in range(0, n, POINTS):
                i = min(low, n - POINTS)
                for j in range(first, min(first + strip, m), NEURONS):
                    k = min(j, m - NEURONS)
                    _tile(a[s, k : k + NEURONS], x[s, i : i + POINTS], out[s, k:, i:])


@reordered
def squares(x, out):  # type: ignore[no-untyped-def]
    """out [S n n] = x x^T of x [S n d], n >= NEURONS: one half is computed, the other copied."""
    sets, n, d = x.shape
    strip = max(NEURONS, NEAR // (d * x.itemsize) // NEURONS * NEURONS)
    for s in range(sets):
        for first in range(0, n, strip):
            last = min(first + strip, n)
            for low in range(0, last, POINTS):
                i = min(low, n - POINTS)
                for j in range(first, last, NEURONS):
                    k = min(j, n - NEURONS)
                    if i < k + NEURONS:
                        _tile(x[s, k : k + NEURONS], x[s, i : i + POINTS], out[s, k:, i:])
        for j in range(n):
            for i in range(j):
                out[s, i, j] = out[s, j, i]


@inlined
def _tile(a, x, out):  # type: ignore[no-untyped-def]
    """Twenty sums side by side; spelled out, since only scalars are kept in registers."""
    b, c, e, f, g = a[0], a[1], a[2], a[3], a[4]
    p, q, r, s = x[0], x[1], x[2], x[3]
    bp = bq = br = bs = cp = cq = cr = cs = ep = eq = er = es = a[0, 0] - a[0, 0]
    fp = fq = fr = fs = gp = gq = gr = gs = bp
    for t in range(len(p)):
        v, w, y, z = p[t], q[t], r[t], s[t]
        bp, bq, br, bs = bp + b[t] * v, bq + b[t] * w, br + b[t] * y, bs + b[t] * z
        cp, cq, cr, cs = cp + c[t] * v, cq + c[t] * w, cr + c[t] * y, cs + c[t] * z
        ep, eq, er, es = ep + e[t] * v, eq + e[t] * w, er + e[t] * y, es + e[t] * z
        fp, fq, fr, fs = fp + f[t] * v, fq + f[t] * w, fr + f[t] * y, fs + f[t] * z
        gp, gq, gr, gs = gp + g[t] * v, gq + g[t] * w, gr + g[t] * y, gs + g[t] * z
    out[0, 0], out[0, 1], out[0, 2], out[0, 3] = bp, bq, br, bs
    out[1, 0], out[1, 1], out[1, 2], out[1, 3] = cp, cq, cr, cs
    out[2, 0], out[2, 1], out[2, 2], out[2, 3] = ep, eq, er, es
    out[3, 0], out[3, 1], out[3, 2], out[3, 3] = fp, fq, fr, fs
    out[4, 0], out[4, 1], out[4, 2], out[4, 3] = gp, gq, gr, gs


@reordered
def mixtures(a, x, out):  # type: ignore[no-untyped-def]
    """out [S M d] = a x of a [S M n] and x [S n d], a few rows of x at a time."""
    out[:] = 0
    n = x.shape[1]
    for s in range(len(a)):
        for i in range(0, n - n % ROWS, ROWS):
            for j in range(a.shape[1]):
                _add(out[s, j], a[s, j, i : i + ROWS], x[s, i : i + ROWS])
        for i in range(n - n % ROWS, n):
            for j in range(a.shape[1]):
                row, factor, other = out[s, j], a[s, j, i], x[s, i]
                for z in range(len(row)):
                    row[z] += factor * other[z]


@inlined
def _add(row, a, x):  # type: ignore[no-untyped-def]
    """row += a x of eight rows of x."""
    b, c, d, e, f, g, h, k = a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]
    p, q, r, s, t, u, v, w = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
    for z in range(len(row)):
        first = b * p[z] + c * q[z] + d * r[z] + e * s[z]
        row[z] += first + (f * t[z] + g * u[z] + h * v[z] + k * w[z])
